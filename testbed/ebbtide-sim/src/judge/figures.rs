//! From records to the figures that controls are judged by.

use super::outcome::{ControlOutcome, Demand, SHARES};
use super::requirement::RequirementCheck;
use super::run_figures::RunFigures;
use crate::net::Direction;
use crate::record::{ClientRecord, CrossRecord, RunRecord, SparseHistogram};
use crate::scenario::Requirement;
use crate::stats::jain;

/// The figures of the replications of one control in one setting.
pub fn figures(records: &[RunRecord], demand: &Demand) -> ControlOutcome {
    let give_ups = || records.iter().filter_map(|record| record.totals.delivery.gave_up_ns);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let least = give_ups().map(|(least, _)| least).min();
    let most = give_ups().map(|(_, most)| most).max();
    let sides = || records.iter().flat_map(|record| [record.totals.up, record.totals.down]);
    // Cross traffic and TCP in the background have no part in what the clients lose.
    let of_others = |field: fn(&CrossRecord) -> u64| -> u64 {
        let all = records.iter().flat_map(|record| &record.totals.cross);
        all.filter(|one| one.is_at_bottleneck).map(field).sum()
    };
    let background = || records.iter().map(|record| record.totals.background_packets);
    let others = of_others(|one| one.sent) + background().map(|own| own.sent).sum::<u64>();
    let sent = sides().map(|side| side.sent).sum::<u64>().saturating_sub(others);
    let others =
        of_others(|one| one.dropped_queue) + background().map(|own| own.dropped_queue).sum::<u64>();
    let dropped = sides().map(|side| side.dropped_queue).sum::<u64>().saturating_sub(others);
    let each: Vec<&[RunRecord]> = records.chunks(1).collect();
    let all = together(records, demand);
    let runs: Vec<RunFigures> = each.into_iter().map(|one| together(one, demand)).collect();
    let check = |one: &Requirement| RequirementCheck::new(*one, &all, &runs);
    let checks = demand.required.iter().map(check).collect();
    let median = quantile(records, 0.5, |record| &record.totals.rtt).unwrap_or(f64::NAN);
    ControlOutcome {
        asked: sum(records, |client| client.asked),
        all,
        runs,
        gave_up_s: least.zip(most).map(|(least, most)| (seconds(least), seconds(most))),
        dropped: if sent == 0 { 0.0 } else { dropped as f64 / sent as f64 },
        busiest: busiest(records),
        stretch: if demand.idle_s > 0.0 { median / demand.idle_s } else { f64::NAN },
        checks,
        demand: demand.clone(),
    }
}

/// The share of the time until the last client was done that the busiest link worked: mean over replications.
fn busiest(records: &[RunRecord]) -> f64 {
    let share = |record: &RunRecord| {
        let totals = &record.totals;
        let others = totals.links.iter().flat_map(|link| [&link.up, &link.down]);
        let links = [&totals.up, &totals.down].into_iter().chain(others).map(|side| side.busy_ns);
        let air = totals.wifi.iter().map(|wifi| wifi.busy_ns);
        let most = links.chain(air).max().unwrap_or(0);
        (most as f64 / totals.done_ns.max(1) as f64).min(1.0)
    };
    records.iter().map(share).sum::<f64>() / records.len().max(1) as f64
}

/// A quantile of a histogram of microseconds over all replications, s; `None` if nothing was recorded.
fn quantile(
    records: &[RunRecord],
    share: f64,
    which: fn(&RunRecord) -> &SparseHistogram,
) -> Option<f64> {
    let SparseHistogram(counts) = SparseHistogram::together(records.iter().map(which));
    let wanted = share * counts.iter().map(|(_, count)| *count as f64).sum::<f64>();
    let mut below = 0.0;
    let found = counts.iter().find(|(_, count)| {
        below += *count as f64;
        below >= wanted
    });
    found.map(|(micros, _)| *micros as f64 / 1e6)
}

fn sum(records: &[RunRecord], field: fn(&ClientRecord) -> u32) -> u64 {
    records.iter().flat_map(|record| &record.clients).map(|client| u64::from(field(client))).sum()
}

fn together(records: &[RunRecord], demand: &Demand) -> RunFigures {
    let asked = sum(records, |client| client.asked) as f64;
    let delivered = sum(records, |client| client.completed) as f64;
    let total = |field: fn(&RunRecord) -> u64| records.iter().map(field).sum::<u64>() as f64;
    let transmissions = total(|record| record.totals.delivery.transmissions);
    let bytes = total(|record| record.totals.delivery.bytes);
    let span_s = total(|record| record.totals.done_ns) / 1e9;
    let carried = match (demand.link, demand.direction) {
        (None, Direction::Up) => total(|record| record.totals.delivery.carried_up),
        (None, Direction::Down) => total(|record| record.totals.delivery.carried_down),
        (Some(link), direction) => carried_by(records, link, direction),
    };
    let missed = asked - sum(records, |client| client.in_time) as f64;
    let has_link = demand.each_s > 0.0;
    let of_link = |share: f64| if has_link { share.min(1.0) } else { f64::NAN };
    RunFigures {
        delivered: delivered / asked,
        arrived: sum(records, |client| client.arrived).max(delivered as u64) as f64 / asked,
        unnecessary_share: sum(records, |client| client.needless) as f64 / transmissions,
        transmissions_per_delivered: transmissions / delivered,
        bytes_per_delivered: if bytes > 0.0 { bytes / delivered } else { f64::NAN },
        delivered_by_s: times(records, asked),
        goodput_share: of_link(delivered * demand.each_s / span_s),
        occupied: of_link(carried * 8.0 / demand.rate_bps / span_s),
        deadline_missed: demand.has_deadline.then_some(missed / asked),
        fairness: fairness(records),
        power_mw: power_mw(records),
    }
}

/// Mean power of the radio of a device, mW, mean over the replications that know it.
fn power_mw(records: &[RunRecord]) -> Option<f64> {
    let known: Vec<f64> = records.iter().filter_map(RunRecord::power_mw).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// Bytes of the clients' packets that passed a link other than the bottleneck.
fn carried_by(records: &[RunRecord], link: usize, direction: Direction) -> f64 {
    let links = records.iter().filter_map(|record| record.totals.links.get(link));
    let classes = links.flat_map(|link| &link.carried);
    classes.map(|(up, down)| direction.select(*up, *down)).sum::<u64>() as f64
}

/// When each of the shares was delivered: of everything that was asked, answered or not.
fn times(records: &[RunRecord], asked: f64) -> [Option<f64>; 4] {
    let histograms = records.iter().map(|record| &record.totals.delivery.after);
    let SparseHistogram(counts) = SparseHistogram::together(histograms);
    SHARES.map(|share| {
        // The smallest whole number of exchanges that is this share; none is no share of nothing.
        let wanted = (asked * f64::from(share) / 100.0).ceil().max(1.0);
        let mut so_far = 0.0;
        let found = counts.iter().find(|(_, count)| {
            so_far += *count as f64;
            so_far >= wanted
        });
        found.map(|(micros, _)| *micros as f64 / 1e6)
    })
}

/// Jain's index of the clients' rates of answered exchanges, mean over the replications.
fn fairness(records: &[RunRecord]) -> f64 {
    let each = records.iter().map(|record| {
        let rate = |client: &ClientRecord| {
            f64::from(client.completed) / (client.fct.as_nanos() as f64 / 1e9).max(1e-9)
        };
        jain(&record.clients.iter().map(rate).collect::<Vec<f64>>())
    });
    each.sum::<f64>() / records.len() as f64
}
