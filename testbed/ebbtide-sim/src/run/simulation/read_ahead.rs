//! Reading the memory of clients whose events are next.
//!
//! With a hundred thousand clients the processor waits for memory most of the time: each event concerns
//! another client, none of whose memory is in a cache, and one access follows another. The memory of
//! several clients can be read at the same time, because no access depends on that of another client. The
//! simulation therefore reads it for a few events before it handles the first of them. That changes no result.

use super::Simulation;
use crate::engine::{Engine, Lane};
use crate::host::ObservedHost;
use crate::record::Recorder;
use crate::run::event::{DOWN_LANE, LANES, NetEvent, ROUTER_LANE, UP_LANE};
use ebbtide_core::testbed::MemoryPart;
use std::hint::black_box;
use std::iter::once;

/// Events whose memory is read together: 2 kB each, which fit into the nearest cache.
const BATCH: usize = 16;

/// Fewer clients, 2 kB each, fit into a cache that is near, and reading ahead costs more than it gains.
const MANY: u32 = 1_500;

/// How far each lane has been read ahead.
pub(super) struct ReadAhead {
    is_worth_it: bool,
    /// For each lane, and for that of events that are near, the first events whose memory was read.
    known: [u32; LANES as usize + 1],
}

impl ReadAhead {
    /// For a simulation of so many clients.
    pub(super) const fn new(clients: u32) -> Self {
        Self { is_worth_it: clients >= MANY, known: [0; LANES as usize + 1] }
    }

    /// The number for a lane; the last one is that of [`Lane::NEAR`].
    #[inline]
    fn known_of(&mut self, lane: Lane) -> &mut u32 {
        &mut self.known[lane.index().min(LANES as usize)]
    }
}

impl<R: Recorder> Simulation<R> {
    /// An event is handled next: reads what it and those behind it in its lane need, unless that was read.
    #[inline]
    pub(super) fn read_ahead(&mut self, event: NetEvent) {
        if !self.clients.ahead.is_worth_it {
            return;
        }
        let lane = match event {
            NetEvent::Act(_) | NetEvent::Timer(_) => Lane::NEAR,
            NetEvent::AtServer(_) => Engine::<NetEvent>::lane(UP_LANE),
            NetEvent::AtDownLink(_) => Engine::<NetEvent>::lane(ROUTER_LANE),
            NetEvent::AtClient(_) => Engine::<NetEvent>::lane(DOWN_LANE),
            _ => return,
        };
        match self.clients.ahead.known_of(lane) {
            0 => self.read_batch(event, lane),
            known => *known -= 1,
        }
    }

    /// Reads what an event and those behind it need.
    #[inline(never)]
    fn read_batch(&mut self, first: NetEvent, lane: Lane) {
        let mut known = 0;
        let mut clients: [Option<&dyn ObservedHost<R>>; BATCH] = [None; BATCH];
        let events = once(first).chain(self.engine.coming(lane));
        for (event, client) in events.zip(&mut clients) {
            let host = self.read(event).and_then(|client| self.clients.hosts.get(client));
            *client = host.map(|host| &**host);
            known += 1;
        }
        // A part of all clients before the next one of any: what a pointer leads to has to wait for that pointer alone.
        let mut read = 0;
        for part in MemoryPart::ALL {
            for client in clients.iter().flatten() {
                read ^= client.read_ahead(part);
            }
        }
        black_box(read);
        *self.clients.ahead.known_of(lane) = known - 1;
    }

    /// Reads what an event needs beside the client that it concerns, which it returns if the event calls it.
    #[inline]
    fn read(&self, event: NetEvent) -> Option<usize> {
        match event {
            NetEvent::Act(client) => Some(client as usize),
            NetEvent::AtDownLink(place) => {
                self.read_packet(place);
                None
            }
            NetEvent::AtServer(place) => {
                let client = self.read_packet(place);
                black_box(self.clients.arrived.get(client).map(|arrivals| arrivals.read_ahead()));
                None
            }
            NetEvent::AtClient(place) => {
                let client = self.read_packet(place);
                black_box(self.clients.timers.get(client).is_some_and(|timer| timer.is_wanted()));
                Some(client)
            }
            NetEvent::Timer(client) => {
                let timer = self.clients.timers.get(client as usize);
                timer.is_some_and(|timer| timer.is_wanted()).then_some(client as usize)
            }
            _ => None,
        }
    }

    /// Reads a packet; its client.
    #[inline]
    fn read_packet(&self, place: u32) -> usize {
        let (packet, bytes) = self.net.pool.get(place);
        black_box(bytes.first().copied());
        packet.client as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Discard, RunRecord};
    use crate::scenario::{load, parse_set};

    fn record(changes: &[&str], cc: &str, reads_ahead: bool) -> RunRecord {
        let changes: Vec<_> = changes.iter().map(|change| parse_change(change)).collect();
        let scenario = load("nb-iot").unwrap().scenario(&changes).unwrap();
        let controls = [scenario.control_config(cc).unwrap()];
        let mut simulation = Simulation::new(&scenario, &controls, 1, 0, Discard::new());
        assert!(simulation.clients.ahead.is_worth_it, "there are enough clients");
        simulation.clients.ahead.is_worth_it = reads_ahead;
        simulation.run().unwrap();
        simulation.finish(0).0
    }

    fn parse_change(text: &str) -> crate::scenario::Override {
        let axis = parse_set(text).unwrap();
        crate::scenario::Override { key: axis.key, value: axis.values[0].clone() }
    }

    #[test]
    fn reading_the_memory_of_many_clients_ahead_changes_no_result() {
        let many = ["clients=1600", "exchanges=2", "errors=high"];
        let burst = ["clients=1500", "exchanges=1", "buffer=20 kB", "clients.start_window=0 s"];
        for (changes, cc) in [(&many[..], "fasor-token"), (&burst[..], "default")] {
            let (with, without) = (record(changes, cc, true), record(changes, cc, false));
            assert!(with.clients.iter().map(|client| client.completed).sum::<u32>() > 1000);
            assert!(with.clients.iter().any(|client| client.retransmissions > 0), "{cc}");
            assert!(with == without, "{cc}");
        }
    }
}
