//! A host that asks over TCP.

use super::connection::{Repeats, StreamedMessage, TcpConnection, coap_config};
use super::ledger::DepartingSegment;
use super::segment::Segment;
use super::server::TcpServer;
use super::socket::{Setup, Socket};
use crate::host::agenda::{Agenda, NextAction};
use crate::host::exchange_ledger::OpenExchange;
use crate::host::flow::MessageFlow;
use crate::host::{
    ArrivingPacket, ClientSetup, ExchangeLedger, Host, ObservedHost, PORT, SERVER, ServerEnd, Tag,
    client_host, digits, tagged,
};
use crate::record::Recorder;
use crate::scenario::Tcp;
use ebbtide_core::cc::Metrics;
use ebbtide_core::endpoint::Failure;
use ebbtide_core::stream;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber};
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Requests that wait for a connection, at most: as many as an endpoint over UDP queues.
const QUEUE: usize = 64;
/// Messages of a flow that are kept waiting: more than a segment holds, so that Nagle's algorithm
/// waits for no acknowledgement while there is more to send.
const AHEAD: u32 = 64;
/// The ports that connections come from (RFC 6335 section 6).
const EPHEMERAL: std::ops::RangeInclusive<u16> = 49_152..=65_535;

/// A client and its measurements.
pub(crate) struct TcpClient {
    number: u32,
    address: Ipv4Addr,
    agenda: Agenda,
    /// The record of its messages, if it sends a flow of them.
    pub(crate) flow: Option<Box<MessageFlow>>,
    path: Vec<u8>,
    payload: Vec<u8>,
    settings: Tcp,
    mtu: usize,
    /// Bytes of the socket's buffers.
    buffer: usize,
    coap: stream::Config,
    /// Ports and initial sequence numbers.
    rng: ChaCha8Rng,
    port: u16,
    /// The connection in use.
    current: Option<ClientConnection>,
    /// Those that are being closed.
    closing: Vec<ClientConnection>,
    /// Whether the handshake of the connection in use is to be over before the first request.
    warms_up: bool,
    is_warm: bool,
    /// Requests that have not ended, in order; the first `written` of them are under way.
    open: VecDeque<OpenExchange>,
    written: usize,
    repeats: Repeats,
    /// Retransmissions are those of segments with a request.
    pub(super) ledger: ExchangeLedger,
    /// The server's ends of its connections.
    pub(super) server: TcpServer,
}

/// A connection and the port that it comes from.
struct ClientConnection {
    port: u16,
    connection: TcpConnection,
}

impl TcpClient {
    pub(crate) fn new(setup: ClientSetup<'_>, settings: Tcp) -> Self {
        let ClientSetup { number, group, scenario, streams } = setup;
        let workload = &scenario.workload;
        let window = super::window(scenario);
        let agenda = Agenda::new(number, window, scenario, streams);
        let flow = MessageFlow::new(number, scenario, AHEAD);
        let mut rng = streams.stream(&format!("client/{number}/tcp"));
        let ports = u32::from(EPHEMERAL.end() - EPHEMERAL.start()) + 1;
        // Below the number of ports, which has 16 bits.
        let port = EPHEMERAL.start() + (rng.next_u32() % ports) as u16;
        Self {
            number,
            address: client_host(number),
            warms_up: agenda.keeps_device()
                && !flow.as_deref().is_some_and(MessageFlow::keeps_time),
            is_warm: false,
            agenda,
            flow,
            buffer: scenario.tcp_buffer() as usize,
            path: workload.path.clone().into_bytes(),
            payload: digits(workload.request_payload),
            settings,
            mtu: super::mtu(scenario),
            coap: coap_config(super::token_length(scenario), window),
            rng,
            port,
            current: None,
            closing: Vec::new(),
            open: VecDeque::new(),
            written: 0,
            repeats: Repeats::default(),
            ledger: ExchangeLedger::new(number, group),
            server: TcpServer::new(number, settings, scenario, streams),
        }
    }

    /// Offers what the flow has ready.
    fn offer(&mut self, now: Instant) {
        while self.agenda.has_more()
            && let Some(flow) = &mut self.flow
            && flow.offers(now)
        {
            let is_one = flow.keeps_time();
            if self.agenda.make(now).is_some() {
                flow.taken(now);
                self.open(now);
            }
            if is_one {
                return;
            }
        }
    }

    fn make_request(&mut self, now: Instant) {
        if self.open.len() - self.written >= QUEUE {
            // The reading of this period is lost, and counted.
            self.ledger.record.failed += u32::from(self.agenda.skip());
            return;
        }
        if self.agenda.make(now).is_some() {
            self.open(now);
        }
    }

    /// The request that was made last waits to be written.
    fn open(&mut self, now: Instant) {
        self.agenda.opened();
        let number = self.agenda.next_number() - 1;
        self.open.push_back(OpenExchange { number, made: now, ..OpenExchange::default() });
        self.connect(now);
    }

