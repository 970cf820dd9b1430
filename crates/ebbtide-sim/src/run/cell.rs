//! From the records of a cell's replications to its figures.

use super::background_cell::background_cell;
use super::cell_spec::CellSpec;
use super::class_cell;
use super::flow_cell::flow_cell;
use super::lora_cell::lora_cell;
use super::mesh_cell::mesh_cell;
use super::wifi_cell::wifi_cell;
use crate::judge::{Demand, figures};
use crate::record::{Direction, RunRecord, SparseHistogram};
use crate::report::{Cell, Handshakes, PacketCounts, Packets, Summary};
use crate::scenario::Transport;
use crate::scenario::{Control, LinkSpec, Scenario, Wifi, WorkloadKind};
use crate::stats::{jain, mean_and_half_width, summary, weighted_summary};

/// The time before which no schedule finishes the last client, in seconds: the longest of pushing
/// all responses (or all requests) through the bottleneck, of both over the channel of a Wi-Fi cell
/// without a collision or a backoff, and of as many idle round trips, of mean
/// delay, as a client has requests.
/// Zero for a workload whose time is its own, and in a low-power network, where the number
/// of transmissions is a matter of luck.
#[must_use]
pub fn physical_limit_s(spec: &CellSpec) -> f64 {
    if has_parts(&spec.scenario) {
        class_cell::limit_s(spec, limit_alone_s)
    } else {
        limit_alone_s(spec)
    }
}

/// Whether a scenario is more than one class at one bottleneck.
const fn has_parts(scenario: &Scenario) -> bool {
    !scenario.class.is_empty() || !scenario.link.is_empty()
}

