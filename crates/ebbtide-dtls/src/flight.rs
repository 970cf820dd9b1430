//! Flights: messages that are sent, retransmitted and answered together (RFC 6347 section 4.2.4).

use crate::config::Timing;
use crate::message::{self, Fragment, HandshakeType};
use crate::outbox::Outbox;
use crate::protect::Protection;
use crate::record::{self, ContentType, DTLS_1_2};
use alloc::vec::Vec;
use core::net::SocketAddr;
use ebbtide_core::cc::Sample;
use ebbtide_core::time::{Duration, Instant, Micros};

/// The round trip of a flight and its answer, for a congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// The time since the flight was first sent.
    pub since_first: Duration,
    /// The time since the flight was last sent.
    pub since_last: Duration,
    /// The number of times that it was sent.
    pub transmissions: u8,
}

impl From<&RoundTrip> for Sample {
    fn from(round_trip: &RoundTrip) -> Self {
        let [since_first, since_last] =
            [round_trip.since_first, round_trip.since_last].map(Micros::from_duration);
        Self::new(since_first, since_last, round_trip.transmissions)
    }
}

/// A handshake message of our own.
#[derive(Debug)]
pub(crate) struct HandshakeMessage {
    pub(crate) kind: HandshakeType,
    pub(crate) sequence: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) encrypted: bool,
}

#[derive(Debug)]
enum FlightPart {
    Message(HandshakeMessage),
    ChangeCipherSpec,
}

/// The flight that was sent last.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    parts: Vec<FlightPart>,
    first_sent: Instant,
    last_sent: Instant,
    timeout: Duration,
    transmissions: u8,
    answered: bool,
    due: Option<Instant>,
}

/// The destination and encoding of a flight.
pub(crate) struct FlightPath<'a> {
    pub(crate) out: &'a mut Outbox,
    pub(crate) remote: SocketAddr,
    pub(crate) mtu: usize,
    /// The next record's number in epoch 0.
    pub(crate) plain_sequence: &'a mut u64,
    pub(crate) protection: Option<&'a mut Protection>,
}

impl Flight {
    pub(crate) fn message(&mut self, message: HandshakeMessage) {
        self.parts.push(FlightPart::Message(message));
    }

    pub(crate) fn change_cipher_spec(&mut self) {
        self.parts.push(FlightPart::ChangeCipherSpec);
    }

    /// Forgets the previous flight, whose answer has arrived.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Sends the flight for the first time. With `timing` it waits for an answer. Without, it is
    /// the last flight of the handshake, and is retransmitted only when the peer retransmits its
    /// own.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        timing: Option<Timing>,
        path: &mut FlightPath<'_>,
    ) {
        self.first_sent = now;
        self.timeout = timing.map_or(Duration::ZERO, |timing| timing.first_timeout);
        self.due = timing.map(|timing| now + timing.first_timeout);
        self.transmit(now, path);
    }

    /// When it is to be retransmitted.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Whether it has left more than once.
    pub(crate) const fn is_repeated(&self) -> bool {
        self.transmissions > 1
    }

    /// Retransmits the flight after a timeout. Returns false if the maximum was reached.
    pub(crate) fn expire(
        &mut self,
        now: Instant,
        timing: &Timing,
        path: &mut FlightPath<'_>,
    ) -> bool {
        if self.transmissions > timing.max_retransmit {
            return false;
        }
        self.timeout = self.timeout.saturating_add(self.timeout).min(timing.max_timeout);
        self.due = Some(now + self.timeout);
        self.transmit(now, path);
        true
    }

    /// The peer retransmits its flight, so this one may have been lost. It is not retransmitted
    /// directly after another transmission, since the two crossed, or wait in the same queue. The more
    /// handshakes there are, the longer such a queue is.
    pub(crate) fn repeat(&mut self, now: Instant, handshakes: usize, path: &mut FlightPath<'_>) {
        /// On a link of 40 kbit/s a handshake takes about so long.
        const EACH: Micros = Micros::from_millis(100);
        const LEAST: Micros = Micros::from_millis(1000);
        let queue = EACH.scale(u32::try_from(handshakes).unwrap_or(u32::MAX), 1);
        let apart = queue.max(LEAST).min(Micros::from_duration(self.timeout).scale(1, 4));
        let crossed = now == self.last_sent || now.micros_since(self.last_sent) < apart;
        // No handshake needs more copies than fit in a byte.
        if !crossed && self.transmissions < u8::MAX {
            self.transmit(now, path);
        }
    }

    /// A part of the answer has arrived. Returns the round trip, once.
    pub(crate) fn answered(&mut self, now: Instant) -> Option<RoundTrip> {
        if self.answered || self.transmissions == 0 {
            return None;
        }
        self.answered = true;
        Some(RoundTrip {
            since_first: now - self.first_sent,
            since_last: now - self.last_sent,
            transmissions: self.transmissions,
        })
    }

    fn transmit(&mut self, now: Instant, path: &mut FlightPath<'_>) {
        self.last_sent = now;
        self.transmissions = self.transmissions.saturating_add(1);
        let mut datagram = Vec::with_capacity(256);
        for part in &self.parts {
            match part {
                FlightPart::ChangeCipherSpec => {
                    path.reserve(&mut datagram, record::HEADER + 1);
                    path.plain(&mut datagram, ContentType::ChangeCipherSpec, &[1]);
                }
                FlightPart::Message(message) => path.message(&mut datagram, message),
            }
        }
        path.flush(&mut datagram);
    }
}

impl FlightPath<'_> {
    /// Queues the bytes in `datagram` if `length` more would not fit.
    fn reserve(&mut self, datagram: &mut Vec<u8>, length: usize) {
        if !datagram.is_empty() && datagram.len() + length > self.mtu {
            self.flush(datagram);
        }
    }

    fn flush(&mut self, datagram: &mut Vec<u8>) {
        if !datagram.is_empty() {
            self.out.push(self.remote, datagram);
            datagram.clear();
        }
    }

    pub(crate) fn plain(&mut self, out: &mut Vec<u8>, content: ContentType, body: &[u8]) {
        record::plain(out, content, DTLS_1_2, *self.plain_sequence, body);
        *self.plain_sequence += 1;
    }

    /// Encodes a message in as many fragments as datagrams of this length require (RFC 6347
    /// section 4.2.3).
    fn message(&mut self, datagram: &mut Vec<u8>, message: &HandshakeMessage) {
        let HandshakeMessage { kind, sequence, ref body, encrypted } = *message;
        let overhead = message::HEADER
            + match &self.protection {
                Some(protection) if encrypted => protection.overhead(),
                _ => record::HEADER,
            };
        let room = self.mtu.saturating_sub(overhead).max(16);
        let mut offset = 0;
        let mut fragment = Vec::with_capacity(message::HEADER + body.len().min(room));
        loop {
            let length = (body.len() - offset).min(room);
            self.reserve(datagram, overhead + length);
            fragment.clear();
            let bytes = body.get(offset..offset + length).unwrap_or_default();
            Fragment { kind, total: body.len(), sequence, offset, bytes }.encode(&mut fragment);
            match &mut self.protection {
                Some(protection) if encrypted => {
                    protection.seal(ContentType::Handshake, &fragment, datagram);
                }
                _ => self.plain(datagram, ContentType::Handshake, &fragment),
            }
            offset += length;
            if offset >= body.len() {
                return;
            }
        }
    }
}
