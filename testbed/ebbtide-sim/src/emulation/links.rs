//! The links of a scenario, and which of them a device's packets take.

use super::{Direction, DirectionSummary, LinkSummary};
use crate::net::{Bottleneck, LinkCounts, LossModel};
use crate::random::Streams;
use crate::scenario::{BOTTLENECK as BOTTLENECK_NAME, LinkPath, Scenario};
use ebbtide_core::time::Instant;
use rand_chacha::ChaCha8Rng;

/// The place of the bottleneck among the links; those of `[[link]]` follow in their order.
const BOTTLENECK: usize = 0;

/// One direction of a link.
#[derive(Copy, Clone, Debug)]
pub(super) struct LinkSide {
    pub(super) link: usize,
    pub(super) direction: Direction,
}

#[derive(Debug)]
pub(super) struct EmulatedLinks {
    links: Vec<[Bottleneck<ChaCha8Rng>; 2]>,
    /// The names of those after the bottleneck.
    names: Vec<String>,
    /// For each class, the number after its last device, and the links of its devices on the way
    /// up, the bottleneck last.
    routes: Vec<(u32, Vec<usize>)>,
}

impl EmulatedLinks {
    pub(super) fn new(
        scenario: &Scenario,
        mut bottleneck: [Bottleneck<ChaCha8Rng>; 2],
        streams: &Streams,
    ) -> Self {
        for link in &mut bottleneck {
            link.add_outages(scenario.outages_of(BOTTLENECK_NAME));
        }
        let mtu = scenario.network.mtu;
        let others = scenario.link.iter().map(|link| {
            Direction::BOTH.map(|direction| {
                let name = format!("{}/{}", link.name, direction.name());
                let (spec, loss) = (link.towards(direction), LossModel::of_share(link.loss));
                let mut path = LinkPath::named(&name, &spec, mtu, loss, streams).link;
                path.add_outages(scenario.outages_of(&link.name));
                path
            })
        });
        let routes = scenario.classes().into_iter().map(|class| {
            let route = scenario.route(class.scenario.clients.link.as_deref());
            let route = route.into_iter().map(|index| index + 1).chain([BOTTLENECK]);
            (class.clients().end, route.collect())
        });
        Self {
            links: std::iter::once(bottleneck).chain(others).collect(),
            names: scenario.link.iter().map(|link| link.name.clone()).collect(),
            routes: routes.collect(),
        }
    }

    /// The links of a device on the way up; those of the last class for a number beyond all devices.
    fn route(&self, device: u32) -> &[usize] {
        let class = self.routes.iter().find(|(end, _)| device < *end).or(self.routes.last());
        class.map_or(&[BOTTLENECK], |(_, route)| route)
    }

    /// The first link of a packet.
    pub(super) fn first(&self, device: u32, direction: Direction) -> usize {
        match direction {
            Direction::Up => self.route(device).first().copied().unwrap_or(BOTTLENECK),
            Direction::Down => BOTTLENECK,
        }
    }

    /// The link after this one; `None` after the last.
    pub(super) fn next(&self, device: u32, side: LinkSide) -> Option<usize> {
        let route = self.route(device);
        let at = route.iter().position(|link| *link == side.link)?;
        match side.direction {
            Direction::Up => route.get(at + 1).copied(),
            Direction::Down => at.checked_sub(1).and_then(|before| route.get(before).copied()),
        }
    }

    pub(super) fn link(&mut self, side: LinkSide) -> &mut Bottleneck<ChaCha8Rng> {
        &mut self.links[side.link][side.direction as usize]
    }

    /// The counts of the bottleneck up to `now`, up and down.
    pub(super) fn bottleneck(&self, now: Instant) -> [LinkCounts; 2] {
        let [up, down] = &self.links[BOTTLENECK];
        [up, down].map(|link| link.counts_until(now))
    }

    /// The summaries of the other links.
    pub(super) fn summaries(&self, now: Instant) -> Vec<LinkSummary> {
        let summary = |(name, [up, down]): (&String, &[Bottleneck<ChaCha8Rng>; 2])| {
            let [up, down] = [up, down].map(|link| {
                let counts = link.counts_until(now);
                DirectionSummary::new(counts, counts.delivered, counts.bytes_delivered, now)
            });
            LinkSummary { name: name.clone(), up, down }
        };
        self.names.iter().zip(&self.links[BOTTLENECK + 1..]).map(summary).collect()
    }
}
