//! `ebbtide list`: the names for use on the command line.

use crate::failure::Failure;
use crate::text::lines;
use clap::ValueEnum;
use ebbtide_core::cc::Algorithm;
use ebbtide_sim::result::{Better, all_figures};
use ebbtide_sim::scenario::{
    self, BUILTIN, Q_BLOCK, Q_BLOCK_ABOUT, Q_BLOCK_SOURCE, Scenario, TCP, TCP_ABOUT, TCP_SOURCE,
};
use serde_json::json;
use std::io::{Write, stdout};

/// List scenarios, congestion controls, links and figures
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    /// The kind of thing to list; everything if it is left out
    what: Option<Topic>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum Topic {
    Scenarios,
    CongestionControls,
    Links,
    Figures,
    Keys,
    /// The JSON schema of scenario files
    Schema,
}

pub(crate) fn run(args: &ListArgs) -> Result<(), Failure> {
    if args.what == Some(Topic::Schema) {
        let schema = scenario::schema().map_err(Failure::work)?;
        let mut out = stdout().lock();
        serde_json::to_writer_pretty(&mut out, &schema).map_err(std::io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    let wanted = |what| args.what.is_none_or(|only| only == what);
    let scenarios: Vec<Scenario> = BUILTIN
        .iter()
        .map(|builtin| scenario::load(builtin.name)?.scenario(&[]))
        .collect::<Result<_, _>>()
        .map_err(Failure::work)?;
    let mut out = stdout().lock();
    // A reference of two hundred keys is only printed if it is asked for.
    let keys = match args.what {
        Some(Topic::Keys) => scenario::reference().map_err(Failure::work)?,
        _ => Vec::new(),
    };
    if args.json {
        let mut document = serde_json::Map::new();
        if wanted(Topic::Scenarios) {
            let list = scenarios.iter().map(|s| {
                json!({"name": s.name, "title": s.title, "source": s.source,
                       "description": s.description, "keys": s.keys})
            });
            document.insert("scenarios".into(), list.collect());
        }
        if wanted(Topic::CongestionControls) {
            let list = Algorithm::ALL
                .iter()
                .map(|a| json!({"name": a.name(), "source": a.source(), "about": a.about()}));
            document.insert("congestion_controls".into(), list.collect());
            let tcp = json!({"name": TCP, "source": TCP_SOURCE, "about": TCP_ABOUT});
            let q_block =
                json!({"name": Q_BLOCK, "source": Q_BLOCK_SOURCE, "about": Q_BLOCK_ABOUT});
            document.insert("transports".into(), vec![tcp].into());
            document.insert("transfers".into(), vec![q_block].into());
        }
        if wanted(Topic::Links) {
            let list = scenarios
                .iter()
                .filter(|s| !s.network.up.is_missing())
                .map(|s| json!({"name": s.name, "up": s.network.up, "down": s.network.down}));
            document.insert("links".into(), list.collect());
        }
        if wanted(Topic::Figures) {
            let list = all_figures().map(|one| {
                json!({"name": one.name, "unit": one.unit.symbol(), "about": one.about,
                       "better": better(one.better)})
            });
            document.insert("figures".into(), list.collect());
        }
        if !keys.is_empty() {
            let list = keys.iter().map(|one| {
                json!({"key": one.key, "values": one.kind, "default": one.default,
                       "range": one.range, "about": one.about})
            });
            document.insert("keys".into(), list.collect());
        }
        serde_json::to_writer_pretty(&mut out, &document).map_err(std::io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    if wanted(Topic::Scenarios) {
        writeln!(out, "Scenarios (ebbtide run NAME):")?;
        for s in &scenarios {
            let keys: Vec<&str> = s.keys.keys().map(String::as_str).collect();
            writeln!(out, "  {:<15} {}", s.name, s.title)?;
            for line in wrapped(&keys, 56) {
                writeln!(out, "  {:<15} --set {line}", "")?;
            }
        }
        writeln!(out)?;
    }
    if wanted(Topic::CongestionControls) {
        writeln!(out, "Congestion controls (--cc NAME[,NAME...] or all):")?;
        for a in Algorithm::ALL {
            named(&mut out, [a.name(), a.about(), a.source()])?;
        }
        writeln!(
            out,
            "\nA transport and a transfer, which --cc also accepts (`all` does not include them):"
        )?;
        named(&mut out, [TCP, TCP_ABOUT, TCP_SOURCE])?;
        named(&mut out, [Q_BLOCK, Q_BLOCK_ABOUT, Q_BLOCK_SOURCE])?;
        writeln!(out)?;
    }
    if wanted(Topic::Links) {
        writeln!(out, "Links:")?;
        for s in &scenarios {
            // A low-power network may have no wired side.
            let links = [("up", &s.network.up), ("down", &s.network.down)];
            for (name, link) in links.into_iter().filter(|(_, link)| !link.is_missing()) {
                let (low, high) = link.delay.ends();
                writeln!(
                    out,
                    "  {:<15} {name:<5} {}, {} one way, buffer {}",
                    s.name,
                    link.rate,
                    span(low, high),
                    link.buffer
                )?;
            }
        }
    }
    for one in &keys {
        let notes = [one.kind.as_str(), &one.default, &one.range];
        let notes: Vec<&str> = notes.into_iter().filter(|note| !note.is_empty()).collect();
        writeln!(out, "  {:<40} {}", one.key, notes.join("; "))?;
        let words: Vec<&str> = one.about.split(' ').collect();
        for line in lines(&words, " ", 74) {
            writeln!(out, "    {line}")?;
        }
    }
    if wanted(Topic::Figures) {
        writeln!(out, "\nFigures of a cell (run --json):")?;
        for one in all_figures() {
            let notes = [one.unit.symbol(), better(one.better)];
            let notes: Vec<&str> = notes.into_iter().filter(|note| !note.is_empty()).collect();
            writeln!(out, "  {:<33} {}", one.name, notes.join(", "))?;
            let words: Vec<&str> = one.about.split(' ').collect();
            for line in lines(&words, " ", 74) {
                writeln!(out, "    {line}")?;
            }
        }
    }
    Ok(())
}

/// Which values of a figure are better, in words.
const fn better(direction: Better) -> &'static str {
    match direction {
        Better::Less => "less is better",
        Better::More => "more is better",
        Better::Neither => "",
    }
}

/// A name, its description and its source.
fn named(out: &mut impl Write, [name, about, source]: [&str; 3]) -> std::io::Result<()> {
    let words: Vec<&str> = about.split(' ').collect();
    for (index, line) in lines(&words, " ", 62).iter().enumerate() {
        writeln!(out, "  {:<13} {line}", if index == 0 { name } else { "" })?;
    }
    writeln!(out, "  {:<13}   {source}", "")
}

/// Names separated by commas, in lines of at most `width` characters.
fn wrapped(names: &[&str], width: usize) -> Vec<String> {
    lines(names, ", ", width)
}

fn span(low: u64, high: u64) -> String {
    use ebbtide_sim::scenario::units::Time;
    if low == high { Time(low).to_string() } else { format!("{} to {}", Time(low), Time(high)) }
}
