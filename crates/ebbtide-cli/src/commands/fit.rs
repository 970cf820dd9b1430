//! `ebbtide fit`: a scenario from a capture.

use crate::failure::Failure;
use crate::output::fit::write;
use clap::ValueEnum;
use ebbtide_fit::{ClientsBy, FitError, Options, TakenAt, fit};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write, stdin, stdout};
use std::path::{Path, PathBuf};

/// Fit a scenario to a packet capture of your own CoAP traffic
#[derive(clap::Args)]
#[command(
    after_help = "The capture (pcap or pcapng, also compressed with gzip, from tcpdump, Wireshark or `emulate --pcap`) holds CoAP \
    over UDP without DTLS. The scenario describes clients, sizes, times, rate, delay, buffer and loss; \
    comments in it, and the output, say how certain each figure is and what the capture cannot tell. \
    Then: ebbtide run scenario.toml"
)]
pub(crate) struct FitArgs {
    /// A capture in pcap or pcapng format; `-` for standard input
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// Write the scenario to this new file; without it, to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the instants of the requests to this new file, for the workload `log`
    #[arg(long, value_name = "FILE")]
    requests: Option<PathBuf>,
    /// The UDP port of the CoAP servers
    #[arg(long, value_name = "PORT", default_value_t = 5683,
        value_parser = clap::value_parser!(u16).range(1..), allow_negative_numbers = true)]
    port: u16,
    /// Where the capture was taken: clients, server, or link for both ends [default: found out]
    #[arg(long, value_name = "PLACE")]
    taken_at: Option<String>,
    /// Which senders of requests are one client: `address` or `port` [default: found out]
    #[arg(long, value_name = "PART")]
    clients_by: Option<CountBy>,
    /// The most CoAP messages that are read
    #[arg(long, value_name = "N", default_value_t = Options::default().most_messages,
        value_parser = most_messages, allow_negative_numbers = true)]
    most_messages: usize,
    /// Print one JSON document with the figures and the scenario
    #[arg(long)]
    json: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum CountBy {
    /// Each address: its ports follow each other
    Address,
    /// Each port of an address, as behind a gateway
    Port,
}

pub(crate) fn run(args: &FitArgs) -> Result<(), Failure> {
    let taken_at = args.taken_at.as_deref().map(place).transpose()?;
    let shown = args.capture.display();
    let name = match args.capture.file_stem() {
        Some(stem) if stem != "-" => stem.to_string_lossy().into_owned(),
        _ => "capture".to_owned(),
    };
    let clients_by = args.clients_by.map(|by| match by {
        CountBy::Address => ClientsBy::Address,
        CountBy::Port => ClientsBy::Port,
    });
    let (port, most_messages) = (args.port, args.most_messages);
    let options = Options { name, port, taken_at, clients_by, most_messages };
    let source: Box<dyn Read> = if args.capture.as_os_str() == "-" {
        Box::new(stdin().lock())
    } else {
        Box::new(BufReader::new(open(&args.capture)?))
    };
    for path in args.output.iter().chain(&args.requests) {
        check_output(path, &args.capture)?;
    }
    let fitted = fit(source, &options).map_err(|error| {
        let text = format!("{shown}: {error}");
        match error {
            FitError::Io(_) | FitError::Scenario(_) => Failure::work(text),
            _ => Failure::usage(text),
        }
    })?;
    if let Some(path) = &args.output {
        create(path, &fitted.toml)?;
    }
    if let Some(path) = &args.requests {
        create(path, &fitted.request_log())?;
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

/// Opens the capture.
fn open(path: &Path) -> Result<File, Failure> {
    let shown = path.display();
    if path.is_dir() {
        return Err(Failure::usage(format!("{shown}: is a directory; name a capture in it")));
    }
    File::open(path).map_err(|error| {
        Failure::usage(format!("{shown}: the capture cannot be opened: {error}; name another file"))
    })
}

/// Refuses an output that exists, before the work begins.
fn check_output(path: &Path, capture: &Path) -> Result<(), Failure> {
    let shown = path.display();
    let same =
        |one: &Path, other: &Path| Some(one.canonicalize().ok()? == other.canonicalize().ok()?);
    if same(path, capture) == Some(true) {
        return Err(Failure::usage(format!(
            "{shown}: is the capture; name another file with --output"
        )));
    }
    // A device, such as /dev/stdout, holds nothing that would be lost.
    if path.is_dir() || path.is_file() {
        return Err(Failure::usage(exists(path)));
    }
    Ok(())
}

fn exists(path: &Path) -> String {
    format!("{}: exists already; remove it or name another file with --output", path.display())
}

/// Writes the scenario to a file that does not exist yet, or to a device.
fn create(path: &Path, toml: &str) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    let options = if path.exists() { &mut options } else { options.create_new(true) };
    let written = options.open(path).and_then(|mut file| file.write_all(toml.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::usage(exists(path)),
        _ => Failure::work(format!(
            "{}: the scenario cannot be written: {error}; name another file with --output",
            path.display()
        )),
    })
}

/// A number of messages, at least one.
fn most_messages(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

fn place(name: &str) -> Result<TakenAt, Failure> {
    TakenAt::from_name(name).ok_or_else(|| {
        let message = "is not a place; there are clients, server, link";
        Failure::usage(format!("--taken-at: '{name}' {message}"))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{Failure, check_output, create, most_messages, open};
    use std::fs;

    fn text(failure: Failure) -> (String, bool) {
        match failure {
            Failure::Usage(text) => (text, true),
            Failure::Work(text) => (text, false),
            Failure::Exit(_) | Failure::OutputClosed => unreachable!("a fit starts no program"),
        }
    }

    #[test]
    fn neither_the_capture_nor_another_file_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let (capture, other) = (folder.path().join("x"), folder.path().join("y"));
        fs::write(&capture, "capture").unwrap();
        let same = folder.path().join(".").join("x");
        let (message, is_usage) = text(check_output(&same, &capture).unwrap_err());
        assert!(message.ends_with("x: is the capture; name another file with --output"));
        assert!(is_usage);
        check_output(&other, &capture).unwrap();
        create(&other, "first").unwrap();
        let (message, is_usage) = text(check_output(&other, &capture).unwrap_err());
        assert!(message.ends_with("exists already; remove it or name another file with --output"));
        assert!(is_usage && message.contains('y'));
        assert_eq!(fs::read_to_string(&other).unwrap(), "first");
    }

    #[test]
    fn an_error_says_whether_the_capture_or_the_scenario_cannot_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (message, is_usage) = text(open(&folder.path().join("none")).unwrap_err());
        assert!(message.contains("none: the capture cannot be opened: ") && is_usage, "{message}");
        let (message, is_usage) = text(open(folder.path()).unwrap_err());
        assert!(message.contains(": is a directory; name a capture in it") && is_usage);
        let absent = folder.path().join("absent").join("x.toml");
        let (message, is_usage) = text(create(&absent, "").unwrap_err());
        assert!(message.contains("x.toml: the scenario cannot be written: ") && !is_usage);
    }

    #[test]
    fn at_least_one_message_must_be_allowed() {
        assert_eq!(most_messages("0").unwrap_err(), "must be at least 1");
        assert_eq!(most_messages("1"), Ok(1));
        assert!(most_messages("-1").is_err());
    }
}
