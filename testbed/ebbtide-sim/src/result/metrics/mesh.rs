//! The figures of a low-power network. Means and their intervals are over replications.

use crate::medium::low_power::{MeshRecord, Messages};
use crate::record::{RunRecord, SparseHistogram};
use crate::result::figures::Value;
use crate::result::mesh_nodes::{completed_by, loss, seconds};
use crate::result::metric::{Better, Concerns, Format, Group, Metric, Unit};
use crate::result::pooled::pool;
use crate::result::sample::Replications;

const HAS_MESSAGES: Concerns = |cell| cell.number("mesh.messages") > 0.0;
const HAS_REQUESTS: Concerns = |cell| cell.number("mesh.messages") == 0.0;
const HAS_EVENTS: Concerns = |cell| cell.number("mesh.event_loss").is_finite();
const HAS_DROPS: Concerns = |cell| cell.number("mesh.no_route") > 0.0;

fn runs<'s>(sample: &Replications<'s>) -> impl Iterator<Item = &'s MeshRecord> {
    sample.records.iter().filter_map(|record| record.totals.mesh.as_ref())
}

/// A figure of each replication: its mean and half of the confidence interval.
fn over(sample: &Replications<'_>, figure: fn(&RunRecord, &MeshRecord) -> f64) -> Option<Value> {
    let runs = sample.records.iter();
    let runs = runs.filter_map(|record| Some(figure(record, record.totals.mesh.as_ref()?)));
    sample.interval(runs.collect())
}

/// The sum of a count over the messages of all sources; `None` for other networks.
fn total(sample: &Replications<'_>, field: fn(&Messages) -> u64) -> Option<u64> {
    runs(sample)
        .map(|mesh| mesh.messages.iter().map(field).sum::<u64>())
        .reduce(|sum, one| sum + one)
}

/// The share of all messages that such a count is.
fn share(sample: &Replications<'_>, count: fn(&Messages) -> u64) -> Option<Value> {
    let messages = total(sample, |one| one.offered)?;
    Some(Value::Number(total(sample, count)? as f64 / messages.max(1) as f64))
}

fn spread(sample: &Replications<'_>, which: fn(&MeshRecord) -> &SparseHistogram) -> Option<Value> {
    runs(sample).next()?;
    Some(Value::Spread(pool(runs(sample).map(which))))
}

fn completed(record: &RunRecord) -> f64 {
    record.totals.by_retransmissions.iter().sum::<u64>() as f64
}

fn retransmitted(record: &RunRecord) -> u64 {
    record.clients.iter().map(|client| u64::from(client.retransmissions)).sum()
}

