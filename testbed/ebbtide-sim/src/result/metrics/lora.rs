//! The figures of a LoRaWAN cell: its frames, summed over replications, and the time on the air.

use crate::medium::lora::{LoraCounts, LoraFrames};
use crate::record::RunRecord;
use crate::result::figures::Value;
use crate::result::metric::{Better, Format, Group, Metric, Unit};
use crate::result::model::Cell;
use crate::result::sample::Replications;

fn counts(record: &RunRecord) -> Option<LoraCounts> {
    record.totals.lora
}

/// The frames of all replications; `None` for other networks.
fn frames(sample: &Replications<'_>, field: fn(&LoraFrames) -> u64) -> Option<Value> {
    let runs = sample.records.iter().filter_map(counts);
    runs.map(|one| field(&one.frames)).reduce(|sum, one| sum + one).map(Value::Count)
}

/// The frames of all replications in first and second windows, or of devices and the gateway.
fn pair(sample: &Replications<'_>, field: fn(&LoraFrames) -> [u64; 2]) -> Option<Value> {
    let runs = sample.records.iter().filter_map(counts).map(|one| field(&one.frames));
    let sum = runs.reduce(|sum, one| [sum[0] + one[0], sum[1] + one[1]])?;
    Some(Value::Counts(sum.to_vec()))
}

fn devices(record: &RunRecord) -> f64 {
    record.clients.len().max(1) as f64
}

fn nanoseconds(record: &RunRecord) -> u64 {
    record.totals.sim_ns.max(1)
}

/// A count as a share of the uplinks.
fn of_uplinks(cell: &Cell, part: &str) -> f64 {
    cell.number(part) / cell.number("lora.uplinks").max(1.0)
}

/// A count as a share of the frames both ways.
fn of_frames(cell: &Cell, part: &str) -> f64 {
    let frames = cell.number("lora.uplinks") + both(cell, "lora.downlinks");
    cell.number(part) / frames.max(1.0)
}

fn both(cell: &Cell, name: &str) -> f64 {
    cell.counts(name).iter().sum::<u64>() as f64
}

