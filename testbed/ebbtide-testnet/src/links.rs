//! The links between hosts, and what is under way on them.

use crate::conditions::Conditions;
use crate::segment::{EndId, Segment};
use crate::trace::{PacketFate, PacketTrace, TracedPacket};
use bytes::Bytes;
use ebbtide_core::time::Instant;
use ebbtide_sim::net::{Fate, Link};
use ebbtide_sim::random::Streams;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::task::Waker;

/// The headers of IPv4 and UDP, which a link carries as well.
const UDP_HEADERS: u32 = 28;
/// Those of IPv4 and TCP.
const TCP_HEADERS: u32 = 40;

/// A direction between two hosts.
pub(crate) type HostPair = (IpAddr, IpAddr);

/// Whence and whither a packet goes.
#[derive(Copy, Clone, Debug)]
pub(crate) struct PacketRoute {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
}

impl PacketRoute {
    fn direction(self) -> HostPair {
        (self.from.ip(), self.to.ip())
    }
}

/// The contents of a packet.
#[derive(Clone, Debug)]
pub(crate) enum Packet {
    Datagram {
        bytes: Bytes,
        /// The group to which it was sent, if it was.
        group: Option<IpAddr>,
    },
    /// To this end of a connection.
    Segment(EndId, Segment),
}

impl Packet {
    fn bytes(&self) -> &Bytes {
        match self {
            Self::Datagram { bytes, .. } => bytes,
            Self::Segment(_, segment) => &segment.bytes,
        }
    }

    fn length(&self) -> u32 {
        let headers = match self {
            Self::Datagram { .. } => UDP_HEADERS,
            Self::Segment(..) => TCP_HEADERS,
        };
        u32::try_from(self.bytes().len()).unwrap_or(u32::MAX).saturating_add(headers)
    }
}

/// An event.
#[derive(Clone, Debug)]
pub(crate) enum AgendaEntry {
    /// A packet arrives; `place` is its place in the trace.
    Arrival { route: PacketRoute, packet: Packet, place: usize },
    /// A segment of this number is sent again unless it was acknowledged.
    Again(EndId, u64),
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Links {
    streams: Streams,
    conditions: Conditions,
    /// Those of directions that differ.
    of_directions: BTreeMap<HostPair, Conditions>,
    links: BTreeMap<HostPair, (Link<ChaCha8Rng>, ChaCha8Rng)>,
    pub(crate) cuts: BTreeSet<HostPair>,
    pub(crate) unplugged: BTreeSet<IpAddr>,
    /// By time, then in the order of sending.
    agenda: BTreeMap<(Instant, u64), AgendaEntry>,
    scheduled: u64,
    pub(crate) trace: PacketTrace,
    /// Whom to wake.
    pub(crate) woken: Vec<Waker>,
}

impl Links {
    pub(crate) fn new(seed: u64, conditions: Conditions) -> Self {
        Self {
            streams: Streams::new(seed, 0),
            conditions,
            of_directions: BTreeMap::new(),
            links: BTreeMap::new(),
            cuts: BTreeSet::new(),
            unplugged: BTreeSet::new(),
            agenda: BTreeMap::new(),
            scheduled: 0,
            trace: PacketTrace::default(),
            woken: Vec::new(),
        }
    }

    pub(crate) fn set_conditions(&mut self, conditions: Conditions) {
        (self.conditions, self.links) = (conditions, BTreeMap::new());
    }

    pub(crate) fn set_direction(&mut self, direction: HostPair, conditions: Conditions) {
        self.links.remove(&direction);
        self.of_directions.insert(direction, conditions);
    }

    pub(crate) fn schedule(&mut self, at: Instant, due: AgendaEntry) {
        self.agenda.insert((at, self.scheduled), due);
        self.scheduled += 1;
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.agenda.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next event, if it is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<AgendaEntry> {
        self.next_due().filter(|at| *at <= now)?;
        self.agenda.pop_first().map(|(_, due)| due)
    }

    /// Sends a packet.
    pub(crate) fn carry(&mut self, now: Instant, route: PacketRoute, packet: &Packet) {
        let direction = route.direction();
        let streams = &self.streams;
        let conditions = self.of_directions.get(&direction).unwrap_or(&self.conditions);
        let (link, duplicates) = self.links.entry(direction).or_insert_with(|| {
            let name = format!("{}/{}", route.from.ip(), route.to.ip());
            let link = conditions.link(streams, &name);
            (link, streams.stream(&format!("{name}/duplicates")))
        });
        let mut send = || link.send(now, packet.length());
        let first = send();
        let second = conditions.duplicates.draw(duplicates).then(send);
        for fate in [Some(first), second].into_iter().flatten() {
            let fate = match fate {
                _ if self.cuts.contains(&direction) => PacketFate::Cut,
                Fate::Delivered { at } => {
                    let place = self.trace.packets().len();
                    self.schedule(
                        at,
                        AgendaEntry::Arrival { route, packet: packet.clone(), place },
                    );
                    PacketFate::Arrives(at.saturating_since(Instant::ZERO))
                }
                Fate::Dropped => PacketFate::Dropped,
                Fate::Lost { .. } => PacketFate::Lost,
            };
            self.record(now, route, packet, fate);
        }
    }

    /// Notes a packet and its fate.
    pub(crate) fn record(
        &mut self,
        now: Instant,
        route: PacketRoute,
        packet: &Packet,
        fate: PacketFate,
    ) {
        self.trace.push(TracedPacket {
            at: now.saturating_since(Instant::ZERO),
            from: route.from,
            to: route.to,
            segment: match packet {
                Packet::Datagram { .. } => None,
                Packet::Segment(_, segment) => Some(segment.kind),
            },
            datagram: packet.bytes().clone(),
            fate,
        });
    }
}
