//! Statements in RCOAP21's text, their implications, and its contradictions.

use super::super::measured_campaign::MeasuredCampaign;
use super::super::statement::Statement;
use super::cells::{
    BY_THE_CLOCK, BY_THE_RATE, DISCOVERING, ESTIMATION, FOUR_LOST, HIGH_START, HIGH_START_FREE,
    INTERVALS, LOSING, LOW_START, NARROW, NO_START, ONE_LOST, OTHERS, OVERHEAD, RCOAP, RCOAP_16K,
    RCOAP_BESIDE_TCP, RCOAP_OF_ANY_LOAD, RISING, Settings, TCP_BY_THE_CLOCK, TCP_BY_THE_RATE,
    TWO_LOST, UNBOUNDED, compared, find, flows,
};
use super::rates::{self, RateFall};
use ebbtide_sim::result::{FlowCell, FlowSeries};
use ebbtide_sim::scenario::units::Time;

/// The size of a message on the wire, bytes.
const MESSAGE: f64 = 106.0;
/// The size of a ping on the wire: IPv4 20, UDP 8, CoAP's header 4 bytes. The paper's ping takes
/// 41.
const PING: f64 = 32.0;
/// When the flows start, and the end of the runs, s.
const STARTS: [f64; 3] = [0.0, 3.0, 5.0];
const END: f64 = 50.0;

/// All statements whose cells are available.
pub(in super::super) fn check(measured: MeasuredCampaign<'_>) -> Vec<Statement> {
    let mut all = Vec::new();
    estimation(measured, &mut all);
    losses(measured, &mut all);
    three_flows(measured, &mut all);
    background(measured, &mut all);
    load(measured, &mut all);
    contradictions(measured, &mut all);
    all
}

fn push(all: &mut Vec<Statement>, says: &str, measured: String, holds: bool) {
    all.push(Statement { says: says.to_owned(), measured, holds });
}

fn kbit(rate: f64) -> f64 {
    rate * MESSAGE * 8.0 / 1000.0
}

fn series<'r>(
    measured: MeasuredCampaign<'r>,
    settings: Settings,
    cc: &str,
) -> Option<&'r FlowSeries> {
    find(measured, settings, cc)?.cell.series.first()?.flows.first()
}

/// The share of a flow's bytes on the wire that are pings.
pub(super) fn overhead(cell: &FlowCell) -> f64 {
    let sum = |field: fn(&ebbtide_sim::result::FlowFigures) -> f64| -> f64 {
        cell.flows.iter().map(field).sum()
    };
    let (pings, messages) =
        (sum(|flow| flow.probes), sum(|flow| flow.sent) + sum(|flow| flow.retransmissions));
    pings * PING / (pings * PING + messages * MESSAGE)
}

/// The largest number of packets that IPI_min lets a flow send until the end.
pub(super) fn most_packets(cc: &str, flow: usize) -> Option<f64> {
    let least = cc.split(':').find_map(|part| part.strip_prefix("ipi-min="))?;
    let least = Time::parse(least)?.0 as f64 / 1e9;
    Some(((END - STARTS.get(flow)?) / least).floor())
}