/// The table.
pub static LORA: Group = Group {
    key: "lora",
    name: "LoRaWAN",
    title: "LoRaWAN cell",
    note: "Frames, summed over replications. Empty: without a packet, to ask for an announced one or to answer a request. \
           Collided: no gateway read it, and it met another uplink on its channel. Gateway deaf: \
           the gateway was transmitting. These are shares of the uplinks. Unreadable: for another \
           reason, and too weak: shares of the frames both ways. SF: mean spreading factor of the \
           uplinks. Adapted: requests of the adaptive data rate. Windows 1 and 2: downlinks by \
           receive window. Dropped: a queue was full, share of the packets. Then the shares of the \
           time on the air, and the mean power of a device’s radio.",
    terminal_title: "",
    terminal_note: "",
    metrics: &[
        Metric::measured("lora.uplinks", "Frames that devices sent.", Unit::Count, |s| {
            frames(s, |all| all.uplinks)
        })
        .page("uplinks", Format::Count),
        Metric::measured(
            "lora.polls",
            "Uplinks without a packet: they ask for an announced one, or answer a request.",
            Unit::Count,
            |s| frames(s, |all| all.polls),
        ),
        Metric::derived("lora.polls_share", "Their share.", Unit::Share, |cell| {
            of_uplinks(cell, "lora.polls")
        })
        .page("empty", Format::Percent(1)),
        Metric::measured(
            "lora.collided",
            "Uplinks that no gateway read because they met another one on their channel.",
            Unit::Count,
            |s| frames(s, |all| all.collided),
        ),
        Metric::derived("lora.collided_share", "Their share.", Unit::Share, |cell| {
            of_uplinks(cell, "lora.collided")
        })
        .better(Better::Less)
        .page("collided", Format::Percent(1)),
        Metric::measured(
            "lora.deaf",
            "Uplinks that no gateway read because it transmitted.",
            Unit::Count,
            |s| frames(s, |all| all.deaf),
        ),
        Metric::derived("lora.deaf_share", "Their share.", Unit::Share, |cell| {
            of_uplinks(cell, "lora.deaf")
        })
        .better(Better::Less)
        .page("gateway deaf", Format::Percent(1)),
        Metric::measured(
            "lora.faded",
            "Frames that could not be read for another reason, both ways.",
            Unit::Count,
            |s| frames(s, |all| all.faded),
        ),
        Metric::derived("lora.faded_share", "Their share.", Unit::Share, |cell| {
            of_frames(cell, "lora.faded")
        })
        .better(Better::Less)
        .page("unreadable", Format::Percent(1)),
        Metric::measured("lora.weak", "Frames that were too weak, both ways.", Unit::Count, |s| {
            frames(s, |all| all.weak)
        }),
        Metric::derived("lora.weak_share", "Their share.", Unit::Share, |cell| {
            of_frames(cell, "lora.weak")
        })
        .better(Better::Less)
        .page("too weak", Format::Percent(1)),
        Metric::measured(
            "lora.spreading_factor",
            "Mean spreading factor of the uplinks.",
            Unit::Ratio,
            |s| {
                s.mean_of(counts, |_, one| {
                    one.spreading_factors as f64 / one.frames.uplinks.max(1) as f64
                })
            },
        )
        .page("SF", Format::Fixed(2)),
        Metric::measured(
            "lora.adapted",
            "Requests of the adaptive data rate that reached their device.",
            Unit::Count,
            |s| frames(s, |all| all.adapted),
        )
        .page("adapted", Format::Count),
        Metric::measured(
            "lora.downlinks",
            "Frames that gateways sent in first and in second windows.",
            Unit::Count,
            |s| pair(s, |all| all.downlinks),
        ),
        Metric::derived("lora.window_1", "Those in first windows.", Unit::Count, |cell| {
            cell.counts("lora.downlinks").first().copied().unwrap_or(0) as f64
        })
        .page("window 1", Format::Count),
        Metric::derived("lora.window_2", "Those in second windows.", Unit::Count, |cell| {
            cell.counts("lora.downlinks").get(1).copied().unwrap_or(0) as f64
        })
        .page("window 2", Format::Count),
        Metric::measured(
            "lora.overflows",
            "Packets for which the queue of a device, and that of the network server, was full.",
            Unit::Count,
            |s| pair(s, |all| all.overflows),
        ),
        Metric::derived("lora.overflows_share", "Their share.", Unit::Share, |cell| {
            let dropped = both(cell, "lora.overflows");
            let uplinks = cell.number("lora.uplinks");
            let carried = uplinks - cell.number("lora.polls").min(uplinks);
            dropped / (carried + both(cell, "lora.downlinks") + dropped).max(1.0)
        })
        .better(Better::Less)
        .page("dropped", Format::Percent(1)),
        Metric::measured(
            "lora.device_share",
            "Share of the time for which a device transmitted, mean over devices.",
            Unit::Share,
            |s| {
                s.mean_of(counts, |record, one| {
                    let ns = nanoseconds(record) as f64;
                    one.radio.transmit_ns as f64 / devices(record) / ns
                })
            },
        )
        .better(Better::Less)
        .page("device sends", Format::Percent(2)),
        Metric::measured(
            "lora.gateway_share",
            "Share of the time for which a gateway transmitted, mean over gateways.",
            Unit::Share,
            |s| {
                s.mean_of(counts, |record, one| {
                    let ns = nanoseconds(record) as f64 * f64::from(one.gateways.max(1));
                    one.downlink_ns.iter().sum::<u64>() as f64 / ns
                })
            },
        )
        .page("gateway sends", Format::Percent(1)),
        Metric::measured(
            "lora.power_mw",
            "Mean power of a device's radio.",
            Unit::Milliwatts,
            |s| s.mean_of(counts, |record, _| record.power_mw().unwrap_or(f64::NAN)),
        )
        .better(Better::Less)
        .page("radio power", Format::Milliwatts(3)),
    ],
};
