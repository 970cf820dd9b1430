//! The figures of TCP that shares the bottleneck with the clients.

use crate::record::{BackgroundFlow, RunRecord};
use crate::result::figures::Value;
use crate::result::metric::{Better, Format, Group, Metric, Unit};
use crate::result::sample::Replications;

fn flows<'s>(sample: &Replications<'s>) -> impl Iterator<Item = &'s BackgroundFlow> {
    sample.records.iter().flat_map(|record| &record.totals.background)
}

/// The sum of a field over the flows of a replication; `None` without such flows.
fn count(record: &RunRecord, field: fn(&BackgroundFlow) -> u32) -> Option<u64> {
    let flows = record.totals.background.iter();
    flows.map(|flow| u64::from(field(flow))).reduce(|sum, one| sum + one)
}

/// The rate of a replication's flows together, bit/s, mean over replications.
fn rate(sample: &Replications<'_>, bytes: fn(&BackgroundFlow) -> u64) -> Option<Value> {
    flows(sample).next()?;
    let rate = |flow: &BackgroundFlow| {
        let ns = flow.end_ns.saturating_sub(flow.start_ns).max(1);
        bytes(flow) as f64 * 8e9 / ns as f64
    };
    // A flow that delivered nothing has no time of its own.
    let rates = flows(sample).filter(|flow| flow.delivered > 0).map(rate);
    Some(Value::Number(rates.sum::<f64>() / sample.records.len() as f64))
}

/// The table.
pub static BACKGROUND: Group = Group {
    key: "background",
    name: "Background",
    title: "TCP in the background",
    note: "Payload of all flows of a replication together, mean over replications, each from its \
           beginning to its last arrival. Retransmissions are summed; unnecessary ones carried \
           nothing new.",
    terminal_title: "TCP background",
    terminal_note: "offered, delivered: all flows of a replication together, payload, mean",
    metrics: &[
        Metric::measured("background.flows", "Flows of a replication.", Unit::Count, |s| {
            let each = s.records.iter().map(|record| record.totals.background.len()).max();
            each.filter(|flows| *flows > 0).map(|flows| Value::Count(flows as u64))
        })
        .page("flows", Format::Count)
        .terminal("flows", 7, Format::Count),
        Metric::measured(
            "background.offered_bps",
            "Rate at which all their applications together offered data.",
            Unit::BitRate,
            |s| rate(s, |flow| flow.offered),
        )
        .page("offered", Format::BitRate)
        .terminal("offered, kb/s", 14, Format::Kilo),
        Metric::measured(
            "background.delivered_bps",
            "Rate at which data arrived.",
            Unit::BitRate,
            |s| rate(s, |flow| flow.delivered),
        )
        .better(Better::More)
        .page("delivered", Format::BitRate)
        .terminal("delivered, kb/s", 16, Format::Kilo),
        Metric::count(
            "background.retransmissions",
            "Segments that their senders repeated.",
            |run| count(run, |flow| flow.retransmissions),
        )
        .better(Better::Less)
        .page("retransmissions", Format::Count)
        .terminal("rexmits", 9, Format::Count),
        Metric::count(
            "background.unnecessary",
            "Segments that arrived although all that they carry was there.",
            |run| count(run, |flow| flow.unnecessary),
        )
        .better(Better::Less)
        .page("unnecessary", Format::Count)
        .terminal("unnecessary", 13, Format::Count),
    ],
};
