//! Packets that enter, cross and leave a low-power network.

use super::event::Moment;
use super::low_power::LowPower;
use super::network::Net;
use super::radio::Radio;
use super::topology::{BOTTLENECK, DirectedLink};
use crate::host::tagged;
use crate::medium::low_power::LowPowerEvent;
use crate::medium::low_power::{Cause, EndedDatagram, MeshDatagram};
use crate::net::Direction;
use crate::record::{LostAt, Recorder};

impl Net {
    /// A packet sets out at its host's node, or at the root if it comes from the Internet.
    pub(super) fn enter_mesh<R>(
        &mut self,
        place: u32,
        direction: Direction,
        moment: &mut Moment<'_, R>,
    ) {
        let (packet, datagram) = self.pool.get(place);
        let Some(mesh) = self.radio.as_mut().and_then(Radio::low_power) else { return };
        let client = mesh.placement.client(packet.client);
        let server = mesh.placement.server(packet.client, packet.tag.exchange);
        let (from, to) = direction.select((client, server), (server, client));
        let node = mesh.placement.node(from).unwrap_or(mesh.network.topology.root);
        let bytes = datagram.len() as u32;
        let datagram = MeshDatagram { token: place, direction, from, to, bytes };
        mesh.network.send(moment.now, node, datagram, moment.engine);
    }

    /// Tells the observer of the frame that an event puts on the air, if it wants to know.
    pub(super) fn note_frame<R: Recorder>(
        &mut self,
        event: LowPowerEvent,
        moment: &mut Moment<'_, R>,
    ) {
        if !moment.recorder.wants_frames() {
            return;
        }
        let Some(mesh) = self.radio.as_mut().and_then(Radio::low_power) else { return };
        let pool = &self.pool;
        let frame = mesh.network.on_air(event, |place| pool.get(place).1);
        if let Some((from, to, bytes)) = frame {
            moment.recorder.on_air(moment.now, from, to, &bytes);
        }
    }

    /// The next packet that has arrived at its host on a node, and whether that is a server. Those for the
    /// Internet go onto the link.
    pub(super) fn crossed_mesh<R: Recorder>(
        &mut self,
        moment: &mut Moment<'_, R>,
    ) -> Option<(u32, Direction)> {
        loop {
            let mesh = self.radio.as_mut().and_then(Radio::low_power)?;
            while let Some(place) = mesh.network.released() {
                self.pool.release(place);
            }
            let EndedDatagram { datagram, node, lost } = mesh.network.poll()?;
            let direction = datagram.direction;
            if let Some(cause) = lost {
                self.lost_in_mesh(datagram, node, cause, moment);
                continue;
            }
            let is_there = datagram.to == node;
            // The sender's node may still have its frames.
            let place = self.pool.copy(datagram.token);
            let (packet, bytes) = self.pool.get(place);
            let details = packet.details(bytes, direction, moment.now);
            moment.recorder.crossed(moment.now, "mesh", &details);
            if is_there {
                return Some((place, direction));
            }
            let link = self.next(packet.client, None, direction).unwrap_or(BOTTLENECK);
            self.onto_link(place, DirectedLink { link, direction }, moment);
        }
    }

    /// Counts a packet that was lost in the network, and tells the observer where.
    fn lost_in_mesh<R: Recorder>(
        &mut self,
        datagram: MeshDatagram,
        node: u32,
        cause: Cause,
        moment: &mut Moment<'_, R>,
    ) {
        let Some(mesh) = self.radio.as_mut().and_then(Radio::low_power) else { return };
        let (packet, _) = self.pool.get(datagram.token);
        let direction = datagram.direction;
        let lost = LostAt { node, direction, cause: cause.name() };
        moment.recorder.lost_at(moment.now, tagged(packet.client, packet.tag), &lost);
        let counts = mesh.counts(direction);
        match cause {
            Cause::Queue => counts.dropped_queue += 1,
            _ => counts.lost_link += 1,
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
