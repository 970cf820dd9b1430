//! How to get all of this again.

use super::published::notes;
use super::{PageContext, command_line};
use crate::text::escape;

/// Commands of single cells listed at most.
const MOST_COMMANDS: usize = 200;

/// The last section.
pub(crate) fn section(context: &PageContext<'_>) -> String {
    let report = context.report;
    // On the page of a paper they stand with its figures.
    let notes = if report.published.is_empty() { notes(report) } else { String::new() };
    let each: String = report
        .cells
        .iter()
        .filter(|cell| !cell.command.is_empty())
        .take(MOST_COMMANDS)
        .map(|cell| format!("{}\n", escape(&cell.command)))
        .collect();
    let each = if each.is_empty() || report.cells.len() < 2 {
        String::new()
    } else {
        format!("<details><summary>One command per cell</summary>\n<pre>{each}</pre></details>\n")
    };
    let toml = if report.scenario_toml.is_empty() {
        String::new()
    } else {
        let toml = escape(&report.scenario_toml);
        format!("<details><summary>The scenario file</summary>\n<pre>{toml}</pre></details>\n")
    };
    format!(
        "<section id=\"reproduce\">\n<h2>Reproduce</h2>\n{notes}<p>The same seed gives the same \
         results, whatever the number of threads.</p>\n{}<dl><dt>Seed</dt><dd>{}</dd>\
         <dt>Version</dt><dd>{}</dd><dt>Scenario</dt><dd>{}</dd></dl>\n{toml}{each}</section>\n",
        command_line(&report.command),
        report.seed,
        escape(&report.version),
        escape(&report.scenario),
    )
}
