//! Messages of a layer below CoAP, such as the flights of a DTLS handshake. They share the path
//! with CoAP's messages, so the scope's congestion control decides how long to wait for an answer,
//! and learns from it.

use super::{Endpoint, context};
use crate::cc::{Kind, Outcome, Sample, Slot, Transmission};
use crate::peer::PeerId;
use crate::time::{Instant, Micros};

/// A flight that is under way. It holds an NSTART place of the scope until
/// [`Endpoint::end_flight`].
#[derive(Debug)]
#[must_use = "its place is free only after end_flight"]
pub struct Flight {
    slot: Slot,
}

impl Flight {
    /// How long to wait before the flight is repeated for the first time.
    #[must_use]
    pub const fn timeout(&self) -> Micros {
        self.slot.armed
    }
}

impl Endpoint {
    /// Registers a flight that leaves for a remote. `None` if there is no room for one more peer.
    pub fn begin_flight(&mut self, now: Instant, remote: PeerId) -> Option<Flight> {
        let now = self.advance(now);
        let index = self.peer(now, remote).ok()?;
        let peer = self.peers.get_mut(index);
        let cx = &mut context(now, &self.config, &self.controls[peer.control()], &mut *self.rng);
        let mut slot = Slot::default();
        peer.shell.open_exchange();
        peer.shell.on_transmit(Transmission::new(Kind::Unprobed, 0), &mut slot, cx);
        self.peers.begin_exchange(index);
        Some(Flight { slot })
    }

    /// Ends a flight: answered with `sample`, or given up if there is none.
    pub fn end_flight(
        &mut self,
        now: Instant,
        remote: PeerId,
        flight: &Flight,
        sample: Option<&Sample>,
    ) {
        let now = self.advance(now);
        let Some(index) = self.peers.find(self.config.scope.key(remote)) else { return };
        let peer = self.peers.get_mut(index);
        let cx = &mut context(now, &self.config, &self.controls[peer.control()], &mut *self.rng);
        let outcome = match sample {
            Some(sample) => {
                peer.shell.on_feedback(&flight.slot, sample, cx);
                Outcome::Acknowledged
            }
            None => Outcome::Cancelled,
        };
        let retransmissions = sample.map_or(0, Sample::retransmissions);
        peer.shell.close_exchange(&flight.slot, outcome, retransmissions, cx);
        self.peers.end_exchange(now, index);
        self.pump(now, index);
    }
}
