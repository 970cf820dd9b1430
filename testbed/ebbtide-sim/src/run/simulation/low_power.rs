//! The servers on the nodes of a low-power network, and the fates of packets in it.

use super::Simulation;
use crate::host::{OutgoingPacket, tagged};
use crate::net::Direction;
use crate::record::{LostAt, Recorder};
use crate::run::event::{Moment, NetEvent};
use crate::run::motes::Takes;
use crate::run::pool::PooledPacket;
use ebbtide_core::time::Instant;

impl<R: Recorder> Simulation<R> {
    /// Something happens that all clients of a class report.
    pub(super) fn report_event(&mut self, now: Instant, class: u16) {
        if self.end.is_over {
            return;
        }
        for client in self.roster.classes[usize::from(class)].clients() {
            self.clients.hosts[client as usize].report_event(now);
            self.drain(now, client);
        }
        if let Some(next) = self.happenings.next(now, class) {
            self.engine.schedule(next, NetEvent::Happens(class));
        }
    }

    /// A request arrives at a server on a node, which takes one after another.
    pub(super) fn at_mote(&mut self, now: Instant, place: u32, packet: PooledPacket, node: u32) {
        let (client, tag) = (packet.client, packet.tag);
        if !tag.probe {
            self.delivered(now, client, tag.exchange);
        }
        let (delay, rng) = &mut self.net.server_processing;
        match self.servers.motes.take(now, node, delay.draw(rng)) {
            Takes::Until(at) if at == now => self.processed(now, place),
            Takes::Until(at) => self.engine.schedule(at, NetEvent::Processed(place)),
            Takes::Not => {
                let lost = LostAt { node, direction: Direction::Up, cause: "host busy" };
                self.recorder.lost_at(now, tagged(client, tag), &lost);
                if let Some(mesh) = self.net.low_power() {
                    mesh.host_busy += 1;
                }
                self.net.pool.release(place);
            }
        }
    }

    /// A server on a node answers a request.
    pub(super) fn processed(&mut self, now: Instant, place: u32) {
        let (packet, datagram) = self.net.pool.get(place);
        self.servers.request.clear();
        self.servers.request.extend_from_slice(datagram);
        self.net.pool.release(place);
        let (client, tag) = (packet.client, packet.tag);
        let Some(node) = self.net.serving_node(client, tag.exchange) else { return };
        let class = self.roster.class_of(client);
        let net = &mut self.net;
        let moment = &mut Moment { now, engine: &mut self.engine, recorder: &mut self.recorder };
        self.servers.motes.answer(
            now,
            node,
            class,
            client,
            &self.servers.request,
            |client, datagram| {
                net.server_sends(OutgoingPacket { client, datagram, tag }, moment);
            },
        );
    }

    /// Handles the fates of packets in a low-power network.
    pub(super) fn settle(&mut self, now: Instant) {
        while let Some((place, direction)) = self.crossed(now) {
            self.at_host(now, place, direction);
        }
        while let Some((client, cause)) = self.net.loss_in_mesh() {
            self.clients.hosts[client as usize].note_loss(cause);
        }
    }
}
