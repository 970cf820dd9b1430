//! `ebbtide reproduce`: repeats the papers' experiments.

use super::campaign::CampaignArgs;
use crate::failure::Failure;
use crate::output::number::significant;
use crate::text::paragraph;
use ebbtide_report::render;
use ebbtide_reproduce::{
    Paper, REPS_TO_JUDGE, Statement, check_statements, compare, pages, plan, replications, withhold,
};
use ebbtide_sim::record::Store;
use ebbtide_sim::result::Comparison;
use ebbtide_sim::run::{Campaign, Results, VERSION};
use ebbtide_sim::scenario::{TCP, did_you_mean};
use std::io::{Write, stdout};

/// Repeat the papers' experiments and compare their figures with the published ones
#[derive(clap::Args)]
pub(crate) struct ReproduceArgs {
    /// anrw18, thesis19, socne14, wimob17, rcoap21, or all
    #[arg(default_value = "all")]
    papers: Vec<String>,
    #[command(flatten)]
    campaign: CampaignArgs,
}

pub(crate) fn run(args: &ReproduceArgs) -> Result<(), Failure> {
    let papers = named(&args.papers)?;
    let campaign = plan(&papers, args.campaign.reps, args.campaign.seed).map_err(Failure::work)?;
    let ran = args.campaign.run(&campaign, None)?;
    let compared: Vec<(Paper, Vec<Comparison>)> = papers
        .iter()
        .map(|paper| {
            let mut rows = compare(*paper, &campaign, &ran.results);
            withhold(&mut rows, replications(*paper, &campaign));
            (*paper, rows)
        })
        .collect();
    let mut out = stdout().lock();
    if args.campaign.json {
        json(&mut out, &campaign, &ran.results, &compared)?;
    } else {
        for (paper, rows) in &compared {
            let reps = replications(*paper, &campaign);
            table(&mut out, *paper, reps, rows)?;
            statements(&mut out, reps, &check_statements(*paper, &campaign, &ran.results))?;
        }
    }
    if let Some(store) = &ran.store {
        let quietly = args.campaign.json;
        write_pages(&mut out, store, &papers, &campaign, &ran.results, quietly)?;
    }
    ran.finish()
}

/// Writes the reports of a reproduction and prints their paths.
pub(crate) fn write_pages(
    out: &mut impl Write,
    store: &Store,
    papers: &[Paper],
    campaign: &Campaign,
    results: &Results,
    quietly: bool,
) -> Result<(), Failure> {
    for page in pages(papers, campaign, results) {
        let name = format!("{}.html", page.name);
        let path = store.save_text(&name, &render(&page.report)).map_err(Failure::work)?;
        if !quietly {
            writeln!(out, "{}: {}", path.display(), page.about)?;
        }
    }
    Ok(())
}

fn named(names: &[String]) -> Result<Vec<Paper>, Failure> {
    let mut papers = Vec::new();
    for name in names {
        let found: Vec<Paper> = match name.as_str() {
            "all" => Paper::ALL.to_vec(),
            name => Paper::ALL.iter().copied().filter(|paper| paper.name() == name).collect(),
        };
        if found.is_empty() {
            let known: Vec<&str> = Paper::ALL.iter().map(|paper| paper.name()).collect();
            return Err(Failure::usage(format!(
                "'{name}' cannot be reproduced; there are {}, all{}",
                known.join(", "),
                did_you_mean(name, known)
            )));
        }
        papers
            .extend(found.into_iter().filter(|paper| !papers.contains(paper)).collect::<Vec<_>>());
    }
    Ok(papers)
}

fn table(
    out: &mut impl Write,
    paper: Paper,
    reps: u32,
    rows: &[Comparison],
) -> std::io::Result<()> {
    writeln!(out, "{}\n{}\n", paper.source(), paper.title())?;
    if rows.is_empty() {
        return Ok(());
    }
    let mut quantity = "";
    for row in rows {
        if row.quantity != quantity {
            quantity = &row.quantity;
            writeln!(out, "{}: {quantity}", row.table)?;
            writeln!(
                out,
                "  {:<34} {:<12} {:>8} {:>8} {:>9}",
                "cell", "control", "paper", "here", "off by"
            )?;
        }
        let unit = if row.is_percentage { "pt" } else { "%" };
        let flag = if row.is_outside() { "!" } else { " " };
        writeln!(
            out,
            "{flag} {:<34} {:<12} {:>8} {:>8} {:>+6.2} {unit}",
            row.cell,
            row.cc,
            significant(row.published),
            significant(row.measured),
            100.0 * row.relative
        )?;
    }
    if reps < REPS_TO_JUDGE {
        let text = format!(
            "{reps} replications are too few to judge: run {REPS_TO_JUDGE} or more (--reps), or as \
             many as the paper, without --reps."
        );
        writeln!(out)?;
        paragraph(out, "", &text)?;
        return writeln!(out);
    }
    let promised = rows.iter().filter(|row| row.within.is_some()).count();
    let outside = rows.iter().filter(|row| row.is_outside()).count();
    if promised > 0 {
        writeln!(out, "\n{} of {promised} values are within their tolerance.", promised - outside)?;
    }
    if outside > 0 {
        writeln!(out, "! marks those outside.")?;
    }
    let over_tcp = rows.iter().filter(|row| row.within.is_none() && row.cc == TCP).count();
    if promised == 0 {
        writeln!(
            out,
            "\nThere is no tolerance: the figures depend on details that the paper leaves open."
        )?;
    } else if over_tcp > 0 {
        writeln!(
            out,
            "The {} values of TCP have no tolerance: the papers used Linux's TCP, not this one.",
            over_tcp
        )?;
    }
    writeln!(out)
}

/// Prints the statements of a paper, and whether they hold.
fn statements(out: &mut impl Write, reps: u32, all: &[Statement]) -> std::io::Result<()> {
    for statement in all {
        let flag = if statement.holds_after(reps) == Some(false) { "!" } else { " " };
        let verdict = statement.verdict(reps);
        paragraph(out, &format!("{flag} "), &statement.says)?;
        paragraph(out, "    ", &format!("{verdict}: {}", statement.measured))?;
    }
    if all.is_empty() { Ok(()) } else { writeln!(out) }
}

fn json(
    out: &mut impl Write,
    campaign: &Campaign,
    results: &Results,
    compared: &[(Paper, Vec<Comparison>)],
) -> Result<(), Failure> {
    let papers: Vec<serde_json::Value> = compared
        .iter()
        .map(|(paper, rows)| {
            let reps = replications(*paper, campaign);
            let statements = check_statements(*paper, campaign, results);
            let statements: Vec<_> = statements
                .iter()
                .map(|one| {
                    let holds = one.holds_after(reps);
                    serde_json::json!({"says": one.says, "measured": one.measured, "holds": holds})
                })
                .collect();
            serde_json::json!({"paper": paper.name(), "figures": rows, "statements": statements})
        })
        .collect();
    let document = serde_json::json!({
        "seed": campaign.seed, "version": VERSION, "papers": papers,
    });
    serde_json::to_writer_pretty(&mut *out, &document).map_err(Failure::work)?;
    Ok(writeln!(out)?)
}
