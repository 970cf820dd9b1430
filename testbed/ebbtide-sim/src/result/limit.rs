//! The bounds of a network: the time that no schedule beats, and the capacity of its link.

use super::cell_spec::CellSpec;
use super::classes;
use super::wire::wire_lengths;
use crate::judge::Demand;
use crate::net::Direction;
use crate::record::RunRecord;
use crate::scenario::{Control, LinkSpec, Scenario, Transport, Wifi};

/// The time before which no schedule finishes the last client, in seconds: the longest of pushing
/// all responses (or all requests) through the bottleneck, of both over the channel of a Wi-Fi cell
/// without a collision or a backoff, and of as many idle round trips, of mean
/// delay, as a client has requests.
/// Zero for a workload whose time is its own, and in a low-power network, where the number
/// of transmissions is a matter of luck.
pub fn physical_limit_s(spec: &CellSpec) -> f64 {
    if has_parts(&spec.scenario) {
        classes::limit_s(spec, limit_alone_s)
    } else {
        limit_alone_s(spec)
    }
}

/// Whether a scenario is more than one class at one bottleneck.
const fn has_parts(scenario: &Scenario) -> bool {
    !scenario.class.is_empty() || !scenario.link.is_empty()
}

/// The physical limit of one class that has the bottleneck for itself, s.
fn limit_alone_s(spec: &CellSpec) -> f64 {
    let scenario = &spec.scenario;
    let w = &scenario.workload;
    if w.keeps_time() || scenario.network.mesh().is_some() {
        return 0.0;
    }
    let n = &scenario.network;
    let lengths: Vec<(f64, f64)> =
        spec.controls.iter().map(|control| wire_lengths(scenario, control.transport())).collect();
    // Clients take the controls in turn.
    let average = |field: fn(&(f64, f64)) -> f64| {
        lengths.iter().map(field).sum::<f64>() / lengths.len().max(1) as f64
    };
    let (up, down) =
        per_exchange_s(scenario, average(|lengths| lengths.0), average(|lengths| lengths.1));
    let mean = |(low, high): (u64, u64)| (low as f64 + high as f64) / 2e9;
    let (air, _) = average_air(n.wifi(), &lengths);
    let idle = idle_s(spec, (average(|lengths| lengths.0), average(|lengths| lengths.1)), mean);
    let all = w.exchanges_of(0..scenario.clients.count);
    if w.messages(0).is_some() {
        // Over TCP messages share frames, and the link is slower than the air.
        let is_udp = spec.controls.iter().all(|control| control.transport() == Transport::Udp);
        let each = up.max(down).max(if is_udp { air } else { 0.0 });
        // All but one message in that time, and that one's round trip.
        return (all - 1.0).max(0.0) * each + idle;
    }
    let exchanges = f64::from(w.exchanges);
    // NSTART as the controls have it: a client keeps as many round trips going at once.
    let own = spec.controls.iter().filter_map(Control::nstart).max();
    let window = f64::from(own.unwrap_or(scenario.coap.nstart).max(1));
    // Each client's time counts from its own start.
    let late = scenario.clients.start_window.0 as f64 / 1e9;
    // Between two uplinks of a device its duty cycle leaves this time.
    let uplinks = n.lora().map_or(0.0, |lora| {
        (exchanges - 1.0) * lora.least_interval_s(average(|lengths| lengths.0))
    });
    // The client takes its time between a response and the next request: not before its first.
    let pauses = (exchanges / window - 1.0).max(0.0) * mean(scenario.clients.processing.ends());
    (all * up.max(down).max(air) - late).max(exchanges * idle / window + pauses).max(uplinks)
}

/// The time that each link takes to carry its message of an exchange, of `up` and `down` bytes, s; the average over
/// all exchanges where the rate changes with time.
fn per_exchange_s(scenario: &Scenario, up: f64, down: f64) -> (f64, f64) {
    let exchanges = scenario.workload.exchanges_of(0..scenario.clients.count).max(1.0);
    let each = |bytes: f64, link: &LinkSpec| match link.is_missing() {
        true => 0.0,
        false => link.seconds_for(bytes * exchanges) / exchanges,
    };
    (each(up, &scenario.network.up), each(down, &scenario.network.down))
}

/// Time that the link needed for the background's bytes until the last client was done, s, mean
/// over replications. This time is not available to the clients.
pub(super) fn background_s(spec: &CellSpec, records: &[RunRecord]) -> f64 {
    if physical_limit_s(spec) == 0.0 {
        return 0.0;
    }
    let bytes: u64 = records
        .iter()
        .map(|record| record.totals.background.iter().map(|flow| flow.delivered).sum::<u64>())
        .sum();
    let rate = spec.scenario.network.up.rate.0.max(1);
    bytes as f64 * 8.0 / rate as f64 / records.len().max(1) as f64
}

