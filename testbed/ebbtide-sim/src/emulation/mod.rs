//! A scenario's path for real packets: the driver passes packets and instants in, and receives
//! packets and instants.
//!
//! The path is the simulator's, built from the same links with the same streams of randomness;
//! only the clock is the driver's:
//!
//! ```text
//! loop {
//!     while let Some(delivery) = emulation.poll_packet(clock.now()) { hand it over }
//!     wait for a packet, or until emulation.poll_timeout()
//!     emulation.handle_packet(clock.now(), direction, bytes, packet)
//! }
//! ```
//!
//! Every event inside takes place at the instant at which it is due, not when the driver handles
//! it. A late driver therefore delivers late but does not distort the model. The lateness is
//! measured and shows whether the emulation was valid.
//!
//! The time that a host takes to process a message (`clients.processing`, `server.processing`) is
//! not added, because real hosts take their own time.

mod links;
mod packets;
mod summary;
#[cfg(test)]
mod tests;

pub use summary::{DirectionSummary, EmulationSummary, LATENESS_LIMIT, Lateness, LinkSummary};

use crate::engine::Engine;
pub use crate::net::Direction;
use crate::net::{Delay, Fate, LinkCounts, queue};
use crate::random::Streams;
use crate::scenario::{LinkPath, Scenario};
use ebbtide_core::time::{Duration, Instant};
use hdrhistogram::Histogram;
use links::{EmulatedLinks, LinkSide};
use packets::Packets;
use rand_chacha::ChaCha8Rng;

/// A packet that has passed the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveredPacket<P> {
    /// Its direction.
    pub direction: Direction,
    /// When it was due.
    pub due: Instant,
    /// The packet as [`Emulation::handle_packet`] received it.
    pub packet: P,
}

#[derive(Copy, Clone, Debug)]
enum EmulatedEvent {
    /// A packet arrives at the router before a link.
    AtLink(LinkSide, u32),
    /// A packet arrives.
    Arrival(Direction, u32),
    /// The link in this direction may be free for what waits.
    LinkFree(LinkSide),
}

/// The links of a scenario in both directions, with the packets that are under way. `P` is the
/// packet type of the driver.
#[derive(Debug)]
pub struct Emulation<P> {
    links: EmulatedLinks,
    /// The delays beyond the bottleneck, up and down, and their generators.
    beyond: [(Delay, ChaCha8Rng); 2],
    engine: Engine<EmulatedEvent>,
    packets: Packets<P>,
    /// The latest instant that was passed in; time does not run backwards.
    now: Instant,
    delivered: [Delivered; 2],
    lateness: Histogram<u64>,
}

/// Counters of the packets handed over in one direction.
#[derive(Copy, Clone, Debug, Default)]
struct Delivered {
    packets: u64,
    bytes: u64,
}

impl<P> Emulation<P> {
    /// Creates an idle path, equal to that of replication 0 of a run with this seed.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no memory for the histogram of lateness.
    pub fn new(scenario: &Scenario, seed: u64) -> Result<Self, hdrhistogram::CreationError> {
        let streams = Streams::new(seed, 0);
        let (network, loss) = (&scenario.network, scenario.loss_model());
        let LinkPath { link: up, beyond: beyond_up } = LinkPath::up(network, loss, &streams);
        let LinkPath { link: down, beyond: beyond_down } = LinkPath::down(network, loss, &streams);
        Ok(Self {
            links: EmulatedLinks::new(scenario, [up, down], &streams),
            beyond: [beyond_up, beyond_down],
            engine: Engine::new(0),
            packets: Packets::default(),
            now: Instant::ZERO,
            delivered: [Delivered::default(); 2],
            lateness: Histogram::new(3)?,
        })
    }

