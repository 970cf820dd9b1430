//! The figures of a Wi-Fi cell, summed over stations and replications.

use crate::record::{RunRecord, StationRecord};
use crate::result::figures::Value;
use crate::result::metric::{Better, Format, Group, Metric, Unit};
use crate::result::model::Cell;

fn stations(record: &RunRecord) -> Option<StationRecord> {
    record.totals.wifi.as_ref().map(|wifi| wifi.total())
}

/// A count as a share of the transmissions.
fn share(cell: &Cell, part: &str) -> f64 {
    cell.number(part) / cell.number("wifi.transmitted").max(1.0)
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
        Metric::measured("wifi.packets", "Packets that were to be sent.", Unit::Count, |s| {
            s.sum(stations, |all| all.frames.accepted + all.overflows)
        })
        .page("packets", Format::Count)
        .terminal("packets", 10, Format::Count),
        Metric::measured(
            "wifi.overflows",
            "Packets for which a queue was full.",
            Unit::Count,
            |s| s.sum(stations, |all| all.overflows),
        )
        .better(Better::Less)
        .page("dropped", Format::Count)
        .terminal("dropped", 9, Format::Count),
        Metric::measured(
            "wifi.given_up",
            "Packets that were not acknowledged after all retries; some of them arrived.",
            Unit::Count,
            |s| s.sum(stations, |all| all.frames.no_ack),
        )
        .better(Better::Less)
        .page("given up", Format::Count)
        .terminal("given up", 10, Format::Count),
        Metric::measured(
            "wifi.transmitted",
            "Transmissions, repetitions included, acknowledgements not.",
            Unit::Count,
            |s| s.sum(stations, |all| all.frames.transmitted),
        )
        .page("transmissions", Format::Count),
        Metric::measured("wifi.collided", "Transmissions lost to another one.", Unit::Count, |s| {
            s.sum(stations, |all| all.frames.collided + all.frames.deaf)
        }),
        Metric::derived("wifi.collided_share", "Their share.", Unit::Share, |cell| {
            share(cell, "wifi.collided")
        })
        .better(Better::Less)
        .page("collided", Format::Percent(1))
        .terminal("collided", 11, Format::Percent(1)),
        Metric::measured(
            "wifi.faded",
            "Transmissions that could not be read though nothing collided with them.",
            Unit::Count,
            |s| s.sum(stations, |all| all.frames.faded),
        ),
        Metric::derived("wifi.faded_share", "Their share.", Unit::Share, |cell| {
            share(cell, "wifi.faded")
        })
        .better(Better::Less)
        .page("unreadable", Format::Percent(1))
        .terminal("unreadable", 12, Format::Percent(1)),
        Metric::measured("wifi.acks_lost", "Lost acknowledgements.", Unit::Count, |s| {
            s.sum(stations, |all| all.frames.acks_lost)
        }),
        Metric::derived("wifi.acks_lost_share", "Their share.", Unit::Share, |cell| {
            share(cell, "wifi.acks_lost")
        })
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
        Metric::measured(
            "wifi.busy",
            "Share of the time that something was on the air.",
            Unit::Share,
            |s| {
                // What is still in a queue when the last client is done counts no more.
                let part =
                    |record: &RunRecord| record.totals.wifi.as_ref().map(|wifi| wifi.busy_ns);
                s.mean_of(part, |record, busy| {
                    (*busy as f64 / record.totals.done_ns.max(1) as f64).min(1.0)
                })
            },
        )
        .page("busy", Format::Percent(1))
        .terminal("busy", 8, Format::Percent(1)),
    ],
};
