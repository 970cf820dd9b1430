//! `ebbtide observe`: a resource's state, and each new one.

use super::request::{format, write_payload};
use crate::client::{TalkArgs, block_on, seconds};
use crate::failure::Failure;
use clap::Args;
use ebbtide::{ContentFormat, Request};
use std::time::Duration;

/// Show a resource's state, and again whenever it changes
#[derive(Args, Debug)]
pub(crate) struct ObserveArgs {
    /// coap://HOST[:PORT]/PATH[?QUERY]
    uri: String,
    /// Stop after this many seconds
    #[arg(short = 's', long = "for", value_name = "SECONDS", value_parser = seconds)]
    duration: Option<Duration>,
    /// Stop after this many states
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// The format that is wanted
    #[arg(short = 'A', long, value_name = "FORMAT", value_parser = format)]
    accept: Option<ContentFormat>,
    /// Write payloads as they come, whatever their format
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    talk: TalkArgs,
}

/// Observes.
///
/// # Errors
///
/// If the server does not answer, or ends it before the time is over.
pub(crate) fn run(args: ObserveArgs) -> Result<(), Failure> {
    block_on(async {
        let watch = watch(&args);
        match args.duration {
            None => watch.await,
            Some(span) => tokio::time::timeout(span, watch).await.unwrap_or(Ok(())),
        }
    })
}

async fn watch(args: &ObserveArgs) -> Result<(), Failure> {
    let mut request = Request::get(args.uri.as_str())?;
    if let Some(format) = args.accept {
        request = request.accept(format);
    }
    if args.talk.non {
        request = request.non_confirmable();
    }
    let client = args.talk.client()?;
    let mut observation = client.observe_with(request).await?;
    let mut seen = 0;
    while let Some(state) = observation.next().await {
        let state = state?;
        if !state.is_success() {
            let name = state.code().name().unwrap_or("unknown code");
            return Err(Failure::work(format_args!("{} {name}", state.code())));
        }
        write_payload(&state, args.raw)?;
        seen += 1;
        if args.count.is_some_and(|count| seen >= count) {
            return Ok(());
        }
    }
    Err(Failure::work(format_args!("{}: the server does not tell of changes", args.uri)))
}
