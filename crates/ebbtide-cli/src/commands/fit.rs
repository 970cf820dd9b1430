//! `ebbtide fit`: a scenario from a capture.

use crate::failure::Failure;
use crate::output::fit::write;
use ebbtide_sim::fit::{FitError, Options, TakenAt, fit};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write, stdin, stdout};
use std::path::PathBuf;

/// Fit a scenario to a packet capture of your own CoAP traffic
#[derive(clap::Args)]
#[command(
    after_help = "The capture (pcap or pcapng, from tcpdump, Wireshark or `emulate --pcap`) holds CoAP \
    over UDP without DTLS. The scenario describes clients, sizes, times, rate, delay, buffer and loss; \
    comments in it, and the output, say how certain each figure is and what the capture cannot tell. \
    Then: ebbtide run scenario.toml"
)]
pub(crate) struct FitArgs {
    /// A capture in pcap or pcapng format; `-` for standard input
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// Write the scenario to this file; without it, to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The UDP port of the CoAP servers
    #[arg(long, value_name = "PORT", default_value_t = 5683,
        value_parser = clap::value_parser!(u16).range(1..), allow_negative_numbers = true)]
    port: u16,
    /// Where the capture was taken: clients, server, or link for both ends [default: found out]
    #[arg(long, value_name = "PLACE")]
    taken_at: Option<String>,
    /// The most CoAP messages that are read
    #[arg(long, value_name = "N", default_value_t = Options::default().most_messages,
        allow_negative_numbers = true)]
    most_messages: usize,
    /// Print one JSON document with the figures and the scenario
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &FitArgs) -> Result<(), Failure> {
    let taken_at = args.taken_at.as_deref().map(place).transpose()?;
    let shown = args.capture.display();
    let name = match args.capture.file_stem() {
        Some(stem) if stem != "-" => stem.to_string_lossy().into_owned(),
        _ => "capture".to_owned(),
    };
    let options = Options { name, port: args.port, taken_at, most_messages: args.most_messages };
    let source: Box<dyn Read> = if args.capture.as_os_str() == "-" {
        Box::new(stdin().lock())
    } else {
        let file = File::open(&args.capture);
        Box::new(BufReader::new(file.map_err(|error| Failure::usage(format!("{shown}: {error}")))?))
    };
    let fitted = fit(source, &options).map_err(|error| match error {
        FitError::Io(_) | FitError::Scenario(_) => Failure::work(format!("{shown}: {error}")),
        _ => Failure::usage(format!("{shown}: {error}")),
    })?;
    if let Some(path) = &args.output {
        std::fs::write(path, &fitted.toml)
            .map_err(|error| Failure::work(format!("{}: {error}", path.display())))?;
    }
    let mut out = BufWriter::new(stdout().lock());
    if args.json {
        writeln!(out, "{:#}", fitted.document())?;
    } else if let Some(path) = &args.output {
        write(&mut out, &fitted)?;
        writeln!(out, "\nScenario: {}", path.display())?;
    } else {
        write!(out, "{}", fitted.toml)?;
    }
    out.flush()?;
    Ok(())
}

fn place(name: &str) -> Result<TakenAt, Failure> {
    TakenAt::from_name(name).ok_or_else(|| {
        let message = "is not a place; there are clients, server, link";
        Failure::usage(format!("--taken-at: '{name}' {message}"))
    })
}
