//! The load of `ebbtide bench`: clients that send requests as fast as a window allows.
//!
//! Each client is a core endpoint with a socket of its own, driven by one thread. The server is
//! measured, so the clients wait for nothing but datagrams and timeouts. A lost message is
//! retransmitted as usual, and every answer is matched and compared.

use ebbtide::socket::{Inbox, Outbound, Socket};
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{
    Endpoint, EndpointConfig, Event, Output, Received, Reliability, Sent,
};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber};
use hdrhistogram::Histogram;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rand_core::SeedableRng;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// The request, and the number of requests at the same time.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) remote: SocketAddr,
    pub(crate) code: Code,
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<String>,
    pub(crate) payload: Vec<u8>,
    pub(crate) clients: usize,
    pub(crate) window: u16,
    pub(crate) duration: Duration,
    pub(crate) endpoint: EndpointConfig,
    /// Send from this many addresses of the loopback network in turn.
    pub(crate) addresses: Option<u32>,
    /// Stop after this many requests, if that is earlier.
    pub(crate) requests: Option<u64>,
}

/// The result of a load.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) answered: u64,
    /// Answers that differ from the first one in code or payload.
    pub(crate) wrong: u64,
    pub(crate) failed: u64,
    pub(crate) retransmissions: u64,
    pub(crate) elapsed: Duration,
    /// Round trips in nanoseconds, retransmissions included.
    pub(crate) latency: Histogram<u64>,
}

/// Generates the load.
pub(crate) fn run(load: &Load) -> io::Result<Outcome> {
    let mut poll = Poll::new()?;
    let mut options: Vec<Opt<'_>> = Vec::new();
    for segment in &load.path {
        options.push(Opt { number: OptionNumber::URI_PATH, value: segment.as_bytes() });
    }
    for argument in &load.query {
        options.push(Opt { number: OptionNumber::URI_QUERY, value: argument.as_bytes() });
    }
    let content = Content { code: load.code, options: &options, payload: &load.payload };
    let mut clients = Vec::new();
    for index in 0..load.clients {
        let client = LoadClient::new(load, index)?;
        let fd = client.socket.as_udp().as_raw_fd();
        poll.registry().register(&mut SourceFd(&fd), Token(index), Interest::READABLE)?;
        clients.push(client);
    }
    let clock = LoadClock::start();
    let mut run =
        LoadRun { load, content, next_address: 0, asked: 0, answers: AnswerLog::new(load.code)? };
    let mut inbox = Inbox::new();
    let end = Instant::ZERO + load.duration;
    for client in &mut clients {
        for _ in 0..load.window {
            run.ask(client, clock.now())?;
        }
        run.flush(client)?;
    }
    let mut events = Events::with_capacity(1024);
    let mut due = Instant::ZERO + TICK;
    loop {
        poll.poll(&mut events, Some(TICK))?;
        let now = clock.now();
        for event in &events {
            if let Some(client) = clients.get_mut(event.token().0) {
                run.receive(client, &mut inbox, &clock, end)?;
            }
        }
        if now >= due {
            for client in &mut clients {
                client.endpoint.handle_timeout(now);
                run.drain(client, now, end)?;
                run.flush(client)?;
            }
            due = now + TICK;
        }
        let open = || clients.iter().any(|client| client.endpoint.open_exchanges() > 0);
        if (now >= end || run.limit_reached()) && (!open() || now >= end + GRACE) {
            break;
        }
    }
    for client in &clients {
        run.answers.outcome.failed += client.endpoint.open_exchanges() as u64;
        run.answers.outcome.retransmissions += client.endpoint.counters().retransmissions;
    }
    Ok(run.answers.outcome)
}

/// The interval at which timeouts are checked. They are seconds apart, and occur only after a
/// loss.
pub(super) const TICK: Duration = Duration::from_millis(10);
/// How long to wait for the last answers.
pub(super) const GRACE: Duration = Duration::from_secs(5);

struct LoadClient {
    socket: Socket,
    endpoint: Endpoint,
    out: Outbound<Sent>,
    began: StartTimes,
}

impl LoadClient {
    fn new(load: &Load, index: usize) -> io::Result<Self> {
        let any: IpAddr = match load.remote {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
        };
        // Tokens and message IDs need not be secret from the server under test.
        let rng = rand_chacha::ChaCha8Rng::seed_from_u64(index as u64);
        Ok(Self {
            socket: Socket::bind(SocketAddr::new(any, 0)).map_err(io::Error::other)?,
            endpoint: Endpoint::new(load.endpoint.clone(), Box::new(rng)),
            out: Outbound::default(),
            began: StartTimes::default(),
        })
    }
}

struct LoadRun<'l> {
    load: &'l Load,
    content: Content<'l>,
    next_address: u32,
    asked: u64,
    answers: AnswerLog,
}

