//! `ebbtide get`, `put`, `post`, `delete`, `fetch` and `patch`.

use super::arguments::{block_size, option};
use super::observe::Until;
use super::response::{format, status, succeeded, write};
use super::{burst, observe};
use crate::client::diagnostic_input;
use crate::client::pretty::ShowArgs;
use crate::client::{GROUP_WAIT, TalkArgs, block_on, seconds};
use crate::failure::Failure;
use bytes::Bytes;
use clap::Args;
use ebbtide::{Client, Code, ContentFormat, Request, Response};
use ebbtide_core::wire::OptionNumber;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A request
#[derive(Args, Debug)]
pub(crate) struct RequestArgs {
    /// coap://HOST[:PORT]/PATH[?QUERY]
    pub(crate) uri: String,
    /// The payload as text
    #[arg(short = 'e', long, value_name = "TEXT", conflicts_with = "file")]
    payload: Option<String>,
    /// The payload as CBOR, written in diagnostic notation or as JSON: {1: h'00ff', "t": [21.5, true]}
    #[arg(long, value_name = "TEXT", value_parser = cbor, conflicts_with_all = ["payload", "file", "burst"])]
    cbor: Option<Bytes>,
    /// The payload from a file; - for standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// PUT and POST: the payload from a file, several blocks in flight, paced by rcoap unless --cc
    /// says otherwise
    #[arg(long, value_name = "FILE", conflicts_with_all = ["payload", "file", "non", "q_block"])]
    burst: Option<PathBuf>,
    /// The payload's format: a name such as json or cbor, or a number
    #[arg(short = 't', long, value_name = "FORMAT", value_parser = format)]
    format: Option<ContentFormat>,
    /// The Content-Format to request
    #[arg(short = 'A', long, value_name = "FORMAT", value_parser = format)]
    accept: Option<ContentFormat>,
    /// The block size: 16, 32, 64, 128, 256, 512 or 1024 bytes
    #[arg(short, long, value_name = "BYTES", value_parser = block_size)]
    block_size: Option<u16>,
    /// Transfer long bodies in Non-confirmable blocks, ten at a time, if the server supports that
    /// (RFC 9177)
    #[arg(short = 'Q', long)]
    q_block: bool,
    /// An option by number, with its value as text or, after 0x, in hexadecimal; may be repeated
    #[arg(short = 'O', long = "option", value_name = "NUMBER,VALUE", value_parser = option)]
    options: Vec<(OptionNumber, Vec<u8>)>,
    /// Observe for this many seconds (GET and FETCH), as `ebbtide observe --for` does
    #[arg(short = 's', long = "observe", value_name = "SECONDS", value_parser = seconds)]
    observe: Option<Duration>,
    /// Write the payload to a file, unchanged; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    show: ShowArgs,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
}

/// Parses a value in CBOR's diagnostic notation.
fn cbor(text: &str) -> Result<Bytes, String> {
    diagnostic_input::encode(text).map(Bytes::from)
}

/// Sends a request with this method and writes the response.
///
/// # Errors
///
/// Returns an error if there is no response, or an argument is wrong. An error response leads to
/// exit code 1.
pub(crate) fn run(code: Code, args: RequestArgs) -> Result<(), Failure> {
    if args.observe.is_some() && !matches!(code, Code::GET | Code::FETCH) {
        return Err(Failure::usage("--observe: only GET and FETCH requests can observe"));
    }
    if args.burst.is_some() && !matches!(code, Code::PUT | Code::POST) {
        return Err(Failure::usage("--burst: only put and post send a file in a burst"));
    }
    if let Some(path) = args.output.as_deref().filter(|path| *path != Path::new("-")) {
        try_output(path).map_err(|error| {
            Failure::usage(format_args!("--output {}: {error}", path.display()))
        })?;
    }
    if matches!(code, Code::PUT | Code::POST | Code::FETCH | Code::PATCH | Code::IPATCH) {
        check_input(&args)?;
    }
    block_on(send(code, args))
}

