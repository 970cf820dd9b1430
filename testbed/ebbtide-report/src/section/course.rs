//! The replications of each cell over time, together.

use super::{Caption, PageContext, where_};
use crate::grid::{varying, words};
use crate::svg::axis::Domain;
use crate::svg::timeseries::{BandPoint, ChartFrame, TimeCurve, draw};
use ebbtide_sim::result::{Cell, Course, CoursePoint, CourseQuantity};

/// Cells drawn at most.
const MOST_CELLS: usize = 12;

/// A chart: its name, the title of its axis up to the unit, and its lines, each with its quantity and its look (empty
/// for the colour of the control).
struct Chart {
    name: &'static str,
    axis: &'static str,
    lines: [(&'static str, &'static str); 2],
}

const CHARTS: [Chart; 4] = [
    Chart {
        name: "Queue length over replications",
        axis: "queue (B; colour: to the clients, grey: to the server",
        lines: [("queue_up", "up"), ("queue_down", "")],
    },
    Chart {
        name: "Exchanges in flight",
        axis: "in flight (exchanges",
        lines: [("in_flight", ""), ("", "")],
    },
    Chart {
        name: "Sent and delivered",
        axis: "per second (colour: delivered, grey: sent",
        lines: [("sent", "up"), ("delivered", "")],
    },
    Chart {
        name: "Timeouts and unnecessary transmissions",
        axis: "per second (colour: unnecessary, grey: timeouts",
        lines: [("timeouts", "up"), ("unnecessary", "")],
    },
];

/// A cell with its course.
struct DrawnCell<'a> {
    cell: &'a Cell,
    course: &'a Course,
    settings: String,
}

impl<'a> DrawnCell<'a> {
    fn quantity(&self, name: &str) -> Option<&'a CourseQuantity> {
        self.course.quantities.iter().find(|quantity| quantity.name == name)
    }
}

/// The quantities of the chart that a title names, in the order in which they are listed.
pub(crate) fn quantities_of(title: &str) -> Option<Vec<&'static str>> {
    let chart = CHARTS.iter().find(|chart| title.starts_with(chart.name))?;
    Some(chart.lines.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect())
}

/// The charts; nothing if no series were kept.
pub(crate) fn section(context: &mut PageContext<'_>) -> String {
    let report = context.report;
    let keys = varying(report);
    let with = report.cells.iter().filter_map(|cell| Some((cell, cell.course.as_ref()?)));
    let all: Vec<DrawnCell<'_>> = with
        .map(|(cell, course)| DrawnCell { cell, course, settings: words(cell, &keys) })
        .collect();
    if all.is_empty() {
        return String::new();
    }
    let (drawn, left) = all.split_at(all.len().min(MOST_CELLS));
    let mut out = String::from("<section id=\"course\">\n<h2>Replications over time</h2>\n");
    for chart in &CHARTS {
        out.push_str(&figure(context, drawn, chart));
    }
    if !left.is_empty() {
        out.push_str(&format!(
            "<p class=\"note\">{} further cells are not drawn, to keep this file small.</p>\n",
            left.len()
        ));
    }
    out.push_str("</section>\n");
    out
}

/// A line of a chart with its band.
struct CourseLine<'a> {
    quantity: &'a CourseQuantity,
    look: &'static str,
    medians: Vec<(f64, f64)>,
    band: Vec<BandPoint>,
}

impl<'a> CourseLine<'a> {
    fn new(quantity: &'a CourseQuantity, look: &'static str, step_s: f64) -> Self {
        // A value is drawn at the end of its step.
        let steps = || (1u32..).map(|step| f64::from(step) * step_s).zip(&quantity.points);
        let band =
            |(at, point): (f64, &CoursePoint)| BandPoint { at, low: point.low, high: point.high };
        let medians = steps().map(|(at, point)| (at, point.median)).collect();
        // Nothing would be seen of that of a single replication.
        let is_wide = quantity.points.iter().any(|point| point.low < point.high);
        let band = if is_wide { steps().map(band).collect() } else { Vec::new() };
        Self { quantity, look, medians, band }
    }
}

/// The quantities of a chart, each with its look.
fn quantities<'a>(one: &DrawnCell<'a>, chart: &Chart) -> Vec<(&'a CourseQuantity, &'static str)> {
    chart.lines.iter().filter_map(|(name, look)| Some((one.quantity(name)?, *look))).collect()
}

fn figure(context: &mut PageContext<'_>, drawn: &[DrawnCell<'_>], chart: &Chart) -> String {
    let points = || {
        drawn
            .iter()
            .flat_map(|one| quantities(one, chart))
            .flat_map(|(quantity, _)| &quantity.points)
    };
    let most = points().map(|point| point.high).filter(|high| high.is_finite()).fold(0.0, f64::max);
    // Nothing to see: no packet ever waits, for example.
    if most == 0.0 {
        return String::new();
    }
    // Longer numbers would not fit beside the axis.
    let is_long = chart.axis.starts_with("queue (B") && most >= 10_000.0;
    let (unit, axis) = match is_long {
        true => (1e3, chart.axis.replacen("(B", "(kB", 1)),
        false => (1.0, chart.axis.to_owned()),
    };
    let end = |one: &DrawnCell<'_>| {
        let steps = quantities(one, chart).iter().map(|(quantity, _)| quantity.points.len()).max();
        steps.unwrap_or(0) as f64 * one.course.step_s
    };
    let last = drawn.iter().map(end).fold(0.0, f64::max);
    let mut body = String::from("<div class=\"panels\">\n");
    for one in drawn {
        let class = context.palette.class(&one.cell.cc);
        let lines: Vec<CourseLine<'_>> = quantities(one, chart)
            .into_iter()
            .map(|(quantity, look)| CourseLine::new(quantity, look, one.course.step_s))
            .collect();
        let traces: Vec<TimeCurve<'_>> = lines
            .iter()
            .map(|line| TimeCurve {
                name: &line.quantity.name,
                class: if line.look.is_empty() { class.clone() } else { line.look.to_owned() },
                points: &line.medians,
                band: &line.band,
                unit,
                dots: false,
            })
            .collect();
        let label = format!("{}, {} replications", one.cell.cc, one.course.reps);
        let frame = ChartFrame {
            heading: &label,
            settings: &one.settings,
            axis: &axis,
            time: Domain::linear(0.0, last),
            across: "time (s",
            values: Domain::linear(0.0, most / unit),
        };
        let words = context.words(
            format!("{} over time: {}{}", chart.name, one.cell.cc, where_(&one.settings)),
            format!("Steps of {} s.", one.course.step_s),
        );
        body.push_str(&draw(&traces, &frame, &words));
    }
    body.push_str("</div>\n");
    let text = format!(
        "{} over time: the median over replications, and their 10th to 90th percentile; all on the same scales.",
        chart.name
    );
    // The commands of single cells keep no series; that of the whole report does.
    context.figure(&Caption { text, cells: &[] }, &body)
}
