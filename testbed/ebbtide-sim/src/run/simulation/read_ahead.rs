//! Reading the memory of clients whose events are next.
//!
//! With a hundred thousand clients the processor waits for memory most of the time: each event concerns
//! another client, none of whose memory is in a cache, and one access follows another. The memory of
//! several clients can be read at the same time, because no access depends on that of another client. The
//! simulation therefore reads it for a few events before it handles the first of them. That changes no result.

use super::Simulation;
use crate::engine::Lane;
use crate::record::Recorder;
use crate::run::event::{LANES, NetEvent};
use std::hint::black_box;

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
    /// An event of a lane is handled next: reads what it and those behind it need, unless that was read.
    #[inline]
    pub(super) fn read_ahead(&mut self, lane: Lane) {
        if !self.clients.ahead.is_worth_it {
            return;
        }
        match self.clients.ahead.known_of(lane) {
            0 => self.read_batch(lane),
            known => *known -= 1,
        }
    }

    #[inline(never)]
    fn read_batch(&mut self, lane: Lane) {
        let mut known = 0;
        for event in self.engine.coming(lane).take(BATCH) {
            black_box(self.read(event));
            known += 1;
        }
        *self.clients.ahead.known_of(lane) = known;
    }

    /// Reads what an event needs. The result has no meaning.
    #[inline]
    fn read(&self, event: NetEvent) -> u64 {
        match event {
            NetEvent::AtServer(place) => {
                let (client, byte) = self.read_packet(place);
                byte ^ self.clients.arrived.get(client).map_or(0, |arrivals| arrivals.read_ahead())
            }
            NetEvent::AtClient(place) => {
                let (client, byte) = self.read_packet(place);
                let is_wanted =
                    self.clients.timers.get(client).is_some_and(|timer| timer.is_wanted());
                byte ^ u64::from(is_wanted) ^ self.read_client(client)
            }
            NetEvent::Timer(client) => {
                let client = client as usize;
                let is_wanted =
                    self.clients.timers.get(client).is_some_and(|timer| timer.is_wanted());
                if is_wanted { self.read_client(client) } else { 0 }
            }
            _ => 0,
        }
    }

    /// Reads a packet; its client.
    #[inline]
    fn read_packet(&self, place: u32) -> (usize, u64) {
        let (packet, bytes) = self.net.pool.get(place);
        (packet.client as usize, bytes.first().copied().unwrap_or_default().into())
    }

    #[inline]
    fn read_client(&self, client: usize) -> u64 {
        self.clients.hosts.get(client).map_or(0, |client| client.read_ahead())
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
