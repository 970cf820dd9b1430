//! The figures of a LoRaWAN cell: its frames, summed over replications, and the time on the air.

use crate::medium::lora::LoraFrames;
use crate::record::RunRecord;
use crate::result::figures::Value;
use crate::result::metric::{Better, Format, Group, Metric, Unit};
use crate::result::model::Cell;
use crate::result::sample::Replications;

fn count(record: &RunRecord, field: fn(&LoraFrames) -> u64) -> Option<u64> {
    record.totals.lora.map(|lora| field(&lora.frames))
}

/// The frames of all replications in first and second windows, or of devices and the gateway.
fn pair(sample: &Replications<'_>, field: fn(&LoraFrames) -> [u64; 2]) -> Option<Value> {
    let runs = sample.records.iter().filter_map(|run| run.totals.lora);
    let sum = runs.map(|one| field(&one.frames));
    let sum = sum.reduce(|sum, one| [sum[0] + one[0], sum[1] + one[1]])?;
    Some(Value::Counts(sum.to_vec()))
}

/// The time of a replication, ns.
fn duration(record: &RunRecord) -> f64 {
    record.totals.sim_ns.max(1) as f64
}

fn uplinks(cell: &Cell) -> f64 {
    cell.number("lora.uplinks")
}

/// The frames both ways.
fn all_frames(cell: &Cell) -> f64 {
    uplinks(cell) + both(cell, "lora.downlinks")
}

fn both(cell: &Cell, name: &str) -> f64 {
    cell.counts(name).iter().sum::<u64>() as f64
}

/// The downlinks in first windows, or in second ones.
fn in_window(cell: &Cell, window: usize) -> f64 {
    cell.counts("lora.downlinks").get(window).copied().unwrap_or(0) as f64
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
        Metric::count("lora.uplinks", "Frames that devices sent.", |run| {
            count(run, |all| all.uplinks)
        })
        .page("uplinks", Format::Count),
        Metric::count(
            "lora.polls",
            "Uplinks without a packet: they ask for an announced one, or answer a request.",
            |run| count(run, |all| all.polls),
        )
        .share_of(uplinks)
        .page("empty", Format::Percent(1)),
        Metric::count(
            "lora.collided",
            "Uplinks that no gateway read because they met another one on their channel.",
            |run| count(run, |all| all.collided),
        )
        .share_of(uplinks)
        .better(Better::Less)
        .page("collided", Format::Percent(1)),
        Metric::count("lora.deaf", "Uplinks that no gateway read because it transmitted.", |run| {
            count(run, |all| all.deaf)
        })
        .share_of(uplinks)
        .better(Better::Less)
        .page("gateway deaf", Format::Percent(1)),
        Metric::count(
            "lora.faded",
            "Frames that could not be read for another reason, both ways.",
            |run| count(run, |all| all.faded),
        )
        .share_of(all_frames)
        .better(Better::Less)
        .page("unreadable", Format::Percent(1)),
        Metric::count("lora.weak", "Frames that were too weak, both ways.", |run| {
            count(run, |all| all.weak)
        })
        .share_of(all_frames)
        .better(Better::Less)
        .page("too weak", Format::Percent(1)),
        Metric::average(
            "lora.spreading_factor",
            "Mean spreading factor of the uplinks.",
            Unit::Ratio,
            |run| {
                let all = run.totals.lora?;
                Some(all.spreading_factors as f64 / all.frames.uplinks.max(1) as f64)
            },
        )
        .page("SF", Format::Fixed(2)),
        Metric::count(
            "lora.adapted",
            "Requests of the adaptive data rate that reached their device.",
            |run| count(run, |all| all.adapted),
        )
        .page("adapted", Format::Count),
        Metric::measured(
            "lora.downlinks",
            "Frames that gateways sent in first and in second windows.",
            Unit::Count,
            |s| pair(s, |all| all.downlinks),
        ),
        Metric::derived("lora.window_1", "Those in first windows.", Unit::Count, |cell| {
            in_window(cell, 0)
        })
        .page("window 1", Format::Count),
        Metric::derived("lora.window_2", "Those in second windows.", Unit::Count, |cell| {
            in_window(cell, 1)
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
            let carried = uplinks(cell) - cell.number("lora.polls").min(uplinks(cell));
            dropped / (carried + both(cell, "lora.downlinks") + dropped).max(1.0)
        })
        .better(Better::Less)
        .page("dropped", Format::Percent(1)),
        Metric::average(
            "lora.device_share",
            "Share of the time for which a device transmitted, mean over devices.",
            Unit::Share,
            |run| {
                let sent = run.totals.lora?.radio.transmit_ns as f64;
                Some(sent / run.clients.len().max(1) as f64 / duration(run))
            },
        )
        .better(Better::Less)
        .page("device sends", Format::Percent(2)),
        Metric::average(
            "lora.gateway_share",
            "Share of the time for which a gateway transmitted, mean over gateways.",
            Unit::Share,
            |run| {
                let all = run.totals.lora?;
                let ns = duration(run) * f64::from(all.gateways.max(1));
                Some(all.downlink_ns.iter().sum::<u64>() as f64 / ns)
            },
        )
        .page("gateway sends", Format::Percent(1)),
        Metric::average(
            "lora.power_mw",
            "Mean power of a device's radio.",
            Unit::Milliwatts,
            |run| run.totals.lora.and_then(|_| run.power_mw()),
        )
        .better(Better::Less)
        .page("radio power", Format::Milliwatts(3)),
    ],
};