    /// Opens a connection, unless there is one.
    fn connect(&mut self, now: Instant) {
        if self.current.is_some() {
            return;
        }
        let port = self.port;
        self.port = if port == *EPHEMERAL.end() { *EPHEMERAL.start() } else { port + 1 };
        let local = SocketAddrV4::new(self.address, port);
        let setup = Setup {
            settings: self.settings,
            mtu: self.mtu,
            buffer: self.buffer,
            seed: self.rng.next_u64(),
        };
        let socket = Socket::connect(now, setup, local, server_v4());
        self.current =
            Some(ClientConnection { port, connection: TcpConnection::new(socket, self.coap) });
    }

    /// Closes the connection in use.
    fn close(&mut self) {
        if let Some(mut named) = self.current.take() {
            named.connection.close();
            self.closing.push(named);
        }
    }

    /// Hands the requests that wait to the connection.
    fn write(&mut self, now: Instant) {
        let Some(named) = &mut self.current else { return };
        let path = [Opt { number: OptionNumber::URI_PATH, value: &self.path }];
        let code = if self.payload.is_empty() { Code::GET } else { Code::PUT };
        let content = Content { code, options: &path, payload: &self.payload };
        while let Some(request) = self.open.get(self.written) {
            let tag = Tag { exchange: request.number, ordinal: 0, probe: false };
            if !named.connection.request(now, &content, tag) {
                return;
            }
            self.written += 1;
        }
    }

    fn answered(&mut self, now: Instant, payload: u64, tag: Tag, recorder: &mut impl Recorder) {
        let Some(exchange) = self.open.pop_front() else { return };
        self.written -= 1;
        // What was unnecessary is counted by the books on the streams.
        self.ledger.answered(now, &exchange, tag, payload, recorder);
        let (after, in_time) = self.agenda.answered(now, exchange.made);
        recorder.answered_after(after);
        self.ledger.record.in_time += u32::from(in_time);
        if recorder.wants_details() {
            let tagged = tagged(self.number, Tag { exchange: exchange.number, ..tag });
            recorder.answered(now, tagged, None, &Metrics::default());
        }
        self.ended(now);
    }

    fn ended(&mut self, now: Instant) {
        if let Some(time) = self.agenda.ended(now) {
            self.ledger.record.fct = time;
        }
    }

    /// Until when the application waits for a response to a request that is acknowledged, for which TCP
    /// has no timer: as long as TCP repeats data. Then the connection is given up.
    fn waits(&mut self, now: Instant) -> Option<Instant> {
        let left = self.open.front()?.sent.last()?;
        let named = self.current.as_mut().filter(|named| named.connection.is_acknowledged())?;
        let until = *left + self.settings.patience();
        if until <= now {
            named.connection.give_up();
            return None;
        }
        Some(until)
    }

    /// The connection in use is over, and with it what was open on it.
    fn abandon_connection(&mut self, now: Instant, recorder: &mut impl Recorder) {
        self.current = None;
        self.is_warm = false;
        self.written = 0;
        if self.open.is_empty() {
            // The request that it was opened for cannot be made.
            self.ledger.record.failed += u32::from(self.agenda.skip());
        }
        while let Some(exchange) = self.open.pop_front() {
            // What it repeated is counted by the books on its stream.
            self.ledger.failed(now, &exchange, Some(Failure::GaveUp), recorder);
            if self.flow.as_mut().is_some_and(|flow| flow.given_up(exchange.number)) {
                self.agenda.ask_again();
            }
            self.ended(now);
        }
    }

    /// Whether it holds a connection.
    #[cfg(test)]
    pub(super) fn is_connected(&self) -> bool {
        self.current.is_some() || !self.closing.is_empty()
    }
}

impl Host for TcpClient {
    fn agenda(&self) -> &Agenda {
        &self.agenda
    }

    fn ledger(&self) -> &ExchangeLedger {
        &self.ledger
    }

    fn ledger_mut(&mut self) -> &mut ExchangeLedger {
        &mut self.ledger
    }

    fn flow(&mut self) -> Option<&mut MessageFlow> {
        self.flow.as_deref_mut()
    }

    /// A device that stays the same connects before its first request.
    fn act(&mut self, now: Instant) {
        if self.agenda.is_clocked() {
            for _ in 0..self.agenda.at_once() {
                self.make_request(now);
            }
        } else if self.warms_up && !self.is_warm {
            self.connect(now);
        } else if self.flow.is_some() {
            self.offer(now);
        } else {
            loop {
                match self.agenda.next() {
                    NextAction::Request => self.make_request(now),
                    NextAction::NewDevice => self.close(),
                    NextAction::Wait => break,
                }
            }
        }
        self.write(now);
    }

    fn handle_timeout(&mut self, _now: Instant) {
        for named in self.closing.iter_mut().chain(&mut self.current) {
            named.connection.handle_timeout();
        }
    }

    /// Both ends of its connections count.
    fn finish(&mut self) {
        let server = self.server.repeats();
        let sum = |field: fn(&Repeats) -> u32| field(&self.repeats) + field(&server);
        let record = &mut self.ledger.record;
        record.timeouts = sum(|repeats| repeats.timeouts);
        record.retransmissions = sum(|repeats| repeats.retransmissions);
        record.unnecessary = sum(|repeats| repeats.unnecessary);
        record.needless = record.unnecessary;
    }

