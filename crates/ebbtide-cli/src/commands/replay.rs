//! `ebbtide replay`: one replication again, with everything that happens in it.

use crate::failure::Failure;
use crate::output::table::significant;
use ebbtide_sim::record::{AIR, Capture, Manifest, PLACES, RunRecord, Store, Trace};
use ebbtide_sim::run::{Campaign, CellSpec, simulate_with};
use ebbtide_sim::scenario::{Axis, Source, load, parse_set};
use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

/// Run one replication again and write down everything that happens in it
#[derive(clap::Args)]
pub(crate) struct ReplayArgs {
    /// A scenario, or a folder that `run --out` or `reproduce --out` made
    #[arg(value_name = "DIR|SCENARIO")]
    what: String,
    /// The congestion control: NAME, NAME:KEY=VALUE or NAME+NAME
    #[arg(long, value_name = "NAME")]
    cc: String,
    /// Which replication, from 0
    #[arg(long, value_name = "R", default_value_t = 0)]
    rep: u32,
    /// Set a key of the scenario; with a folder: which of its cells
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of all randomness [default: the scenario's or the folder's]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Write a packet capture (pcapng) as seen by the clients and by the server; in a low-power network the
    /// frames on the air
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write every event as a line of JSON; `-` for standard output
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
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
    let traces_to_stdout = args.trace.as_deref() == Some(Path::new("-"));
    let lines: Option<Box<dyn Write>> = match &args.trace {
        None => None,
        Some(_) if traces_to_stdout => Some(Box::new(BufWriter::new(stdout()))),
        Some(path) => Some(Box::new(create(path)?)),
    };
    let capture = match &args.pcap {
        None => None,
        Some(path) if spec.scenario.network.mesh.is_some() => {
            Some(Capture::of_frames(create(path)?, &AIR).map_err(|e| at(path, &e))?)
        }
        Some(path) => Some(Capture::new(create(path)?, &PLACES).map_err(|e| at(path, &e))?),
    };
    let trace = Trace::new(lines, capture);
    let (record, trace) = simulate_with(&spec.scenario, &spec.controls, (seed, args.rep), trace)
        .map_err(Failure::work)?;
    trace.finish()?;
    if traces_to_stdout {
        return Ok(());
    }
    summary(&spec, seed, args, &record)
}

/// The trace and the capture cannot be one file: each would overwrite the other.
fn check_outputs(args: &ReplayArgs) -> Result<(), Failure> {
    let (Some(trace), Some(pcap)) = (&args.trace, &args.pcap) else { return Ok(()) };
    if !is_same_file(trace, pcap) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--trace and --pcap both name {}; give each its own",
        pcap.display()
    )))
}

/// Whether two paths lead to one file, whether it is there already or not.
fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other || matches!((place(one), place(other)), (Some(a), Some(b)) if a == b)
}

/// Where a path leads, links followed; `None` if its folder is not there.
fn place(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    })
}

/// The cell that is meant and its seed.
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
        let campaign = Campaign::from_manifest(&manifest).map_err(Failure::work)?;
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
    let run = (Some(1), args.seed);
    let campaign =
        Campaign::plan(source, axes, vec![args.cc.clone()], run).map_err(Failure::usage)?;
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
    File::create(path).map(BufWriter::new).map_err(|error| at(path, &error))
}

fn at(path: &Path, error: &std::io::Error) -> Failure {
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
    let unnecessary: u32 = record.clients.iter().map(|client| client.unnecessary).sum();
    writeln!(out, "{}, replication {}, seed {seed}", spec.name(), args.rep)?;
    writeln!(
        out,
        "{completed} exchanges completed, {failed} failed in {} s; {unnecessary} unnecessary \
         retransmissions",
        significant(record.totals.done_ns as f64 / 1e9)
    )?;
    for (name, side) in [("up", record.totals.up), ("down", record.totals.down)] {
        writeln!(
            out,
            "{name:<4} {} packets sent, {} delivered, {} dropped in the queue, {} lost",
            side.sent, side.delivered, side.dropped_queue, side.lost_link
        )?;
    }
    if let Some(path) = &args.pcap {
        let places = match spec.scenario.network.mesh {
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
