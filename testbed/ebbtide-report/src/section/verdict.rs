//! The verdict: what to use in plain words, the ranking, and for sweeps the matrix.

use super::matrix::matrix;
use super::requirements::requirements;
use super::{PageContext, command_line, table};
use crate::grid::varying;
use crate::text::{brief, escape, fixed, multiple, percent};
use crate::verdict::{ControlSummary, Setting, rank, settings, span, time_of};
use ebbtide_sim::judge::Judgement;
use ebbtide_sim::result::Cell;

/// The meaning of the verdict's words.
const DEFINITIONS: &str = "<b>Best</b>: the control that delivers the most; of those that deliver as much, \
    one that neither collapses nor is wasteful; of those, the first to deliver the share named above; of \
    those, the one with the fewest transmissions; among equals, the library's default, or else the control \
    that was given first. <b>Level</b>: differs from it by less than the 95 % confidence interval of the \
    difference over replications, which met the same luck, or by less than 2 %. <b>Slower</b>: delivers as \
    much, later. <b>Loses</b>: delivers less. <b>Collapses</b>: the network is loaded, and more than half of \
    the transmissions are unnecessary, or the link is full and delivers less than half of what it could, or \
    nothing is delivered. <b>Wasteful</b>: half of the transmissions are unnecessary, on a network that \
    carries them without harm. <b>Physical limit</b>: what the link needs to carry every request and \
    response once, and what other traffic got; or the exchanges of one client need on an idle path, \
    whichever is longer. No schedule lets the last client finish earlier.";

/// Sentences of a sweep at most.
const MOST_SENTENCES: usize = 24;

/// The first section.
pub(crate) fn section(context: &PageContext<'_>) -> String {
    let settings = settings(context.report);
    let standings = rank(context.report, &settings);
    let keys = varying(context.report);
    let (paragraph, tables) = match (standings.as_slice(), keys.is_empty()) {
        ([], _) if !context.report.published.is_empty() => {
            ("Published figures are compared with measured ones below.".to_owned(), String::new())
        }
        ([], _) => ("Nothing was run, so there is nothing to judge.".to_owned(), String::new()),
        (_, true) => {
            let cells = settings.first().map_or(&[][..], |setting| &setting.cells);
            let tables = requirements(context, cells) + &ranking(context, &standings);
            (single(&settings), tables)
        }
        (_, false) => (
            sweep(&standings, settings.len()),
            format!(
                "{}{}{}",
                sweep_ranking(context, &standings),
                matrix(context, &settings, &standings, &keys),
                sentences(&settings),
            ),
        ),
    };
    let (heading, lead) = match context.report.published.is_empty() {
        true => ("Verdict", "lead"),
        // A reproduction is about the paper; which control to use is by the way.
        false => ("Controls compared", "note"),
    };
    format!(
        "<section id=\"verdict\">\n<h2>{heading}</h2>\n<p class=\"{lead}\">{paragraph}</p>\n{tables}\
         <p class=\"note\">{DEFINITIONS}</p>\n{}</section>\n",
        command_line(&context.report.command)
    )
}

