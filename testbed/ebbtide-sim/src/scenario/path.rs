//! One direction of the path between clients and server, as a scenario describes it.

use super::{LinkSpec, Network};
use crate::net::queue::LinkFacts;
use crate::net::{Bottleneck, Delay, Link, Loss, LossModel, ManagedLink};
use crate::random::Streams;
use ebbtide_core::time::Duration;
use rand_chacha::ChaCha8Rng;

/// The bottleneck link of one direction, and the delay between its router and the server. The
/// streams of randomness are named here, once, so that every driver of a scenario's path draws the
/// same values.
#[derive(Debug)]
pub struct LinkPath {
    /// The bottleneck.
    pub link: Bottleneck<ChaCha8Rng>,
    /// The delay beyond the link, and the generator that draws it.
    pub beyond: (Delay, ChaCha8Rng),
}

impl LinkPath {
    /// Creates the path from the clients to the server.
    pub fn up(network: &Network, loss: LossModel, streams: &Streams) -> Self {
        Self::named("up", &network.up, network.mtu, loss, streams)
    }

    /// The way back.
    pub fn down(network: &Network, loss: LossModel, streams: &Streams) -> Self {
        Self::named("down", &network.down, network.mtu, loss, streams)
    }

    /// Creates a link under a name from which its streams of randomness are derived. `mtu` is the length of the longest
    /// packet in bytes.
    pub fn named(
        name: &str,
        spec: &LinkSpec,
        mtu: u32,
        loss: LossModel,
        streams: &Streams,
    ) -> Self {
        let stream = |what: &str| streams.stream(&format!("link/{name}/{what}"));
        let loss = Loss::new(loss, stream("loss"), stream("loss/states"));
        let (rate, delay) = (spec.rate.0, spec.delay.delay());
        let mut link = match spec.queue {
            None => {
                Bottleneck::TailDrop(Link::new(rate, spec.buffer.0, delay, loss, stream("delay")))
            }
            Some(queue) => {
                let nanos = u64::from(mtu) * 8 * 1_000_000_000 / rate.max(1);
                let transmission = Duration::from_nanos(nanos);
                let buffer = spec.buffer.0;
                let facts = LinkFacts { buffer, mtu, transmission, ecn: queue.ecn() };
                let queue = queue.model().build(&facts, stream("queue"));
                let link = ManagedLink::new(rate, queue, delay, loss, stream("delay"));
                Bottleneck::Managed(Box::new(link))
            }
        };
        link.add_losses(spec.drops.iter().map(|drops| drops.0));
        if let Some(schedule) = spec.schedule() {
            link.follow(schedule);
        }
        Self { link, beyond: (spec.beyond.delay(), streams.stream(&format!("beyond/{name}"))) }
    }
}