fn estimation(measured: MeasuredCampaign<'_>, all: &mut Vec<Statement>) {
    let first = |settings, cc| series(measured, settings, cc).and_then(rates::initial).map(kbit);
    let near = |rate: f64, wanted: f64| (rate / wanted - 1.0).abs() <= 0.05;
    if let Some(rate) = first(ESTIMATION, HIGH_START) {
        push(
            all,
            "high start rate, R_start 180 kbit/s of which 160 are allowed: messages begin at the \
             allowed rate",
            format!("at {rate:.1} kbit/s"),
            near(rate, 160.0),
        );
    }
    if let Some(flow) = series(measured, ESTIMATION, LOW_START)
        && let Some(rate) = rates::initial(flow).map(kbit)
    {
        let reached = rates::time_to(flow, 160_000.0 / (MESSAGE * 8.0));
        let then = match reached {
            Some(time) => format!("reaches 160 after {time:.0} s"),
            None => "does not reach 160 in 50 s".to_owned(),
        };
        push(
            all,
            "low start rate, R_start 16 kbit/s: messages begin at it, and the rate rises by one \
             packet per RTT in each RTT",
            format!("begins at {rate:.1} kbit/s and {then}"),
            near(rate, 16.0),
        );
    }
    if let Some(rate) = first(NARROW, NO_START) {
        push(
            all,
            "nothing given, bottleneck 160 kbit/s: messages begin within 5 % of its rate",
            format!("at {rate:.1} kbit/s"),
            near(rate, 160.0),
        );
    }
    if let Some(rate) = first(NARROW, HIGH_START_FREE) {
        push(
            all,
            "R_start 180 kbit/s, bottleneck 160 kbit/s: counting the answers for two RTTs finds \
             the bottleneck's rate",
            format!(
                "messages begin at {rate:.1} kbit/s: pings at the rate of messages of 180 kbit/s \
                 are {:.0} kbit/s, which the bottleneck passes",
                180.0 * PING / MESSAGE
            ),
            near(rate, 160.0),
        );
    }
    if let Some(free) = flows(measured, OVERHEAD, DISCOVERING)
        && let Some(fixed) = flows(measured, OVERHEAD, RCOAP_16K)
    {
        let (free, fixed) = (free.throughput_bps.0 / 1e3, fixed.throughput_bps.0 / 1e3);
        push(
            all,
            "discovery pays: more throughput than at a fixed rate on 25 kbit/s",
            format!(
                "{free:.1} against {fixed:.1} kbit/s, {:+.0} %; the fixed rate of the paper's \
                 + 10 % is not given, here it is the 16 kbit/s of its flows",
                100.0 * (free / fixed - 1.0)
            ),
            free > fixed,
        );
    }
    if let Some(cell) = find(measured, OVERHEAD, UNBOUNDED)
        && let Some(flows) = &cell.cell.flows
    {
        let unnecessary: f64 = flows.flows.iter().map(|flow| flow.unnecessary).sum();
        push(
            all,
            "without a bound on the rate, too: it settles at what 25 kbit/s carry",
            format!(
                "{:.1} kbit/s: a rate that rises until something happens fills the buffer (RTT up \
                 to {:.1} s), timeouts take that for loss ({unnecessary:.0} needless \
                 retransmissions), and the rate is halved each time",
                flows.throughput_bps.0 / 1e3,
                cell.cell.spread("rtt_s").max
            ),
            flows.throughput_bps.0 >= 0.95 * 25_000.0,
        );
    }
}

fn losses(measured: MeasuredCampaign<'_>, all: &mut Vec<Statement>) {
    let halved = |fall: &RateFall| (fall.after / fall.before - 0.5).abs() < 0.02;
    let rtt = |settings, cc| find(measured, settings, cc).map(|result| result.cell.number("rtt_s"));
    for cc in [LOSING, RISING] {
        if let Some(fall) = series(measured, ONE_LOST, cc).and_then(rates::fall)
            && let Some(rtt) = rtt(ONE_LOST, cc)
        {
            let back = match fall.restored {
                Some(time) => format!("restored after {time:.2} s"),
                None => "not restored".to_owned(),
            };
            push(
                all,
                &format!("one packet lost ({cc}): the rate is halved and restored within an RTT"),
                format!(
                    "{:.2} to {:.2} messages/s, {back}; RTT {rtt:.2} s",
                    fall.before, fall.after
                ),
                halved(&fall) && fall.restored.is_some_and(|time| time <= 1.1 * rtt),
            );
        }
        for (lost, settings) in [("two", TWO_LOST), ("four", FOUR_LOST)] {
            if let Some(flow) = series(measured, settings, cc)
                && let Some(fall) = rates::fall(flow)
                && let Some(rtt) = rtt(settings, cc)
            {
                kept_down(all, lost, cc, flow, &fall, rtt, halved(&fall));
            }
        }
    }
}

