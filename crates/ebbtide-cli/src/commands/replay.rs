//! `ebbtide replay`: repeats one replication and reports everything that happens in it.

use crate::failure::Failure;
use crate::output::number::significant;
use ebbtide_core::cc::Registry;
use ebbtide_core::time::Instant;
use ebbtide_reproduce::campaign_of;
use ebbtide_sim::record::{AIR, Capture, Manifest, PLACES, RunRecord, Store, WifiRecord};
use ebbtide_sim::run::{Campaign, CellSpec, Tap, Trace, TraceFilter, simulate_with};
use ebbtide_sim::scenario::{Axis, Source, load, parse_set};
use std::fs::File;
use std::io::{self, BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

/// Repeat one replication and record everything that happens in it
#[derive(clap::Args)]
pub(crate) struct ReplayArgs {
    /// A scenario, or a folder that `run --out` or `reproduce --out` made
    #[arg(value_name = "DIR|SCENARIO")]
    what: String,
    /// The congestion control: NAME, NAME:KEY=VALUE or NAME+NAME
    #[arg(long, value_name = "NAME")]
    cc: String,
    /// The replication, from 0
    #[arg(long, value_name = "R", default_value_t = 0)]
    rep: u32,
    /// Set a key of the scenario; with a folder, select one of its cells
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of all randomness [default: the scenario's or the folder's]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Write a packet capture (pcapng) as seen by the clients and by the server; in a low-power network the
    /// frames on the air
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Capture at these places, each into a file of its own: clients, server
    #[arg(long, value_name = "PLACE[,PLACE]", requires = "pcap", value_delimiter = ',')]
    pcap_at: Vec<String>,
    /// Trace and capture only this client, from 0
    #[arg(long, value_name = "N")]
    client: Option<u32>,
    /// Trace and capture only from this time on, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    from: Option<Instant>,
    /// Trace and capture only before this time, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    until: Option<Instant>,
    /// Write every event as a line of JSON, or as --trace-format says; `-` for standard output
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The format of the trace
    #[arg(long, value_name = "FORMAT", requires = "trace", default_value = "lines")]
    trace_format: TraceFormat,
}

/// The format of a trace.
#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum)]
enum TraceFormat {
    /// A line of JSON for each event
    Lines,
    /// A timeline of each exchange and packet, for ui.perfetto.dev
    Perfetto,
}

pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    check_outputs(args)?;
    let axes: Vec<Axis> = args
        .set
        .iter()
        .map(|text| parse_set(text))
        .collect::<Result<_, _>>()
        .map_err(Failure::usage)?;
    if let Some(axis) = axes.iter().find(|axis| axis.values.len() > 1) {
        let message = format!("--set {}: a replay takes one value per key", axis.key);
        return Err(Failure::usage(message));
    }
    let (spec, seed) = find(args, axes)?;
    check_limits(args, &spec)?;
    let traces_to_stdout = args.trace.as_deref() == Some(Path::new("-"));
    let sink: Option<Box<dyn Write>> = match &args.trace {
        None => None,
        Some(_) if traces_to_stdout => Some(Box::new(BufWriter::new(stdout()))),
        Some(path) => Some(Box::new(create(path)?)),
    };
    let captures = captures(args, &spec)?;
    let only = TraceFilter { client: args.client, from: args.from, until: args.until };
    let trace = match (sink, args.trace_format) {
        (Some(sink), TraceFormat::Perfetto) => Trace::new(None, captures, only).with_spans(sink),
        (lines, _) => Trace::new(lines, captures, only),
    };
    let (record, trace) = simulate_with(&spec.scenario, &spec.controls, seed, args.rep, trace)
        .map_err(Failure::work)?;
    trace.finish()?;
    if traces_to_stdout {
        return Ok(());
    }
    summary(&spec, seed, args, &record)
}

/// An instant, in seconds from the start.
fn seconds(text: &str) -> Result<Instant, String> {
    let value: f64 = text.parse().unwrap_or(f64::NAN);
    if (0.0..1e9).contains(&value) {
        // Below 2^63 ns.
        return Ok(Instant::from_nanos((value * 1e9) as u64));
    }
    Err("takes seconds from the start, such as 12.5".to_owned())
}