/// The same for one class that has the bottleneck for itself.
fn limit_alone_s(spec: &CellSpec) -> f64 {
    let scenario = &spec.scenario;
    let w = &scenario.workload;
    if w.kind.keeps_time() || scenario.network.mesh.is_some() {
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
        per_exchange_s(scenario, (average(|lengths| lengths.0), average(|lengths| lengths.1)));
    let mean = |(low, high): (u64, u64)| (low as f64 + high as f64) / 2e9;
    let (air, crossing) = average_air(n.wifi.as_ref(), &lengths);
    let idle = up
        + down
        + crossing
        + mean(n.up.delay.ends())
        + mean(n.up.beyond.ends())
        + mean(n.down.delay.ends())
        + mean(n.down.beyond.ends())
        + mean(scenario.server.processing.ends())
        + class_cell::idle_s(spec);
    if w.kind == WorkloadKind::Transfer {
        let messages: u64 =
            (0..scenario.clients.count).map(|client| u64::from(scenario.messages_of(client))).sum();
        // Over TCP messages share frames, and the link is slower than the air.
        let is_udp = spec.controls.iter().all(|control| control.transport() == Transport::Udp);
        let each = up.max(down).max(if is_udp { air } else { 0.0 });
        // All but one message in that time, and that one's round trip.
        return messages.saturating_sub(1) as f64 * each + idle;
    }
    let exchanges = f64::from(w.exchanges);
    let all = f64::from(scenario.clients.count) * exchanges;
    // NSTART as the controls have it: a client keeps as many round trips going at once.
    let own = spec.controls.iter().filter_map(Control::nstart).max();
    let window = f64::from(own.unwrap_or(scenario.coap.nstart).max(1));
    // Each client's time counts from its own start.
    let late = scenario.clients.start_window.0 as f64 / 1e9;
    // Between two uplinks of a device its duty cycle leaves this time.
    let uplinks = n.lora.as_ref().map_or(0.0, |lora| {
        (exchanges - 1.0) * lora.least_interval_s(average(|lengths| lengths.0))
    });
    // The client takes its time between a response and the next request: not before its first.
    let pauses = (exchanges / window - 1.0).max(0.0) * mean(scenario.clients.processing.ends());
    (all * up.max(down).max(air) - late).max(exchanges * idle / window + pauses).max(uplinks)
}

/// The time that each link takes to carry its message of an exchange, up and down, s; the average over
/// all exchanges where the rate changes with time.
fn per_exchange_s(scenario: &Scenario, (up, down): (f64, f64)) -> (f64, f64) {
    let exchanges = match scenario.workload.kind {
        WorkloadKind::Transfer => (0..scenario.clients.count)
            .map(|client| f64::from(scenario.messages_of(client)))
            .sum::<f64>(),
        _ => f64::from(scenario.clients.count) * f64::from(scenario.workload.exchanges),
    };
    let exchanges = exchanges.max(1.0);
    let each = |bytes: f64, link: &LinkSpec| match link.is_missing() {
        true => 0.0,
        false => link.seconds_for(bytes * exchanges) / exchanges,
    };
    (each(up, &scenario.network.up), each(down, &scenario.network.down))
}

/// Time that the link needed for the background's bytes until the last client was done, s, mean
/// over replications. This time is not available to the clients.
fn background_s(spec: &CellSpec, records: &[RunRecord]) -> f64 {
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
fn demand(spec: &CellSpec) -> Demand {
    if has_parts(&spec.scenario) {
        class_cell::demand(spec, demand_alone)
    } else {
        demand_alone(spec)
    }
}

/// The same for one class at the bottleneck.
fn demand_alone(spec: &CellSpec) -> Demand {
    let scenario = &spec.scenario;
    let (n, w) = (&scenario.network, &scenario.workload);
    let lengths: Vec<(f64, f64)> =
        spec.controls.iter().map(|control| wire_lengths(scenario, control.transport())).collect();
    let average = |field: fn(&(f64, f64)) -> f64| {
        lengths.iter().map(field).sum::<f64>() / lengths.len().max(1) as f64
    };
    let bytes = (average(|lengths| lengths.0), average(|lengths| lengths.1));
    let (up, down) = per_exchange_s(scenario, bytes);
    let upwards = up >= down;
    let link = if upwards { &n.up } else { &n.down };
    let (slower_bytes, slower_s) = if upwards { (bytes.0, up) } else { (bytes.1, down) };
    let seconds = |ns: u64| ns as f64 / 1e9;
    // In a cell with a duty cycle the link is not what limits it.
    let is_mesh = n.mesh.is_some() || n.lora.is_some();
    let own = spec.controls.iter().filter_map(Control::nstart).max();
    Demand {
        // A mesh and a stream of several messages in a segment have no such time.
        each_s: if is_mesh || w.kind.is_flow() { 0.0 } else { up.max(down) },
        bytes,
        upwards,
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
    }
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

/// Bytes on the wire of a request and of a response.
pub(super) fn wire_lengths(scenario: &Scenario, transport: Transport) -> (f64, f64) {
    let w = &scenario.workload;
    let marked = |payload: u32| payload + u32::from(payload > 0);
    // The path, or the content format; then marker and payload.
    let path = w.path.len() as u32 + if w.path.len() < 13 { 1 } else { 2 };
    let token = u32::from(scenario.coap.token_length);
    let length = |rest: u32| match transport {
        Transport::Udp => f64::from(scenario.network.header + 4 + token + rest),
        // RFC 8323 section 3.2: no type, no ID, but a length that may need two more bytes. TCP has
        // 12 bytes of header more than UDP.
        Transport::Tcp => {
            let length = match rest {
                0..13 => 2,
                13..269 => 3,
                _ => 4,
            };
            let header = f64::from(scenario.network.header + 12);
            let message = f64::from(length + token.min(4) + rest);
            // Messages of a flow share segments as long as the MTU allows.
            let segment = f64::from(scenario.network.mtu) - header;
            if w.kind.is_flow() { message * (1.0 + header / segment) } else { header + message }
        }
    };
    if w.kind == WorkloadKind::Notifications {
        // Observe with a value of three bytes; the acknowledgement is a header alone.
        let empty = f64::from(scenario.network.header + 4);
        return (empty, length(4 + marked(w.response_payload)));
    }
    let request = length(path + marked(w.request_payload));
    let response = length(1 + marked(w.response_payload));
    if w.is_from_server() { (response, request) } else { (request, response) }
}

/// The figures of a cell. `records` are its replications in order.
#[must_use]
pub fn summarise(spec: &CellSpec, records: &[RunRecord], command: String) -> Cell {
    let clients = || records.iter().flat_map(|record| &record.clients);
    let over = |field: &dyn Fn(&crate::record::ClientRecord) -> f64| -> Vec<f64> {
        clients().map(field).collect()
    };
    let seconds = |client: &crate::record::ClientRecord| client.fct.as_nanos() as f64 / 1e9;
    let mut fct = over(&seconds);
    let fct_summary = summary(&mut fct);
    let medians: Vec<f64> = records
        .iter()
        .map(|record| {
            let mut values: Vec<f64> = record.clients.iter().map(seconds).collect();
            summary(&mut values).median
        })
        .collect();
    let (centre, half) = mean_and_half_width(&medians);
    let goodput = records.iter().map(|record| {
        let bytes: u64 = record.clients.iter().map(|client| client.payload_bytes).sum();
        bytes as f64 * 8.0 / (record.totals.done_ns.max(1) as f64 / 1e9)
    });
    let fairness = records.iter().map(|record| {
        let rates: Vec<f64> = record
            .clients
            .iter()
            .map(|client| client.payload_bytes as f64 / seconds(client).max(1e-9))
            .collect();
        jain(&rates)
    });
    let count = records.len().max(1) as f64;
    Cell {
        cc: spec.cc.clone(),
        settings: spec.settings.clone(),
        reps: u32::try_from(records.len()).unwrap_or(u32::MAX),
        clients: spec.scenario.clients.count,
        fct: fct_summary,
        // One replication says nothing about the next one.
        fct_ci: if medians.len() < 2 {
            (f64::NAN, f64::NAN)
        } else {
            (centre - half, centre + half)
        },
        fct_limit_s: physical_limit_s(spec) + background_s(spec, records),
        delivered_quantiles: percentiles(records, |record| &record.totals.delivery.after),
        duration_quantiles: percentiles(records, |record| &record.totals.durations),
        unnecessary: summary(&mut over(&|client| client.unnecessary.into())),
        duplicates: summary(&mut over(&|client| client.duplicates.into())),
        by_retransmissions: by_retransmissions(records),
        completed: clients().map(|client| u64::from(client.completed)).sum(),
        failed: clients().map(|client| u64::from(client.failed)).sum(),
        packets: Packets {
            up: packets(records, |record| &record.totals.up),
            down: packets(records, |record| &record.totals.down),
        },
        utilisation_up: utilisation(records, |record| &record.totals.up),
        utilisation_down: utilisation(records, |record| &record.totals.down),
        goodput_bps: goodput.sum::<f64>() / count,
        jain: fairness.sum::<f64>() / count,
        rtt: pooled(records, |record| &record.totals.rtt),
        duration: pooled(records, |record| &record.totals.durations),
        timeouts: summary(&mut over(&|client| client.timeouts.into())),
        probes: summary(&mut over(&|client| client.probes.into())),
        largest_timeout: summary(&mut over(&|c| f64::from(c.largest_timeout.get()) / 1e6)),
        outcome: figures(records, &demand(spec)),
        series: records.iter().filter_map(|record| record.totals.series.clone()).collect(),
        mesh: mesh_cell(records),
        wifi: wifi_cell(records),
        background: background_cell(records),
        // The flows of classes are theirs.
        flows: if spec.scenario.class.is_empty() { flow_cell(spec, records) } else { None },
        security: handshakes(records),
        classes: class_cell::classes(spec, records, &command),
        links: class_cell::links(records),
        cross: class_cell::cross(records),
        lora: lora_cell(records),
        class: String::new(),
        own_control: None,
        is_periodic: false,
        command,
    }
}

fn handshakes(records: &[RunRecord]) -> Option<Handshakes> {
    records.iter().filter_map(|record| record.totals.security).reduce(|mut all, one| {
        all += &one;
        all
    })
}

fn by_retransmissions(records: &[RunRecord]) -> Vec<u64> {
    let mut sums: Vec<u64> = Vec::new();
    for record in records {
        let counts = &record.totals.by_retransmissions;
        if counts.len() > sums.len() {
            sums.resize(counts.len(), 0);
        }
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    sums
}

fn packets(records: &[RunRecord], side: fn(&RunRecord) -> &Direction) -> PacketCounts {
    let sum = |field: fn(&Direction) -> u64| records.iter().map(|record| field(side(record))).sum();
    PacketCounts {
        sent: sum(|direction| direction.sent),
        delivered: sum(|direction| direction.delivered),
        dropped_queue: sum(|direction| direction.dropped_queue),
        lost_link: sum(|direction| direction.lost_link),
        marked: sum(|direction| direction.marked),
    }
}

/// The share of the time until the last client was done that the link worked, at most 1: what is
/// still in the queue then counts no more.
fn utilisation(records: &[RunRecord], side: fn(&RunRecord) -> &Direction) -> f64 {
    utilisation_of(records, |record| *side(record))
}

/// The same for any link.
pub(super) fn utilisation_of(records: &[RunRecord], side: impl Fn(&RunRecord) -> Direction) -> f64 {
    let shares = records
        .iter()
        .map(|record| (side(record).busy_ns as f64 / record.totals.done_ns.max(1) as f64).min(1.0));
    shares.sum::<f64>() / records.len().max(1) as f64
}

fn pooled(records: &[RunRecord], which: fn(&RunRecord) -> &SparseHistogram) -> Summary {
    pool(records.iter().map(which))
}

/// Each percent, 0 to 100, of several histograms of microseconds together, in seconds; empty if
/// there is nothing in them.
fn percentiles(records: &[RunRecord], which: fn(&RunRecord) -> &SparseHistogram) -> Vec<f64> {
    let SparseHistogram(counts) = SparseHistogram::together(records.iter().map(which));
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let mut below = 0;
    let mut percentiles = Vec::new();
    for (micros, count) in counts {
        below += count;
        while percentiles.len() <= 100
            && below as f64 > percentiles.len() as f64 / 100.0 * total.saturating_sub(1) as f64
        {
            percentiles.push(micros as f64 / 1e6);
        }
    }
    percentiles
}

/// The order statistics of several histograms of microseconds together, in seconds.
pub(super) fn pool<'h>(histograms: impl Iterator<Item = &'h SparseHistogram>) -> Summary {
    let SparseHistogram(counts) = SparseHistogram::together(histograms);
    let values: Vec<(f64, u64)> =
        counts.into_iter().map(|(micros, count)| (micros as f64 / 1e6, count)).collect();
    weighted_summary(&values)
}
