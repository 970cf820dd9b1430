//! TCP without CoAP: bytes from one host to another, at the rate of an application.

use super::ledger::{ArrivedBytes, Sent};
use super::segment::Segment;
use super::socket::{Setup, Socket};
use crate::host::{SERVER, Tag, client_host, digits};
use crate::net::Direction;
use crate::random::Streams;
use crate::record::BackgroundFlow;
use crate::scenario::{Background, Scenario, Tcp};
use ebbtide_core::time::{Duration, Instant};
use rand_core::Rng;
use std::net::SocketAddrV4;

/// The receiver's port, that of the discard protocol (RFC 863).
const DISCARD: u16 = 9;
/// The sender's port, of the dynamic ones (RFC 6335 section 6).
const FROM: u16 = 50_000;

/// A flow with both of its ends.
pub(crate) struct Bulk {
    /// Its place among the flows.
    index: u32,
    settings: Background,
    sender: End,
    receiver: End,
    /// The bytes that are written repeatedly.
    bytes: Vec<u8>,
    /// Writes of the application so far.
    writes: u64,
    /// Bytes that TCP has taken of them.
    taken: u64,
    is_closed: bool,
    record: BackgroundFlow,
    received: Vec<u8>,
}

/// One end of the connection.
struct End {
    socket: Socket,
    sent: Sent,
    arrived: ArrivedBytes,
    retransmissions: u32,
    /// The earliest timer event that is scheduled for it.
    timer: Option<Instant>,
}

/// Which end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// On the side from which the data come.
    Sender,
    /// On the other side.
    Receiver,
}

impl Bulk {
    /// The flow of this index, from the host of client `number`, which begins now.
    pub(crate) fn new(
        now: Instant,
        index: u32,
        number: u32,
        tcp: Tcp,
        scenario: &Scenario,
        streams: &Streams,
    ) -> Self {
        let mut rng = streams.stream(&format!("background/{index}"));
        let mtu = super::mtu(scenario);
        let buffer = scenario.network.background.window as usize;
        let mut setup = || Setup { settings: tcp, mtu, buffer, seed: rng.next_u64() };
        let (from, to) = match scenario.network.background.direction {
            Direction::Up => (client_host(number), SERVER),
            Direction::Down => (SERVER, client_host(number)),
        };
        let (here, there) = (SocketAddrV4::new(from, FROM), SocketAddrV4::new(to, DISCARD));
        let sender = Socket::connect(now, setup(), here, there);
        let mut receiver = Socket::listen(now, setup(), there);
        // The receiver sends no data, so it acknowledges every second segment.
        receiver.becomes_interactive();
        let settings = scenario.network.background.clone();
        Self {
            index,
            bytes: digits(settings.write),
            settings,
            sender: End::new(sender),
            receiver: End::new(receiver),
            writes: 0,
            taken: 0,
            is_closed: false,
            record: BackgroundFlow {
                start_ns: now.as_nanos(),
                end_ns: now.as_nanos(),
                ..BackgroundFlow::default()
            },
            received: Vec::new(),
        }
    }

    /// The instant of the application's write `n`, counted from 0.
    fn write_at(&self, n: u64) -> Instant {
        let bits = u128::from(n) * u128::from(self.settings.write) * 8;
        let after = bits * 1_000_000_000 / u128::from(self.settings.rate.0.max(1));
        let after = u64::try_from(after).unwrap_or(u64::MAX);
        Instant::from_nanos(self.record.start_ns.saturating_add(after))
    }

    /// The instant of the next write; `None` after the last one.
    fn next_write(&self) -> Option<Instant> {
        let at = self.write_at(self.writes);
        let stop = Instant::from_nanos(self.settings.stop.0);
        (self.settings.stop.0 == 0 || at < stop).then_some(at)
    }