/// The paragraph when only the control varies.
fn single(settings: &[Setting<'_>]) -> String {
    let Some(setting) = settings.first() else { return String::new() };
    emphasised(&setting.verdict.sentence, setting.verdict.choose.as_deref())
}

/// A sentence with the control that it recommends in bold.
fn emphasised(sentence: &str, choose: Option<&str>) -> String {
    let text = escape(sentence);
    let Some(name) = choose.map(escape) else { return text };
    text.replacen(&format!("Use {name}:"), &format!("Use <strong>{name}</strong>:"), 1)
}

/// The paragraph of a sweep.
fn sweep(standings: &[ControlSummary<'_>], count: usize) -> String {
    let Some(best) = standings.first() else { return String::new() };
    let settings = if count == 1 { "one setting".to_owned() } else { format!("{count} settings") };
    let facts = |one: &ControlSummary<'_>| {
        let mut facts = Vec::new();
        let counts = [
            (one.leads(), "is best or level in"),
            (one.times(Judgement::Meets), "meets the requirements at a higher cost in"),
            (one.times(Judgement::Slower), "slower in"),
            (one.times(Judgement::Misses), "misses a requirement in"),
            (one.times(Judgement::Loses), "delivers less in"),
            (one.times(Judgement::Wasteful), "is wasteful in"),
            (one.times(Judgement::Collapses), "collapses in"),
        ];
        for (times, what) in counts.into_iter().filter(|(times, _)| *times > 0) {
            let all = if times == one.cells.len() { " all".to_owned() } else { String::new() };
            facts.push(if all.is_empty() {
                format!("{what} {times}")
            } else {
                format!("{what}{all}")
            });
        }
        facts.join(", ")
    };
    if standings.len() == 1 {
        return format!("Over {settings} <strong>{}</strong> {}.", escape(best.cc), facts(best));
    }
    let use_ = match best.times(Judgement::Collapses) == best.cells.len() {
        true => "Every control collapses; the least bad is",
        false => "Use",
    };
    let mut out =
        format!("{use_} <strong>{}</strong>: over {settings} it {}.", escape(best.cc), facts(best));
    for one in standings.iter().skip(1).take(6) {
        out.push_str(&format!(" {} {}.", escape(one.cc), facts(one)));
    }
    out
}

/// The sentence on each setting.
fn sentences(settings: &[Setting<'_>]) -> String {
    let body: String = settings
        .iter()
        .take(MOST_SENTENCES)
        .map(|setting| {
            let sentence = emphasised(&setting.verdict.sentence, setting.verdict.choose.as_deref());
            format!("<dt>{}</dt><dd>{sentence}</dd>\n", escape(&setting.label))
        })
        .collect();
    let open = if settings.len() <= 6 { " open=\"open\"" } else { "" };
    let rest = match settings.len().saturating_sub(MOST_SENTENCES) {
        0 => String::new(),
        rest => format!("<p class=\"note\">{rest} further settings are left out.</p>\n"),
    };
    format!(
        "<details{open}><summary>Each setting in words</summary>\n<dl class=\"each\">{body}</dl>{rest}</details>\n"
    )
}

/// The ranking when only the control varies.
fn ranking(context: &PageContext<'_>, standings: &[ControlSummary<'_>]) -> String {
    let longest =
        standings.iter().filter_map(|one| one.cells.first()?.0.multiple()).fold(1.0f64, f64::max);
    let by = context.report.percentile;
    let share: u8 = by.to_string().trim_end_matches(" %").parse().unwrap_or(99);
    let mut body = String::new();
    for one in standings {
        let Some((cell, judgement)) = one.cells.first() else { continue };
        let bar = cell.multiple().map_or_else(String::new, |times| {
            let class = context.palette.class(one.cc);
            format!("<i class=\"bar {class}\" style=\"width:{:.1}px\"></i>", 90.0 * times / longest)
        });
        let all = &cell.outcome.all;
        let time = time_of(cell, share).map_or_else(|| "never".to_owned(), brief);
        body.push_str(&format!(
            "<tr><th scope=\"row\">{}</th><td class=\"t\">{}</td><td>{}</td><td>{time}</td>\
             <td class=\"meter\"><span>{}</span>{bar}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            context.name(one.cc),
            marked(*judgement, cell),
            percent(all.delivered, 2),
            multiple(cell.multiple()),
            percent(all.unnecessary_share, 1),
            fixed(all.transmissions_per_delivered, 2),
            fixed(all.fairness, 3),
        ));
    }
    let head = format!(
        "<tr><th scope=\"col\">control</th><th scope=\"col\" class=\"t\">judgement</th>\
         <th scope=\"col\">delivered</th><th scope=\"col\">{by} by (s)</th>\
         <th scope=\"col\" class=\"t\">last, times the limit</th>\
         <th scope=\"col\">unnecessary</th><th scope=\"col\">sent per delivered</th>\
         <th scope=\"col\">fairness</th></tr>"
    );
    format!("{}{}", table("ranking", "Ranking", &head, &body), facts(context))
}

/// A judgement as the tables show it.
fn marked(judgement: Judgement, cell: &Cell) -> String {
    let word = judgement.word();
    match judgement {
        Judgement::Best | Judgement::Level => format!("<span class=\"good\">{word}</span>"),
        Judgement::Meets
        | Judgement::Misses
        | Judgement::Slower
        | Judgement::Loses
        | Judgement::Wasteful => word.to_owned(),
        Judgement::Collapses => {
            let why = cell.outcome.collapse().unwrap_or_default();
            format!("<span class=\"flag\">{word}</span> {why}")
        }
    }
}

fn facts(context: &PageContext<'_>) -> String {
    let cells = &context.report.cells;
    format!(
        "<p class=\"note\">{} replications of {} clients each. Delivered: share of the exchanges asked \
         for whose answer reached the client. Times count from when an exchange was due. \
         Unnecessary: share of all transmissions, those of exchanges included that were given up. Sent per \
         delivered: packets of the clients, probes and acknowledgements included. Fairness: Jain’s \
         index over the clients.</p>\n",
        span(cells.iter().map(|cell| cell.reps)),
        span(cells.iter().map(|cell| cell.clients)),
    )
}

/// The ranking of a sweep.
fn sweep_ranking(context: &PageContext<'_>, standings: &[ControlSummary<'_>]) -> String {
    let body: String = standings
        .iter()
        .map(|one| {
            let least = one
                .cells
                .iter()
                .map(|(cell, _)| cell.outcome.all.delivered)
                .fold(f64::INFINITY, f64::min);
            let fallen = match one.times(Judgement::Collapses) {
                0 => "never".to_owned(),
                n => format!("<span class=\"flag\">{n} of {}</span>", one.cells.len()),
            };
            format!(
                "<tr><th scope=\"row\">{}</th><td>{} of {}</td><td>{}</td><td>{}</td><td>{fallen}</td>\
                 <td>{}</td><td>{}</td></tr>\n",
                context.name(one.cc),
                one.leads(),
                one.cells.len(),
                one.times(Judgement::Slower),
                one.times(Judgement::Loses),
                percent(least, 1),
                multiple(Some(one.ratio).filter(|ratio| ratio.is_finite())),
            )
        })
        .collect();
    let head = "<tr><th scope=\"col\">control</th><th scope=\"col\">best or level</th>\
        <th scope=\"col\">slower</th><th scope=\"col\">delivers less</th>\
        <th scope=\"col\">collapses</th><th scope=\"col\">delivers at least</th>\
        <th scope=\"col\">time of the chosen</th></tr>";
    let cells = &context.report.cells;
    format!(
        "{}<p class=\"note\">{} replications each; times compared are those by which {} of \
         the exchanges were delivered. Time of the chosen: geometric mean over the settings where it delivers as \
         much.</p>\n",
        table("ranking", "Ranking", head, &body),
        span(cells.iter().map(|cell| cell.reps)),
        context.report.percentile,
    )
}