/// The table.
pub static MESH: Group = Group {
    key: "mesh",
    name: "Network",
    title: "Low-power network",
    note: "",
    terminal_title: "",
    terminal_note: "",
    metrics: &[
        Metric::measured(
            "mesh.requests_per_s",
            "Exchanges completed per second.",
            Unit::Ratio,
            |s| over(s, |record, mesh| completed(record) / seconds(mesh)),
        )
        .better(Better::More)
        .only(HAS_REQUESTS)
        .page("requests/s", Format::Fixed(2))
        .terminal("requests/s", 11, Format::Brief),
        Metric::measured("mesh.exchange_s", "Time per completed exchange.", Unit::Seconds, |s| {
            over(s, |record, _| {
                let counts = &record.totals.durations.0;
                let all: u64 = counts.iter().map(|(_, count)| count).sum();
                let sum: f64 = counts.iter().map(|(us, count)| *us as f64 * *count as f64).sum();
                sum / 1e6 / all as f64
            })
        })
        .better(Better::Less)
        .only(HAS_REQUESTS)
        .page("s per exchange", Format::Fixed(2))
        .terminal("s each", 11, Format::Brief),
        Metric::measured(
            "mesh.retries",
            "Retransmissions per completed exchange.",
            Unit::Ratio,
            |s| {
                over(s, |record, _| {
                    let classes = record.totals.by_retransmissions.iter().enumerate();
                    let sum: f64 = classes.map(|(class, count)| class as f64 * *count as f64).sum();
                    sum / completed(record)
                })
            },
        )
        .better(Better::Less)
        .only(HAS_REQUESTS)
        .page("retries per request", Format::Fixed(2))
        .terminal("retries", 10, Format::Brief),
        Metric::derived("mesh.failed", "Exchanges that failed.", Unit::Count, |cell| {
            cell.number("failed")
        })
        .only(HAS_REQUESTS)
        .terminal("failed", 9, Format::Count),
        Metric::measured("mesh.messages", "Messages that were due.", Unit::Count, |s| {
            total(s, |one| one.offered).map(Value::Count)
        }),
        Metric::measured(
            "mesh.loss",
            "Share of the messages that were lost, mean over sources.",
            Unit::Share,
            |s| {
                over(s, |record, mesh| {
                    // Devices of other classes have no messages.
                    let is_plain = record.totals.classes.is_empty();
                    let sources = mesh.messages.iter().filter(|one| is_plain || one.offered > 0);
                    let losses: Vec<f64> = sources.map(loss).collect();
                    losses.iter().sum::<f64>() / losses.len() as f64
                })
            },
        )
        .better(Better::Less)
        .only(HAS_MESSAGES)
        .page("loss", Format::Percent(1))
        .terminal("lost %", 7, Format::Hundredths),
        Metric::measured("mesh.worst_loss", "The same of the worst source.", Unit::Share, |s| {
            over(s, |_, mesh| mesh.messages.iter().map(loss).fold(0.0, f64::max))
        })
        .better(Better::Less)
        .only(HAS_MESSAGES)
        .page("worst", Format::Percent(1))
        .terminal("worst", 6, Format::Hundredths),
        Metric::measured(
            "mesh.event_loss",
            "Share of the reports of events that were lost, of all sources together.",
            Unit::Share,
            |s| {
                over(s, |_, mesh| {
                    let sum = |field: fn(&Messages) -> u64| -> f64 {
                        mesh.messages.iter().map(field).sum::<u64>() as f64
                    };
                    sum(|one| one.events_lost) / sum(|one| one.events)
                })
            },
        )
        .better(Better::Less)
        .only(HAS_EVENTS)
        .page("events", Format::Percent(1)),
        Metric::derived("mesh.events", "The same.", Unit::Share, |cell| {
            cell.number("mesh.event_loss")
        })
        .only(HAS_MESSAGES)
        .terminal("events", 7, Format::Hundredths),
        Metric::measured(
            "mesh.lost_busy",
            "Share of the messages lost since the source was busy with the last one.",
            Unit::Share,
            |s| share(s, |one| one.busy),
        )
        .better(Better::Less)
        .only(HAS_MESSAGES)
        .page("busy", Format::Percent(1))
        .terminal("busy", 7, Format::Hundredths),
        Metric::measured(
            "mesh.lost_queue",
            "Given up, the last datagram having met a full queue.",
            Unit::Share,
            |s| share(s, |one| one.given_up_queue),
        )
        .better(Better::Less)
        .only(HAS_MESSAGES)
        .page("queue full", Format::Percent(1))
        .terminal("queue", 6, Format::Hundredths),
        Metric::measured(
            "mesh.lost_retries",
            "Given up, the last datagram having been lost on the air.",
            Unit::Share,
            |s| share(s, |one| one.given_up_retries),
        )
        .better(Better::Less)
        .only(HAS_MESSAGES)
        .page("lost on air", Format::Percent(1))
        .terminal("air", 6, Format::Hundredths),
        Metric::measured("mesh.lost_otherwise", "Given up for another reason.", Unit::Share, |s| {
            share(s, |one| one.given_up - one.given_up_queue - one.given_up_retries)
        })
        .better(Better::Less)
        .only(HAS_MESSAGES)
        .page("otherwise", Format::Percent(1))
        .terminal("else", 6, Format::Hundredths),
        Metric::measured(
            "mesh.no_route",
            "Share of the datagrams that the root dropped because it had no route.",
            Unit::Share,
            |s| {
                let dropped: u64 = runs(s).map(|mesh| mesh.lost.route).sum();
                let all: u64 = runs(s).map(|mesh| mesh.datagrams).sum();
                (dropped > 0).then(|| Value::Number(dropped as f64 / all.max(1) as f64))
            },
        )
        .better(Better::Less)
        .only(HAS_DROPS)
        .page("no route", Format::Percent(1)),
        Metric::measured(
            "mesh.retransmissions_per_message",
            "Retransmissions per message that was taken up.",
            Unit::Ratio,
            |s| {
                let taken_up = total(s, |one| one.offered)? - total(s, |one| one.busy)?;
                let with = s.records.iter().filter(|record| record.totals.mesh.is_some());
                let sent: u64 = with.map(retransmitted).sum();
                Some(Value::Number(sent as f64 / taken_up.max(1) as f64))
            },
        )
        .better(Better::Less)
        .only(HAS_MESSAGES)
        .page("rexmits per message", Format::Fixed(2))
        .terminal("rexmits", 9, Format::Brief),
        Metric::measured(
            "mesh.early",
            "Share of the retransmissions sent although the original and its answer arrived.",
            Unit::Share,
            |s| {
                over(s, |record, mesh| {
                    let early: u64 = mesh.messages.iter().map(|one| one.early).sum();
                    early as f64 / retransmitted(record) as f64
                })
            },
        )
        .better(Better::Less)
        .only(HAS_MESSAGES)
        .page("early", Format::Percent(1))
        .terminal("early", 6, Format::Hundredths),
        Metric::measured(
            "mesh.first_timeout",
            "Timeouts armed for originals.",
            Unit::Seconds,
            |s| spread(s, |mesh| &mesh.first_timeouts),
        )
        .page("first timeout,\u{a0}s", Format::Span),
        Metric::measured(
            "mesh.strong_rtt",
            "Round trips of exchanges without retransmission.",
            Unit::Seconds,
            |s| spread(s, |mesh| &mesh.strong_rtt),
        )
        .page("RTT,\u{a0}s", Format::Span),
        Metric::derived("mesh.rtt", "Their median.", Unit::Seconds, |cell| {
            cell.number("mesh.strong_rtt")
        })
        .only(HAS_REQUESTS)
        .terminal("RTT, s", 10, Format::Brief),
        Metric::measured(
            "mesh.weak_rtt",
            "Round trips of exchanges with retransmissions, since the original.",
            Unit::Seconds,
            |s| spread(s, |mesh| &mesh.weak_rtt),
        )
        .page("weak RTT,\u{a0}s", Format::Span),
        Metric::measured("mesh.power_mw", "Mean power of a node's radio.", Unit::Milliwatts, |s| {
            let power = over(s, |record, _| record.power_mw().unwrap_or(f64::NAN));
            power.map(|power| Value::Number(power.number()))
        })
        .better(Better::Less)
        .page("radio,\u{a0}mW", Format::Fixed(2)),
        Metric::derived("mesh.power", "The same.", Unit::Milliwatts, |cell| {
            cell.number("mesh.power_mw")
        })
        .only(HAS_REQUESTS)
        .terminal("mW", 8, Format::Brief),
        Metric::measured(
            "mesh.completed_by_s",
            "When each percent of the completed exchanges was completed.",
            Unit::Seconds,
            |s| {
                runs(s).next()?;
                Some(Value::Quantiles(completed_by(&runs(s).collect::<Vec<_>>())))
            },
        ),
    ],
};
