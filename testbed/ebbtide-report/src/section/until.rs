//! The breaking point of each control over one key.

use super::{Caption, PageContext, table};
use crate::grid::distinct;
use crate::svg::lines::Line;
use crate::svg::{PANEL, WIDE, curve};
use crate::text::{escape, fixed};
use ebbtide_sim::judge::RequirementCheck;
use ebbtide_sim::result::{BreakingPoint, MetSide, UntilPoint, answer};
use ebbtide_sim::scenario::RequiredBound;

/// The section; nothing without a search.
pub(crate) fn section(context: &mut PageContext<'_>) -> String {
    let all = context.report.until.clone();
    let Some(first) = all.first() else { return String::new() };
    let required = match first.required.as_slice() {
        [] => "that it does not collapse".to_owned(),
        required => required.join(", "),
    };
    let rows: String = all.iter().map(|one| row(context, one)).collect();
    let head = "<tr><th scope=\"col\">control</th><th scope=\"col\">meets</th><th scope=\"col\">certainly</th>\
                <th scope=\"col\">fails from</th></tr>";
    let names: Vec<String> = all.iter().map(|one| one.cc.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut body = format!(
        "<p class=\"lead\">{} Required of each control over {}: {}.</p>\n{}\
         <p class=\"note\">Meets: the last value that was tried whose figures meet the requirements. Certainly, \
         fails from: the last one whose figures meet them, and the first one whose figures miss them, by more \
         than their 95 % confidence intervals.</p>\n{}",
        escape(&answer(&all)),
        escape(&first.key),
        escape(&required),
        table("until", "Breaking points", head, &rows),
        context.legend(&names),
    );
    let checks = first.points.first().map_or(&[][..], |point| &point.checks);
    let shares = checks
        .iter()
        .enumerate()
        .filter(|(_, check)| check.requirement.figure.bound() == RequiredBound::AtLeast);
    for (place, check) in shares {
        body.push_str(&figure(context, &all, place, check));
    }
    format!("<section id=\"until\">\n<h2>Breaking point</h2>\n{body}</section>\n")
}

fn row(context: &PageContext<'_>, point: &BreakingPoint) -> String {
    let text = |one: Option<&UntilPoint>| one.map_or("–".to_owned(), |one| escape(&one.value));
    let value = text(point.meets());
    let meets = match point.side() {
        MetSide::Below => format!("up to {value}"),
        MetSide::Above => format!("from {value}"),
        MetSide::Everywhere => format!("beyond {value}"),
        MetSide::Nowhere => "nowhere".to_owned(),
    };
    format!(
        "<tr><th scope=\"row\">{}</th><td>{meets}</td><td>{}</td><td>{}</td></tr>\n",
        context.name(&point.cc),
        text(point.surely_meets()),
        text(point.surely_misses()),
    )
}

/// A required share over the key, with its bound.
fn figure(
    context: &mut PageContext<'_>,
    all: &[BreakingPoint],
    place: usize,
    check: &RequirementCheck,
) -> String {
    let mut places: Vec<f64> =
        all.iter().flat_map(|one| &one.points).map(|point| point.place).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let key = all.first().map_or("", |one| &one.key);
    let at = |one: &BreakingPoint, at: f64| {
        let point = one.points.iter().find(|point| point.place == at)?;
        let check = point.checks.get(place)?;
        check.found.is_finite().then_some((check.found, check.half))
    };
    // A control was not tried at the values of the others: its line passes from one of its own to the next.
    let between = |one: &BreakingPoint, wanted: f64| {
        let own = one.points.iter().filter(|point| point.checks.len() > place);
        let own: Vec<(f64, f64)> = own.map(|p| (p.place, p.checks[place].found)).collect();
        let after = own.iter().position(|(value, _)| *value > wanted)?;
        let (low, high) = (own.get(after.checked_sub(1)?)?, own.get(after)?);
        let share = (wanted - low.0) / (high.0 - low.0);
        Some((low.1 + share * (high.1 - low.1), 0.0))
    };
    let line = |one: &BreakingPoint| {
        let tip = one.points.iter().filter_map(|point| {
            let found = point.checks.get(place)?.found;
            Some(format!("\n{}: {}", point.value, fixed(found, 4)))
        });
        Line {
            name: one.cc.clone(),
            class: context.palette.class(&one.cc),
            points: places
                .iter()
                .map(|value| at(one, *value).or_else(|| between(one, *value)))
                .collect(),
            tip: format!("{}{}", one.cc, tip.collect::<String>()),
        }
    };
    let lines = || all.iter().map(line).collect::<Vec<Line>>();
    let is_complete = |line: usize, place: usize| {
        let found = all.get(line).zip(places.get(place));
        let point = found.and_then(|(one, value)| one.points.iter().find(|p| p.place == *value));
        point.is_none_or(|point| point.is_met)
    };
    let limit = vec![check.requirement.wanted; places.len()];
    let text = check.text();
    let drawn = [lines(), lines()];
    let names: Vec<String> = distinct(all.iter().map(|one| one.cc.clone()));
    let mut drawings = Vec::new();
    for (lines, width) in drawn.into_iter().zip([WIDE, PANEL]) {
        let title = format!("Breaking point over {key}: {text}");
        let words = context.words(title, format!("A line each for {}.", names.join(", ")));
        let frame = curve::CurveFrame {
            heading: "",
            across: key,
            axis: "share of the exchanges",
            places: &places,
            limit: &limit,
            is_complete: &is_complete,
            width,
        };
        drawings.push(curve::draw(lines, &frame, &words));
    }
    let body = format!(
        "<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n",
        drawings[0], drawings[1]
    );
    let text = format!(
        "The figure of a requirement over {key}: {text}. Hollow points: a requirement is missed."
    );
    context.figure(&Caption { text, cells: &[] }, &body)
}
