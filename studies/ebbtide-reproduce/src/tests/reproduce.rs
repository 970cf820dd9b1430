//! The papers' experiments: every published figure is compared, and lies where it should.

use crate::{Paper, PublishedFigure, REPS_TO_JUDGE, compare, pages, plan, replications};
use ebbtide_sim::run::Campaign;

/// The papers about the bottleneck; those about low-power networks have tests of their own.
const BOTTLENECK: [Paper; 2] = [Paper::Anrw18, Paper::Thesis19];

fn only(campaign: &mut Campaign, clients: u32) {
    campaign.cells.retain(|cell| cell.scenario.clients.count <= clients);
}

#[test]
fn every_published_figure_has_a_cell_of_its_settings_and_control() {
    for paper in Paper::ALL {
        let campaign = plan(&[*paper], None, None).unwrap();
        for figure in &PublishedFigure::published_by(paper.source()) {
            let found = campaign.cells.iter().any(|cell| {
                let settings = cell.settings.iter().map(|(_, value)| value.as_str());
                cell.cc == figure.cc && settings.eq(figure.settings)
            });
            assert!(found, "{figure:?}");
        }
    }
}

#[test]
fn a_cell_of_two_papers_is_run_once() {
    let both = plan(Paper::ALL, None, None).unwrap();
    let each: usize = Paper::ALL.iter().map(|p| plan(&[*p], None, None).unwrap().cells.len()).sum();
    assert!(both.cells.len() < each, "they share cells");
    let mut names: Vec<String> = both.cells.iter().map(|cell| cell.name()).collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn cells_without_loss_agree_with_the_papers_after_three_replications() {
    // Nothing is drawn that matters here, so that few replications and small cells suffice.
    let mut campaign = plan(&BOTTLENECK, Some(3), None).unwrap();
    only(&mut campaign, 50);
    campaign.cells.retain(|cell| cell.scenario.network.errors == "none");
    let results = campaign.run(None, None, &()).unwrap();
    let rows: Vec<_> =
        BOTTLENECK.iter().flat_map(|paper| compare(*paper, &campaign, &results)).collect();
    assert!(rows.len() > 40, "{} rows", rows.len());
    for row in rows {
        assert!(!row.is_outside(), "{row:?}");
    }
}

#[test]
#[ignore = "two minutes in a debug build: ci.sh runs it in release"]
fn all_figures_of_anrw18_and_thesis19_are_within_their_tolerances() {
    let campaign = plan(&BOTTLENECK, None, None).unwrap();
    let results = campaign.run(None, None, &()).unwrap();
    for paper in &BOTTLENECK {
        let rows = compare(*paper, &campaign, &results);
        assert_eq!(rows.len(), PublishedFigure::published_by(paper.source()).len());
        assert!(rows.iter().all(|row| row.within.is_none() == (row.cc == "tcp")));
        let outside: Vec<_> = rows.iter().filter(|row| row.is_outside()).collect();
        assert!(outside.is_empty(), "{outside:#?}");
        let udp = || rows.iter().filter(|row| !row.is_percentage && row.cc != "tcp");
        for one in udp() {
            for other in udp().filter(|o| o.cell == one.cell && o.quantity == one.quantity) {
                // Where the papers' values differ by more than both tolerances, so must ours.
                let within = one.within.unwrap_or(0.0) + other.within.unwrap_or(0.0);
                if one.published * (1.0 + within) < other.published {
                    assert!(one.measured < other.measured, "{one:?} {other:?}");
                }
            }
        }
    }
}

#[test]
#[ignore = "a minute in a debug build: ci.sh runs it in release"]
fn tcp_is_the_fastest_of_many_continuous_clients_and_the_slowest_of_random_ones() {
    // With the buffer of 2500 bytes, against the controls that the thesis compares it with.
    let mut campaign = plan(&[Paper::Thesis19], None, None).unwrap();
    let of_thesis = ["default", "cocoa", "fasor", "fasor-token", "tcp"];
    campaign.cells.retain(|cell| {
        let clients = cell.scenario.clients.count;
        let buffer = cell.scenario.network.up.buffer.0;
        (clients == 100 || clients == 400)
            && buffer == Some(2500)
            && of_thesis.contains(&cell.cc.as_str())
    });
    let results = campaign.run(None, None, &()).unwrap();
    let rows = compare(Paper::Thesis19, &campaign, &results);
    let others = |workload: &str, clients: u32| -> (f64, Vec<f64>) {
        let cell = format!("{clients} {workload}, buffer 2500");
        let rows = rows.iter().filter(|row| row.cell == cell && row.quantity == "median FCT (s)");
        let (tcp, udp): (Vec<_>, Vec<_>) = rows.partition(|row| row.cc == "tcp");
        assert_eq!((tcp.len(), udp.len()), (1, 4), "{cell}");
        (tcp[0].measured, udp.iter().map(|row| row.measured).collect())
    };
    let (tcp, udp) = others("continuous", 400);
    assert!(udp.iter().all(|other| tcp < *other), "{tcp} {udp:?}");
    for clients in [100, 400] {
        let (tcp, udp) = others("random", clients);
        assert!(udp.iter().all(|other| tcp > *other), "{tcp} {udp:?}");
    }
}

#[test]
fn a_paper_is_judged_with_its_own_replications_and_not_with_two() {
    for paper in Paper::ALL.iter().copied() {
        let own = plan(&[paper], None, None).unwrap();
        assert!(replications(paper, &own) >= REPS_TO_JUDGE, "{paper:?}");
        let few = plan(&[paper], Some(2), None).unwrap();
        assert_eq!(replications(paper, &few), 2, "{paper:?}");
    }
}

#[test]
fn the_pages_show_each_half_of_a_competition_and_the_published_figures() {
    let mut campaign = plan(&[Paper::Thesis19], Some(1), None).unwrap();
    campaign.cells.retain(|cell| {
        cell.scenario.clients.count == 10
            || (cell.scenario.clients.count == 100 && cell.cc.contains('+'))
    });
    let results = campaign.run(None, None, &()).unwrap();
    let pages = pages(&[Paper::Thesis19], &campaign, &results);
    let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
    assert_eq!(names, ["thesis19-errors", "thesis19-competition"], "no 400 clients, no main page");
    let controls: Vec<&str> = pages[1].report.cells.iter().map(|cell| cell.cc.as_str()).collect();
    assert!(controls.contains(&"fasor beside default"), "{controls:?}");
    assert!(controls.contains(&"default beside fasor"), "{controls:?}");
}
