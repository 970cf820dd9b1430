//! The map as a page: one HTML file without external resources.

use super::plan::Plan;
use super::regret::{Spread, ln};
use super::result::{Map, MapCell, MapSummary, RegretSummary};
use ebbtide_sim::run::VERSION;
use std::fmt::Write;

/// Renders the page. The same map gives the same bytes.
pub fn render(plan: &Plan, map: &Map) -> String {
    let title = format!("Map of {} networks: {}", map.cells.len(), plan.preset);
    let mut body = String::new();
    body.push_str(&introduction(plan, map));
    body.push_str(&table(&map.summaries(), map.chance()));
    body.push_str(&panels(map, &LOSS));
    body.push_str(&panels(map, &TIME));
    body.push_str(&panels(map, &SAFETY));
    body.push_str(&worst(plan, map));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n\
         {body}<footer>Ebbtide {VERSION} · seed {}</footer>\n</body>\n</html>\n",
        plan.seed,
        title = escape(&title),
    )
}

const STYLE: &str = "\
:root { color-scheme: light dark; --line: #8888; --c0: #0a7d5a; --c1: #7fae2e; --c2: #d9a400;\n\
  --c3: #e06a1b; --c4: #b3132b; --off: #9994; }\n\
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 1.5rem auto; padding: 0 1rem; }\n\
table { border-collapse: collapse; display: block; overflow-x: auto; } td { white-space: nowrap; }\n\
th, td { padding: .15rem .6rem; text-align: right;\n\
  border-bottom: 1px solid var(--line); } th:first-child, td:first-child { text-align: left; }\n\
.panels { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; }\n\
svg text { font: 11px system-ui, sans-serif; fill: currentColor; }\n\
.frame { fill: none; stroke: var(--line); } .grid { stroke: var(--line); stroke-dasharray: 2 3; }\n\
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); }\n\
.c4 { fill: var(--c4); } .off { fill: var(--off); }\n\
code { font-size: 12px; overflow-wrap: anywhere; } footer { margin-top: 2rem; opacity: .7; }\n";

fn introduction(plan: &Plan, map: &Map) -> String {
    let mut text = format!(
        "<p>Each control in {} networks, {} replications, seed {}. In each network a control is \
         compared with the best of {} there: with the largest delivered share, and with the shortest \
         time among those within half a point of it. Times count where that share is at least \
         a half.</p>\n<p><code>{}</code></p>\n",
        map.cells.len(),
        plan.reps,
        plan.seed,
        escape(&plan.published.join(", ")),
        escape(plan.command_line()),
    );
    if !map.left_out.is_empty() {
        let numbers: Vec<String> = map.left_out.iter().map(u32::to_string).collect();
        let _ = writeln!(
            text,
            "<p>Left out because the time limit was reached: networks {}.</p>",
            numbers.join(", ")
        );
    }
    text.push_str("<details><summary>Ranges</summary><table>\n");
    for (name, range) in plan.ranges.written() {
        let _ = writeln!(text, "<tr><td>{name}</td><td>{}</td></tr>", escape(range));
    }
    text.push_str("</table></details>\n");
    text
}

fn table(summaries: &[MapSummary], chance: Option<RegretSummary>) -> String {
    let mut text = "<h2>Regret</h2>\n<table>\n<tr><th>control</th><th>delivered share, points: 5 %, worst</th>\
                    <th>median: mean, 95 %, worst</th><th>90th percentile: mean, 95 %, worst</th>\
                    <th>transmissions</th><th>unsafe</th><th>of overloaded</th></tr>\n"
        .to_owned();
    for s in summaries {
        let _ = writeln!(
            text,
            "{}<td>{} ({})</td><td>{}</td></tr>",
            figures(&s.cc, &s.regret),
            s.unsafe_in,
            s.unsafe_with_a_share,
            s.overloaded,
        );
    }
    if let Some(chance) = chance {
        let row = figures("chance", &chance);
        let _ = writeln!(text, "{row}<td></td><td></td></tr>");
    }
    text.push_str("</table>\n<p>Means are geometric. Transmissions count probes, per delivered exchange, over \
                   those of fasor-token. Unsafe: the clients ask for more than the link carries, and less \
                   than half of its capacity is delivered; in parentheses where each client's share of the \
                   capacity is at least one exchange a minute.</p>\n");
    if chance.is_some() {
        text.push_str("<p>Chance: the best published controls of each network, measured again in as many other \
                       replications and compared with themselves.</p>\n");
    }
    text
}

/// The first columns of a row.
fn figures(name: &str, regret: &RegretSummary) -> String {
    format!(
        "<tr><td>{}</td><td>{:+.2}, {:+.2}</td><td>{}</td><td>{}</td><td>{}</td>",
        escape(name),
        100.0 * regret.share_p5,
        100.0 * regret.share_worst,
        spread(regret.median),
        spread(regret.p90),
        regret.cost.map_or_else(|| "-".to_owned(), |cost| format!("{:.3}", cost.mean)),
    )
}

fn spread(spread: Option<Spread>) -> String {
    let Some(s) = spread else { return "-".to_owned() };
    format!("{:.3}, {:.2}, {:.2}", s.mean, s.p95, s.worst)
}

/// The quantity that a set of panels shows.
struct ShownNetwork {
    title: &'static str,
    legend: &'static str,
    /// The value and the one of five classes to which it belongs; `None` is drawn as a faint dot.
    class: fn(&MapCell, usize) -> (String, Option<usize>),
}

