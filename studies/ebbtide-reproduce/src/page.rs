//! A page of `reproduce`: the report on some cells of a paper.

use super::papers::Paper;
use ebbtide_sim::result::{Cell, CellSpec, Report, Results, VERSION};
use ebbtide_sim::run::{Campaign, report};
use ebbtide_sim::scenario::load;

/// One page.
#[derive(Clone, Debug)]
pub struct Page {
    /// The file's name without its extension.
    pub name: String,
    /// A short description of its contents.
    pub about: &'static str,
    /// The report on the page.
    pub report: Report,
}

/// Describes the scenario that the paper ran.
pub(super) fn described(page: &mut Report, paper: Paper) {
    if let Ok(source) = load(paper.scenario())
        && let Ok(scenario) = source.scenario(&[])
    {
        page.scenario = source.place;
        page.scenario_toml = source.text;
        page.description = scenario.description;
    }
}

/// The selected cells of a paper, in their order.
pub(super) fn select(
    paper: Paper,
    campaign: &Campaign,
    results: &Results,
    wanted: &dyn Fn(&CellSpec) -> bool,
) -> Vec<Cell> {
    let mut chosen: Vec<(usize, Cell)> = Vec::new();
    for (index, result) in &results.cells {
        let spec = &campaign.cells[*index];
        if paper.ran(spec) && wanted(spec) {
            chosen.push((*index, result.cell.clone()));
        }
    }
    chosen.into_iter().map(|(_, cell)| cell).collect()
}

/// A page with these cells and axes.
pub(super) fn make(
    paper: Paper,
    campaign: &Campaign,
    results: &Results,
    mut cells: Vec<Cell>,
    axes: &[&str],
) -> Report {
    for cell in &mut cells {
        cell.settings.retain(|(key, _)| axes.contains(&key.as_str()));
    }
    let base = report(campaign, results);
    Report {
        title: format!("{} reproduced", paper.source()),
        subtitle: String::new(),
        source: paper.title().to_owned(),
        axes: axes.iter().map(|axis| (*axis).to_owned()).collect(),
        cells,
        version: VERSION.to_owned(),
        ..base
    }
}
