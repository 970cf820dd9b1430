//! A host that asks over TCP.

use super::connection::{Connection, Message, Repeats, coap_config};
use super::ledger::OutgoingMessage;
use super::segment::Segment;
use super::socket::{Setup, Socket};
use crate::host::agenda::{Agenda, Step};
use crate::host::flow::Flow;
use crate::host::{Counts, OutcomeBook, PORT, SERVER, Tag, client_host, count, digits};
use crate::random::Streams;
use crate::record::{ClientRecord, ExchangeRecord};
use crate::record::{Recorder, Tagged};
use crate::scenario::{Scenario, Tcp};
use ebbtide_core::cc::Metrics;
use ebbtide_core::endpoint::Failure;
use ebbtide_core::stream;
use ebbtide_core::time::{Duration, Instant};
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
    pub(crate) flow: Option<Box<Flow>>,
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
    open: VecDeque<Request>,
    written: usize,
    repeats: Repeats,
    /// Exchanges by the number of retransmissions of segments with their request.
    pub(crate) by_retransmissions: Counts,
    pub(crate) record: ClientRecord,
    pub(crate) book: OutcomeBook,
}

/// A connection and the port that it comes from.
struct ClientConnection {
    port: u16,
    connection: Connection,
}

struct Request {
    number: u32,
    /// When the application asked.
    made: Instant,
    /// When each segment with it left.
    sent: Vec<Instant>,
}

impl TcpClient {
    pub(crate) fn new(
        (number, group): (u32, u8),
        settings: Tcp,
        scenario: &Scenario,
        streams: &Streams,
    ) -> Self {
        let workload = &scenario.workload;
        let window = super::window(scenario);
        let agenda = Agenda::new(number, window, scenario, streams);
        let flow = Flow::new(number, scenario, AHEAD);
        let mut rng = streams.stream(&format!("client/{number}/tcp"));
        let ports = u32::from(EPHEMERAL.end() - EPHEMERAL.start()) + 1;
        // Below the number of ports, which has 16 bits.
        let port = EPHEMERAL.start() + (rng.next_u32() % ports) as u16;
        Self {
            number,
            address: client_host(number),
            warms_up: agenda.keeps_device() && !flow.as_deref().is_some_and(Flow::keeps_time),
            is_warm: false,
            agenda,
            flow,
            buffer: super::buffer(scenario),
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
            by_retransmissions: Counts::new(),
            record: ClientRecord { client: number, group, ..ClientRecord::default() },
            book: OutcomeBook::default(),
        }
    }

    /// Exchanges under way.
    pub(crate) const fn open_exchanges(&self) -> u32 {
        self.agenda.open()
    }

    /// Whether nothing is left to do.
    pub(crate) const fn is_done(&self) -> bool {
        self.agenda.is_done()
    }

    /// Whether there are requests still to be made.
    pub(crate) const fn has_more(&self) -> bool {
        self.agenda.has_more()
    }

