//! `ebbtide observe`: shows a resource's state and its changes.

use super::arguments::{block_size, option};
use super::response::{format, succeeded, write};
use crate::client::exec::StateCommand;
use crate::client::interrupt::Interrupt;
use crate::client::pretty::ShowArgs;
use crate::client::{TalkArgs, block_on, seconds};
use crate::failure::Failure;
use clap::Args;
use ebbtide::{Client, ContentFormat, OptionNumber, Request, Response};
use std::path::PathBuf;
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
    /// The Content-Format to request
    #[arg(short = 'A', long, value_name = "FORMAT", value_parser = format)]
    accept: Option<ContentFormat>,
    /// The size of a long state's blocks: 16, 32, 64, 128, 256, 512 or 1024 bytes
    #[arg(short, long, value_name = "BYTES", value_parser = block_size)]
    block_size: Option<u16>,
    /// An option by number, with its value as text or, after 0x, in hexadecimal; may be repeated
    #[arg(short = 'O', long = "option", value_name = "NUMBER,VALUE", value_parser = option)]
    options: Vec<(OptionNumber, Vec<u8>)>,
    /// Write each state to a file, in the place of the one before; - for standard output, unchanged
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Run a shell command for each state, which is its standard input; of the states that come while it
    /// runs only for the latest
    #[arg(long, value_name = "COMMAND", conflicts_with = "output")]
    exec: Option<String>,
    /// Exit with an error when the server or the path is lost, instead of observing again when it
    /// is back
    #[arg(long)]
    exit_on_error: bool,
    #[command(flatten)]
    show: ShowArgs,
    #[command(flatten)]
    talk: TalkArgs,
}

/// Observes.
///
/// # Errors
///
/// Returns an error if the server does not answer, or ends the observation before the time is
/// over.
pub(crate) fn run(args: ObserveArgs) -> Result<(), Failure> {
    block_on(async {
        let mut request = Request::get(args.uri.as_str())?;
        if let Some(format) = args.accept {
            request = request.accept(format);
        }
        if let Some(bytes) = args.block_size {
            request = request.block_size(bytes.into());
        }
        for (number, value) in &args.options {
            request = request.option(*number, value);
        }
        if args.talk.non {
            request = request.non_confirmable();
        }
        if let Some(span) = args.talk.timeout {
            request = request.timeout(span);
        }
        let client = args.talk.client(request.uri())?;
        let command = args.exec.as_deref().map(StateCommand::start).transpose()?;
        let show = args.show.separated();
        let until = Until { states: args.count, error: args.exit_on_error };
        let states = watch(&client, request, until, |state| {
            succeeded(state)?;
            match (&args.output, &command) {
                (Some(path), _) => write(state, path),
                (None, Some(command)) => {
                    command.run(state.body().clone());
                    Ok(())
                }
                (None, None) => show.write(state),
            }
        });
        match args.duration {
            None => states.await,
            Some(span) => tokio::time::timeout(span, states).await.unwrap_or(Ok(())),
        }
    })
}

/// How long to wait for the server to confirm the end of the observation.
const FAREWELL: Duration = Duration::from_secs(1);

/// The ends of an observation that the caller wants.
#[derive(Copy, Clone, Default)]
pub(crate) struct Until {
    /// So many states.
    states: Option<u64>,
    /// The first error.
    error: bool,
}

/// Shows states until an end that the caller wants, or until the server ends the observation, which is an error.
pub(crate) async fn watch(
    client: &Client,
    request: Request,
    until: Until,
    show: impl Fn(&Response) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut interrupt = Interrupt::new()?;
    let mut observation = tokio::select! {
        registered = client.observe_with(request) => registered?,
        code = interrupt.received() => return Err(Failure::Exit(code)),
    };
    if until.error {
        observation = observation.end_at_error();
    }
    let (mut seen, mut is_registered) = (0, false);
    loop {
        let state = tokio::select! {
            state = observation.next() => state,
            code = interrupt.received() => {
                // The server would go on, over UDP until a Confirmable notification fails.
                let _ = tokio::time::timeout(FAREWELL, observation.cancel()).await;
                return Err(Failure::Exit(code));
            }
        };
        let Some(state) = state else { break };
        let state = state?;
        is_registered |= state.options().get(OptionNumber::OBSERVE).is_some();
        show(&state)?;
        seen += 1;
        if until.states.is_some_and(|states| seen >= states) {
            // The result does not matter.
            let _ = tokio::time::timeout(FAREWELL, observation.cancel()).await;
            return Ok(());
        }
    }
    let remote = observation.remote();
    Err(match is_registered {
        true => Failure::work(format_args!("{remote} has ended the observation")),
        false => Failure::work(format_args!(
            "{remote} does not tell observers of changes of this resource: its answer has no option Observe (RFC \
             7641 section 3.1)"
        )),
    })
}
