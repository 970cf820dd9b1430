//! The figures of `--curve`: where goodput falls as the load grows.

use super::{Caption, PageContext, where_};
use crate::grid::distinct;
use crate::svg::lines::Line;
use crate::svg::{PANEL, WIDE, curve};
use crate::text::{escape, fixed, percent};
use ebbtide_sim::result::{CurveLine, CurvePoint, MeanShare, curves};

/// Panels of one figure at most: other settings are in the tables.
const MOST_PANELS: usize = 6;

/// A control delivers everything if it misses less than this share.
const NEARLY_ALL: f64 = 0.999;

/// The title of the figure of goodput, before the key: `export` finds its data by it.
pub(crate) const GOODPUT: &str = "Curve of goodput over ";

/// The title of the figure of the share delivered, before the key.
pub(crate) const DELIVERED: &str = "Curve of the share delivered over ";

/// The section; nothing unless a curve was asked for.
pub(crate) fn section(context: &mut PageContext<'_>) -> String {
    let Some(key) = context.report.curve.as_ref().map(|curve| curve.key.clone()) else {
        return String::new();
    };
    let all = curves(context.report);
    let has_goodput =
        all.iter().flat_map(|line| &line.points).any(|point| point.goodput.mean.is_finite());
    let names: Vec<String> = distinct(all.iter().map(|line| line.cc.clone()));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut body = context.legend(&names);
    if has_goodput {
        let text = format!(
            "Goodput over {key}: the share of the link’s capacity that delivered exchanges use until the last \
             client is done, but for no less than the time that the link needs for all of them; means over \
             replications with 95 % confidence intervals as bands. No control can exceed the limit. \
             Hollow points: not everything was delivered. {}",
            work(context)
        );
        body.push_str(&figure(context, &all, &text, &CurveQuantity::Goodput, &key));
    }
    let text = format!(
        "Share delivered over {key}: the exchanges whose response arrived. {}",
        work(context)
    );
    body.push_str(&figure(context, &all, &text, &CurveQuantity::Delivered, &key));
    let sentences: String = all.iter().filter_map(|line| in_words(line, &key)).collect();
    format!("<section id=\"curve\">\n<h2>Curve</h2>\n{body}<ul>{sentences}</ul>\n</section>\n")
}

enum CurveQuantity {
    Goodput,
    Delivered,
}

impl CurveQuantity {
    const fn share_of(&self, point: &CurvePoint) -> MeanShare {
        match self {
            Self::Goodput => point.goodput,
            Self::Delivered => point.delivered,
        }
    }

    const fn title(&self) -> &'static str {
        match self {
            Self::Goodput => GOODPUT,
            Self::Delivered => DELIVERED,
        }
    }

    const fn axis(&self) -> &'static str {
        match self {
            Self::Goodput => "goodput (share of the capacity)",
            Self::Delivered => "delivered (share of the exchanges)",
        }
    }
}

/// How many exchanges a client has at the largest loads.
fn work(context: &PageContext<'_>) -> String {
    let work = context.report.curve.as_ref().map_or(0, |curve| curve.work);
    // A search for a breaking point leaves the exchanges as they are.
    if work == u32::MAX {
        return String::new();
    }
    format!("Clients share at most {work} exchanges at each point, and each has at least one.")
}

fn figure(
    context: &mut PageContext<'_>,
    all: &[CurveLine],
    text: &str,
    quantity: &CurveQuantity,
    key: &str,
) -> String {
    let settings = distinct(all.iter().map(|line| line.setting.clone()));
    let mut draw = |setting: &str, width: f64| {
        let own: Vec<&CurveLine> = all.iter().filter(|line| line.setting == setting).collect();
        let mut places: Vec<f64> =
            own.iter().flat_map(|line| &line.points).map(|point| point.place).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let at = |line: &CurveLine, place: f64| {
            line.points.iter().find(|point| point.place == place).cloned()
        };
        let lines: Vec<Line> = own
            .iter()
            .map(|line| {
                let points = places.iter().map(|place| {
                    let share = quantity.share_of(&at(line, *place)?);
                    share.mean.is_finite().then_some((share.mean, share.half))
                });
                let tip = line.points.iter().map(|point| {
                    format!("\n{}: {}", point.value, fixed(quantity.share_of(point).mean, 3))
                });
                Line {
                    name: line.cc.clone(),
                    class: context.palette.class(&line.cc),
                    points: points.collect(),
                    tip: format!("{}{}", line.cc, tip.collect::<String>()),
                }
            })
            .collect();
        let highest = |place: &f64| {
            let limits = own.iter().filter_map(|line| at(line, *place)).map(|point| point.limit);
            limits.fold(f64::NAN, f64::max)
        };
        let limit: Vec<f64> = match quantity {
            CurveQuantity::Goodput => places.iter().map(highest).collect(),
            CurveQuantity::Delivered => Vec::new(),
        };
        let is_complete = |line: usize, place: usize| {
            let point =
                own.get(line).zip(places.get(place)).and_then(|(own, place)| at(own, *place));
            point.is_some_and(|point| point.delivered.mean >= NEARLY_ALL)
        };
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        let about = format!("A line each for {}.", names.join(", "));
        let title = format!("{}{key}{}", quantity.title(), where_(setting));
        let words = context.words(title, about);
        let frame = curve::CurveFrame {
            heading: setting,
            across: key,
            axis: quantity.axis(),
            places: &places,
            limit: &limit,
            is_complete: &is_complete,
            width,
        };
        curve::draw(lines, &frame, &words)
    };
    let body = match settings.as_slice() {
        [only] => format!(
            "<div class=\"wide\">{}</div>\n<div class=\"narrow\">{}</div>\n",
            draw(only, WIDE),
            draw(only, PANEL)
        ),
        many => {
            let panels: String =
                many.iter().take(MOST_PANELS).map(|setting| draw(setting, PANEL)).collect();
            format!("<div class=\"panels\">\n{panels}</div>\n")
        }
    };
    context.figure(&Caption { text: text.to_owned(), cells: &[] }, &body)
}

/// Where a control is best and where it falls.
fn in_words(line: &CurveLine, key: &str) -> Option<String> {
    let best = line.best()?;
    let setting = where_(&line.setting);
    let fall = match line.collapse() {
        Some(point) => format!(
            "and has less than half of that at {}, with {} delivered",
            point.value,
            percent(point.delivered.mean, 0)
        ),
        None => "and keeps at least half of that".to_owned(),
    };
    Some(format!(
        "<li><b>{}</b>{}: most goodput, {}, at {key} {}, {fall}.</li>\n",
        escape(&line.cc),
        escape(&setting),
        fixed(best.goodput.mean, 2),
        escape(&best.value),
    ))
}