    /// A packet arrives at an end.
    pub(crate) fn receive(&mut self, now: Instant, side: Side, packet: &[u8]) {
        let Some(segment) = Segment::parse(packet) else { return };
        let end = self.end(side);
        let is_known = end.arrived.note(&segment);
        end.socket.receive(now, packet);
        self.record.unnecessary += u32::from(is_known && side == Side::Receiver);
        if side == Side::Receiver {
            self.receiver.socket.read(&mut self.received);
            if !self.received.is_empty() {
                self.record.delivered += self.received.len() as u64;
                self.record.end_ns = now.as_nanos();
                self.received.clear();
            }
            if self.receiver.socket.is_at_end() {
                self.receiver.socket.close();
            }
        }
    }

    /// Hands what an end has to send to `send`. Returns when it wants to be called again.
    pub(crate) fn drain(
        &mut self,
        now: Instant,
        side: Side,
        mut send: impl FnMut(&[u8], Tag),
    ) -> Option<Instant> {
        let next = if side == Side::Sender { self.write(now) } else { None };
        let exchange = self.index;
        let due = self.end(side).drain(now, |packet, is_repeated| {
            send(packet, Tag { exchange, ordinal: u8::from(is_repeated), probe: false });
        });
        next.into_iter().chain(due).min()
    }

    /// Lets the application write what is due. When it writes next.
    fn write(&mut self, now: Instant) -> Option<Instant> {
        let mut next = self.next_write();
        while next.is_some_and(|at| at <= now) {
            self.writes += 1;
            self.record.offered += u64::from(self.settings.write);
            next = self.next_write();
        }
        while self.taken < self.record.offered {
            // Below the length of one write, which has 32 bits.
            let at = (self.taken % u64::from(self.settings.write)) as usize;
            let taken = self.sender.socket.write(&self.bytes[at..]);
            if taken == 0 {
                break;
            }
            self.sender.sent.write(taken, None);
            self.taken += taken as u64;
        }
        if next.is_none() && self.taken == self.record.offered && !self.is_closed {
            self.is_closed = true;
            self.sender.socket.close();
        }
        next
    }

    /// The earliest timer event that is scheduled for an end.
    pub(crate) fn timer(&mut self, side: Side) -> &mut Option<Instant> {
        &mut self.end(side).timer
    }

    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Sender => &mut self.sender,
            Side::Receiver => &mut self.receiver,
        }
    }

    /// The result of the flow.
    pub(crate) fn record(&self) -> BackgroundFlow {
        BackgroundFlow { retransmissions: self.sender.retransmissions, ..self.record }
    }
}

impl End {
    fn new(socket: Socket) -> Self {
        Self {
            socket,
            sent: Sent::default(),
            arrived: ArrivedBytes::default(),
            retransmissions: 0,
            timer: None,
        }
    }

    /// Hands the packets that leave to `each`, and whether they left before.
    fn drain(&mut self, now: Instant, mut each: impl FnMut(&[u8], bool)) -> Option<Instant> {
        self.socket.serve(now);
        let due = self.socket.timeout(now);
        let unacknowledged = self.socket.unacknowledged() as u64;
        let patience = self.socket.patience();
        let mut is_in_vain = false;
        for packet in self.socket.packets() {
            // smoltcp makes no other packets.
            let Some(segment) = Segment::parse(packet) else { continue };
            let departure = self.sent.depart(now, &segment, unacknowledged);
            is_in_vain |= departure.in_vain >= patience;
            if is_in_vain {
                break;
            }
            self.retransmissions += u32::from(departure.is_repeated);
            each(packet, departure.is_repeated);
        }
        self.socket.clear_packets();
        if is_in_vain {
            self.socket.give_up();
            return None;
        }
        due
    }
}

/// When the flow of an index begins.
pub(crate) fn starts(settings: &Background, index: u32) -> Instant {
    let after = settings.stagger.0.saturating_mul(index.into());
    Instant::ZERO + Duration::from_nanos(settings.start.0.saturating_add(after))
}
