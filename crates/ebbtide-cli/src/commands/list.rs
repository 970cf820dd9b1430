//! `ebbtide list`: what there is to name on the command line.

use crate::failure::Failure;
use clap::ValueEnum;
use ebbtide_core::cc::Algorithm;
use ebbtide_sim::scenario::{self, BUILTIN, Scenario};
use serde_json::json;
use std::io::{Write, stdout};

/// List scenarios, congestion controls and links
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    /// What to list; everything if it is left out
    what: Option<What>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum What {
    Scenarios,
    CongestionControls,
    Links,
}

pub(crate) fn run(args: &ListArgs) -> Result<(), Failure> {
    let wanted = |what| args.what.is_none_or(|only| only == what);
    let scenarios: Vec<Scenario> = BUILTIN
        .iter()
        .map(|builtin| scenario::load(builtin.name)?.scenario(&[]))
        .collect::<Result<_, _>>()
        .map_err(Failure::work)?;
    let mut out = stdout().lock();
    if args.json {
        let mut document = serde_json::Map::new();
        if wanted(What::Scenarios) {
            let list = scenarios.iter().map(|s| {
                json!({"name": s.name, "title": s.title, "source": s.source,
                       "description": s.description, "keys": s.keys})
            });
            document.insert("scenarios".into(), list.collect());
        }
        if wanted(What::CongestionControls) {
            let list = Algorithm::ALL
                .iter()
                .map(|a| json!({"name": a.name(), "source": a.source(), "about": a.about()}));
            document.insert("congestion_controls".into(), list.collect());
        }
        if wanted(What::Links) {
            let list = scenarios
                .iter()
                .map(|s| json!({"name": s.name, "up": s.network.up, "down": s.network.down}));
            document.insert("links".into(), list.collect());
        }
        serde_json::to_writer_pretty(&mut out, &document).map_err(std::io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    if wanted(What::Scenarios) {
        writeln!(out, "Scenarios (ebbtide run NAME):")?;
        for s in &scenarios {
            let keys: Vec<&str> = s.keys.keys().map(String::as_str).collect();
            writeln!(out, "  {:<15} {}", s.name, s.title)?;
            writeln!(out, "  {:<15} --set {}", "", keys.join(", "))?;
        }
        writeln!(out)?;
    }
    if wanted(What::CongestionControls) {
        writeln!(out, "Congestion controls (--cc NAME[,NAME...] or all):")?;
        for a in Algorithm::ALL {
            writeln!(out, "  {:<13} {}", a.name(), a.about())?;
            writeln!(out, "  {:<13}   {}", "", a.source())?;
        }
        writeln!(out)?;
    }
    if wanted(What::Links) {
        writeln!(out, "Links:")?;
        for s in &scenarios {
            for (name, link) in [("up", &s.network.up), ("down", &s.network.down)] {
                writeln!(
                    out,
                    "  {:<15} {name:<5} {}, {} one way, buffer {}",
                    s.name,
                    link.rate,
                    span(link.delay.ends()),
                    link.buffer
                )?;
            }
        }
    }
    Ok(())
}

fn span((low, high): (u64, u64)) -> String {
    use ebbtide_sim::scenario::units::Time;
    if low == high { Time(low).to_string() } else { format!("{} to {}", Time(low), Time(high)) }
}