    /// Makes as many requests as the workload has ready. A device that stays the same connects
    /// before its first one.
    pub(crate) fn act(&mut self, now: Instant) {
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
                    Step::Request => self.make_request(now),
                    Step::NewDevice => self.close(),
                    Step::Wait => break,
                }
            }
        }
        self.write(now);
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
            self.record.failed += u32::from(self.agenda.skip());
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
        self.open.push_back(Request { number, made: now, sent: Vec::new() });
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
            Some(ClientConnection { port, connection: Connection::new(socket, self.coap) });
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

    /// A packet arrives. Whether the application wants to act.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        packet: &[u8],
        tag: Tag,
        recorder: &mut impl Recorder,
    ) -> bool {
        let Some(segment) = Segment::parse(packet) else { return false };
        let own = |named: &&mut ClientConnection| named.port == segment.destination;
        if let Some(named) = self.closing.iter_mut().find(own) {
            named.connection.receive(now, (packet, &segment), &mut self.repeats);
            return false;
        }
        let Some(named) = self.current.as_mut().filter(|named| named.port == segment.destination)
        else {
            // It belongs to a connection that is over: a stack without one refuses it.
            let setup =
                Setup { settings: self.settings, mtu: self.mtu, buffer: self.buffer, seed: 0 };
            let local = SocketAddrV4::new(self.address, segment.destination);
            let socket = Socket::listen(now, setup, local);
            let mut connection = Connection::new(socket, self.coap);
            connection.receive(now, (packet, &segment), &mut Repeats::default());
            self.closing.push(ClientConnection { port: segment.destination, connection });
            return false;
        };
        let before = self.repeats.unnecessary;
        named.connection.receive(now, (packet, &segment), &mut self.repeats);
        let is_duplicate = segment.payload > 0 && self.repeats.unnecessary > before;
        self.record.duplicates += u32::from(is_duplicate);
        let mut is_answered = false;
        while let Some(message) = self.current.as_mut().and_then(|n| n.connection.next_message(now))
        {
            if let Message::Response { payload } = message {
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

    fn answered(&mut self, now: Instant, payload: u64, tag: Tag, recorder: &mut impl Recorder) {
        let Some(request) = self.open.pop_front() else { return };
        self.written -= 1;
        self.record.payload_bytes += payload;
        self.record.completed += 1;
        count(&mut self.by_retransmissions, request.sent.len().saturating_sub(1));
        recorder.duration(now.micros_since(request.made));
        recorder.ended(&self.row(&request, now, Some(tag.ordinal)));
        let (after, in_time) = self.agenda.answered(now, request.made);
        recorder.answered_after(after);
        self.record.in_time += u32::from(in_time);
        // The copy that the server answered, if the segment is that of this response.
        let answered = request.sent.get(usize::from(tag.ordinal));
        if let (true, Some(sent)) = (tag.exchange == request.number, answered) {
            recorder.round_trip(now.micros_since(*sent));
        }
        if recorder.wants_details() {
            let tagged = self.tagged(Tag { exchange: request.number, ..tag });
            recorder.answered(now, tagged, None, &Metrics::default());
        }
        self.ended(now);
    }

    fn ended(&mut self, now: Instant) {
        if let Some(time) = self.agenda.ended(now) {
            self.record.fct = time;
        }
    }

    /// A timer of a connection may be due.
    pub(crate) fn handle_timeout(&mut self) {
        for named in self.closing.iter_mut().chain(&mut self.current) {
            named.connection.handle_timeout();
        }
    }

    /// Hands what the connections want to send to `send`. Returns when it wants to be called again,
    /// and whether the application wants to act.
    pub(crate) fn drain<R: Recorder>(
        &mut self,
        now: Instant,
        recorder: &mut R,
        mut send: impl FnMut(&mut R, &[u8], Tag),
    ) -> (Option<Instant>, bool) {
        let mut timeout: Option<Instant> = None;
        let fallback = self.open.front().map_or(self.agenda.next_number(), |open| open.number);
        let (open, record, client) = (&mut self.open, &mut self.record, self.number);
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
                    let Tag { exchange, ordinal, .. } = tag;
                    recorder.armed(now, Tagged { client, exchange, ordinal, probe: false }, armed);
                }
                send(recorder, packet, tag);
            });
            timeout = timeout.into_iter().chain(due).min();
        }
        timeout = timeout.into_iter().chain(self.waits(now)).min();
        self.closing.retain(|named| !named.connection.is_gone());
        let is_lost = self.current.as_ref().is_some_and(|named| named.connection.is_gone());
        if is_lost {
            self.lose(now, recorder);
        }
        (timeout, is_lost || has_room)
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
    fn lose(&mut self, now: Instant, recorder: &mut impl Recorder) {
        self.current = None;
        self.is_warm = false;
        self.written = 0;
        if self.open.is_empty() {
            // The request that it was opened for cannot be made.
            self.record.failed += u32::from(self.agenda.skip());
        }
        while let Some(request) = self.open.pop_front() {
            let tag = Tag { exchange: request.number, ordinal: 0, probe: false };
            recorder.failed(now, self.tagged(tag), Failure::GaveUp);
            recorder.ended(&self.row(&request, now, None));
            self.record.failed += 1;
            // What it repeated is counted by the books on its stream.
            let after = request.sent.first().map_or(Duration::ZERO, |first| now - *first);
            self.book.failed(request.number, request.sent.len() as u32, after);
            if self.flow.as_mut().is_some_and(|flow| flow.given_up(request.number)) {
                self.agenda.again();
            }
            self.ended(now);
        }
    }

    /// The row of an exchange that ends now: with this answer, or without one.
    fn row(&self, request: &Request, now: Instant, answered: Option<u8>) -> ExchangeRecord {
        ExchangeRecord {
            client: self.number,
            exchange: request.number,
            asked: request.made,
            first_sent: request.sent.first().copied(),
            ended: now,
            transmissions: request.sent.len() as u32,
            answered,
        }
    }

    const fn tagged(&self, tag: Tag) -> Tagged {
        Tagged { client: self.number, exchange: tag.exchange, ordinal: tag.ordinal, probe: false }
    }

    /// The final measurements; `server` is what the server's ends of its connections repeated.
    pub(crate) fn finish(&mut self, server: Repeats) {
        let sum = |field: fn(&Repeats) -> u32| field(&self.repeats) + field(&server);
        self.record.timeouts = sum(|repeats| repeats.timeouts);
        self.record.retransmissions = sum(|repeats| repeats.retransmissions);
        self.record.unnecessary = sum(|repeats| repeats.unnecessary);
        self.record.needless = self.record.unnecessary;
    }

    /// Whether it holds a connection.
    #[cfg(test)]
    pub(super) fn is_connected(&self) -> bool {
        self.current.is_some() || !self.closing.is_empty()
    }
}

/// Notes that the requests in a segment have left, and says what the segment belongs to: the last
/// of them; without any, the exchange that is open or comes next. `leaves` hears of those that leave
/// for the first time.
fn tag(
    departure: &OutgoingMessage,
    open: &mut VecDeque<Request>,
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
