//! The way between the devices and the bottleneck: links that devices share, and links of their own.

use crate::net::{Bottleneck, Delay, Direction, Link, LinkCounts, Loss, LossModel};
use crate::random::{CompactChaCha, Streams};
use crate::record::{DirectionCounts, LinkRecord};
use crate::scenario::LinkPath;
use crate::scenario::{Access, ClassView, Scenario};
use rand_chacha::ChaCha8Rng;

/// The number of the bottleneck among the links.
pub(super) const BOTTLENECK: u16 = 0;
/// In place of a number: the device's own link.
pub(super) const OWN: u16 = u16::MAX;
/// The rate of a link without one, at which a packet takes no time.
const NO_RATE: u64 = u64::MAX;

/// One direction of a link.
#[derive(Copy, Clone, Debug)]
pub(super) struct DirectedLink {
    /// The number of the link.
    pub(super) link: u16,
    /// The direction.
    pub(super) direction: Direction,
}

/// The links other than the bottleneck.
pub(super) struct SideLinks {
    /// The links that devices share, from number 1 on.
    shared: Vec<SharedLink>,
    /// For each class, the numbers of the links from its devices to the bottleneck, without that; then the
    /// same for TCP in the background, and from the cell of each move.
    routes: Vec<Vec<u16>>,
    /// For each shared link, the number of the one that follows it on the way to the server.
    onwards: Vec<u16>,
    /// The devices that have moved to other cells; nothing if none ever does.
    moved: Option<Moved>,
    /// The links of single devices, up and down, by the number of the device; empty if no class
    /// has such.
    own: Vec<Option<Box<[Link<CompactChaCha>; 2]>>>,
}

/// Where devices are that move between cells.
struct Moved {
    /// For each device, the index of its route.
    routes: Vec<u16>,
    /// The index of the route of the first move.
    first: u16,
    /// By the place of a packet to a device, the last shared link that carried it.
    carried: Vec<u16>,
    /// For each link, the bottleneck first, the packets whose device had left its cell.
    missed: Vec<u64>,
}

struct SharedLink {
    name: String,
    up: Bottleneck<ChaCha8Rng>,
    down: Bottleneck<ChaCha8Rng>,
    /// For each class, the bytes of its packets that passed it up and down.
    carried: Vec<(u64, u64)>,
}

impl SideLinks {
    /// The links of a scenario; `None` if it has only the bottleneck.
    pub(super) fn new(
        scenario: &Scenario,
        classes: &[ClassView],
        streams: &Streams,
    ) -> Option<Box<Self>> {
        let has_own = classes.iter().any(|class| class.scenario.clients.access.is_some());
        if scenario.link.is_empty() && !has_own && scenario.device_move.is_empty() {
            return None;
        }
        let shared = scenario.link.iter().map(|link| {
            let loss = LossModel::of_share(link.loss);
            let path = |direction: Direction| {
                let name = format!("{}/{}", link.name, direction.name());
                let mtu = scenario.network.mtu;
                let spec = link.towards(direction);
                let mut path = LinkPath::named(&name, &spec, mtu, loss, streams).link;
                path.add_outages(scenario.outages_of(&link.name));
                path
            };
            let (up, down) = (path(Direction::Up), path(Direction::Down));
            SharedLink { name: link.name.clone(), up, down, carried: vec![(0, 0); classes.len()] }
        });
        // At most 1000 links.
        let number = |index: usize| index as u16 + 1;
        let route = |class: &ClassView| {
            scenario.route(class.scenario.clients.link.as_deref()).into_iter().map(number).collect()
        };
        let background = scenario.network.background.link.as_deref();
        let moves = scenario.device_move.iter().map(|moved| Some(moved.to.as_str()));
        let others = std::iter::once(background).chain(moves);
        let others = others.map(|place| scenario.route(place).into_iter().map(number).collect());
        let onwards =
            |name: &str| scenario.route(Some(name)).get(1).copied().map_or(BOTTLENECK, number);
        let home =
            (0..).zip(classes).flat_map(|(index, class)| class.clients().map(move |_| index));
        let moved = (!scenario.device_move.is_empty()).then(|| Moved {
            routes: home.collect(),
            first: classes.len() as u16 + 1,
            carried: Vec::new(),
            missed: vec![0; scenario.link.len() + 1],
        });
        let own = |class: &ClassView| -> Vec<_> {
            let both = |device: u32| {
                let access = class.scenario.clients.access?;
                Some(Box::new([
                    own(access, device, Direction::Up, streams),
                    own(access, device, Direction::Down, streams),
                ]))
            };
            class.clients().map(both).collect()
        };
        Some(Box::new(Self {
            shared: shared.collect(),
            routes: classes.iter().map(route).chain(others).collect(),
            onwards: scenario.link.iter().map(|link| onwards(&link.name)).collect(),
            moved,
            own: if has_own { classes.iter().flat_map(own).collect() } else { Vec::new() },
        }))
    }

    /// The links from a device to the bottleneck, without that.
    #[inline]
    fn route(&self, client: u32, class: usize) -> &[u16] {
        let moved = self.moved.as_ref().and_then(|moved| moved.routes.get(client as usize));
        let index = moved.map_or(class, |index| usize::from(*index));
        self.routes.get(index).map_or(&[][..], Vec::as_slice)
    }

    /// A device is in another cell from now on.
    pub(super) fn moves(&mut self, client: u32, number: u16) {
        let Some(moved) = &mut self.moved else { return };
        if let Some(route) = moved.routes.get_mut(client as usize) {
            *route = moved.first + number;
        }
    }

