//! The loop of the endpoint's contract around a blocking UDP socket, for a client and a server.
#![expect(clippy::disallowed_methods, reason = "a driver reads the clock")]

use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{Endpoint, EndpointConfig, Event, Failure, Output, Received};
use ebbtide_core::time::{Duration, Instant};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::io::{self, Read};
use std::net::UdpSocket;

/// The longest datagram.
pub(crate) const BUFFER: usize = 2048;

pub(crate) struct Driver {
    pub(crate) endpoint: Endpoint,
    pub(crate) rng: ChaCha8Rng,
    /// How many datagrams were received, of which each `EBBTIDE_LOSE`-th is lost, for tests.
    received: u32,
    lose: u32,
    socket: UdpSocket,
    epoch: std::time::Instant,
}

/// What has happened to a message.
pub(crate) enum Happened<'b> {
    Received(Received<'b>),
    Failed(ExchangeId, Failure),
}

impl Driver {
    pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
        // Tokens, message IDs and challenges must not be predictable (RFC 7252 section 11.4).
        let mut seed = [0; 32];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut seed)?;
        let mut rng = ChaCha8Rng::from_seed(seed);
        let endpoint =
            Endpoint::new(EndpointConfig::default(), Box::new(ChaCha8Rng::from_rng(&mut rng)));
        let lose = std::env::var("EBBTIDE_LOSE").ok().and_then(|every| every.parse().ok());
        let (lose, epoch) = (lose.unwrap_or(u32::MAX), std::time::Instant::now());
        Ok(Self { endpoint, rng, received: 0, lose, socket, epoch })
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::ZERO + self.epoch.elapsed()
    }

    /// Sends what is due, and waits for a datagram, a timer of the endpoint, or `until`.
    pub(crate) fn turn<'b>(
        &mut self,
        until: Option<Instant>,
        buffer: &'b mut [u8; BUFFER],
    ) -> io::Result<Option<Happened<'b>>> {
        let deadline = loop {
            match self.endpoint.poll_output() {
                Output::Transmit(sent) => {
                    // Without security sessions, every peer is an address. An error costs one transmission, as a loss
                    // does: the timer of the exchange goes on.
                    if let Some(to) = sent.to.address() {
                        let _ = self.socket.send_to(sent.datagram, to);
                    }
                }
                Output::Event(Event::Failed { exchange, reason }) => {
                    return Ok(Some(Happened::Failed(exchange, reason)));
                }
                Output::Event(_) => {}
                Output::Timeout(at) => break at.into_iter().chain(until).min(),
            }
        };
        // A socket does not take a time-out of zero.
        let least = Duration::from_millis(1);
        let left = deadline.map(|at| at.saturating_since(self.now()).max(least));
        self.socket.set_read_timeout(left)?;
        let received = self.socket.recv_from(buffer);
        let now = self.now();
        // Before the datagram: what is due by now was due before it came.
        self.endpoint.handle_timeout(now);
        // An error is a time-out, or a report for an earlier datagram.
        let Ok((length, from)) = received else { return Ok(None) };
        self.received += 1;
        if self.received.is_multiple_of(self.lose) {
            return Ok(None);
        }
        let received = self.endpoint.handle_datagram(now, from.into(), &buffer[..length]);
        Ok(Some(Happened::Received(received)))
    }
}
