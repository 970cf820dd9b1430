//! The end of a replication: its measurements.

use super::Simulation;
use crate::host::Arrivals;
use crate::net::Direction;
use crate::record::{
    ClassRecord, Delivery, DirectionCounts, FlowRecord, Handshakes, MeasuredLosses, MeshRecord,
    RunRecord, SparseHistogram, Totals,
};
use crate::run::Recorder;
use crate::run::pool::Pool;
use crate::scenario::{Activity, ClassView};
use ebbtide_core::time::{Duration, Instant};
use std::ops::Range;
use std::sync::Arc;

impl<R: Recorder> Simulation<R> {
    pub(super) fn finish(mut self, replication: u32) -> (RunRecord, R) {
        if let Some(until) = self.end.until {
            self.end.done_at = until;
        }
        let mesh = self.mesh();
        // The records of many clients take the room that their packets had.
        self.net.pool = Pool::default();
        let flows = self.flows();
        let mut by_retransmissions: Vec<u64> = Vec::new();
        let mut delivery = Delivery::default();
        // Packets to the servers, and from them.
        let mut sent = (0, 0);
        let mut classes = Vec::new();
        let deliveries = std::mem::take(&mut self.net.deliveries);
        let roster = Arc::clone(&self.roster);
        for ((index, class), own) in roster.classes.iter().enumerate().zip(deliveries) {
            let own = self.finish_class(class, own, &flows);
            delivery += &own.delivery;
            let Delivery { transmissions, replies, .. } = own.delivery;
            let is_down = class.scenario.workload.is_from_server();
            let (up, down) =
                if is_down { (replies, transmissions) } else { (transmissions, replies) };
            sent = (sent.0 + up, sent.1 + down);
            add_up(&mut by_retransmissions, own.by_retransmissions.iter().copied());
            if roster.is_named {
                let topology = self.net.topology.as_ref();
                let access = topology.and_then(|topology| topology.own_record(class));
                let done_ns = self.end.of_class(index).as_nanos();
                classes.push(ClassRecord { done_ns, access, ..own });
            }
        }
        let sides = match &mesh {
            Some(_) => {
                // Its packets are counted from end to end, and not their bytes: elsewhere energy matters.
                delivery = Delivery {
                    transmissions: delivery.transmissions,
                    replies: delivery.replies,
                    ..Delivery::default()
                };
                (self.ends(Direction::Up, sent.0), self.ends(Direction::Down, sent.1))
            }
            None => (self.net.up.counts().into(), self.net.down_counts()),
        };
        let sim_ns = if mesh.is_some() { self.end.done_at } else { self.engine.now() }.as_nanos();
        let record = RunRecord {
            replication,
            clients: self.clients.hosts.iter().map(|client| client.ledger().record).collect(),
            totals: Totals {
                by_retransmissions,
                up: sides.0,
                down: sides.1,
                rtt: SparseHistogram::default(),
                durations: SparseHistogram::default(),
                done_ns: self.end.done_at.as_nanos(),
                sim_ns,
                events: self.engine.handled(),
                series: None,
                mesh,
                wifi: self.net.radio.as_ref().and_then(|radio| radio.wifi_record()),
                background: self.background.records(),
                background_packets: self.net.background,
                delivery,
                flows,
                classes,
                phases: Vec::new(),
                links: self.net.link_records(),
                lora: self.net.radio.as_ref().and_then(|radio| radio.lora_counts()),
                nb_iot: self.net.radio.as_ref().and_then(|radio| radio.nb_iot_counts(sim_ns)),
                cross: self.net.cross.records(),
                security: self.security(),
                measured: self.measured(),
            },
            wall_s: 0.0,
        };
        (record, self.recorder)
    }
}

