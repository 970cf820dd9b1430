//! One direction of the path between clients and server, as a scenario describes it.

use super::{Delay, Link, Loss, LossModel};
use crate::random::Streams;
use crate::scenario::LinkSpec;
use rand_chacha::ChaCha8Rng;

/// The bottleneck link of one direction, and the delay between its router and the server. The
/// streams of randomness are named here, once, so that every driver of a scenario's path draws the
/// same values.
#[derive(Clone, Debug)]
pub struct Path {
    /// The bottleneck.
    pub link: Link<ChaCha8Rng>,
    /// The delay beyond the link, and the generator that draws it.
    pub beyond: (Delay, ChaCha8Rng),
}

impl Path {
    /// Creates the path called `name` (`"up"` from the clients to the server, `"down"` back).
    #[must_use]
    pub fn new(name: &str, spec: &LinkSpec, loss: LossModel, streams: &Streams) -> Self {
        let packets = streams.stream(&format!("link/{name}/loss"));
        let states = streams.stream(&format!("link/{name}/loss/states"));
        let delays = streams.stream(&format!("link/{name}/delay"));
        let loss = Loss::new(loss, packets, states);
        let mut link = Link::new(spec.rate.0, spec.buffer.0, spec.delay.delay(), loss, delays);
        link.lose(spec.drops.iter().map(|drops| drops.0));
        Self { link, beyond: (spec.beyond.delay(), streams.stream(&format!("beyond/{name}"))) }
    }
}