impl LoadRun<'_> {
    fn limit_reached(&self) -> bool {
        self.load.requests.is_some_and(|limit| self.asked >= limit)
    }

    fn ask(&mut self, client: &mut LoadClient, now: Instant) -> io::Result<()> {
        if self.limit_reached() {
            return Ok(());
        }
        self.asked += 1;
        let asked = client.endpoint.request(
            now,
            self.load.remote.into(),
            &self.content,
            Reliability::Confirmable,
        );
        let exchange = asked.map_err(io::Error::other)?;
        client.began.note(exchange.index(), now);
        let from = self.load.addresses.map(|count| {
            self.next_address = (self.next_address + 1) % count;
            // All of 127.0.0.0/8 belongs to this machine; 127.0.0.0 itself and the server's
            // 127.0.0.1 are left out.
            IpAddr::V4(Ipv4Addr::from_bits(0x7f00_0002 + self.next_address))
        });
        send_all(client, from, |_| {});
        Ok(())
    }

    fn receive(
        &mut self,
        client: &mut LoadClient,
        inbox: &mut Inbox,
        clock: &LoadClock,
        end: Instant,
    ) -> io::Result<()> {
        loop {
            // The answers of a batch are processed before the next one is received.
            let more = match inbox.receive(&client.socket) {
                Ok(more) => more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    while client.socket.take_error().is_some() {}
                    if error.kind() == io::ErrorKind::ConnectionRefused {
                        return Err(error);
                    }
                    return Ok(());
                }
            };
            let now = clock.now();
            let mut answered = 0;
            for datagram in inbox.datagrams() {
                let received =
                    client.endpoint.handle_datagram(now, datagram.from.into(), datagram.bytes);
                if let Received::Response { exchange, message, .. } = received {
                    self.answers.validate(message.code(), message.payload());
                    self.record(client, exchange, now);
                    answered += 1;
                }
            }
            send_all(client, None, |_| {});
            if now < end {
                for _ in 0..answered {
                    self.ask(client, now)?;
                }
            }
            self.flush(client)?;
            if !more {
                return Ok(());
            }
        }
    }

    fn record(&mut self, client: &LoadClient, exchange: ExchangeId, now: Instant) {
        self.answers.record(client.began.start_of(exchange.index(), now), now);
    }

    fn drain(&mut self, client: &mut LoadClient, now: Instant, end: Instant) -> io::Result<()> {
        let mut failed = 0;
        send_all(client, None, |_| failed += 1);
        self.answers.outcome.failed += failed;
        if now < end {
            for _ in 0..failed {
                self.ask(client, now)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, client: &mut LoadClient) -> io::Result<()> {
        match client.out.flush(&client.socket, |_, _, _| {}) {
            // The timeouts repeat messages that the socket did not take.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}

fn send_all(client: &mut LoadClient, from: Option<IpAddr>, mut failed: impl FnMut(ExchangeId)) {
    loop {
        match client.endpoint.poll_output() {
            Output::Transmit(transmit) => {
                // It has requests to addresses only.
                if let Some(to) = transmit.to.address() {
                    client.out.push(to, from, transmit.datagram, transmit.what);
                }
            }
            Output::Event(Event::Failed { exchange, .. }) => failed(exchange),
            Output::Event(_) => {}
            Output::Timeout(_) => return,
        }
    }
}

/// When each open request began, by its index.
#[derive(Default)]
pub(super) struct StartTimes(Vec<Instant>);

impl StartTimes {
    pub(super) fn note(&mut self, index: usize, now: Instant) {
        if index >= self.0.len() {
            self.0.resize(index + 1, now);
        }
        if let Some(began) = self.0.get_mut(index) {
            *began = now;
        }
    }

    /// When the request at an index began; `now` if none has.
    pub(super) fn start_of(&self, index: usize, now: Instant) -> Instant {
        self.0.get(index).copied().unwrap_or(now)
    }
}

/// The record of the answers so far.
pub(super) struct AnswerLog {
    /// The method of the requests.
    code: Code,
    /// The first answer, to which all others must be equal.
    reference: Option<(Code, Vec<u8>)>,
    pub(super) outcome: Outcome,
}

impl AnswerLog {
    pub(super) fn new(code: Code) -> io::Result<Self> {
        let latency = Histogram::new(3).map_err(io::Error::other)?;
        let outcome = Outcome {
            answered: 0,
            wrong: 0,
            failed: 0,
            retransmissions: 0,
            elapsed: Duration::from_nanos(1),
            latency,
        };
        Ok(Self { code, reference: None, outcome })
    }

    pub(super) fn validate(&mut self, code: Code, payload: &[u8]) {
        let (first_code, first) = self.reference.get_or_insert_with(|| (code, payload.to_vec()));
        let same =
            *first_code == code && (payload == first.as_slice() || !self.code.is_idempotent());
        self.outcome.wrong += u64::from(!same || code.class() != 2);
    }

    pub(super) fn record(&mut self, began: Instant, now: Instant) {
        let span = now.saturating_since(began).as_nanos() as u64;
        // The histogram grows by itself.
        let _ = self.outcome.latency.record(span.max(1));
        self.outcome.answered += 1;
        self.outcome.elapsed = now.saturating_since(Instant::ZERO).max(Duration::from_nanos(1));
    }
}

pub(super) struct LoadClock(std::time::Instant);

impl LoadClock {
    #[expect(clippy::disallowed_methods, reason = "a load generator is a driver")]
    pub(super) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    #[expect(clippy::disallowed_methods, reason = "a load generator is a driver")]
    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(self.0.elapsed().as_nanos() as u64)
    }
}