fn kept_down(
    all: &mut Vec<Statement>,
    lost: &str,
    cc: &str,
    flow: &FlowSeries,
    fall: &RateFall,
    rtt: f64,
    halved: bool,
) {
    let Some((lowest, steps)) = rates::rise(flow, fall) else { return };
    let until = match fall.restored {
        Some(time) => format!("back after {time:.2} s"),
        None => "never back".to_owned(),
    };
    push(
        all,
        &format!("{lost} packets in a row lost ({cc}): the rate is halved and stays down"),
        format!(
            "{:.2} to {:.2} messages/s, down to {lowest:.2}, {until}; RTT {rtt:.2} s",
            fall.before, fall.after
        ),
        halved && fall.restored.is_none_or(|time| time > 1.1 * rtt),
    );
    // A single step may have been cut off by the limit.
    if steps.len() > 1 {
        let mean = steps.iter().sum::<f64>() / steps.len() as f64;
        push(
            all,
            &format!("after {lost} lost ({cc}): up by one packet per RTT in each RTT"),
            format!(
                "{} steps of {mean:.2} messages/s on average, 1/RTT is {:.2}",
                steps.len(),
                1.0 / rtt
            ),
            (mean * rtt - 1.0).abs() < 0.1,
        );
    }
}

fn three_flows(measured: MeasuredCampaign<'_>, all: &mut Vec<Statement>) {
    let Some(own) = compared(measured, RCOAP) else { return };
    push(
        all,
        "three flows: they share evenly",
        format!("Jain's index {:.4} from {:.0} s on", own.jain.0, own.fair_from_s),
        own.jain.0 >= 0.98,
    );
    push(
        all,
        "three flows: rcoap makes no retransmission",
        format!("{:.1}", own.retransmissions.0),
        own.retransmissions.0 == 0.0 && own.loss.0 == 0.0,
    );
    let others: Vec<f64> =
        OTHERS.iter().filter_map(|cc| Some(compared(measured, cc)?.delivered.0)).collect();
    let best = others.iter().copied().fold(0.0, f64::max);
    if best > 0.0 {
        let more = 100.0 * (own.delivered.0 / best - 1.0);
        push(
            all,
            "three flows: rcoap delivers more than default, cocoa and cocoa-plus (+35 % in rate)",
            format!(
                "{:.0} against at most {best:.0}, {more:+.0} %; one every 400 ms against one every \
                 500 ms allows +25 %",
                own.delivered.0
            ),
            more > 0.0,
        );
    }
}

fn background(measured: MeasuredCampaign<'_>, all: &mut Vec<Statement>) {
    let delivered = |settings, cc| Some(flows(measured, settings, cc)?.flows.first()?.delivered);
    let Some(own) = delivered(TCP_BY_THE_RATE, RCOAP_BESIDE_TCP) else { return };
    let others: Vec<(f64, &str)> =
        OTHERS.iter().filter_map(|cc| Some((delivered(TCP_BY_THE_CLOCK, cc)?, *cc))).collect();
    let best = others.iter().map(|(packets, _)| *packets).fold(0.0, f64::max);
    let each: Vec<String> =
        others.iter().map(|(packets, cc)| format!("{cc} {packets:.0}")).collect();
    if others.is_empty() {
        return;
    }
    push(
        all,
        "beside TCP: rcoap delivers at least twice the packets of the others (216 against 54 to 81)",
        format!("rcoap {own:.0}, {}: {:.2} times", each.join(", "), own / best),
        own >= 2.0 * best,
    );
    push(
        all,
        "beside TCP: the others deliver 54 to 81 packets of the 100 that are offered",
        format!("{}: one at a time, each within the RTT that is measured below", each.join(", ")),
        others.iter().all(|(packets, _)| (54.0..=81.0).contains(packets)),
    );
    if let Some(cell) = find(measured, TCP_BY_THE_RATE, RCOAP_BESIDE_TCP) {
        let rtt = cell.cell.number("rtt_s");
        push(
            all,
            "beside TCP: the RTT is about 500 ms",
            format!("{:.0} ms (median)", 1e3 * rtt),
            (0.4..=0.6).contains(&rtt),
        );
    }
}

