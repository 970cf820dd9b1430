//! The matrix of a sweep: settings by controls, coloured by the multiple of the limit.

use super::grid::by_settings;
use super::model::Cell;
use super::section::{Context, table};
use super::text::{brief, escape, fixed};
use super::verdict::{Standing, best_median, collapse};

/// Upper bounds of the colour classes, in multiples of the limit; beyond is the last class.
const BOUNDS: [f64; 6] = [1.05, 1.25, 1.5, 2.0, 3.0, 5.0];

/// Cells with tips at most.
const MOST_TIPS: usize = 500;

/// Rows at most.
const MOST_ROWS: usize = 400;

/// One row per combination of settings, one column per control, best control first.
pub(super) fn matrix(context: &Context<'_>, standings: &[Standing<'_>], keys: &[&str]) -> String {
    let mut head: String =
        keys.iter().map(|key| format!("<th scope=\"col\">{}</th>", escape(key))).collect();
    for one in standings {
        head.push_str(&format!("<th scope=\"col\">{}</th>", context.name(one.cc)));
    }
    let rows = by_settings(context.report, keys);
    let tips = context.report.cells.len() <= MOST_TIPS;
    let mut body = String::new();
    for (_, cells) in rows.iter().take(MOST_ROWS) {
        let Some(first) = cells.first() else { continue };
        body.push_str("<tr>");
        for key in keys {
            body.push_str(&format!("<th scope=\"row\">{}</th>", escape(first.setting(key))));
        }
        let best = best_median(cells);
        for one in standings {
            body.push_str(&entry(cells.iter().copied().find(|cell| cell.cc == one.cc), best, tips));
        }
        body.push_str("</tr>\n");
    }
    let rest = match rows.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        rest => format!("<p class=\"note\">{rest} further rows are left out.</p>\n"),
    };
    let mut key = String::from("<div class=\"key\"><span>Times the limit:</span>");
    for (class, bound) in BOUNDS.iter().enumerate() {
        key.push_str(&format!("<span><i class=\"m{class}\"></i>to {}</span>", fixed(*bound, 2)));
    }
    key.push_str("<span><i class=\"m6\"></i>more</span><span>† collapse</span>");
    key.push_str("<span><b>bold</b> best of its row</span></div>\n");
    let head = format!("<tr>{head}</tr>");
    let table = table("matrix", "Median flow completion time", &head, &body);
    format!("<h3>Median flow completion time as a multiple of the limit</h3>\n{key}{table}{rest}")
}

fn entry(cell: Option<&Cell>, best: f64, tips: bool) -> String {
    let Some(cell) = cell else { return "<td></td>".to_owned() };
    let mark = if collapse(cell).is_some() { "†" } else { "" };
    let Some(times) = cell.multiple() else {
        let unit = if cell.fct.median.is_finite() { "\u{a0}s" } else { "" };
        return format!("<td>{}{unit}{mark}</td>", brief(cell.fct.median));
    };
    let class = BOUNDS.iter().position(|bound| times <= *bound).unwrap_or(BOUNDS.len());
    let text = format!("{}{mark}", fixed(times, 2));
    let text = if cell.fct.median <= best { format!("<b>{text}</b>") } else { text };
    let tip = format!("{}: median {} s", cell.cc, brief(cell.fct.median));
    let tip = if tips { format!(" data-tip=\"{}\"", escape(&tip)) } else { String::new() };
    format!("<td class=\"m{class}\"{tip}>{text}</td>")
}
