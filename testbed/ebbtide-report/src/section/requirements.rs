//! The requirements of a setting, and what each control has come to.

use super::{PageContext, table};
use crate::text::escape;
use ebbtide_sim::judge::RequirementCheck;
use ebbtide_sim::result::Cell;

/// The table; empty without requirements.
pub(super) fn requirements(context: &PageContext<'_>, cells: &[&Cell]) -> String {
    let checks = cells.first().map_or(&[][..], |cell| &cell.outcome.checks);
    if checks.is_empty() {
        return String::new();
    }
    let heading =
        |check: &RequirementCheck| format!("<th scope=\"col\">{}</th>", escape(&check.text()));
    let head: String = checks.iter().map(heading).collect();
    let found = |check: &RequirementCheck| {
        let text = escape(&check.found_text());
        match check.met().is_met() {
            true => format!("<td>{text}</td>"),
            false => format!("<td><span class=\"flag\">{text}</span></td>"),
        }
    };
    let row = |cell: &&Cell| {
        let found: String = cell.outcome.checks.iter().map(found).collect();
        format!("<tr><th scope=\"row\">{}</th>{found}</tr>\n", context.name(&cell.cc))
    };
    let body: String = cells.iter().map(row).collect();
    table(
        "requirements",
        "Requirements",
        &format!("<tr><th scope=\"col\">control</th>{head}</tr>"),
        &body,
    )
}