fn load(measured: MeasuredCampaign<'_>, all: &mut Vec<Statement>) {
    let lost = |cc: &str| -> Option<Vec<(f64, f64)>> {
        let cells = INTERVALS.iter().map(|interval| {
            let cell = find(measured, &[("interval", interval)], cc)?;
            let flows = cell.cell.flows.as_ref()?;
            let offered: f64 = flows.flows.iter().map(|flow| flow.offered).sum();
            Some((flows.loss.0, 1.0 - flows.delivered.0 / offered))
        });
        cells.collect()
    };
    let Some(own) = lost(RCOAP_OF_ANY_LOAD) else { return };
    let most = |list: &[(f64, f64)]| list.iter().map(|(lost, _)| *lost).fold(0.0, f64::max);
    let at_most: Vec<String> = OTHERS
        .iter()
        .filter_map(|cc| {
            let list = lost(cc)?;
            let last = list.last()?.1;
            Some(format!("{cc} {:.1} % and {:.0} %", 100.0 * most(&list), 100.0 * last))
        })
        .collect();
    let last = own.last().map_or(f64::NAN, |(_, undelivered)| *undelivered);
    push(
        all,
        "loss ratio against offered load, one message per 5 s to one per 10 ms: low under rcoap",
        format!(
            "transmissions lost at the worst load, and messages offered every 10 ms that were not \
             delivered: rcoap {:.1} % and {:.0} %, {}",
            100.0 * most(&own),
            100.0 * last,
            at_most.join(", ")
        ),
        most(&own) < 0.05,
    );
}

/// Figures of the paper that do not follow from its own description.
fn contradictions(measured: MeasuredCampaign<'_>, all: &mut Vec<Statement>) {
    const PACKETS: [f64; 3] = [137.0, 129.0, 123.0];
    const OTHER_PACKETS: [f64; 3] = [50.0, 47.0, 45.0];
    let throughput = PACKETS[0] * MESSAGE * 8.0 / END / 1000.0;
    push(
        all,
        "the paper against itself: the throughput of its first flow is 23.24 kbit/s",
        format!(
            "its {} packets of {MESSAGE} bytes in {END} s are {throughput:.2} kbit/s, a tenth",
            PACKETS[0]
        ),
        (throughput / 23.24 - 1.0).abs() < 0.05,
    );
    let bounds: Vec<f64> = (0..3).filter_map(|flow| most_packets(RCOAP, flow)).collect();
    let words =
        |list: &[f64]| list.iter().map(|n| format!("{n:.0}")).collect::<Vec<_>>().join(", ");
    push(
        all,
        "the paper against itself: 137, 129 and 123 packets with at most one every 400 ms",
        format!(
            "that allows {} at most; they are one every 365 ms, and fit no IPI_min that is given",
            words(&bounds)
        ),
        PACKETS.iter().zip(&bounds).all(|(packets, most)| packets <= most),
    );
    if let Some(cell) = compared(measured, OTHERS[0]) {
        let delivered: Vec<f64> = cell.flows.iter().map(|flow| flow.delivered).collect();
        let offered: Vec<f64> = cell.flows.iter().map(|flow| flow.offered).collect();
        push(
            all,
            "the paper against itself: 50, 47 and 45 packets of plain CoAP, offered one every 500 ms",
            format!(
                "{} are offered in that time, and the idle path, whose RTT is a quarter of the \
                 interval, delivers {}; the paper's are exactly one per second",
                words(&offered),
                words(&delivered)
            ),
            OTHER_PACKETS.iter().zip(&delivered).all(|(a, b)| (a / b - 1.0).abs() < 0.1),
        );
    }
    let rexmits: Vec<f64> = OTHERS
        .iter()
        .filter_map(|cc| Some(flows(measured, BY_THE_CLOCK, cc)?.retransmissions.0))
        .collect();
    if !rexmits.is_empty() {
        let most = rexmits.iter().copied().fold(0.0, f64::max);
        push(
            all,
            "the paper against itself: 43 retransmissions of a control other than RCOAP, on a path \
             of 1 Mbit/s that carries 5 kbit/s",
            format!("at most {most:.1} here; nothing in the description explains one"),
            most >= 43.0,
        );
    }
    if let Some(cell) = flows(measured, BY_THE_RATE, RCOAP_16K) {
        let packets: Vec<f64> = cell.flows.iter().map(|flow| flow.delivered).collect();
        push(
            all,
            "the paper against itself: the three flows start at 16 kbit/s each, and at one message \
             every 500 ms",
            format!(
                "16 kbit/s are one every 53 ms; at that rate {} packets arrive",
                words(&packets)
            ),
            PACKETS.iter().zip(&packets).all(|(a, b)| (a / b - 1.0).abs() < 0.1),
        );
    }
}
