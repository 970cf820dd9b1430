//! A server behind DTLS: one endpoint for the sessions of all clients.

use super::{HANDSHAKE, KEY, config};
use crate::host::{ConstantServer, OutgoingPacket, Tag, client_address, client_at};
use crate::random::Streams;
use crate::record::Handshakes;
use crate::scenario::Scenario;
use ebbtide_core::time::Instant;
use ebbtide_dtls::{Endpoint, Output, Psk, SessionId};

/// The sessions of a server.
pub(crate) struct SecureServer {
    pub(super) dtls: Endpoint,
    pub(crate) measured: Handshakes,
    /// The earliest timer event that is scheduled for it.
    pub(crate) timer: Option<Instant>,
    /// A datagram that is worked on; reused.
    bytes: Vec<u8>,
    /// Messages of that datagram; reused.
    messages: Vec<(SessionId, Vec<u8>)>,
}

impl SecureServer {
    pub(crate) fn new(scenario: &Scenario, streams: &Streams) -> Self {
        let mut dtls = Endpoint::new(config(scenario), Box::new(streams.stream("server/dtls")));
        dtls.accept(Box::new(|_: &[u8]| Psk::new(&KEY).ok()));
        Self {
            dtls,
            measured: Handshakes::default(),
            timer: None,
            bytes: Vec::new(),
            messages: Vec::new(),
        }
    }

    /// Takes a datagram of a client. Its messages go to `server`; all that is to be sent goes to `send`.
    /// Returns when the sessions want to be called again.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        packet: OutgoingPacket<'_>,
        server: &mut ConstantServer,
        mut send: impl FnMut(u32, &[u8], Tag),
    ) -> Option<Instant> {
        let OutgoingPacket { client, datagram, tag } = packet;
        self.bytes.clear();
        self.bytes.extend_from_slice(datagram);
        let (from, messages) = (client_address(client), &mut self.messages);
        self.dtls.handle_datagram(now, from, &mut self.bytes, &mut |session, message| {
            messages.push((session, message.to_vec()));
        });
        let (dtls, bytes) = (&mut self.dtls, &mut self.bytes);
        for (session, message) in self.messages.drain(..) {
            server.receive(now, from, &message, tag, |client, message, tag| {
                bytes.clear();
                // What an address that is not confirmed may not be sent is asked for again.
                let sent = dtls.send(now, session, message, bytes);
                if sent.is_ok_and(|to| to == client_address(client)) {
                    send(client, bytes, tag);
                }
            });
        }
        self.drain(send)
    }

    /// The timer may be due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.dtls.handle_timeout(now);
    }

    /// Hands the datagrams of handshakes to `send`. Returns when it wants to be called again.
    pub(crate) fn drain(&mut self, mut send: impl FnMut(u32, &[u8], Tag)) -> Option<Instant> {
        loop {
            match self.dtls.poll_output() {
                Output::Transmit { to, datagram } => {
                    self.measured.packets_down += 1;
                    self.measured.bytes_down += datagram.len() as u64;
                    // Nobody is at a client's earlier address any more.
                    if let Some(client) = client_at(to.into())
                        && to == client_address(client)
                    {
                        send(client, datagram, HANDSHAKE);
                    }
                }
                Output::Event(_) => {}
                Output::Timeout(at) => return at,
            }
        }
    }
}
