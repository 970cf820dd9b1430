//! `ebbtide put --burst` and `post --burst`: a file with several blocks in flight.

use crate::client::TalkArgs;
use crate::failure::Failure;
use core::convert::Infallible;
use ebbtide::client::Upload;
use ebbtide::{Client, Request, Response};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::Path;
use std::time::Duration;

/// The default control of a burst.
const CONTROL: &str = "rcoap";
/// How long the transfer runs before a progress bar is shown.
const UNSEEN: Duration = Duration::from_secs(2);

/// The reason why the upload ended without an answer.
enum BurstEnd {
    Interrupted,
    TimedOut,
    Error(ebbtide::Error),
}

/// The client options, with a paced control unless another one is given.
pub(crate) fn talk(talk: &TalkArgs) -> TalkArgs {
    TalkArgs { cc: talk.cc.clone().or_else(|| Some(CONTROL.to_owned())), ..talk.clone() }
}

/// Sends `file` as the request's body, and returns the response.
///
/// # Errors
///
/// Returns an error if the server does not accept the file or the upload is interrupted; the
/// message names the unacknowledged bytes.
pub(crate) async fn send(
    client: &Client,
    request: Request,
    file: &Path,
    timeout: Option<Duration>,
) -> Result<Response, Failure> {
    let body = std::fs::read(file)
        .map_err(|error| Failure::usage(format_args!("--burst {}: {error}", file.display())))?;
    let bytes = body.len();
    let bar = bar(bytes);
    let told = bar.clone();
    let upload = client.upload(request.payload(body)).await?;
    let mut upload = upload.on_progress(move |done| told.set_position(done as u64));
    let began = now();
    let answer = run(&mut upload, &bar, timeout).await;
    bar.finish_and_clear();
    let ended = match answer {
        Ok(response) => {
            if response.is_success() {
                let repeated = client.snapshot().counters.retransmissions;
                eprintln!("{}", summary(bytes, now() - began, repeated, &upload));
                if upload.is_doubtful() {
                    eprintln!(
                        "ebbtide: the last block was repeated; a server that does not recognise copies \
                         may hold that block alone: compare what it has"
                    );
                }
            }
            return Ok(response);
        }
        Err(ended) => ended,
    };
    let missing = missing(&upload, bytes);
    match ended {
        BurstEnd::Interrupted => Err(Failure::work(format_args!("interrupted: {missing}"))),
        BurstEnd::TimedOut => Err(Failure::work(format_args!("--timeout has passed: {missing}"))),
        BurstEnd::Error(error) => Err(Failure::work(format_args!("{error}: {missing}"))),
    }
}

/// Waits for the answer, until the time limit passes or the user interrupts.
async fn run(
    upload: &mut Upload,
    bar: &ProgressBar,
    timeout: Option<Duration>,
) -> Result<Response, BurstEnd> {
    let patience = async {
        match timeout {
            Some(span) => tokio::time::sleep(span).await,
            None => core::future::pending().await,
        }
    };
    let seen = async {
        tokio::time::sleep(UNSEEN).await;
        bar.set_draw_target(ProgressDrawTarget::stderr());
        core::future::pending::<Infallible>().await
    };
    tokio::select! {
        answer = upload.run() => answer.map_err(BurstEnd::Error),
        () = patience => Err(BurstEnd::TimedOut),
        _ = tokio::signal::ctrl_c() => Err(BurstEnd::Interrupted),
        never = seen => match never {},
    }
}

#[expect(clippy::disallowed_methods, reason = "what a transfer took is wall time")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// A progress bar over bytes that is not shown yet.
fn bar(bytes: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(bytes as u64), ProgressDrawTarget::hidden());
    let style = "{wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar
}

fn summary(bytes: usize, took: Duration, repeated: u64, upload: &Upload) -> String {
    let rate = bytes as f64 * 8.0 / took.as_secs_f64().max(1e-6) / 1000.0;
    let seconds = took.as_secs_f64();
    let order = match upload.resent() {
        _ if upload.is_in_order() => {
            ", one block at a time: the server accepts no other order".to_owned()
        }
        0 => String::new(),
        blocks => format!(", {blocks} blocks sent again, in order: the server may accept no other"),
    };
    format!(
        "{bytes} bytes in {seconds:.1} s, {rate:.0} kbit/s, {repeated} messages repeated{order}"
    )
}

/// The bytes that were not acknowledged.
fn missing(upload: &Upload, bytes: usize) -> String {
    let ranges: Vec<String> = upload
        .unacknowledged()
        .iter()
        .map(|range| format!("{}-{}", range.start, range.end.saturating_sub(1)))
        .collect();
    let done = upload.acknowledged();
    match ranges.as_slice() {
        [] => format!("all {bytes} bytes are acknowledged, but the answer is missing"),
        ranges => format!(
            "{done} of {bytes} bytes are acknowledged, not bytes {}; the server acts on a body only \
             when it is whole",
            ranges.join(", ")
        ),
    }
}