const LOSS: ShownNetwork = ShownNetwork {
    title: "Delivered share",
    legend: "Points below the best published control: at most 0.3, 1, 3, 10, more.",
    class: |cell, place| {
        let points = -100.0 * cell.regrets[place].share;
        (format!("{points:.2} points below"), Some(class_of(points, [0.3, 1.0, 3.0, 10.0])))
    },
};

const TIME: ShownNetwork = ShownNetwork {
    title: "Median time",
    legend: "Over the best published control's: at most 1.05, 1.12, 1.3, 1.6, more. Faint: times do not count.",
    class: |cell, place| match cell.regrets[place].median {
        Some(factor) => (format!("{factor:.3}"), Some(class_of(factor, [1.05, 1.12, 1.3, 1.6]))),
        None => ("does not count".to_owned(), None),
    },
};

const SAFETY: ShownNetwork = ShownNetwork {
    title: "Safety",
    legend: "Goodput over capacity, link errors taken off: at least 0.8, 0.65, 0.5, 0.25, less. \
             Faint: not overloaded.",
    class: |cell, place| {
        let carried = 1.0 - cell.network.scenario.average_loss();
        let goodput = cell.measures[place].goodput as f64 / 1000.0 / carried;
        let is_judged = cell.measures[place].is_safe(&cell.network).is_some();
        let class = is_judged.then(|| class_of(-goodput, [-0.8, -0.65, -0.5, -0.25]));
        (format!("goodput {goodput:.2} of capacity"), class)
    },
};

fn class_of(value: f64, bounds: [f64; 4]) -> usize {
    bounds.iter().filter(|bound| value > **bound).count()
}

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 20.0;
/// The ends of the axes; values beyond them are drawn at the edge.
const LOADS: (f64, f64) = (0.01, 100.0);
const BUFFERS: (f64, f64) = (0.01, 100.0);

fn panels(map: &Map, shown: &ShownNetwork) -> String {
    let mut text = format!(
        "<h2>{}</h2>\n<p>A dot is a network: offered load over capacity, and buffer over rate times round \
         trip. {}</p>\n<div class=\"panels\">\n",
        shown.title, shown.legend
    );
    for (place, cc) in map.controls.iter().enumerate() {
        text.push_str(&panel(map, place, cc, shown));
    }
    text.push_str("</div>\n");
    text
}

fn panel(map: &Map, place: usize, cc: &str, shown: &ShownNetwork) -> String {
    let along = |value: f64, low: f64, high: f64| {
        (ln(value.clamp(low, high)) - ln(low)) / (ln(high) - ln(low))
    };
    let x = |load: f64| LEFT + along(load, LOADS.0, LOADS.1) * (WIDTH - LEFT - 10.0);
    // The topmost row is for buffers without a limit.
    let y = |buffer: Option<f64>| match buffer {
        None => TOP + 8.0,
        Some(buffer) => {
            HEIGHT - BOTTOM - along(buffer, BUFFERS.0, BUFFERS.1) * (HEIGHT - BOTTOM - TOP - 22.0)
        }
    };
    let mut svg = format!(
        "<figure><svg width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{title}, {cc}\">\
         <text x=\"{LEFT}\" y=\"13\">{cc}</text><rect class=\"frame\" x=\"{LEFT}\" y=\"{TOP}\" \
         width=\"{:.0}\" height=\"{:.0}\"/>",
        WIDTH - LEFT - 10.0,
        HEIGHT - BOTTOM - TOP,
        title = shown.title,
        cc = escape(cc),
    );
    for (load, label) in [(0.01, "0.01"), (0.1, "0.1"), (1.0, "1"), (10.0, "10"), (100.0, "100")] {
        let (at, end) = (x(load), HEIGHT - BOTTOM);
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{end}\"/>\
             <text x=\"{at:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{label}</text>",
            end + 13.0
        );
    }
    for (buffer, label) in
        [(None, "none"), (Some(0.01), "0.01"), (Some(1.0), "1"), (Some(100.0), "100")]
    {
        let _ = write!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 4.0,
            y(buffer) + 4.0
        );
    }
    let _ = write!(svg, "<text x=\"{LEFT}\" y=\"{:.0}\">offered load</text>", HEIGHT - 6.0);
    for cell in &map.cells {
        let (value, class) = (shown.class)(cell, place);
        let class = class.map_or_else(|| "off".to_owned(), |class| format!("c{class}"));
        let _ = write!(
            svg,
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>network {}: {value}; {}</title></circle>",
            x(cell.network.load()),
            y(cell.network.buffer_bdp()),
            cell.network.number,
            escape(&in_short(cell)),
        );
    }
    svg.push_str("</svg></figure>\n");
    svg
}

/// A short description of the network.
fn in_short(cell: &MapCell) -> String {
    let s = &cell.network.scenario;
    format!(
        "{}, {:.3} s idle, {} clients, buffer {}, errors {}, MAX_RETRANSMIT {}",
        s.network.down.rate,
        cell.network.idle_s,
        s.clients.count,
        s.network.down.buffer,
        s.network.errors,
        s.coap.max_retransmit,
    )
}

fn worst(plan: &Plan, map: &Map) -> String {
    let mut text = "<h2>Worst networks</h2>\n".to_owned();
    for cc in &plan.cc {
        let _ = writeln!(text, "<h3>{}</h3>\n<table>", escape(cc));
        for worst in map.worst(plan, cc, 5) {
            let value = match worst.measure {
                "share" => format!("{:+.2} points", 100.0 * worst.value),
                _ => format!("{:.3}", worst.value),
            };
            let _ = writeln!(
                text,
                "<tr><td>{}</td><td>{value}</td><td>network {}</td><td><code>{}</code></td></tr>",
                worst.measure,
                worst.network,
                escape(&worst.command)
            );
        }
        text.push_str("</table>\n");
    }
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
