//! The load of `ebbtide bench`: clients that send requests as fast as a window allows.
//!
//! Each client is a core endpoint with a socket of its own, driven by one thread. The server is
//! measured, so the clients wait for nothing but datagrams and timeouts. A lost message is
//! retransmitted as usual, and every answer is matched and compared.

use ebbtide::socket::{Inbox, Outbound, Socket};
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{
    Endpoint, EndpointConfig, Event, Output, Received, Reliability, SendError, Sent,
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
pub(crate) struct BenchLoad {
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
    /// Requests per second, sent at their instants however late the answers are: an open loop. Otherwise each answer is
    /// followed by a request.
    pub(crate) rate: Option<f64>,
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
pub(crate) fn run(load: &BenchLoad) -> io::Result<Outcome> {
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
    let mut schedule = load.rate.map(Schedule::new);
    for client in clients.iter_mut().filter(|_| schedule.is_none()) {
        for _ in 0..load.window {
            run.ask(client, clock.now())?;
        }
        run.flush(client)?;
    }
    let mut events = Events::with_capacity(1024);
    let mut due = Instant::ZERO + TICK;
    loop {
        let wait = schedule.as_ref().map_or(TICK, |schedule| schedule.wait(clock.now()));
        poll.poll(&mut events, Some(wait))?;
        let now = clock.now();
        if let Some(schedule) = &mut schedule {
            // The end belongs to the duration no more.
            let last = Instant::from_nanos(end.as_nanos().saturating_sub(1));
            while let Some((number, at)) = schedule.next_before(now.min(last)) {
                let index = number as usize % clients.len();
                if let Some(client) = clients.get_mut(index) {
                    run.ask_on_schedule(client, now, at);
                }
            }
            clients.iter_mut().try_for_each(|client| run.flush(client))?;
        }
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

/// The instants of an open loop.
#[derive(Debug)]
pub(super) struct Schedule {
    interval_nanos: f64,
    next: u64,
}

impl Schedule {
    pub(super) fn new(rate: f64) -> Self {
        Self { interval_nanos: 1e9 / rate, next: 0 }
    }

    /// The instant of the next request.
    pub(super) fn at(&self) -> Instant {
        Instant::from_nanos((self.next as f64 * self.interval_nanos) as u64)
    }

    /// The next request, with its instant, if that is not after `now`.
    pub(super) fn next_before(&mut self, now: Instant) -> Option<(u64, Instant)> {
        let at = self.at();
        (at <= now).then(|| {
            self.next += 1;
            (self.next - 1, at)
        })
    }

    fn wait(&self, now: Instant) -> Duration {
        self.at().saturating_since(now).min(TICK)
    }
}

struct LoadClient {
    socket: Socket,
    endpoint: Endpoint,
    out: Outbound<Sent>,
    began: StartTimes,
}

impl LoadClient {
    fn new(load: &BenchLoad, index: usize) -> io::Result<Self> {
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
    load: &'l BenchLoad,
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
        let exchange = self.request(client, now).map_err(io::Error::other)?;
        client.began.note(exchange.index(), now);
        self.send(client);
        Ok(())
    }

    /// Sends a request that is due since `at`, from which its time counts. One that finds no room has failed.
    fn ask_on_schedule(&mut self, client: &mut LoadClient, now: Instant, at: Instant) {
        if self.limit_reached() {
            return;
        }
        self.asked += 1;
        match self.request(client, now) {
            Ok(exchange) => {
                client.began.note(exchange.index(), at);
                self.send(client);
            }
            Err(_) => self.answers.outcome.failed += 1,
        }
    }

    fn request(&self, client: &mut LoadClient, now: Instant) -> Result<ExchangeId, SendError> {
        let to = self.load.remote.into();
        client.endpoint.request(now, to, &self.content, Reliability::Confirmable)
    }

    fn send(&mut self, client: &mut LoadClient) {
        let from = self.load.addresses.map(|count| {
            self.next_address = (self.next_address + 1) % count;
            // All of 127.0.0.0/8 belongs to this machine; 127.0.0.0 itself and the server's
            // 127.0.0.1 are left out.
            IpAddr::V4(Ipv4Addr::from_bits(0x7f00_0002 + self.next_address))
        });
        send_all(client, from, |_| {});
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
                    // A server that was there may come back.
                    let was_there = self.answers.outcome.answered > 0;
                    if error.kind() == io::ErrorKind::ConnectionRefused && !was_there {
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
            if now < end && self.load.rate.is_none() {
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
        if now < end && self.load.rate.is_none() {
            for _ in 0..failed {
                self.ask(client, now)?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, client: &mut LoadClient) -> io::Result<()> {
        match client.out.flush(&client.socket, |_, _, _| {}) {
            // The timeouts repeat messages that the socket did not take.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error)
                if error.kind() == io::ErrorKind::ConnectionRefused
                    && self.answers.outcome.answered > 0 =>
            {
                Ok(())
            }
            sent => sent.map(|_| ()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_loop_sends_at_its_instants_whatever_was_late() {
        let mut schedule = Schedule::new(1000.0);
        let at = |micros: u64| Instant::from_nanos(micros * 1000);
        assert_eq!(schedule.next_before(at(0)), Some((0, at(0))));
        assert_eq!(schedule.next_before(at(999)), None);
        assert_eq!(schedule.wait(at(400)), Duration::from_micros(600));
        // After a pause all that were due follow, each with its own instant.
        let due: Vec<_> = std::iter::from_fn(|| schedule.next_before(at(3500))).collect();
        assert_eq!(due, [(1, at(1000)), (2, at(2000)), (3, at(3000))]);
    }
}
