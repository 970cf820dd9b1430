//! Statements in the text of the studies of low-power networks, compared with measured values.

use super::low_power::{CLOUD_CONTROLS, CODES, Code, DUTY_CYCLES, LOADS, SIZES, find};
use super::measured_campaign::MeasuredCampaign;
use super::papers::Paper;
use super::rcoap21;
use super::statement::Statement;
use ebbtide_sim::result::Cell;
use ebbtide_sim::result::Results;
use ebbtide_sim::run::Campaign;

/// Checks the statements of a study against measured values.
#[must_use]
pub fn check_statements(paper: Paper, campaign: &Campaign, results: &Results) -> Vec<Statement> {
    let measured = MeasuredCampaign { campaign, results };
    match paper {
        Paper::Socne14 => socne14(measured, &CLOUD_CONTROLS),
        Paper::Wimob17 => wimob17(measured),
        Paper::Rcoap21 => rcoap21::statements(measured),
        Paper::Anrw18 | Paper::Thesis19 => Vec::new(),
    }
}

/// The measurements under `default` and under `cocoa-plus`.
type Pair<'m> = Option<(&'m Cell, &'m Cell)>;

/// The order of the controls in each table, and the advantage of `cocoa-01`, with NSTART 1 or 4, over
/// `default`. The paper's abstract has 19 to 112 %: from its tables 112, 26, 50, 111, 19 and 23 %.
fn socne14(measured: MeasuredCampaign<'_>, controls: &[&str]) -> Vec<Statement> {
    const ASCENDING: [&str; 4] = ["default", "default-b", "cocoa-01", "cocoa-01:nstart=4"];
    const B_IS_LAST: [&str; 4] = ["default-b", "default", "cocoa-01", "cocoa-01:nstart=4"];
    let [off, locked] = DUTY_CYCLES;
    let published = [
        (off, "baseline", ASCENDING),
        (off, "many-to-many", ["default-b", "default", "cocoa-01:nstart=4", "cocoa-01"]),
        (off, "burst", ["cocoa-01:nstart=4", "default", "default-b", "cocoa-01"]),
        (locked, "baseline", ASCENDING),
        (locked, "many-to-many", B_IS_LAST),
        (locked, "burst", B_IS_LAST),
    ];
    let mut all = Vec::new();
    for (duty_cycle, workload, order) in published {
        let wanted = [("workload", workload), ("duty_cycle", duty_cycle)];
        let served = |cc: &str| {
            let cell = find(measured, Paper::Socne14.scenario(), &wanted, cc);
            cell.map(|cell| cell.number("mesh.requests_per_s"))
        };
        let mut found: Vec<(f64, &str)> =
            controls.iter().filter_map(|cc| Some((served(cc)?, *cc))).collect();
        if found.len() < controls.len() {
            continue;
        }
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let names: Vec<&str> = found.iter().map(|(_, cc)| *cc).collect();
        all.push(Statement {
            says: format!(
                "{workload}, duty cycling {duty_cycle}, throughput from low to high: {}",
                order.join(", ")
            ),
            measured: names.join(", "),
            holds: names == order,
        });
        let [Some(own), Some(four), Some(other)] =
            ["cocoa-01", "cocoa-01:nstart=4", "default"].map(served)
        else {
            continue;
        };
        let above = [own, four].map(|rate| 100.0 * (rate / other - 1.0));
        let better = above[0].max(above[1]);
        all.push(Statement {
            says: format!(
                "{workload}, duty cycling {duty_cycle}: cocoa-01, with NSTART 1 or 4, serves 19 to \
                     112 % more than default"
            ),
            measured: format!("{:+.0} and {:+.0} %", above[0], above[1]),
            holds: (19.0..=112.0).contains(&better),
        });
    }
    all
}

/// The statements in WiMob17's text, of each code.
fn wimob17(measured: MeasuredCampaign<'_>) -> Vec<Statement> {
    CODES.into_iter().flat_map(|code| of_code(measured, code)).collect()
}

fn of_code(measured: MeasuredCampaign<'_>, code: Code) -> Vec<Statement> {
    let pair = |wanted: &[(&str, &str)]| -> Pair<'_> {
        let wanted = [wanted, &[code.spacing]].concat();
        let one = |cc: &str| find(measured, Paper::Wimob17.scenario(), &wanted, cc);
        Some((one("default")?, one(code.cocoa)?))
    };
    let monitoring = |n, load| pair(&[("workload", "monitoring"), ("n", n), ("load", load)]);
    let grid: Vec<(&str, &str, &Cell, &Cell)> = SIZES
        .into_iter()
        .flat_map(|n| LOADS.into_iter().map(move |load| (n, load)))
        .filter_map(|(n, load)| monitoring(n, load).map(|(a, b)| (n, load, a, b)))
        .collect();
    let points = |cell: &Cell| 100.0 * cell.number("mesh.loss");
    let mut all = Vec::new();
    if !grid.is_empty() {
        let differences: Vec<f64> =
            grid.iter().map(|(_, _, plain, cocoa)| points(cocoa) - points(plain)).collect();
        let alike = differences.iter().filter(|d| d.abs() < 5.0).count();
        all.push(Statement {
            says: "monitoring: the two are alike in most cells".into(),
            measured: format!("within 5 points in {alike} of {} cells", grid.len()),
            holds: 2 * alike > grid.len(),
        });
        let better = differences.iter().copied().fold(0.0, f64::min);
        all.push(Statement {
            says: "monitoring: cocoa-plus is better by less than 10 points in large loaded grids"
                .into(),
            measured: format!("by up to {:.1} points", -better),
            holds: (-10.0..0.0).contains(&better),
        });
        let main = |cell: &Cell| {
            let others = cell.number("mesh.lost_queue")
                + cell.number("mesh.lost_retries")
                + cell.number("mesh.lost_otherwise");
            cell.number("mesh.loss") < 0.01 || cell.number("mesh.lost_busy") > others
        };
        let busy = grid.iter().filter(|(_, _, plain, cocoa)| main(plain) && main(cocoa)).count();
        all.push(Statement {
            says: "monitoring: most losses come from a busy source".into(),
            measured: format!("in {busy} of {} cells", grid.len()),
            holds: busy == grid.len(),
        });
    }
    small_grids(&grid, &mut all);
    full_load(&grid, &mut all);
    events(pair, &mut all);
    for statement in &mut all {
        statement.says.insert_str(0, code.label);
    }
    all
}

