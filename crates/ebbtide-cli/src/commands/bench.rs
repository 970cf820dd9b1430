//! `ebbtide bench`: how many requests a server answers, and how fast.

use crate::client::load::{self, BenchLoad, Outcome};
use crate::client::load_async::{ClientLoad, Pacing};
use crate::client::oscore::OscoreArgs;
use crate::client::tls::TlsArgs;
use crate::client::{block_on, control, load_stream, seconds};
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use ebbtide::congestion::Algorithm;
use ebbtide::{Client, ClientConfig, Code, Scheme, Uri};
use ebbtide_core::endpoint::EndpointConfig;
use ebbtide_core::testbed::StudySettings;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measure a server: request rate, round trips, and whether every answer is correct
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// coap://HOST[:PORT]/PATH[?QUERY], or coap+tcp://; other schemes with --engine client
    uri: String,
    /// Number of clients, each with a port or connection of its own
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    clients: u32,
    /// Requests that each client keeps open
    #[arg(long, default_value_t = 1, value_name = "W", value_parser = clap::value_parser!(u16).range(1..=4096))]
    window: u16,
    /// Send requests for this many seconds
    #[arg(long, default_value = "5", value_name = "SECONDS", value_parser = seconds)]
    duration: Duration,
    /// Send this many requests a second, however late the answers are (an open loop); their times count from the
    /// instants at which they were due
    #[arg(long, value_name = "PER SECOND", conflicts_with = "window", value_parser = rate)]
    rate: Option<f64>,
    /// Write the distribution of the times to this file, as HdrHistogram's plotter reads it (microseconds)
    #[arg(long, value_name = "FILE")]
    hdr: Option<PathBuf>,
    /// Stop after this many requests
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// Send from this many addresses of 127.0.0.0/8 in turn (only to a server on 127.0.0.1)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16_000_000))]
    addresses: Option<u32>,
    /// The method
    #[arg(short, long, value_enum, default_value_t = Method::Get)]
    method: Method,
    /// The payload as text
    #[arg(short = 'e', long, value_name = "TEXT", default_value = "")]
    payload: String,
    /// The load generator: a bare loop, or the library's client as an application uses it
    #[arg(long, value_enum, default_value_t = BenchEngine::Loop)]
    engine: BenchEngine,
    /// Congestion control, which matters only when messages are lost
    #[arg(long, default_value = Algorithm::DEFAULT.name(), value_name = "NAME")]
    cc: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tls: TlsArgs,
    #[command(flatten)]
    oscore: OscoreArgs,
    #[command(flatten)]
    flow: super::flow::FlowArgs,
}

#[derive(Copy, Clone, Debug, ValueEnum)]
enum Method {
    Get,
    Post,
    Put,
}

#[derive(Copy, Clone, Debug, ValueEnum)]
enum BenchEngine {
    Loop,
    Client,
}

#[derive(Serialize, Debug)]
struct BenchReport<'a> {
    uri: &'a str,
    clients: u32,
    window: u16,
    seconds: f64,
    answered: u64,
    wrong: u64,
    failed: u64,
    retransmissions: u64,
    per_second: f64,
    p50_us: f64,
    p90_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
}