    /// Takes a packet of `bytes`, headers included, that a host sends at `now`. `device` is the
    /// number of the device that sends or receives it: it takes the links of the client of that
    /// number, of the last one beyond them.
    ///
    /// The packets under way are bounded ([`EmulationSummary::refused`]), since a flood could fill an
    /// infinite buffer without limit.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        direction: Direction,
        device: u32,
        bytes: u32,
        packet: P,
    ) {
        self.now = self.now.max(now);
        let now = self.now;
        let Some(place) = self.packets.put(bytes, device, packet) else { return };
        let first = LinkSide { link: self.links.first(device, direction), direction };
        match direction {
            Direction::Up => self.onto_link(now, first, place),
            Direction::Down => {
                let at = now + self.draw_beyond(direction);
                self.engine.schedule(at, EmulatedEvent::AtLink(first, place));
            }
        }
    }

    /// The next instant at which to call [`Self::poll_packet`].
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.engine.next_at()
    }

    /// The next packet that is due at `now`, in the order of time; `None` if there is none. `now`
    /// must be the instant at which the packet is handed over, because the difference to the
    /// instant at which it was due counts as lateness.
    pub fn poll_packet(&mut self, now: Instant) -> Option<DeliveredPacket<P>> {
        self.now = self.now.max(now);
        while self.engine.next_at().is_some_and(|at| at <= self.now) {
            let (at, event) = self.engine.pop()?;
            match event {
                EmulatedEvent::AtLink(side, place) => self.onto_link(at, side, place),
                EmulatedEvent::LinkFree(side) => {
                    self.links.link(side).handle_timeout(at);
                    self.turn(side);
                }
                EmulatedEvent::Arrival(direction, place) => {
                    let (bytes, _) = self.packets.about(place);
                    let Some(packet) = self.packets.take(place) else { continue };
                    let delivered = &mut self.delivered[direction as usize];
                    delivered.packets += 1;
                    delivered.bytes += u64::from(bytes);
                    // The histogram grows by itself.
                    let _ = self.lateness.record(self.now.as_nanos() - at.as_nanos());
                    return Some(DeliveredPacket { direction, due: at, packet });
                }
            }
        }
        None
    }

    /// The summary up to `now`.
    pub fn summary(&self, now: Instant) -> EmulationSummary {
        let now = self.now.max(now);
        let side = |direction: Direction, counts: LinkCounts| {
            let delivered = self.delivered[direction as usize];
            DirectionSummary::new(counts, delivered.packets, delivered.bytes, now)
        };
        let [up, down] = self.links.bottleneck(now);
        EmulationSummary {
            seconds: now.as_nanos() as f64 / 1e9,
            up: side(Direction::Up, up),
            down: side(Direction::Down, down),
            links: self.links.summaries(now),
            under_way: self.packets.count(),
            refused: self.packets.refused(),
            lateness: Lateness::new(&self.lateness),
        }
    }

    fn onto_link(&mut self, now: Instant, side: LinkSide, place: u32) {
        let (bytes, client) = self.packets.about(place);
        let packet =
            queue::QueuedPacket { id: place, client, bytes, queued_at: now, is_marked: false };
        match self.links.link(side).send(now, packet) {
            Some(fate) => self.on_link(side, place, fate),
            None => self.turn(side),
        }
    }

    /// Handles the fates that a queue discipline has decided.
    fn turn(&mut self, side: LinkSide) {
        while let Some((queue::QueuedPacket { id: place, .. }, fate)) =
            self.links.link(side).poll_fate()
        {
            self.on_link(side, place, fate);
        }
        if let Some(at) = self.links.link(side).poll_timeout() {
            self.engine.schedule(at, EmulatedEvent::LinkFree(side));
        }
    }

    fn on_link(&mut self, side: LinkSide, place: u32, fate: Fate) {
        let Fate::Delivered { at } = fate else {
            self.packets.take(place);
            return;
        };
        let LinkSide { direction, .. } = side;
        let (_, device) = self.packets.about(place);
        if let Some(link) = self.links.next(device, side) {
            let next = LinkSide { link, direction };
            self.engine.schedule(at, EmulatedEvent::AtLink(next, place));
            return;
        }
        let further = match direction {
            Direction::Up => self.draw_beyond(direction),
            Direction::Down => Duration::ZERO, // before the link
        };
        self.engine.schedule(at + further, EmulatedEvent::Arrival(direction, place));
    }

    /// The delay of one packet beyond the bottleneck.
    fn draw_beyond(&mut self, direction: Direction) -> Duration {
        let (delay, rng) = &mut self.beyond[direction as usize];
        Duration::from_nanos(delay.draw(rng))
    }
}