/// The requested captures: one file for all places, or one for each place that is named.
fn captures(args: &ReplayArgs, spec: &CellSpec) -> Result<Vec<Tap<BufWriter<File>>>, Failure> {
    let Some(path) = &args.pcap else { return Ok(Vec::new()) };
    if spec.scenario.network.mesh().is_some() {
        if !args.pcap_at.is_empty() {
            let message = "--pcap-at: a low-power network is captured on the air only";
            return Err(Failure::usage(message));
        }
        let capture = Capture::of_frames(create(path)?, &AIR).map_err(|e| not_written(path, &e))?;
        return Ok(vec![Tap { place: None, capture }]);
    }
    if args.pcap_at.is_empty() {
        let capture = Capture::new(create(path)?, &PLACES).map_err(|e| not_written(path, &e))?;
        let capture = capture.with_header(spec.scenario.network.header);
        return Ok(vec![Tap { place: None, capture }]);
    }
    let mut taps = Vec::new();
    for (number, (place, path)) in args.pcap_at.iter().zip(capture_paths(args)).enumerate() {
        let known = (0..).zip(PLACES).find(|(_, known)| known == place);
        let Some((index, name)) = known else {
            return Err(Failure::usage(format!(
                "--pcap-at: '{place}' is not a place; there are {}",
                PLACES.join(", ")
            )));
        };
        if args.pcap_at[..number].contains(place) {
            return Err(Failure::usage(format!("--pcap-at: '{place}' is named twice")));
        }
        let capture = Capture::new(create(&path)?, &[name]).map_err(|e| not_written(&path, &e))?;
        let capture = capture.with_header(spec.scenario.network.header);
        taps.push(Tap { place: Some(index), capture });
    }
    Ok(taps)
}

/// The files of a capture at several places: the place precedes the file extension.
fn capture_paths(args: &ReplayArgs) -> Vec<PathBuf> {
    let Some(path) = &args.pcap else { return Vec::new() };
    if args.pcap_at.len() < 2 {
        return vec![path.clone()];
    }
    let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned());
    let of = |place: &String| match &ending {
        Some(ending) => path.with_extension(format!("{place}.{ending}")),
        None => path.with_extension(place),
    };
    args.pcap_at.iter().map(of).collect()
}

/// The trace and the capture cannot be one file: each would overwrite the other.
fn check_outputs(args: &ReplayArgs) -> Result<(), Failure> {
    let (Some(trace), Some(pcap)) = (&args.trace, &args.pcap) else { return Ok(()) };
    if !is_same_file(trace, pcap) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--trace and --pcap both name {}; use two different files",
        pcap.display()
    )))
}

/// The client and the time that are asked for exist.
fn check_limits(args: &ReplayArgs, spec: &CellSpec) -> Result<(), Failure> {
    // The TCP flows beside the clients are numbered after them.
    let count = spec.scenario.clients.count + spec.scenario.network.background.flows;
    if let Some(client) = args.client.filter(|client| *client >= count) {
        let last = count.saturating_sub(1);
        return Err(Failure::usage(format!("--client {client}: takes a number from 0 to {last}")));
    }
    match (args.from, args.until) {
        (Some(from), Some(until)) if until <= from => {
            let seconds = |at: Instant| at.as_nanos() as f64 / 1e9;
            Err(Failure::usage(format!(
                "--until {}: takes a time after --from {}",
                seconds(until),
                seconds(from)
            )))
        }
        _ => Ok(()),
    }
}

/// Whether two paths lead to the same file, which need not exist yet.
fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other || matches!((place(one), place(other)), (Some(a), Some(b)) if a == b)
}

/// The target of a path with links followed; `None` if its folder does not exist.
fn place(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    })
}

/// The selected cell and its seed.
fn find(args: &ReplayArgs, axes: Vec<Axis>) -> Result<(CellSpec, u64), Failure> {
    let folder = Path::new(&args.what);
    if folder.is_dir() {
        if !folder.join("manifest.json").is_file() {
            return Err(Failure::usage(format!(
                "{}: is not a folder that `ebbtide run --out` made",
                args.what
            )));
        }
        let store = Store::open(folder).map_err(Failure::work)?;
        let manifest: Manifest = store.load_manifest().map_err(|error| {
            Failure::usage(format!("{error}; not a folder that `ebbtide run --out` made"))
        })?;
        let campaign = campaign_of(&manifest, Registry::default()).map_err(Failure::work)?;
        let wanted = |spec: &&CellSpec| {
            let has = |axis: &Axis| {
                spec.settings
                    .iter()
                    .any(|(key, value)| *key == axis.key && *value == axis.values[0])
            };
            spec.cc == args.cc && axes.iter().all(has)
        };
        let cells: Vec<&CellSpec> = campaign.cells.iter().filter(wanted).collect();
        return match cells[..] {
            [one] => Ok((one.clone(), args.seed.unwrap_or(campaign.seed))),
            [] => Err(Failure::usage(format!(
                "{} has no such cell; it has {}",
                args.what,
                first_names(&campaign)
            ))),
            [one, ..] => Err(Failure::usage(format!(
                "{} cells of {} match; name one with --set, such as {}",
                cells.len(),
                args.what,
                settings(one)
            ))),
        };
    }
    let source: Source = load(&args.what).map_err(Failure::usage)?;
    let campaign = Campaign::plan(source, axes, vec![args.cc.clone()], Some(1), args.seed)
        .map_err(Failure::usage)?;
    let seed = campaign.seed;
    let cell = campaign.cells.into_iter().next();
    cell.map(|cell| (cell, seed)).ok_or_else(|| Failure::usage("nothing to replay"))
}

