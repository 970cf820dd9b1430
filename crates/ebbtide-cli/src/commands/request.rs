//! `ebbtide get`, `put`, `post`, `delete`, `fetch` and `patch`.

use crate::client::{GROUP_WAIT, TalkArgs, block_on};
use crate::failure::Failure;
use bytes::Bytes;
use clap::Args;
use ebbtide::{Client, Code, ContentFormat, Request, Response};
use std::io::{Read, Write};
use std::path::PathBuf;

/// A request
#[derive(Args, Debug)]
pub(crate) struct RequestArgs {
    /// coap://HOST[:PORT]/PATH[?QUERY]
    uri: String,
    /// The payload as text
    #[arg(short = 'e', long, value_name = "TEXT", conflicts_with = "file")]
    payload: Option<String>,
    /// The payload from a file; - for standard input
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The payload's format: a name such as json or cbor, or a number
    #[arg(short = 't', long, value_name = "FORMAT", value_parser = format)]
    format: Option<ContentFormat>,
    /// The format that is wanted
    #[arg(short = 'A', long, value_name = "FORMAT", value_parser = format)]
    accept: Option<ContentFormat>,
    /// The size of blocks: 16 to 1024 bytes
    #[arg(short, long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(16..=1024))]
    block_size: Option<u16>,
    /// Write the payload to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the payload as it came, whatever its format
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    talk: TalkArgs,
}

/// Reads a content format.
pub(crate) fn format(text: &str) -> Result<ContentFormat, String> {
    ContentFormat::parse(text).ok_or_else(|| {
        let names: Vec<_> = ContentFormat::names().filter(|name| !name.contains('/')).collect();
        format!("no format '{text}': a number, a media type, or one of {}", names.join(", "))
    })
}

/// Sends a request with this method and writes the response.
///
/// # Errors
///
/// If there is no response, or an argument is wrong. An error response is exit code 1.
pub(crate) fn run(code: Code, args: RequestArgs) -> Result<(), Failure> {
    block_on(send(code, args))
}

async fn send(code: Code, args: RequestArgs) -> Result<(), Failure> {
    let mut request = Request::new(code, args.uri.as_str())?.payload(payload(&args)?);
    if let Some(format) = args.format {
        request = request.format(format);
    }
    if let Some(format) = args.accept {
        request = request.accept(format);
    }
    if let Some(bytes) = args.block_size {
        request = request.block_size(bytes.into());
    }
    if let Some(span) = args.talk.timeout {
        request = request.timeout(span);
    }
    if args.talk.non {
        request = request.non_confirmable();
    }
    let client = args.talk.client()?;
    if request.uri().address().is_some_and(|address| address.is_multicast()) {
        return ask_group(&args, &client, request).await;
    }
    show(&args, &client.request(request).await?)
}

/// Shows what each member of a group answers.
async fn ask_group(args: &RequestArgs, client: &Client, request: Request) -> Result<(), Failure> {
    let answers = client.request_group(request, args.talk.timeout.unwrap_or(GROUP_WAIT)).await?;
    for (from, response) in &answers {
        println!("{from}");
        show(args, response)?;
    }
    if answers.is_empty() {
        return Err(Failure::work(format_args!("{}: nobody answered", args.uri)));
    }
    Ok(())
}

fn payload(args: &RequestArgs) -> Result<Bytes, Failure> {
    let Some(path) = &args.file else {
        return Ok(args.payload.clone().unwrap_or_default().into());
    };
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        return read
            .map(|_| bytes.into())
            .map_err(|error| Failure::work(format_args!("standard input: {error}")));
    }
    let read = std::fs::read(path);
    read.map(Bytes::from)
        .map_err(|error| Failure::usage(format_args!("--file {}: {error}", path.display())))
}

fn show(args: &RequestArgs, response: &Response) -> Result<(), Failure> {
    let status =
        format!("{} {}", response.code(), response.code().name().unwrap_or("unknown code"));
    if response.is_success() && response.body().is_empty() && !args.raw {
        eprintln!("{status}");
    }
    match &args.output {
        Some(path) => std::fs::write(path, response.body())
            .map_err(|error| Failure::work(format_args!("--output {}: {error}", path.display())))?,
        None => write_payload(response, args.raw)?,
    }
    if response.is_success() { Ok(()) } else { Err(Failure::work(status)) }
}

/// Writes a payload to standard output: raw, or readable.
pub(crate) fn write_payload(response: &Response, raw: bool) -> Result<(), Failure> {
    let body = response.body();
    if body.is_empty() {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    let written = if raw {
        out.write_all(body)
    } else {
        let text = crate::client::pretty::readable(response);
        out.write_all(&text)
            .and_then(|()| if text.ends_with(b"\n") { Ok(()) } else { out.write_all(b"\n") })
    };
    Ok(written.and_then(|()| out.flush())?)
}