    fn server_end(&mut self) -> Option<&mut dyn ServerEnd> {
        Some(&mut self.server)
    }
}

impl<R: Recorder> ObservedHost<R> for TcpClient {
    fn receive(&mut self, now: Instant, packet: ArrivingPacket<'_>, recorder: &mut R) -> bool {
        let ArrivingPacket { bytes: packet, tag, .. } = packet;
        let Some(segment) = Segment::parse(packet) else { return false };
        let own = |named: &&mut ClientConnection| named.port == segment.destination;
        if let Some(named) = self.closing.iter_mut().find(own) {
            named.connection.receive(now, packet, &segment, &mut self.repeats);
            return false;
        }
        let Some(named) = self.current.as_mut().filter(|named| named.port == segment.destination)
        else {
            // It belongs to a connection that is over: a stack without one refuses it.
            let setup =
                Setup { settings: self.settings, mtu: self.mtu, buffer: self.buffer, seed: 0 };
            let local = SocketAddrV4::new(self.address, segment.destination);
            let socket = Socket::listen(now, setup, local);
            let mut connection = TcpConnection::new(socket, self.coap);
            connection.receive(now, packet, &segment, &mut Repeats::default());
            self.closing.push(ClientConnection { port: segment.destination, connection });
            return false;
        };
        let before = self.repeats.unnecessary;
        named.connection.receive(now, packet, &segment, &mut self.repeats);
        let is_duplicate = segment.payload > 0 && self.repeats.unnecessary > before;
        self.ledger.record.duplicates += u32::from(is_duplicate);
        let mut is_answered = false;
        while let Some(message) = self.current.as_mut().and_then(|n| n.connection.next_message(now))
        {
            if let StreamedMessage::Response { payload } = message {
                self.answered(now, payload, tag, recorder);
                is_answered = true;
            }
        }
        if let Some(named) = &mut self.current {
            named.connection.end_input(now);
        }
        if self.agenda.is_done() {
            self.close();
        }
        if !self.is_warm && self.current.as_ref().is_some_and(|n| n.connection.is_settled()) {
            self.is_warm = true;
            if self.warms_up {
                self.act(now);
            }
        }
        self.write(now);
        is_answered
    }

    fn drain(
        &mut self,
        now: Instant,
        recorder: &mut R,
        send: &mut dyn FnMut(&mut R, &[u8], Tag),
    ) -> (Option<Instant>, bool) {
        let mut timeout: Option<Instant> = None;
        let fallback = self.open.front().map_or(self.agenda.next_number(), |open| open.number);
        let (open, record, client) = (&mut self.open, &mut self.ledger.record, self.number);
        let flow = &mut self.flow;
        let mut has_room = false;
        for named in self.closing.iter_mut().chain(&mut self.current) {
            let repeats = &mut self.repeats;
            let due = named.connection.drain(now, repeats, |packet, departure, armed| {
                let tag = tag(&departure, open, now, fallback, |number| {
                    if let Some(flow) = flow {
                        has_room |= flow.leaves(now, number);
                    }
                });
                if let Some(armed) = armed {
                    record.largest_timeout = record.largest_timeout.max(armed);
                    recorder.armed(now, tagged(client, tag), armed);
                }
                send(recorder, packet, tag);
            });
            timeout = timeout.into_iter().chain(due).min();
        }
        timeout = timeout.into_iter().chain(self.waits(now)).min();
        self.closing.retain(|named| !named.connection.is_gone());
        let is_lost = self.current.as_ref().is_some_and(|named| named.connection.is_gone());
        if is_lost {
            self.abandon_connection(now, recorder);
        }
        (timeout, is_lost || has_room)
    }
}

/// Notes that the requests in a segment have left, and says what the segment belongs to: the last
/// of them; without any, the exchange that is open or comes next. `leaves` hears of those that leave
/// for the first time.
fn tag(
    departure: &DepartingSegment,
    open: &mut VecDeque<OpenExchange>,
    now: Instant,
    fallback: u32,
    mut leaves: impl FnMut(u32),
) -> Tag {
    let Some((first, last)) = departure.tags else {
        return Tag { exchange: fallback, ordinal: departure.earlier, probe: false };
    };
    let mut ordinal = 0;
    for request in open.iter_mut() {
        if (first.exchange..=last.exchange).contains(&request.number) {
            if request.sent.is_empty() {
                leaves(request.number);
            } else if !departure.is_repeated {
                // The rest of it, behind the segment in which it begins.
                continue;
            }
            ordinal = u8::try_from(request.sent.len()).unwrap_or(u8::MAX);
            request.sent.push(now);
        }
    }
    Tag { exchange: last.exchange, ordinal, probe: false }
}

fn server_v4() -> SocketAddrV4 {
    SocketAddrV4::new(SERVER, PORT)
}