/// Measures a server.
///
/// # Errors
///
/// Returns an error if the host does not resolve or an argument is wrong. Wrong or lost answers
/// lead to exit code 1.
pub(crate) fn run(args: BenchArgs) -> Result<(), Failure> {
    if args.flow.is_asked_for() {
        return super::flow::run(&args.flow, &args.uri, &args.cc, args.json);
    }
    let uri: Uri = args.uri.parse()?;
    let control = control(&args.cc)?;
    let mut endpoint = EndpointConfig {
        control,
        study: StudySettings::DEFAULT.keeping_message_ids_unique(false),
        ..EndpointConfig::default()
    };
    // An open loop keeps as many open as the server leaves unanswered.
    let window = if args.rate.is_some() { u16::MAX } else { args.window };
    endpoint.params.nstart = window;
    endpoint.limits.queue_per_peer = window;
    let outcome = match args.engine {
        BenchEngine::Loop if args.oscore.is_asked_for() => {
            return Err(Failure::usage("--oscore: use --engine client"));
        }
        BenchEngine::Loop => {
            let remote = block_on(async { Ok(Client::new().resolve(&uri).await?) })?;
            if args.addresses.is_some() && !remote.ip().is_loopback() {
                return Err(Failure::usage("--addresses: only for a server on 127.0.0.1"));
            }
            let load = BenchLoad {
                remote,
                code: match args.method {
                    Method::Get => Code::GET,
                    Method::Post => Code::POST,
                    Method::Put => Code::PUT,
                },
                path: uri.path().map(str::to_owned).collect(),
                query: uri.query().map(str::to_owned).collect(),
                payload: args.payload.clone().into_bytes(),
                clients: args.clients as usize,
                window: args.window,
                duration: args.duration,
                endpoint,
                addresses: args.addresses,
                requests: args.requests,
                rate: args.rate,
            };
            let ran = match uri.scheme() {
                Scheme::Coap => load::run(&load),
                Scheme::CoapTcp if args.rate.is_some() => {
                    return Err(Failure::usage("--rate: over TCP use --engine client"));
                }
                Scheme::CoapTcp => load_stream::run(&load),
                scheme => {
                    let text = format_args!("{scheme}://: use --engine client");
                    return Err(Failure::usage(text));
                }
            };
            ran.map_err(|error| Failure::work(format_args!("{}: {error}", args.uri)))?
        }
        BenchEngine::Client => {
            let config = ClientConfig::new()
                .research(|research| research.endpoint(endpoint))
                .limits(|limits| limits.requests(window));
            let mut config = args.tls.apply(config)?;
            if let Some(contexts) = args.oscore.contexts()? {
                config = config.oscore(contexts);
            }
            if let Some(credentials) = args.oscore.credentials()? {
                config = config.edhoc(credentials);
            }
            let load = ClientLoad {
                uri: args.uri.clone(),
                config,
                clients: args.clients,
                pacing: args.rate.map_or(Pacing::Window(args.window), Pacing::Rate),
                duration: args.duration,
                requests: args.requests,
            };
            block_on(load.run())?
        }
    };
    if let Some(path) = &args.hdr {
        distribution(path, &outcome)
            .map_err(|error| Failure::work(format_args!("--hdr {}: {error}", path.display())))?;
    }
    report(&args, &outcome)?;
    if outcome.wrong + outcome.failed > 0 || outcome.answered == 0 {
        return Err(Failure::work("not every request was answered correctly"));
    }
    Ok(())
}

/// A positive rate.
fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| *rate > 0.0 && *rate <= 1e7);
    rate.ok_or_else(|| format!("'{text}' is not a number of requests a second, up to 10000000"))
}

/// Writes a percentile distribution (`.hgrm`), with its values in microseconds.
fn distribution(path: &Path, outcome: &Outcome) -> io::Result<()> {
    let mut out = io::BufWriter::new(File::create(path)?);
    let (latency, total) = (&outcome.latency, outcome.latency.len());
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    for step in latency.iter_quantiles(5) {
        let (value, quantile) =
            (step.value_iterated_to() as f64 / 1000.0, step.quantile_iterated_to());
        let count = latency.count_between(0, step.value_iterated_to());
        let inverse = match quantile < 1.0 {
            true => format!("{:.2}", 1.0 / (1.0 - quantile)),
            false => "inf".to_owned(),
        };
        writeln!(out, "{value:>12.3} {quantile:>14.12} {count:>10} {inverse:>14}")?;
    }
    let us = |nanos: f64| nanos / 1000.0;
    let (mean, deviation) = (us(latency.mean()), us(latency.stdev()));
    writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]")?;
    writeln!(out, "#[Max     = {:>12.3}, Total count    = {total:>12}]", us(latency.max() as f64))?;
    out.flush()
}

fn report(args: &BenchArgs, outcome: &Outcome) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let seconds = outcome.elapsed.as_secs_f64();
    let us = |quantile: f64| outcome.latency.value_at_quantile(quantile) as f64 / 1000.0;
    let result = BenchReport {
        uri: &args.uri,
        clients: args.clients,
        window: args.window,
        seconds,
        answered: outcome.answered,
        wrong: outcome.wrong,
        failed: outcome.failed,
        retransmissions: outcome.retransmissions,
        per_second: outcome.answered as f64 / seconds,
        p50_us: us(0.5),
        p90_us: us(0.9),
        p99_us: us(0.99),
        p999_us: us(0.999),
        max_us: outcome.latency.max() as f64 / 1000.0,
    };
    if args.json {
        // A struct of numbers and text always serializes.
        return writeln!(out, "{}", serde_json::to_string(&result).unwrap_or_default());
    }
    writeln!(
        out,
        "{:>12.0} requests/s, {} answered in {seconds:.2} s",
        result.per_second, result.answered
    )?;
    writeln!(
        out,
        "{:>12.1} us p50, {:.1} p90, {:.1} p99, {:.1} p99.9, {:.1} max",
        result.p50_us, result.p90_us, result.p99_us, result.p999_us, result.max_us
    )?;
    writeln!(
        out,
        "{:>12} failed, {} wrong, {} retransmissions",
        result.failed, result.wrong, result.retransmissions
    )
}
