//! The reports of `reproduce`: each paper's figures in the paper's own arrangement.

use super::compare::{CALIBRATED, TOLERANCES, compare};
use super::page::{Page, described, make, select};
use super::papers::Paper;
use super::replications::{replications, withhold};
use super::statements::check_statements;
use ebbtide_sim::result::{Cell, CellSpec, Results};
use ebbtide_sim::run::Campaign;
use ebbtide_sim::scenario::WorkloadKind;

/// The pages of some papers: completion times and retransmissions by buffer and control, link
/// errors, competition of two controls. A page without complete cells is left out.
#[must_use]
pub fn pages(papers: &[Paper], campaign: &Campaign, results: &Results) -> Vec<Page> {
    let mut all = Vec::new();
    for paper in papers {
        if *paper == Paper::Rcoap21 {
            all.extend(super::rcoap21::pages(campaign, results));
            continue;
        }
        if paper.lists_cells() {
            all.push(low_power(*paper, campaign, results));
            continue;
        }
        let clean = |spec: &CellSpec| spec.scenario.network.errors == "none";
        let mixed = |spec: &CellSpec| spec.scenario.workload.kind() == WorkloadKind::Mixed;
        let name = paper.name();
        // 400 clients show every effect; the other counts are in the table of published values.
        let main = select(*paper, campaign, results, &|spec| {
            clean(spec) && !mixed(spec) && spec.scenario.clients.count == 400
        });
        let mut page = make(*paper, campaign, results, main, &["workload", "buffer"]);
        page.published = compare(*paper, campaign, results);
        withhold(&mut page.published, replications(*paper, campaign));
        page.notes.extend([TOLERANCES, CALIBRATED].map(str::to_owned));
        page.subtitle = "400 clients; published values of all cells".into();
        all.push(Page {
            name: name.into(),
            about: "completion times and retransmissions by buffer, published values",
            report: page,
        });
        let errors = select(*paper, campaign, results, &|spec| {
            !mixed(spec)
                && spec.scenario.clients.count == 10
                && spec.scenario.network.up.buffer.0.is_none()
        });
        let mut page = make(*paper, campaign, results, errors, &["workload", "errors"]);
        page.subtitle = "10 clients, link errors".into();
        all.push(Page {
            name: format!("{name}-errors"),
            about: "completion times under link errors",
            report: page,
        });
        let competing = competition(*paper, campaign, results);
        let mut page = make(*paper, campaign, results, competing, &["clients", "buffer"]);
        page.subtitle = "Two controls on half of the clients each".into();
        all.push(Page {
            name: format!("{name}-competition"),
            about: "two controls, half of the clients each",
            report: page,
        });
    }
    all.retain(|page| !page.report.cells.is_empty());
    all
}

/// The page of a study of low-power networks.
fn low_power(paper: Paper, campaign: &Campaign, results: &Results) -> Page {
    let cells = select(paper, campaign, results, &|_| true);
    let axes: &[&str] = match paper {
        Paper::Socne14 => &["workload", "duty_cycle"],
        _ => &["workload", "n", "load", "event_interval", "event_message", "spacing"],
    };
    let mut page = make(paper, campaign, results, cells, axes);
    let reps = replications(paper, campaign);
    page.published = compare(paper, campaign, results);
    withhold(&mut page.published, reps);
    let statements = check_statements(paper, campaign, results);
    page.notes.extend(statements.iter().map(|statement| statement.words(reps)));
    described(&mut page, paper);
    let about = "what was served and lost in each cell, the networks, published values";
    Page { name: paper.name().to_owned(), about, report: page }
}

/// Each half of a mixed cell as a cell of its own.
fn competition(paper: Paper, campaign: &Campaign, results: &Results) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (index, result) in &results.cells {
        if !paper.ran(&campaign.cells[*index]) {
            continue;
        }
        cells.extend(result.halves.iter().cloned());
    }
    cells
}