/// Refuses a file on standard input that is not read: `put URI < FILE` would empty the resource.
fn check_input(args: &RequestArgs) -> Result<(), Failure> {
    let has_body = args.payload.is_some()
        || args.cbor.is_some()
        || args.file.is_some()
        || args.burst.is_some();
    let is_file = || Path::new("/dev/stdin").metadata().is_ok_and(|input| input.is_file());
    if has_body || !is_file() {
        return Ok(());
    }
    Err(Failure::usage(
        "standard input is a file: add '-f -' to send it, or '-e \"\"' to send an empty body",
    ))
}

/// Checks whether a file can be written, before anything is sent. An existing file keeps its
/// contents, and a missing one is not created.
fn try_output(path: &Path) -> io::Result<()> {
    match File::create_new(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Opening a pipe and closing it again would end it for its reader.
            let is_pipe = path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir());
            if is_pipe { Ok(()) } else { OpenOptions::new().write(true).open(path).map(drop) }
        }
        Err(error) => Err(error),
    }
}

async fn send(code: Code, args: RequestArgs) -> Result<(), Failure> {
    let mut request = Request::new(code, args.uri.as_str())?.payload(payload(&args)?);
    if let Some(format) = args.format.or(args.cbor.as_ref().map(|_| ContentFormat::CBOR)) {
        request = request.format(format);
    }
    if let Some(format) = args.accept {
        request = request.accept(format);
    }
    if let Some(bytes) = args.block_size {
        request = request.block_size(bytes.into());
    }
    if args.q_block {
        request = request.q_block();
    }
    for (number, value) in &args.options {
        request = request.option(*number, value);
    }
    if let Some(span) = args.talk.timeout {
        request = request.timeout(span);
    }
    if args.talk.non {
        request = request.non_confirmable();
    }
    let group = request.uri().address().is_some_and(|address| address.is_multicast());
    if let Some(file) = &args.burst {
        if group {
            return Err(Failure::usage("--burst: a group does not accept blocks; name one server"));
        }
        let client = burst::talk(&args.talk).client(request.uri())?;
        let response = burst::send(&client, request, file, args.talk.timeout).await?;
        return show(&args, &response);
    }
    let client = args.talk.client(request.uri())?;
    if let Some(span) = args.observe {
        let states = observe::watch(&client, request, Until::default(), |state| show(&args, state));
        return tokio::time::timeout(span, states).await.unwrap_or(Ok(()));
    }
    if group {
        return ask_group(&args, &client, request).await;
    }
    show(&args, &client.request(request).await?)
}

/// Prints the response of each member of a group.
async fn ask_group(args: &RequestArgs, client: &Client, request: Request) -> Result<(), Failure> {
    let answers = client.request_group(request, args.talk.timeout.unwrap_or(GROUP_WAIT)).await?;
    for (from, response) in &answers {
        writeln!(io::stdout(), "{from}")?;
        if args.output.is_some() {
            show(args, response)?;
        } else {
            succeeded(response)?;
            args.show.separated().write(response)?;
        }
    }
    if answers.is_empty() {
        return Err(Failure::work(format_args!("{}: no answer", args.uri)));
    }
    Ok(())
}

fn payload(args: &RequestArgs) -> Result<Bytes, Failure> {
    if let Some(cbor) = &args.cbor {
        return Ok(cbor.clone());
    }
    let Some(path) = &args.file else {
        return Ok(args.payload.clone().unwrap_or_default().into());
    };
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut bytes);
        return read
            .map(|_| bytes.into())
            .map_err(|error| Failure::work(format_args!("standard input: {error}")));
    }
    let read = fs::read(path);
    read.map(Bytes::from)
        .map_err(|error| Failure::usage(format_args!("--file {}: {error}", path.display())))
}

/// Writes the response; an error response with its diagnostic payload is an error.
fn show(args: &RequestArgs, response: &Response) -> Result<(), Failure> {
    succeeded(response)?;
    if response.body().is_empty() && args.output.is_none() {
        eprintln!("{}", status(response));
        return Ok(());
    }
    match &args.output {
        Some(path) => write(response, path),
        None if args.observe.is_some() => args.show.separated().write(response),
        None => args.show.write(response),
    }
}
