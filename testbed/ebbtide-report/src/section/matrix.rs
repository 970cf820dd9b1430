//! The matrix of a sweep: settings by controls, coloured by the judgement; which figure stands in it
//! can be chosen.

use super::{PageContext, table};
use crate::text::{brief, escape, fixed, percent};
use crate::verdict::{ControlSummary, Setting, time_of};
use ebbtide_sim::judge::Judgement;
use ebbtide_sim::result::Cell;

/// From so many cells on only the first figures can be chosen, to keep the file small.
const MANY: usize = 500;

/// Rows at most.
const MOST_ROWS: usize = 400;

/// Figures that a cell can show: the name in the style sheet and the name in words.
const FIGURES: [(&str, &str); 5] = [
    ("delivered", "share delivered"),
    ("by", "time by which the share named is delivered"),
    ("limit", "last, times the limit"),
    ("sent", "sent per delivered"),
    ("waste", "share unnecessary"),
];

/// One row per combination of settings, one column per control, best control first.
pub(super) fn matrix(
    context: &PageContext<'_>,
    settings: &[Setting<'_>],
    standings: &[ControlSummary<'_>],
    keys: &[&str],
) -> String {
    let mut head: String =
        keys.iter().map(|key| format!("<th scope=\"col\">{}</th>", escape(key))).collect();
    for one in standings {
        head.push_str(&format!("<th scope=\"col\">{}</th>", context.name(one.cc)));
    }
    let mut body = String::new();
    for setting in settings.iter().take(MOST_ROWS) {
        let Some(first) = setting.cells.first() else { continue };
        body.push_str("<tr>");
        for key in keys {
            body.push_str(&format!("<th scope=\"row\">{}</th>", escape(first.setting(key))));
        }
        for one in standings {
            let cell = setting.cells.iter().copied().find(|cell| cell.cc == one.cc);
            body.push_str(&entry(cell, setting, shown(context)));
        }
        body.push_str("</tr>\n");
    }
    let rest = match settings.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        rest => format!("<p class=\"note\">{rest} further rows are left out.</p>\n"),
    };
    let options: String = FIGURES[..shown(context)]
        .iter()
        .map(|(name, words)| format!("<option value=\"{name}\">{words}</option>"))
        .collect();
    let judgements = [
        ("m0", Judgement::Best),
        ("m1", Judgement::Level),
        ("m3", Judgement::Slower),
        ("m3", Judgement::Meets),
        ("m5", Judgement::Misses),
        ("m4", Judgement::Loses),
        ("m5", Judgement::Wasteful),
        ("m6", Judgement::Collapses),
    ];
    // Only scenarios with requirements have these.
    let is_of_requirements =
        |found: Judgement| matches!(found, Judgement::Meets | Judgement::Misses);
    let has_requirements = settings
        .iter()
        .flat_map(|one| &one.verdict.judgements)
        .any(|(_, found)| is_of_requirements(*found));
    let key: String = judgements
        .iter()
        .filter(|(_, judgement)| has_requirements || !is_of_requirements(*judgement))
        .map(|(class, judgement)| {
            format!("<span><i class=\"{class}\"></i>{}</span>", judgement.word())
        })
        .collect();
    let head = format!("<tr>{head}</tr>");
    let table = table("matrix", "Judgement by setting", &head, &body);
    format!(
        "<h3>Every setting</h3>\n<div class=\"key\">{key}<span>† collapses</span>\
         <label>Show <select id=\"matrix-figure\">{options}</select></label></div>\n\
         <div class=\"matrices\" data-figure=\"delivered\">{table}</div>{rest}"
    )
}

/// How many of the figures can be chosen.
fn shown(context: &PageContext<'_>) -> usize {
    if context.report.cells.len() > MANY { 1 } else { FIGURES.len() }
}

fn entry(cell: Option<&Cell>, setting: &Setting<'_>, shown: usize) -> String {
    let Some(cell) = cell else { return "<td></td>".to_owned() };
    let all = &cell.outcome.all;
    let judgement = setting.verdict.judgement_of(&cell.cc).unwrap_or(Judgement::Loses);
    let class = match judgement {
        Judgement::Best => "m0",
        Judgement::Level => "m1",
        Judgement::Slower | Judgement::Meets => "m3",
        Judgement::Loses => "m4",
        Judgement::Wasteful | Judgement::Misses => "m5",
        Judgement::Collapses => "m6",
    };
    let mark = if judgement == Judgement::Collapses { "†" } else { "" };
    let never = || "never".to_owned();
    let time = setting.verdict.percent.and_then(|percent| time_of(cell, percent));
    let figures = [
        match all.delivered {
            share if share > 0.9999 && share < 1.0 => "&gt;99.99\u{a0}%".to_owned(),
            share if share > 0.99 && share < 1.0 => percent(share, 2),
            share => percent(share, 0),
        },
        time.map_or_else(never, |time| format!("{}\u{a0}s", brief(time))),
        cell.multiple().map_or_else(never, |times| fixed(times, 2)),
        fixed(all.transmissions_per_delivered, 2),
        percent(all.unnecessary_share, 1),
    ];
    let spans: String = FIGURES[..shown]
        .iter()
        .zip(figures)
        .map(|((name, _), text)| match shown {
            1 => format!("{text}{mark}"),
            _ => format!("<span class=\"f-{name}\">{text}{mark}</span>"),
        })
        .collect();
    let (open, close) = if judgement == Judgement::Best { ("<b>", "</b>") } else { ("", "") };
    format!("<td class=\"{class}\">{open}{spans}{close}</td>")
}