impl<R: Recorder> Simulation<R> {
    /// Completes the records of a class's clients, and sums them up.
    fn finish_class(
        &mut self,
        class: &ClassView,
        mut delivery: Delivery,
        flows: &[FlowRecord],
    ) -> ClassRecord {
        let mut by_retransmissions: Vec<u64> = Vec::new();
        let workload = &class.scenario.workload;
        for number in class.clients() {
            let Some(client) = self.clients.hosts.get_mut(number as usize) else { continue };
            let flow = flows.get(number as usize).filter(|_| workload.flow().is_some());
            let asked = match workload.activity() {
                Activity::Firmware => Some(workload.exchanges),
                _ => workload
                    .messages(number)
                    .or_else(|| flow.map(|flow| u32::try_from(flow.offered).unwrap_or(u32::MAX))),
            };
            let arrived = self.clients.arrived.get(number as usize).map_or(0, Arrivals::count);
            client.note_asked(asked, arrived);
            if let Some((least, most)) = client.ledger().gave_up() {
                let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                let (low, high) = delivery.gave_up_ns.unwrap_or((u64::MAX, 0));
                delivery.gave_up_ns = Some((low.min(nanos(least)), high.max(nanos(most))));
            }
            client.finish();
            let counts = client.ledger().by_retransmissions();
            add_up(&mut by_retransmissions, counts.iter().copied().map(u64::from));
        }
        ClassRecord {
            name: class.name.clone(),
            first: class.first,
            clients: class.scenario.clients.count,
            by_retransmissions,
            delivery,
            ..ClassRecord::default()
        }
    }

    /// The packets of one direction from end to end, through a low-power network and its wired side, of which
    /// so many were sent.
    fn ends(&mut self, direction: Direction, sent: u64) -> DirectionCounts {
        let mesh = self.net.low_power().map(|mesh| *mesh.counts(direction)).unwrap_or_default();
        let wire = direction.select(self.net.up.counts(), self.net.down.counts());
        let links = self.net.link_records();
        let links = links.iter().map(|link| direction.select(link.up, link.down));
        links.chain([wire.into()]).fold(DirectionCounts { sent, ..mesh }, |sum, link| {
            DirectionCounts {
                dropped_queue: sum.dropped_queue + link.dropped_queue,
                lost_link: sum.lost_link + link.lost_link,
                marked: sum.marked + link.marked,
                ..sum
            }
        })
    }

    /// The measurements of a low-power network, with the messages of the sensors on it.
    fn mesh(&mut self) -> Option<MeshRecord> {
        let mesh = self.net.low_power()?.record(self.end.done_at);
        let messages = self.clients.hosts.iter().map(|client| client.messages());
        Some(MeshRecord { messages: messages.collect(), ..mesh })
    }

    /// The handshakes of all clients, and what the server sent in them.
    fn security(&mut self) -> Option<Handshakes> {
        let mut total = self.servers.sessions.as_ref()?.measured;
        self.clients.hosts.iter().for_each(|client| total += &client.handshakes());
        Some(total)
    }

    /// Losses as both ends measured them, if they have.
    fn measured(&self) -> Option<MeasuredLosses> {
        let mut losses = MeasuredLosses::default();
        for (number, client) in (0..).zip(&self.clients.hosts) {
            losses.up += self.servers.constant.measured(number).unwrap_or_default();
            losses.down += client.measured().unwrap_or_default();
        }
        (losses != MeasuredLosses::default()).then_some(losses)
    }

    /// Completes the clients' flows and returns their records.
    fn flows(&mut self) -> Vec<FlowRecord> {
        if self.clients.hosts.iter_mut().all(|client| client.flow().is_none()) {
            return Vec::new();
        }
        let end = self.end.until.unwrap_or_else(|| self.engine.now());
        let spans: Vec<Range<Instant>> =
            self.clients.hosts.iter_mut().filter_map(|client| client.flow_span(end)).collect();
        let from = spans.iter().map(|span| span.start).chain(self.end.fair_from).max();
        let to = spans.iter().map(|span| span.end).min();
        let together = from.unwrap_or(end)..to.unwrap_or(end);
        let mut spans = spans.iter();
        let mut flows: Vec<FlowRecord> = self
            .clients
            .hosts
            .iter_mut()
            .map(|client| match client.flow() {
                None => FlowRecord::default(),
                Some(flow) => flow.finish(spans.next().map_or(end, |span| span.end), &together),
            })
            .collect();
        if spans.len() == 0 && flows.iter().all(|flow| *flow == FlowRecord::default()) {
            flows.clear();
        }
        flows
    }
}

/// Adds counts place by place.
fn add_up(sums: &mut Vec<u64>, counts: impl ExactSizeIterator<Item = u64>) {
    if counts.len() > sums.len() {
        sums.resize(counts.len(), 0);
    }
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count;
    }
}
