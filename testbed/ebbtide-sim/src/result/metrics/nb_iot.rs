//! The figures of a cell of NB-IoT: random access, summed over replications, and what devices spend.

use crate::medium::nb_iot::{NbIotCounts, NbIotTimes};
use crate::record::RunRecord;
use crate::result::metric::{Better, Format, Group, Metric, Unit};
use crate::result::model::Cell;

fn count(record: &RunRecord, field: fn(&NbIotCounts) -> u64) -> Option<u64> {
    record.totals.nb_iot.as_ref().map(field)
}

fn preambles(cell: &Cell) -> f64 {
    cell.number("nb_iot.preambles")
}

/// The share of the time of all devices.
fn of_time(record: &RunRecord, time: fn(&NbIotTimes) -> u64) -> Option<f64> {
    let all = record.totals.sim_ns.max(1) as f64 * record.clients.len().max(1) as f64;
    Some(time(&record.totals.nb_iot?.times) as f64 / all)
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
        Metric::count("nb_iot.accesses", "Random accesses that began.", |run| {
            count(run, |all| all.accesses)
        })
        .page("accesses", Format::Count)
        .terminal("accesses", 10, Format::Count),
        Metric::count(
            "nb_iot.paged",
            "Random accesses that the network had asked for by paging.",
            |run| count(run, |all| all.paged),
        )
        .page("paged", Format::Count),
        Metric::count("nb_iot.preambles", "Preambles.", |run| count(run, |all| all.preambles))
            .page("preambles", Format::Count),
        Metric::count(
            "nb_iot.collided",
            "Preambles that met another one on their subcarrier.",
            |run| count(run, |all| all.collided),
        )
        .share_of(preambles)
        .better(Better::Less)
        .page("collided", Format::Percent(1))
        .terminal("collided", 11, Format::Percent(1)),
        Metric::count(
            "nb_iot.missed",
            "Preambles that the network did not hear although nothing collided.",
            |run| count(run, |all| all.missed),
        )
        .share_of(preambles)
        .better(Better::Less)
        .page("missed", Format::Percent(1)),
        Metric::count(
            "nb_iot.raised",
            "Random accesses that went on at the next coverage level.",
            |run| count(run, |all| all.raised),
        )
        .better(Better::Less)
        .page("level raised", Format::Count),
        Metric::count(
            "nb_iot.given_up",
            "Random accesses that were given up, with the packets that waited for them.",
            |run| count(run, |all| all.given_up),
        )
        .better(Better::Less)
        .page("given up", Format::Count)
        .terminal("given up", 10, Format::Count),
        Metric::average(
            "nb_iot.access_s",
            "Mean time from the beginning of a random access to its connection.",
            Unit::Seconds,
            |run| {
                let all = run.totals.nb_iot?;
                Some(all.access_ns as f64 / 1e9 / all.connections.max(1) as f64)
            },
        )
        .better(Better::Less)
        .page("access (s)", Format::Brief)
        .terminal("access, s", 11, Format::Brief),
        Metric::count(
            "nb_iot.overflows",
            "Packets for which the queue of a device, or that in the network, was full.",
            |run| count(run, |all| all.overflows[0] + all.overflows[1]),
        )
        .better(Better::Less)
        .page("dropped", Format::Count),
        Metric::average(
            "nb_iot.sending_share",
            "Share of the time for which a device transmits, mean over devices.",
            Unit::Share,
            |run| of_time(run, |times| times.transmit_ns),
        )
        .better(Better::Less)
        .page("device sends", Format::Percent(2)),
        Metric::average(
            "nb_iot.listening_share",
            "Share of the time for which a device listens in a random access or with a connection, mean over devices.",
            Unit::Share,
            |run| of_time(run, |times| times.listen_ns),
        )
        .better(Better::Less)
        .page("listens", Format::Percent(2)),
        Metric::average(
            "nb_iot.power_mw",
            "Mean power of a device's radio.",
            Unit::Milliwatts,
            |run| run.totals.nb_iot.and_then(|_| run.power_mw()),
        )
        .better(Better::Less)
            .page("radio power", Format::Milliwatts(3))
            .terminal("radio power", 13, Format::Milliwatts(3)),
    ],
};