/// Returns the workload of the network and the capacity of its link, for the judgement.
pub(super) fn demand(spec: &CellSpec) -> Demand {
    if has_parts(&spec.scenario) { classes::demand(spec, demand_alone) } else { demand_alone(spec) }
}

/// The demand of one class at the bottleneck.
pub(super) fn demand_alone(spec: &CellSpec) -> Demand {
    let scenario = &spec.scenario;
    let (n, w) = (&scenario.network, &scenario.workload);
    let lengths: Vec<(f64, f64)> =
        spec.controls.iter().map(|control| wire_lengths(scenario, control.transport())).collect();
    let average = |field: fn(&(f64, f64)) -> f64| {
        lengths.iter().map(field).sum::<f64>() / lengths.len().max(1) as f64
    };
    let bytes = (average(|lengths| lengths.0), average(|lengths| lengths.1));
    let (up, down) = per_exchange_s(scenario, bytes.0, bytes.1);
    let direction = if up >= down { Direction::Up } else { Direction::Down };
    let link = direction.select(&n.up, &n.down);
    let (slower_bytes, slower_s) = direction.select((bytes.0, up), (bytes.1, down));
    let seconds = |ns: u64| ns as f64 / 1e9;
    // In a cell with a duty cycle the link is not what limits it.
    let is_slow = n.is_limited_by_radio();
    let own = spec.controls.iter().filter_map(Control::nstart).max();
    let outages = seconds(n.up.longest_outage_ns()) + seconds(n.down.longest_outage_ns());
    let longest = idle_s(spec, bytes, |(_, longest)| longest as f64 / 1e9) + outages;
    Demand {
        idle_s: if is_slow { 0.0 } else { longest },
        // A mesh and a stream of several messages in a segment have no such time.
        each_s: if is_slow || w.flow().is_some() { 0.0 } else { up.max(down) },
        bytes,
        direction,
        rate_bps: if slower_s > 0.0 { slower_bytes * 8.0 / slower_s } else { 0.0 },
        link: None,
        buffer: link.buffer.0,
        loss: scenario.average_loss(),
        clients: scenario.clients.count,
        in_turn: w.exchanges.div_ceil(u32::from(own.unwrap_or(scenario.coap.nstart).max(1))),
        nstart: own.unwrap_or(scenario.coap.nstart),
        start_window_s: seconds(scenario.clients.start_window.0),
        period_s: w.interval_ns().map(seconds),
        ack_timeout_s: seconds(scenario.coap.ack_timeout.0),
        max_retransmit: scenario.coap.max_retransmit,
        has_deadline: w.deadline.0 > 0,
        required: scenario.requirements(),
    }
}

/// The shortest round trip of the idle path, s.
pub(super) fn shortest_idle_s(spec: &CellSpec) -> f64 {
    idle_s(spec, demand_alone(spec).bytes, |(shortest, _)| shortest as f64 / 1e9)
}

/// The round trip of messages of these lengths over the idle path, s; `of` takes a value from the range of
/// each delay, in ns.
fn idle_s(spec: &CellSpec, bytes: (f64, f64), of: fn((u64, u64)) -> f64) -> f64 {
    let scenario = &spec.scenario;
    let n = &scenario.network;
    let (up, down) = per_exchange_s(scenario, bytes.0, bytes.1);
    let lengths: Vec<(f64, f64)> =
        spec.controls.iter().map(|control| wire_lengths(scenario, control.transport())).collect();
    let (_, crossing) = average_air(n.wifi(), &lengths);
    let delays = of(n.up.delay.ends())
        + of(n.up.beyond.ends())
        + of(n.down.delay.ends())
        + of(n.down.beyond.ends());
    up + down
        + crossing
        + delays
        + of(scenario.server.processing.ends())
        + classes::idle_s(spec, of)
}

/// Times of a request and its response in a Wi-Fi cell, s: how long they occupy the channel at
/// least, and how long both are on the air in an idle cell.
fn average_air(wifi: Option<&Wifi>, lengths: &[(f64, f64)]) -> (f64, f64) {
    let Some(wifi) = wifi else { return (0.0, 0.0) };
    let frame = |bytes: f64| wifi.dcf.frame_bytes(bytes.round() as u32);
    let sum = |time: &dyn Fn(u32) -> u64| {
        let both = |(up, down): &(f64, f64)| (time(frame(*up)) + time(frame(*down))) as f64 / 1e9;
        lengths.iter().map(both).sum::<f64>() / lengths.len().max(1) as f64
    };
    (sum(&|bytes| wifi.dcf.exchange(bytes)), sum(&|bytes| wifi.dcf.data_airtime(bytes)))
}
