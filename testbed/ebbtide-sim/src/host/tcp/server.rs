//! The host that answers over TCP, as one client sees it.

use super::connection::{Repeats, StreamedMessage, TcpConnection, coap_config};
use super::segment::Segment;
use super::socket::{Setup, Socket};
use crate::host::{PORT, SERVER, ServerEnd, Tag, digits};
use crate::net::Delay;
use crate::random::Streams;
use crate::scenario::{Scenario, Tcp};
use ebbtide_core::stream::{self, Incoming};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber};
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::ops::Range;

/// The server's ends of the connections of one client. Those of other clients are none of its
/// business: a listening socket per client saves looking for the one that is meant.
pub(crate) struct TcpServer {
    payload: Vec<u8>,
    settings: Tcp,
    mtu: usize,
    /// Bytes of the sockets' buffers.
    buffer: usize,
    coap: stream::Config,
    /// Initial sequence numbers.
    rng: ChaCha8Rng,
    processing: (Delay, ChaCha8Rng),
    connections: Vec<ServerConnection>,
    repeats: Repeats,
    /// The earliest timer event that is scheduled for it.
    timer: Option<Instant>,
}

/// A connection, the client's port, and the requests on it.
struct ServerConnection {
    port: u16,
    connection: TcpConnection,
    /// The exchange of the next request: a client's are in order.
    next: u32,
    unanswered: VecDeque<Unanswered>,
}

/// A request that is being processed.
struct Unanswered {
    /// When it has been.
    at: Instant,
    incoming: Incoming,
    tag: Tag,
}

impl TcpServer {
    pub(crate) fn new(client: u32, settings: Tcp, scenario: &Scenario, streams: &Streams) -> Self {
        let window = super::window(scenario);
        let processing = streams.stream(&format!("server/tcp/{client}/processing"));
        Self {
            payload: digits(scenario.workload.response_payload),
            settings,
            mtu: super::mtu(scenario),
            buffer: scenario.tcp_buffer() as usize,
            coap: coap_config(super::token_length(scenario), window),
            rng: streams.stream(&format!("server/tcp/{client}")),
            processing: (scenario.server.processing.delay(), processing),
            connections: Vec::new(),
            repeats: Repeats::default(),
            timer: None,
        }
    }

    /// Returns the place of a socket for a connection that begins. It refuses any packet other than a SYN.
    fn accept(&mut self, now: Instant, port: u16, next: u32) -> usize {
        let setup = Setup {
            settings: self.settings,
            mtu: self.mtu,
            buffer: self.buffer,
            seed: self.rng.next_u64(),
        };
        let local = SocketAddrV4::new(SERVER, PORT);
        let connection = TcpConnection::new(Socket::listen(now, setup, local), self.coap);
        self.connections.push(ServerConnection {
            port,
            connection,
            next,
            unanswered: VecDeque::new(),
        });
        self.connections.len() - 1
    }

    /// Counters of what its ends repeated.
    pub(crate) const fn repeats(&self) -> Repeats {
        self.repeats
    }

    /// Whether it holds a connection.
    #[cfg(test)]
    pub(super) fn is_connected(&self) -> bool {
        !self.connections.is_empty()
    }
}

impl ServerEnd for TcpServer {
    fn receive(&mut self, now: Instant, packet: &[u8], tag: Tag) -> Range<u32> {
        let Some(segment) = Segment::parse(packet) else { return 0..0 };
        let known = self.connections.iter().position(|one| one.port == segment.source);
        let place = known.unwrap_or_else(|| self.accept(now, segment.source, tag.exchange));
        let Some(accepted) = self.connections.get_mut(place) else { return 0..0 };
        let first = accepted.next;
        let connection = &mut accepted.connection;
        connection.receive(now, packet, &segment, &mut self.repeats);
        while let Some(message) = connection.next_message(now) {
            if let StreamedMessage::Request(incoming) = message {
                let (delay, rng) = &mut self.processing;
                let at = now + Duration::from_nanos(delay.draw(rng));
                let exchange = accepted.next;
                accepted.next += 1;
                // Of a request that came with others only the segment of the last one is known.
                let ordinal = if exchange == tag.exchange { tag.ordinal } else { 0 };
                let tag = Tag { exchange, ordinal, probe: false };
                accepted.unanswered.push_back(Unanswered { at, incoming, tag });
            }
        }
        connection.end_input(now);
        first..accepted.next
    }

    fn timer(&mut self) -> &mut Option<Instant> {
        &mut self.timer
    }

    fn handle_timeout(&mut self) {
        for accepted in &mut self.connections {
            accepted.connection.handle_timeout();
        }
    }

    /// Answers what has been processed before it hands on what is to be sent.
    fn drain(&mut self, now: Instant, send: &mut dyn FnMut(&[u8], Tag)) -> Option<Instant> {
        let mut timeout: Option<Instant> = None;
        for accepted in &mut self.connections {
            accepted.answer(now, &self.payload);
            let fallback = Tag { exchange: accepted.next, ordinal: 0, probe: false };
            let due = accepted.connection.drain(now, &mut self.repeats, |packet, departure, _| {
                send(packet, departure.tags.map_or(fallback, |(_, last)| last));
            });
            let processed = accepted.unanswered.front().map(|first| first.at);
            timeout = timeout.into_iter().chain(due).chain(processed).min();
        }
        self.connections.retain(|accepted| !accepted.connection.is_gone());
        timeout
    }
}

impl ServerConnection {
    fn answer(&mut self, now: Instant, payload: &[u8]) {
        while let Some(first) = self.unanswered.front().filter(|first| first.at <= now) {
            let code = match first.incoming.code {
                Code::GET => Code::CONTENT,
                _ => Code::CHANGED,
            };
            // text/plain is content format 0, whose shortest form has no bytes (section 3.2).
            let format = [Opt { number: OptionNumber::CONTENT_FORMAT, value: &[] }];
            let content = Content { code, options: &format, payload };
            // A connection that is over has nobody to answer.
            let _ = self.connection.respond(now, &first.incoming, &content, first.tag);
            self.unanswered.pop_front();
        }
    }
}
