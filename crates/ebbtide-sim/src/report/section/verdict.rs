//! The verdict: a paragraph in plain words, the ranking, and for sweeps the matrix.

use super::{Context, command_line, table};
use crate::report::grid::{by_settings, varying, words};
use crate::report::matrix::matrix;
use crate::report::text::{brief, enumerate, escape, fixed, interval, multiple, percent};
use crate::report::verdict::{Standing, collapse, failed_share, rank, span, unnecessary_share};

/// What the words of the verdict mean.
const DEFINITIONS: &str = "<b>Physical limit</b>: what the link needs to carry every response \
    once, or the exchanges of one client need on an idle path, whichever is longer; no schedule \
    lets the last client finish earlier, while the median client may if others wait. \
    <b>Collapse</b>: the median is beyond 3 times the limit, or more than half of the median \
    client’s transmissions were unnecessary, or more than a tenth of the exchanges failed. \
    <b>Near the best</b>: the median is within 5 % of the smallest one that did not collapse.";

/// Controls named with their figures in a sentence at most.
const MOST_LISTED: usize = 4;

/// The first section.
pub(crate) fn section(context: &Context<'_>) -> String {
    let standings = rank(context.report);
    let keys = varying(context.report);
    let (paragraph, tables) = match (standings.as_slice(), keys.is_empty()) {
        ([], _) if !context.report.published.is_empty() => {
            ("Published figures are compared with measured ones below.".to_owned(), String::new())
        }
        ([], _) => ("Nothing was run, so there is nothing to judge.".to_owned(), String::new()),
        (_, true) => (single(&standings), ranking(context, &standings)),
        (_, false) => (
            sweep(context, &standings),
            format!(
                "{}{}",
                sweep_ranking(context, &standings, &keys),
                matrix(context, &standings, &keys)
            ),
        ),
    };
    format!(
        "<section id=\"verdict\">\n<h2>Verdict</h2>\n<p class=\"lead\">{paragraph}</p>\n{tables}\
         <p class=\"note\">{DEFINITIONS}</p>\n{}</section>\n",
        command_line(&context.report.command)
    )
}

