//! A low-power network between the clients and the bottleneck, or between that and the servers.

use super::network::{Net, NetEvent};
use super::placement::Placement;
use super::radio::Radio;
use super::topology::BOTTLENECK;
use crate::engine::Engine;
use crate::host::tagged;
use crate::medium::ieee802154::LowPowerEvent;
use crate::mesh::{Cause, Datagram, Ended, Network};
use crate::random::Streams;
use crate::record::{Causes, Direction, LostAt, MeshRecord, Recorder};
use crate::scenario::{ClassView, Mesh, Scenario};
use ebbtide_core::time::Instant;
use std::collections::VecDeque;

/// The network, the places of the hosts, and what became of their datagrams from end to end.
pub(super) struct LowPower {
    network: Network,
    pub(super) placement: Placement,
    /// Datagrams to the servers and back.
    pub(super) up: Direction,
    pub(super) down: Direction,
    /// Requests for which a mote had no room.
    pub(super) host_busy: u64,
    /// Whose datagrams were lost, and why.
    losses: VecDeque<(u32, Cause)>,
}

impl LowPower {
    pub(super) fn new(
        scenario: &Scenario,
        mesh: &Mesh,
        classes: &[ClassView],
        streams: &Streams,
    ) -> Self {
        let network = Network::new(scenario, mesh, streams);
        Self {
            placement: Placement::new(scenario, classes, &network, streams),
            network,
            up: Direction::default(),
            down: Direction::default(),
            host_busy: 0,
            losses: VecDeque::new(),
        }
    }

    pub(super) const fn direction(&mut self, upwards: bool) -> &mut Direction {
        if upwards { &mut self.up } else { &mut self.down }
    }

    /// Something happens on the air.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        event: LowPowerEvent,
        engine: &mut Engine<NetEvent>,
    ) {
        self.network.handle(now, event, engine);
    }

    /// The measurements of the network at `now`; those of its clients are still to be added.
    pub(super) fn record(&self, now: Instant) -> MeshRecord {
        MeshRecord {
            nodes: self.network.records(now),
            client_nodes: self.placement.of_clients(),
            datagrams: self.network.set_out,
            arrived: self.network.arrived,
            lost: Causes { host: self.host_busy, ..self.network.lost },
            measured_ns: now.as_nanos(),
            ..MeshRecord::default()
        }
    }
}

impl Net {
    /// A packet sets out at its host's node, or at the root if it comes from the Internet.
    pub(super) fn enter_mesh(
        &mut self,
        now: Instant,
        (place, upwards): (u32, bool),
        engine: &mut Engine<NetEvent>,
    ) {
        let (packet, datagram) = self.pool.get(place);
        let Some(mesh) = self.radio.as_mut().and_then(Radio::low_power) else { return };
        let client = mesh.placement.client(packet.client);
        let server = mesh.placement.server(packet.client, packet.tag.exchange);
        let (from, to) = if upwards { (client, server) } else { (server, client) };
        let node = mesh.placement.node(from).unwrap_or(mesh.network.topology.root);
        let bytes = datagram.len() as u32;
        let datagram = Datagram { token: place, upwards, from, to, bytes };
        mesh.network.send(now, (node, datagram), engine);
    }

    /// Tells the observer of the frame that an event puts on the air, if it wants to know.
    pub(super) fn note_frame<R: Recorder>(
        &mut self,
        now: Instant,
        event: LowPowerEvent,
        recorder: &mut R,
    ) {
        if !recorder.wants_frames() {
            return;
        }
        let Some(mesh) = self.radio.as_mut().and_then(Radio::low_power) else { return };
        let pool = &self.pool;
        let frame = mesh.network.on_air(event, |place| pool.get(place).1);
        if let Some((from, to, bytes)) = frame {
            recorder.on_air(now, from, to, &bytes);
        }
    }

    /// The next packet that has arrived at its host on a node, and whether that is a server. Those for the
    /// Internet go onto the link.
    pub(super) fn crossed_mesh<R: Recorder>(
        &mut self,
        now: Instant,
        engine: &mut Engine<NetEvent>,
        recorder: &mut R,
    ) -> Option<(u32, bool)> {
        loop {
            let mesh = self.radio.as_mut().and_then(Radio::low_power)?;
            while let Some(place) = mesh.network.released() {
                self.pool.release(place);
            }
            let Ended { datagram, node, lost } = mesh.network.poll()?;
            let upwards = datagram.upwards;
            if let Some(cause) = lost {
                self.lost_in_mesh(now, (datagram, node), cause, recorder);
                continue;
            }
            let is_there = datagram.to == node;
            // The sender's node may still have its frames.
            let place = self.pool.copy(datagram.token);
            let (packet, bytes) = self.pool.get(place);
            recorder.crossed(now, "mesh", &packet.details(bytes, upwards, now));
            if is_there {
                return Some((place, upwards));
            }
            let link = self.next(packet.client, None, upwards).unwrap_or(BOTTLENECK);
            self.onto_link(now, (place, link, upwards), engine, recorder);
        }
    }

    /// Counts a packet that was lost in the network, and tells the observer where.
    fn lost_in_mesh<R: Recorder>(
        &mut self,
        now: Instant,
        (datagram, node): (Datagram, u32),
        cause: Cause,
        recorder: &mut R,
    ) {
        let Some(mesh) = self.radio.as_mut().and_then(Radio::low_power) else { return };
        let (packet, _) = self.pool.get(datagram.token);
        let upwards = datagram.upwards;
        recorder.lost_at(
            now,
            tagged(packet.client, packet.tag),
            &LostAt { node, upwards, cause: cause.name() },
        );
        let direction = mesh.direction(upwards);
        match cause {
            Cause::Queue => direction.dropped_queue += 1,
            _ => direction.lost_link += 1,
        }
        mesh.losses.push_back((packet.client, cause));
    }

    /// The next client whose datagram, or the answer to it, was lost in the network, and why.
    pub(super) fn loss_in_mesh(&mut self) -> Option<(u32, Cause)> {
        self.radio.as_mut()?.low_power()?.losses.pop_front()
    }

    /// The low-power network, if there is one.
    #[inline]
    pub(super) fn low_power(&mut self) -> Option<&mut LowPower> {
        self.radio.as_mut().and_then(Radio::low_power)
    }

    /// For each node of it, whether a server is there.
    pub(super) fn serving_nodes(&mut self) -> Vec<bool> {
        self.low_power().map(|mesh| mesh.placement.serves()).unwrap_or_default()
    }

    /// The node on which the server of a client's exchange is, if it is on one.
    pub(super) fn serving_node(&mut self, client: u32, exchange: u32) -> Option<u32> {
        let mesh = self.radio.as_mut()?.low_power()?;
        mesh.placement.node(mesh.placement.server(client, exchange))
    }
}