    /// A packet to a device is on its last way, behind a shared link.
    pub(super) fn leaves(&mut self, place: u32, link: u16) {
        let Some(moved) = self.moved.as_mut().filter(|_| link != OWN) else { return };
        let place = place as usize;
        if moved.carried.len() <= place {
            moved.carried.resize(place + 1, BOTTLENECK);
        }
        moved.carried[place] = link;
    }

    /// Whether a packet that would arrive at a device misses it, because the device has left the cell.
    pub(super) fn misses(&mut self, place: u32, client: u32) -> bool {
        let Some(moved) = &mut self.moved else { return false };
        let route = moved.routes.get(client as usize);
        let Some(route) = route.and_then(|index| self.routes.get(usize::from(*index))) else {
            return false;
        };
        let cell = route.first().copied().unwrap_or(BOTTLENECK);
        let carrier = moved.carried.get(place as usize).copied().unwrap_or(BOTTLENECK);
        if carrier != cell {
            moved.missed[usize::from(carrier)] += 1;
        }
        carrier != cell
    }

    /// The packets that a link carried to devices that had left.
    pub(super) fn missed(&self, number: u16) -> u64 {
        let missed = self.moved.as_ref().and_then(|moved| moved.missed.get(usize::from(number)));
        missed.copied().unwrap_or(0)
    }

    /// The link that follows the one with this number for packets of a device of this class;
    /// `None` after the last: the server or the device is next.
    #[inline]
    pub(super) fn next(
        &self,
        client: u32,
        class: usize,
        link: Option<u16>,
        direction: Direction,
    ) -> Option<u16> {
        let route = self.route(client, class);
        let has_own = self.own.get(client as usize).is_some_and(Option::is_some);
        let place = |number| route.iter().position(|own| *own == number);
        if direction == Direction::Up {
            let first = || route.first().copied().unwrap_or(BOTTLENECK);
            return match link {
                None if has_own => Some(OWN),
                None | Some(OWN) => Some(first()),
                Some(BOTTLENECK) => None,
                Some(number) => {
                    let next = self.onwards.get(usize::from(number) - 1);
                    Some(next.copied().unwrap_or(BOTTLENECK))
                }
            };
        }
        let own = has_own.then_some(OWN);
        match link {
            None => Some(BOTTLENECK),
            Some(OWN) => None,
            Some(BOTTLENECK) => route.last().copied().or(own),
            Some(number) => match place(number) {
                Some(at) if at > 0 => Some(route[at - 1]),
                _ => own,
            },
        }
    }

    /// One direction of a shared link.
    pub(super) fn link(
        &mut self,
        number: u16,
        direction: Direction,
    ) -> Option<&mut Bottleneck<ChaCha8Rng>> {
        let shared = self.shared.get_mut(usize::from(number).checked_sub(1)?)?;
        Some(direction.select(&mut shared.up, &mut shared.down))
    }

    /// One direction of a device's own link.
    pub(super) fn own(
        &mut self,
        client: u32,
        direction: Direction,
    ) -> Option<&mut Link<CompactChaCha>> {
        let own = self.own.get_mut(client as usize)?.as_mut()?;
        own.get_mut(direction as usize)
    }

    /// The name of a link.
    pub(super) fn name(&self, number: u16) -> &str {
        let place = usize::from(number).checked_sub(1);
        place.and_then(|place| self.shared.get(place)).map_or("access", |shared| &shared.name)
    }

    /// A packet of a class occupied a shared link.
    pub(super) fn carries(&mut self, number: u16, class: usize, bytes: u64, direction: Direction) {
        let place = usize::from(number).checked_sub(1);
        let shared = place.and_then(|place| self.shared.get_mut(place));
        if let Some((up, down)) = shared.and_then(|shared| shared.carried.get_mut(class)) {
            *direction.select(up, down) += bytes;
        }
    }

    /// The counts of the shared links.
    pub(super) fn records(&self) -> Vec<LinkRecord> {
        let record = |(number, shared): (u16, &SharedLink)| LinkRecord {
            name: shared.name.clone(),
            up: shared.up.counts().into(),
            down: DirectionCounts::from(shared.down.counts()).without(self.missed(number)),
            carried: shared.carried.clone(),
        };
        (1..).zip(&self.shared).map(record).collect()
    }

    /// The counts of the own links of a class's devices, summed, up and down.
    pub(super) fn own_record(
        &self,
        class: &ClassView,
    ) -> Option<(DirectionCounts, DirectionCounts)> {
        class.scenario.clients.access?;
        let mut sum = (DirectionCounts::default(), DirectionCounts::default());
        for [up, down] in
            class.clients().filter_map(|client| self.own.get(client as usize)?.as_deref())
        {
            add(&mut sum.0, up.counts());
            add(&mut sum.1, down.counts());
        }
        Some(sum)
    }
}

fn add(sum: &mut DirectionCounts, counts: LinkCounts) {
    let one = DirectionCounts::from(counts);
    sum.sent += one.sent;
    sum.delivered += one.delivered;
    sum.dropped_queue += one.dropped_queue;
    sum.lost_link += one.lost_link;
    sum.marked += one.marked;
    sum.bytes += one.bytes;
    sum.busy_ns += one.busy_ns;
}

fn own(
    access: Access,
    device: u32,
    direction: Direction,
    streams: &Streams,
) -> Link<CompactChaCha> {
    let way = direction.name();
    let stream = |what: &str| streams.frugal(&format!("access/{device}/{way}/{what}"));
    let loss = Loss::new(LossModel::of_share(access.loss), stream("loss"), stream("loss/states"));
    let rate = access.rate.map_or(NO_RATE, |rate| rate.0);
    Link::new(rate, access.buffer.0, Delay::fixed(access.delay.0), loss, stream("delay"))
}
