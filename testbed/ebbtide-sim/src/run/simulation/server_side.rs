//! The servers' side of a replication: requests that arrive, sessions, ends of connections.

use super::Simulation;
use crate::host::{OutgoingPacket, client_address};
use crate::net::Direction;
use crate::record::Recorder;
use crate::run::client_timer::due;
use crate::run::event::{Moment, NetEvent};
use crate::run::pool::PooledPacket;
use ebbtide_core::time::Instant;

impl<R: Recorder> Simulation<R> {
    /// A packet arrives at the host that responds.
    pub(super) fn at_responder(
        &mut self,
        now: Instant,
        place: u32,
        packet: PooledPacket,
        direction: Direction,
    ) {
        let datagram = self.net.pool.bytes(place, packet.length);
        let client = packet.client;
        // Without that the server need not touch the client.
        if self.clients.has_ends
            && let Some(server) = self.clients.hosts[client as usize].server_end()
        {
            let arrived = server.receive(now, datagram, packet.tag);
            self.net.pool.release(place);
            for number in arrived {
                self.delivered(now, client, number);
            }
            self.drain_server(now, client);
            return;
        }
        // The answer takes a place of its own before this one is free.
        self.servers.request.clear();
        self.servers.request.extend_from_slice(datagram);
        if !packet.tag.probe {
            self.delivered(now, client, packet.tag.exchange);
        }
        let from = client_address(client);
        let class = self.roster.class_of(client);
        self.servers.constant.serve(class);
        let net = &mut self.net;
        let moment = &mut Moment { now, engine: &mut self.engine, recorder: &mut self.recorder };
        let mut send = |client, datagram: &[u8], tag| {
            let packet = OutgoingPacket { client, datagram, tag };
            match direction {
                Direction::Up => net.server_sends(packet, moment),
                Direction::Down => net.client_sends(packet, moment),
            }
        };
        if let Some(server) = &mut self.servers.downloads[class] {
            server.answer(now, client, &self.servers.request, |to, bytes| {
                send(to, bytes, packet.tag)
            });
            self.net.pool.release(place);
            return;
        }
        match &mut self.servers.sessions {
            None if self.roster.observes(class) => {
                self.servers.observers.receive(now, from, &self.servers.request, packet.tag, send);
            }
            None => {
                self.servers.constant.receive(now, from, &self.servers.request, packet.tag, send)
            }
            Some(sessions) => {
                let packet =
                    OutgoingPacket { client, datagram: &self.servers.request, tag: packet.tag };
                let timeout = sessions.receive(now, packet, &mut self.servers.constant, &mut send);
                if let Some(at) = due(timeout, &mut sessions.timer, now) {
                    self.engine.schedule(at, NetEvent::SessionTimer);
                }
            }
        }
        self.net.pool.release(place);
    }

    /// The timer of the server's DTLS sessions.
    pub(super) fn session_timer(&mut self, now: Instant) {
        let Some(sessions) = &mut self.servers.sessions else { return };
        // Only the timer event that was scheduled last counts: others are left over.
        if self.end.is_over || sessions.timer != Some(now) {
            return;
        }
        sessions.timer = None;
        sessions.handle_timeout(now);
        let net = &mut self.net;
        let moment = &mut Moment { now, engine: &mut self.engine, recorder: &mut self.recorder };
        let timeout = sessions.drain(|client, datagram, tag| {
            net.server_sends(OutgoingPacket { client, datagram, tag }, moment);
        });
        if let Some(at) = due(timeout, &mut sessions.timer, now) {
            self.engine.schedule(at, NetEvent::SessionTimer);
        }
    }

    /// A message of a flow arrives at the server.
    pub(super) fn delivered(&mut self, now: Instant, client: u32, number: u32) {
        if self.clients.has_flows
            && let Some(flow) = self.clients.hosts[client as usize].flow()
            && flow.arrives(now, number)
        {
            self.recorder.delivered(now, client);
        }
        self.clients.arrived[client as usize].note(number);
    }

    /// The timer of what the server keeps for a client.
    pub(super) fn server_timer(&mut self, now: Instant, client: u32) {
        if let Some(server) = self.clients.hosts[client as usize].server_end()
            && *server.timer() == Some(now)
        {
            *server.timer() = None;
            server.handle_timeout();
            self.drain_server(now, client);
        }
    }

    /// Sends what the server keeps for a client and has to send to it, and schedules its timer.
    fn drain_server(&mut self, now: Instant, client: u32) {
        let net = &mut self.net;
        let moment = &mut Moment { now, engine: &mut self.engine, recorder: &mut self.recorder };
        let Some(server) = self.clients.hosts[client as usize].server_end() else { return };
        let timeout = server.drain(now, &mut |datagram, tag| {
            net.server_sends(OutgoingPacket { client, datagram, tag }, moment);
        });
        if let Some(at) = due(timeout, server.timer(), now) {
            self.engine.schedule(at, NetEvent::ServerTimer(client));
        }
    }
}