/// The paragraph when only the control varies.
fn single(standings: &[Standing<'_>]) -> String {
    let Some((best, cell)) = standings.first().and_then(|one| Some((one, *one.cells.first()?)))
    else {
        return String::new();
    };
    let limit = cell.multiple().map_or_else(String::new, |times| {
        format!(", {} times the physical limit of {} s", fixed(times, 2), brief(cell.fct_limit_s))
    });
    let done = format!("the median client is done after {} s{limit}", brief(cell.fct.median));
    let name = escape(best.cc);
    let mut out = match (best.collapses.first(), standings.len()) {
        (Some((_, why)), 1) => format!("<strong>{name} collapses</strong>: {why}."),
        (Some(_), _) => format!(
            "<strong>Every control collapses here.</strong> {name} comes off least badly: {done}."
        ),
        (None, 1) => format!("With <strong>{name}</strong>, {done}."),
        (None, _) => format!("Use <strong>{name}</strong>: {done}."),
    };
    if failed_share(cell) > 0.0 {
        out.push_str(&format!(" {} of its exchanges failed.", percent(failed_share(cell), 2)));
    }
    let sound = standings.iter().skip(1).filter(|one| one.collapses.is_empty());
    let (near, behind): (Vec<_>, Vec<_>) = sound.partition(|one| one.near > 0);
    match near.len() {
        0 => {}
        1 => out.push_str(&format!(" {} is within 5 % of it.", listed(&near))),
        _ => out.push_str(&format!(" {} are within 5 % of it.", listed(&near))),
    }
    match behind.len() {
        0 => {}
        1 => out.push_str(&format!(" {} needs longer but does not collapse.", listed(&behind))),
        _ => out.push_str(&format!(" {} need longer but do not collapse.", listed(&behind))),
    }
    if best.collapses.is_empty() {
        out.push_str(&collapsing(standings));
    }
    out
}

/// Controls with their medians; just the range of the medians when there are many.
fn listed(standings: &[&Standing<'_>]) -> String {
    let median = |one: &Standing<'_>| one.cells.first().map_or(f64::NAN, |cell| cell.fct.median);
    if standings.len() <= MOST_LISTED {
        let each =
            standings.iter().map(|one| format!("{} ({} s)", escape(one.cc), brief(median(one))));
        return enumerate(&each.collect::<Vec<_>>());
    }
    let medians = || standings.iter().map(|one| median(one)).filter(|median| median.is_finite());
    let range = (medians().fold(f64::INFINITY, f64::min), medians().fold(0.0, f64::max));
    format!("{} others ({} s)", standings.len(), interval(range, brief))
}

/// The sentence on those that collapse.
fn collapsing(standings: &[Standing<'_>]) -> String {
    let all: Vec<&Standing<'_>> =
        standings.iter().filter(|one| !one.collapses.is_empty()).collect();
    let fallen: Vec<String> = all
        .iter()
        .filter_map(|one| {
            let (cell, why) = one.collapses.first()?;
            let times = cell
                .multiple()
                .map_or_else(String::new, |times| format!(", {} times the limit", fixed(times, 2)));
            let median = brief(cell.fct.median);
            let why = if why.starts_with("beyond") { String::new() } else { format!("; {why}") };
            let name = format!("<strong>{}</strong>", escape(one.cc));
            let many = all.len() > MOST_LISTED;
            Some(if many { name } else { format!("{name} ({median} s{times}{why})") })
        })
        .collect();
    match fallen.len() {
        0 if standings.len() > 1 => " None collapses.".to_owned(),
        0 => String::new(),
        1 => format!(" {} collapses.", enumerate(&fallen)),
        _ => format!(" {} collapse.", enumerate(&fallen)),
    }
}

/// The paragraph of a sweep.
fn sweep(context: &Context<'_>, standings: &[Standing<'_>]) -> String {
    let Some(best) = standings.first() else { return String::new() };
    let keys = varying(context.report);
    let (name, cells) = (escape(best.cc), best.cells.len());
    let mut out = match (best.collapses.len(), standings.len()) {
        (0, 1) => format!("<strong>{name}</strong> collapses in none of {}", settings(cells)),
        (0, _) => format!(
            "Use <strong>{name}</strong>: over {} it never collapses{}",
            settings(cells),
            beside(best)
        ),
        (fallen, 1) => {
            format!("<strong>{name}</strong> collapses in {fallen} of {}", settings(cells))
        }
        (fallen, _) => format!(
            "<strong>Every control collapses somewhere.</strong> {name} does least often, in \
             {fallen} of {}",
            settings(cells)
        ),
    };
    if let Some(worst) = best.worst {
        out.push_str(&format!(
            "; farthest from the physical limit at {} ({})",
            escape(&words(worst, &keys)),
            multiple(worst.multiple())
        ));
    }
    out.push('.');
    let fallen: Vec<String> = standings
        .iter()
        .skip(1)
        .filter(|one| !one.collapses.is_empty())
        .map(|one| {
            let (name, fallen, all) = (escape(one.cc), one.collapses.len(), one.cells.len());
            format!("<strong>{name}</strong> collapses in {fallen} of {all}")
        })
        .collect();
    if !fallen.is_empty() {
        out.push_str(&format!(" {}.", enumerate(&fallen)));
    } else if standings.len() > 1 && best.collapses.is_empty() {
        out.push_str(" None collapses.");
    }
    out
}

fn settings(count: usize) -> String {
    if count == 1 { "one setting".to_owned() } else { format!("{count} settings") }
}

/// How a control stands beside the best of each setting.
fn beside(one: &Standing<'_>) -> String {
    match one.worst_ratio {
        worst if worst <= 0.0 => String::new(),
        worst if worst < 1.005 => " and is the fastest in all of them".to_owned(),
        worst => format!(
            ", is within 5 % of the best in {}, and at worst takes {} times as long as the best",
            one.near,
            fixed(worst, 2)
        ),
    }
}

/// The ranking when only the control varies.
fn ranking(context: &Context<'_>, standings: &[Standing<'_>]) -> String {
    let longest =
        standings.iter().filter_map(|one| one.cells.first()?.multiple()).fold(1.0f64, f64::max);
    let mut body = String::new();
    for one in standings {
        let Some(cell) = one.cells.first() else { continue };
        let bar = cell.multiple().map_or_else(String::new, |times| {
            let class = context.palette.class(one.cc);
            format!("<i class=\"bar {class}\" style=\"width:{:.1}px\"></i>", 90.0 * times / longest)
        });
        body.push_str(&format!(
            "<tr><th scope=\"row\">{}</th><td class=\"t\">{}</td>\
             <td class=\"meter\"><span>{}</span>{bar}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td>{}</td></tr>\n",
            context.name(one.cc),
            judgement(standings, one),
            multiple(cell.multiple()),
            brief(cell.fct.median),
            interval(cell.fct_ci, brief),
            unnecessary_share(cell).map_or_else(|| "–".to_owned(), |share| percent(share, 1)),
            percent(failed_share(cell), 2),
        ));
    }
    let head = "<tr><th scope=\"col\">control</th><th scope=\"col\" class=\"t\">judgement</th>\
        <th scope=\"col\" class=\"t\">times the limit</th>\
        <th scope=\"col\">median FCT (s)</th><th scope=\"col\">95 % CI (s)</th>\
        <th scope=\"col\">unnecessary</th><th scope=\"col\">failed</th></tr>";
    let cells = &context.report.cells;
    let facts = format!(
        "<p class=\"note\">{} replications of {} clients each. FCT: flow completion time, first \
         request to first response of the last request. CI: of the median, over replications. \
         Unnecessary: share of the median client’s transmissions.</p>\n",
        span(cells.iter().map(|cell| cell.reps)),
        span(cells.iter().map(|cell| cell.clients)),
    );
    format!("{}{facts}", table("ranking", "Ranking", head, &body))
}

fn judgement(standings: &[Standing<'_>], one: &Standing<'_>) -> String {
    if let Some((_, why)) = one.collapses.first() {
        // That it is beyond the limit stands in the next column.
        let why = if why.starts_with("beyond") { "" } else { why };
        return format!("<span class=\"flag\">collapse</span> {why}");
    }
    if standings.len() < 2 {
        return "does not collapse".to_owned();
    }
    if standings.first().is_some_and(|best| best.cc == one.cc) {
        return "<span class=\"good\">best</span>".to_owned();
    }
    let behind = one.ratio - 1.0;
    if one.near > 0 {
        return format!("<span class=\"good\">near</span> +{}", percent(behind, 1));
    }
    format!("+{}", percent(behind, 0))
}

/// The ranking of a sweep.
fn sweep_ranking(context: &Context<'_>, standings: &[Standing<'_>], keys: &[&str]) -> String {
    let settings = by_settings(context.report, keys).len();
    let body: String = standings
        .iter()
        .map(|one| {
            let worst = one.worst.map_or_else(String::new, |cell| escape(&words(cell, keys)));
            let fallen = match one.collapses.len() {
                0 => "never".to_owned(),
                n => format!("<span class=\"flag\">{n} of {}</span>", one.cells.len()),
            };
            format!(
                "<tr><th scope=\"row\">{}</th><td>{fallen}</td><td>{} of {}</td><td>{}</td>\
                 <td>{}</td><td>{}</td><td class=\"t why\">{worst}</td></tr>\n",
                context.name(one.cc),
                one.near,
                one.cells.len(),
                multiple(Some(one.ratio).filter(|ratio| ratio.is_finite())),
                multiple(Some(one.worst_ratio).filter(|ratio| *ratio > 0.0)),
                multiple(one.worst.and_then(|cell| cell.multiple())),
            )
        })
        .collect();
    let head = "<tr><th scope=\"col\">control</th><th scope=\"col\">collapses</th>\
        <th scope=\"col\">near the best</th><th scope=\"col\">mean of best</th>\
        <th scope=\"col\">worst of best</th><th scope=\"col\">worst of limit</th>\
        <th scope=\"col\" class=\"t\">where</th></tr>";
    let (table, cells) = (table("ranking", "Ranking", head, &body), &context.report.cells);
    let collapsed = cells.iter().filter(|cell| collapse(cell).is_some()).count();
    format!(
        "{table}<p class=\"note\">{settings} settings, {} cells, of which {collapsed} collapsed; {} \
         replications each. Of best: median flow completion time over the smallest one of the same \
         settings, geometric mean and largest. Of limit: as a multiple of the physical limit.</p>\n",
        cells.len(),
        span(cells.iter().map(|cell| cell.reps)),
    )
}
