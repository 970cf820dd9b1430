//! The figures of a cell as a whole.

use crate::record::{ClientRecord, DirectionCounts, RunRecord};
use crate::result::figures::Value;
use crate::result::metric::{Better, Format, Group, Metric, Unit};
use crate::result::pooled;
use crate::result::sample::Replications;
use crate::stats::jain;

fn seconds(client: &ClientRecord) -> f64 {
    client.fct.as_nanos() as f64 / 1e9
}

/// The share of the time that one direction of the bottleneck was sending.
fn utilisation(
    sample: &Replications<'_>,
    side: fn(&RunRecord) -> DirectionCounts,
) -> Option<Value> {
    Some(Value::Number(pooled::utilisation_of(sample.records, side)))
}

/// The table.
pub static CELL: Group = Group {
    key: "",
    name: "Link and fairness",
    title: "Link and fairness",
    note: "Link used: share of the time the link was sending. Goodput: useful payload delivered to \
           all clients together. Fairness: Jain’s index over the clients; 1 is equal. Per client, \
           the median: timeouts expired, largest timeout, duplicate responses.",
    terminal_title: "",
    terminal_note: "",
    metrics: &[
        Metric::measured(
            "unnecessary_retransmissions",
            "Unnecessary retransmissions per client.",
            Unit::Count,
            |s| s.over_clients(|client| client.unnecessary.into()),
        )
        .better(Better::Less)
        .of_classes(),
        Metric::measured(
            "duplicate_responses",
            "Duplicate responses received, per client.",
            Unit::Count,
            |s| s.over_clients(|client| client.duplicates.into()),
        )
        .better(Better::Less)
        .page("duplicates", Format::Brief),
        Metric::measured(
            "exchanges_by_retransmissions",
            "Exchanges that took 0, 1, 2, ... retransmissions.",
            Unit::Count,
            |s| Some(Value::Counts(pooled::by_retransmissions(s.records))),
        )
        .of_classes(),
        Metric::measured("completed", "Exchanges that got their response.", Unit::Count, |s| {
            s.of_clients(|client| client.completed)
        })
        .better(Better::More)
        .of_classes(),
        Metric::measured("failed", "Exchanges that failed.", Unit::Count, |s| {
            s.of_clients(|client| client.failed)
        })
        .better(Better::Less)
        .of_classes()
        .page("exchanges failed", Format::Count),
        Metric::measured("rtt_s", "Round-trip times.", Unit::Seconds, |s| {
            s.pooled(|record| &record.totals.rtt)
        })
        .better(Better::Less)
        .of_classes()
        .page("median RTT (s)", Format::Brief),
        Metric::measured(
            "exchange_duration_s",
            "How long exchanges took, from the request to the first response.",
            Unit::Seconds,
            |s| s.pooled(|record| &record.totals.durations),
        )
        .better(Better::Less)
        .of_classes(),
        Metric::measured(
            "timeouts",
            "Expired retransmission timeouts per client.",
            Unit::Count,
            |s| s.over_clients(|client| client.timeouts.into()),
        )
        .better(Better::Less)
        .page("timeouts expired", Format::Brief),
        Metric::measured(
            "probes",
            "Probes that congestion control sent, per client.",
            Unit::Count,
            |s| s.over_clients(|client| client.probes.into()),
        )
        .better(Better::Less),
        Metric::measured(
            "largest_timeout_s",
            "The largest timeout that each client armed.",
            Unit::Seconds,
            |s| s.over_clients(|client| client.largest_timeout.as_secs_f64()),
        )
        .page("largest timeout (s)", Format::Brief),
        Metric::measured(
            "utilisation.up",
            "Share of the time that the link towards the server was sending.",
            Unit::Share,
            |s| utilisation(s, |record| record.totals.up),
        )
        .page("link used up", Format::Percent(1)),
        Metric::measured(
            "utilisation.down",
            "Share of the time that the link towards the clients was sending.",
            Unit::Share,
            |s| utilisation(s, |record| record.totals.down),
        )
        .page("link used down", Format::Percent(1)),
        Metric::average(
            "goodput_bps",
            "Useful payload delivered to the applications, all clients together.",
            Unit::BitRate,
            |run| {
                let bytes: u64 = run.clients.iter().map(|one| one.payload_bytes).sum();
                Some(bytes as f64 * 8.0 / (run.totals.done_ns.max(1) as f64 / 1e9))
            },
        )
        .better(Better::More)
        .of_classes()
        .page("goodput", Format::BitRate),
        Metric::average("jain", "Jain's fairness index over the clients.", Unit::Ratio, |run| {
            let rate = |one: &ClientRecord| one.payload_bytes as f64 / seconds(one).max(1e-9);
            Some(jain(&run.clients.iter().map(rate).collect::<Vec<f64>>()))
        })
        .better(Better::More)
        .of_classes()
        .page("fairness", Format::Fixed(3)),
    ],
};