type ComparedRow<'m> = (&'m str, &'m str, &'m Cell, &'m Cell);

fn small_grids(grid: &[ComparedRow<'_>], all: &mut Vec<Statement>) {
    let small: Vec<&ComparedRow<'_>> = grid.iter().filter(|(n, ..)| *n == "3").collect();
    if small.is_empty() {
        return;
    }
    let worse = small
        .iter()
        .map(|(_, _, a, b)| (b.number("mesh.loss") / a.number("mesh.loss").max(1e-9) - 1.0, a, b));
    let loaded = worse.filter(|(_, a, b)| a.number("mesh.loss").max(b.number("mesh.loss")) > 0.01);
    let worst = loaded.map(|(more, ..)| 100.0 * more).fold(f64::NEG_INFINITY, f64::max);
    all.push(Statement {
        says: "monitoring: cocoa-plus loses up to 30 % more with few clients or light load".into(),
        measured: format!("up to {worst:+.0} % more in the 3 x 3 grid"),
        holds: (0.0..=40.0).contains(&worst),
    });
    let early = |cell: &Cell| {
        if cell.number("mesh.early").is_finite() { 100.0 * cell.number("mesh.early") } else { 0.0 }
    };
    let most = |pick: fn(&ComparedRow<'_>) -> f64| grid.iter().map(pick).fold(0.0, f64::max);
    let plain = most(|(_, _, a, _)| {
        100.0 * a.number("mesh.early").max(0.0) * a.number("mesh.retransmissions_per_message")
    });
    // The paper counts them per initial transmission, and a message makes three.
    let plain = plain / 3.0;
    all.push(Statement {
        says: "default makes next to no early retransmissions".into(),
        measured: format!("at most {plain:.1} per 100 initial transmissions"),
        holds: plain < 5.0,
    });
    let cocoa = small.iter().map(|(_, _, _, b)| early(b)).fold(0.0, f64::max);
    all.push(Statement {
        says: "up to 60 % of the retransmissions of cocoa-plus are early, with light load and \
               small grids"
            .into(),
        measured: format!("up to {cocoa:.0} % in the 3 x 3 grid"),
        holds: cocoa > 30.0,
    });
}

fn full_load(grid: &[ComparedRow<'_>], all: &mut Vec<Statement>) {
    let full: Vec<&ComparedRow<'_>> =
        grid.iter().filter(|(_, load, ..)| *load == "3 kbit/s").collect();
    if full.is_empty() {
        return;
    }
    let each: Vec<String> = full
        .iter()
        .map(|(n, _, a, b)| {
            format!(
                "{n} x {n}: {:.0} and {:.0} %",
                100.0 * a.number("mesh.loss"),
                100.0 * b.number("mesh.loss")
            )
        })
        .collect();
    // The paper says it of a figure over loads and sizes, and does not say of which size.
    all.push(Statement {
        says: "monitoring at 3 kbit/s: more than 60 % is lost with either, in the largest grid"
            .into(),
        measured: format!("default and cocoa-plus: {}", each.join("; ")),
        holds: full
            .last()
            .is_some_and(|(_, _, a, b)| a.number("mesh.loss") > 0.6 && b.number("mesh.loss") > 0.6),
    });
}

fn events<'m>(pair: impl Fn(&[(&str, &str)]) -> Pair<'m>, all: &mut Vec<Statement>) {
    let large = |interval: &'static str| {
        pair(&[
            ("workload", "events"),
            ("n", "6"),
            ("event_interval", interval),
            ("event_message", "192"),
        ])
    };
    let Some((plain, cocoa)) = large("10 min") else { return };
    // The share for reports of events. The background's loss follows from how long an event keeps
    // sources busy; for a loss below 2 % more would have to be carried than at 3 kbit/s.
    let lost = |(plain, cocoa): (&Cell, &Cell)| {
        (100.0 * plain.number("mesh.event_loss"), 100.0 * cocoa.number("mesh.event_loss"))
    };
    let (a, b) = lost((plain, cocoa));
    let rarely = match large("30 min").map(lost) {
        Some((a, b)) => format!("; 30 min between events: {b:.1} and {a:.1} %"),
        None => String::new(),
    };
    all.push(Statement {
        says: "events, 6 x 6: cocoa-plus loses above 10 % of the reports, default below 2 %".into(),
        measured: format!(
            "cocoa-plus {b:.1} %, default {a:.1} %; of all messages {:.1} and {:.1} %{rarely}",
            100.0 * cocoa.number("mesh.loss"),
            100.0 * plain.number("mesh.loss")
        ),
        holds: b > 10.0 && a < 2.0,
    });
    let first = cocoa.spread("mesh.first_timeout");
    all.push(Statement {
        says: "events: first timeouts of cocoa-plus range from tens of ms to tens of s".into(),
        measured: format!("{:.3} to {:.1} s", first.min, first.max),
        holds: first.min < 0.1 && first.max > 10.0,
    });
}
