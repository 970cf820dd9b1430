//! The figures of a cell of NB-IoT: random access, summed over replications, and what devices spend.

use crate::medium::nb_iot::{NbIotCounts, NbIotTimes};
use crate::record::RunRecord;
use crate::result::metric::{Better, Format, Group, Metric, Unit};
use crate::result::model::Cell;

fn counts(record: &RunRecord) -> Option<NbIotCounts> {
    record.totals.nb_iot
}

/// A count as a share of the preambles.
fn of_preambles(cell: &Cell, part: &str) -> f64 {
    cell.number(part) / cell.number("nb_iot.preambles").max(1.0)
}

/// The share of the time of all devices.
fn of_time(record: &RunRecord, time: fn(&NbIotTimes) -> u64, counts: &NbIotCounts) -> f64 {
    let all = record.totals.sim_ns.max(1) as f64 * record.clients.len().max(1) as f64;
    time(&counts.times) as f64 / all
}

/// The table.
pub static NB_IOT: Group = Group {
    key: "nb_iot",
    name: "NB-IoT",
    title: "NB-IoT cell",
    note: "Random accesses and preambles, summed over replications. Collided: met another one on its \
           subcarrier. Missed: not heard by the network. These are shares of the preambles. Access: the mean time from \
           the first preamble to the connection. Then the shares of the devices’ time, and the mean power of a \
           device’s radio.",
    terminal_title: "NB-IoT cell",
    terminal_note: "",
    metrics: &[
        Metric::measured("nb_iot.accesses", "Random accesses that began.", Unit::Count, |s| {
            s.sum(counts, |all| all.accesses)
        })
        .page("accesses", Format::Count)
        .terminal("accesses", 10, Format::Count),
        Metric::measured(
            "nb_iot.paged",
            "Random accesses that the network had asked for by paging.",
            Unit::Count,
            |s| s.sum(counts, |all| all.paged),
        )
        .page("paged", Format::Count),
        Metric::measured("nb_iot.preambles", "Preambles.", Unit::Count, |s| {
            s.sum(counts, |all| all.preambles)
        })
        .page("preambles", Format::Count),
        Metric::measured(
            "nb_iot.collided",
            "Preambles that met another one on their subcarrier.",
            Unit::Count,
            |s| s.sum(counts, |all| all.collided),
        ),
        Metric::derived("nb_iot.collided_share", "Their share.", Unit::Share, |cell| {
            of_preambles(cell, "nb_iot.collided")
        })
        .better(Better::Less)
        .page("collided", Format::Percent(1))
        .terminal("collided", 11, Format::Percent(1)),
        Metric::measured(
            "nb_iot.missed",
            "Preambles that the network did not hear although nothing collided.",
            Unit::Count,
            |s| s.sum(counts, |all| all.missed),
        ),
        Metric::derived("nb_iot.missed_share", "Their share.", Unit::Share, |cell| {
            of_preambles(cell, "nb_iot.missed")
        })
        .better(Better::Less)
        .page("missed", Format::Percent(1)),
        Metric::measured(
            "nb_iot.raised",
            "Random accesses that went on at the next coverage level.",
            Unit::Count,
            |s| s.sum(counts, |all| all.raised),
        )
        .better(Better::Less)
        .page("level raised", Format::Count),
        Metric::measured(
            "nb_iot.given_up",
            "Random accesses that were given up, with the packets that waited for them.",
            Unit::Count,
            |s| s.sum(counts, |all| all.given_up),
        )
        .better(Better::Less)
        .page("given up", Format::Count)
        .terminal("given up", 10, Format::Count),
        Metric::measured(
            "nb_iot.access_s",
            "Mean time from the beginning of a random access to its connection.",
            Unit::Seconds,
            |s| {
                s.mean_of(counts, |_, one| {
                    one.access_ns as f64 / 1e9 / one.connections.max(1) as f64
                })
            },
        )
        .better(Better::Less)
        .page("access (s)", Format::Brief)
        .terminal("access, s", 11, Format::Brief),
        Metric::measured(
            "nb_iot.overflows",
            "Packets for which the queue of a device, or that in the network, was full.",
            Unit::Count,
            |s| s.sum(counts, |all| all.overflows[0] + all.overflows[1]),
        )
        .better(Better::Less)
        .page("dropped", Format::Count),
        Metric::measured(
            "nb_iot.sending_share",
            "Share of the time for which a device transmits, mean over devices.",
            Unit::Share,
            |s| {
                s.mean_of(counts, |record, one| of_time(record, |times| times.transmit_ns, one))
            },
        )
        .better(Better::Less)
        .page("device sends", Format::Percent(2)),
        Metric::measured(
            "nb_iot.listening_share",
            "Share of the time for which a device listens in a random access or with a connection, mean over devices.",
            Unit::Share,
            |s| s.mean_of(counts, |record, one| of_time(record, |times| times.listen_ns, one)),
        )
        .better(Better::Less)
        .page("listens", Format::Percent(2)),
        Metric::measured(
            "nb_iot.power_mw",
            "Mean power of a device's radio.",
            Unit::Milliwatts,
            |s| s.mean_of(counts, |record, _| record.power_mw().unwrap_or(f64::NAN)),
        )
        .better(Better::Less)
        .page("radio power", Format::Milliwatts(3))
        .terminal("radio power", 13, Format::Milliwatts(3)),
    ],
};
