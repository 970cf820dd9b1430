//! The papers' experiments: every published figure is compared, and lies where it should.

use ebbtide_sim::reproduce::{Figure, Paper, compare, pages, plan};
use ebbtide_sim::run::Campaign;

/// Figures of UDP controls: TCP is not simulated.
fn comparable(paper: Paper) -> usize {
    Figure::of(paper.source()).iter().filter(|figure| figure.cc != "tcp").count()
}

/// The papers about the bottleneck; those about low-power networks have tests of their own.
const BOTTLENECK: [Paper; 2] = [Paper::Anrw18, Paper::Thesis19];

fn only(campaign: &mut Campaign, clients: u32) {
    campaign.cells.retain(|cell| cell.scenario.clients.count <= clients);
}

#[test]
fn every_published_figure_has_a_cell_of_its_settings_and_control() {
    for paper in Paper::ALL {
        let campaign = plan(&[*paper], (None, None)).unwrap();
        for figure in Figure::of(paper.source()).iter().filter(|figure| figure.cc != "tcp") {
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
    let both = plan(Paper::ALL, (None, None)).unwrap();
    let each: usize =
        Paper::ALL.iter().map(|p| plan(&[*p], (None, None)).unwrap().cells.len()).sum();
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
    let mut campaign = plan(&BOTTLENECK, (Some(3), None)).unwrap();
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
    let campaign = plan(&BOTTLENECK, (None, None)).unwrap();
    let results = campaign.run(None, None, &()).unwrap();
    for paper in &BOTTLENECK {
        let rows = compare(*paper, &campaign, &results);
        assert_eq!(rows.len(), comparable(*paper));
        let outside: Vec<_> = rows.iter().filter(|row| row.is_outside()).collect();
        assert!(outside.is_empty(), "{outside:#?}");
        for one in rows.iter().filter(|row| !row.is_percentage) {
            for other in rows.iter().filter(|o| o.cell == one.cell && o.quantity == one.quantity) {
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
fn the_pages_show_each_half_of_a_competition_and_the_published_figures() {
    let mut campaign = plan(&[Paper::Thesis19], (Some(1), None)).unwrap();
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