fn first_names(campaign: &Campaign) -> String {
    let names: Vec<String> = campaign.cells.iter().take(5).map(CellSpec::name).collect();
    let more = if campaign.cells.len() > 5 { ", ..." } else { "" };
    format!("{}{more}", names.join(", "))
}

fn settings(spec: &CellSpec) -> String {
    let settings = spec.settings.iter().map(|(key, value)| format!("--set {key}={value}"));
    settings.collect::<Vec<_>>().join(" ")
}

fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    File::create(path).map(BufWriter::new).map_err(|error| not_written(path, &error))
}

fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    Failure::work(format!("{}: {error}", path.display()))
}

fn summary(
    spec: &CellSpec,
    seed: u64,
    args: &ReplayArgs,
    record: &RunRecord,
) -> Result<(), Failure> {
    let mut out = stdout().lock();
    let completed: u32 = record.clients.iter().map(|client| client.completed).sum();
    let failed: u32 = record.clients.iter().map(|client| client.failed).sum();
    let unnecessary: u32 = record.clients.iter().map(|client| client.needless).sum();
    writeln!(out, "{}, replication {}, seed {seed}", spec.name(), args.rep)?;
    writeln!(
        out,
        "{completed} exchanges completed, {failed} failed in {} s; {unnecessary} unnecessary \
         retransmissions",
        significant(record.totals.done_ns as f64 / 1e9)
    )?;
    cells(&mut out, record)?;
    links(&mut out, record)?;
    for path in if args.pcap_at.is_empty() { Vec::new() } else { capture_paths(args) } {
        writeln!(out, "Capture: {}", path.display())?;
    }
    if let Some(path) = args.pcap.as_ref().filter(|_| args.pcap_at.is_empty()) {
        let places = match spec.scenario.network.mesh() {
            Some(_) => AIR.join(", "),
            None => PLACES.join(", "),
        };
        writeln!(out, "Capture: {} (interfaces: {places})", path.display())?;
    }
    if let Some(path) = &args.trace {
        writeln!(out, "Trace: {}", path.display())?;
    }
    Ok(())
}

/// The fates of the frames of a radio cell.
fn cells(out: &mut impl Write, record: &RunRecord) -> io::Result<()> {
    if let Some(wifi) = record.totals.wifi.as_ref().map(WifiRecord::total) {
        writeln!(
            out,
            "wifi {} frames accepted, {} sent, {} packets dropped in the queues, {} lost",
            wifi.frames.accepted,
            wifi.frames.sent,
            wifi.overflows,
            wifi.frames.no_ack + wifi.frames.no_access
        )?;
    }
    if let Some(cell) = record.totals.nb_iot {
        writeln!(
            out,
            "nb-iot {} random accesses, {} preambles: {} collided, {} missed; {} accesses given up; packets dropped in \
             the queues: {} at devices, {} in the network",
            cell.accesses,
            cell.preambles,
            cell.collided,
            cell.missed,
            cell.given_up,
            cell.overflows[0],
            cell.overflows[1]
        )?;
    }
    if let Some(lora) = record.totals.lora.map(|lora| lora.frames) {
        writeln!(
            out,
            "lora {} frames from devices, {} from gateways; lost: {} collided, {} while the gateway \
             transmitted, {} too weak, {} unreadable; packets dropped in the queues: {} at devices, {} at the network \
             server",
            lora.uplinks,
            lora.downlinks.iter().sum::<u64>(),
            lora.collided,
            lora.deaf,
            lora.weak,
            lora.faded,
            lora.overflows[0],
            lora.overflows[1]
        )?;
    }
    Ok(())
}

/// The packets of the bottleneck, and of the other links by name.
fn links(out: &mut impl Write, record: &RunRecord) -> io::Result<()> {
    let bottleneck = [("up".to_owned(), record.totals.up), ("down".to_owned(), record.totals.down)];
    let others = record.totals.links.iter().flat_map(|link| {
        [(format!("{} up", link.name), link.up), (format!("{} down", link.name), link.down)]
    });
    for (name, side) in bottleneck.into_iter().chain(others) {
        let marked = match side.marked {
            0 => String::new(),
            marked => format!(", {marked} marked"),
        };
        writeln!(
            out,
            "{name:<4} {} packets sent, {} delivered, {} dropped in the queue, {} lost{marked}",
            side.sent, side.delivered, side.dropped_queue, side.lost_link
        )?;
    }
    Ok(())
}
