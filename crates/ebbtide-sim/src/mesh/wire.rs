//! The wired side of a border router, one direction of it.

use crate::net::{Delay, Fate, Link, Loss, LossModel};
use crate::random::Streams;
use crate::scenario::LinkSpec;
use ebbtide_core::time::{Duration, Instant};
use rand_chacha::ChaCha8Rng;

/// One direction of the wired side. It loses nothing but what its queue has no room for.
pub(super) struct Wire {
    link: Link<ChaCha8Rng>,
    beyond: Delay,
    rng: ChaCha8Rng,
}

impl Wire {
    pub(super) fn new(name: &str, spec: &LinkSpec, streams: &Streams) -> Self {
        let stream = |what: &str| streams.stream(&format!("wire/{name}/{what}"));
        let loss = Loss::new(LossModel::None, stream("loss"), stream("states"));
        let delay = spec.delay.delay();
        Self {
            link: Link::new(spec.rate.0, spec.buffer.0, delay, loss, stream("delay")),
            beyond: spec.beyond.delay(),
            rng: stream("beyond"),
        }
    }

    /// When a datagram of `length` bytes arrives at the other end; `None` if there is no room for it.
    pub(super) fn send(&mut self, now: Instant, length: u32) -> Option<Instant> {
        match self.link.send(now, length) {
            Fate::Delivered { at } => {
                Some(at + Duration::from_nanos(self.beyond.draw(&mut self.rng)))
            }
            Fate::Dropped | Fate::Lost { .. } => None,
        }
    }
}
