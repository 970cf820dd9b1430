//! The figures of a Wi-Fi cell, summed over stations and replications.

use crate::record::{RunRecord, StationRecord};
use crate::result::figures::Value;
use crate::result::metric::{Better, Format, Group, Metric, Unit};
use crate::result::model::Cell;

fn stations(record: &RunRecord) -> Option<StationRecord> {
    record.totals.wifi.as_ref().map(|wifi| wifi.total())
}

fn count(record: &RunRecord, field: fn(&StationRecord) -> u64) -> Option<u64> {
    stations(record).as_ref().map(field)
}

fn transmissions(cell: &Cell) -> f64 {
    cell.number("wifi.transmitted")
}

/// The table.
pub static WIFI: Group = Group {
    key: "wifi",
    name: "Wi-Fi",
    title: "Wi-Fi cell",
    note: "Summed over stations and replications. Dropped: the station’s queue was full. Given up: \
           not acknowledged after all retries. Shares are of transmissions. Busy: share of the \
           time something was on the air.",
    terminal_title: "Wi-Fi cell",
    terminal_note: "",
    metrics: &[
        Metric::count("wifi.packets", "Packets that were to be sent.", |run| {
            count(run, |all| all.frames.accepted + all.overflows)
        })
        .page("packets", Format::Count)
        .terminal("packets", 10, Format::Count),
        Metric::count("wifi.overflows", "Packets for which a queue was full.", |run| {
            count(run, |all| all.overflows)
        })
        .better(Better::Less)
        .page("dropped", Format::Count)
        .terminal("dropped", 9, Format::Count),
        Metric::count(
            "wifi.given_up",
            "Packets that were not acknowledged after all retries; some of them arrived.",
            |run| count(run, |all| all.frames.no_ack),
        )
        .better(Better::Less)
        .page("given up", Format::Count)
        .terminal("given up", 10, Format::Count),
        Metric::count(
            "wifi.transmitted",
            "Transmissions, repetitions included, acknowledgements not.",
            |run| count(run, |all| all.frames.transmitted),
        )
        .page("transmissions", Format::Count),
        Metric::count("wifi.collided", "Transmissions lost to another one.", |run| {
            count(run, |all| all.frames.collided + all.frames.deaf)
        })
        .share_of(transmissions)
        .better(Better::Less)
        .page("collided", Format::Percent(1))
        .terminal("collided", 11, Format::Percent(1)),
        Metric::count(
            "wifi.faded",
            "Transmissions that could not be read though nothing collided with them.",
            |run| count(run, |all| all.frames.faded),
        )
        .share_of(transmissions)
        .better(Better::Less)
        .page("unreadable", Format::Percent(1))
        .terminal("unreadable", 12, Format::Percent(1)),
        Metric::count("wifi.acks_lost", "Lost acknowledgements.", |run| {
            count(run, |all| all.frames.acks_lost)
        })
        .share_of(transmissions)
        .better(Better::Less)
        .page("ACKs lost", Format::Percent(1)),
        Metric::measured(
            "wifi.peak_queue",
            "The most packets that waited in a station.",
            Unit::Count,
            |s| {
                let peaks = s.records.iter().filter_map(stations).map(|all| all.peak_queue);
                peaks.max().map(|peak| Value::Count(peak.into()))
            },
        )
        .page("longest queue", Format::Count),
        Metric::average(
            "wifi.busy",
            "Share of the time that something was on the air.",
            Unit::Share,
            |run| {
                // What is still in a queue when the last client is done counts no more.
                let busy = run.totals.wifi.as_ref()?.busy_ns as f64;
                Some((busy / run.totals.done_ns.max(1) as f64).min(1.0))
            },
        )
        .page("busy", Format::Percent(1))
        .terminal("busy", 8, Format::Percent(1)),
    ],
};
