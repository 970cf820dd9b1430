//! A model of TCP: segments that are acknowledged one by one, sent again after a timeout that
//! doubles, and delivered in order. Credit for the peer's buffer takes no packets, and there is no
//! congestion control: what a test needs of TCP is that loss is delay, silence is not an end, and
//! an end may come at any byte.

use crate::links::{AgendaEntry, Links, Packet, PacketRoute};
use crate::segment::{EndId, EndSide, Segment};
use crate::trace::{PacketFate, SegmentKind};
use bytes::Bytes;
use ebbtide_core::time::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::ReadBuf;

/// Of a segment, in an Ethernet of 1500 bytes.
const SEGMENT: usize = 1460;
/// Bytes that are sent and not read.
const WINDOW: usize = 65_535;
/// Connections that wait to be accepted; further ones are ignored.
const BACKLOG: usize = 1024;
/// The timeout before a round trip was measured (RFC 6298 section 2.1), the shortest one of Linux, and the longest one.
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Transmissions of a segment that opens a connection, and of another one, before the connection is given up, as on
/// Linux: 127 s and about a quarter of an hour.
const OPENING_TRIES: u32 = 7;
const TRIES: u32 = 16;
/// The first port of a client (RFC 6335 section 6).
const FIRST_DYNAMIC: u16 = 49152;

#[derive(Copy, Clone, Debug, PartialEq)]
enum ConnectionPhase {
    Opening,
    Open,
    Failed(io::ErrorKind),
}

#[derive(Debug)]
struct Unacknowledged {
    segment: Segment,
    transmissions: u32,
}

#[derive(Debug)]
struct ConnectionEnd {
    route: PacketRoute,
    phase: ConnectionPhase,
    /// The application has closed it, and what it has sent is still on its way.
    is_closed: bool,
    /// Of the next segment.
    next: u64,
    unacknowledged: BTreeMap<u64, Unacknowledged>,
    /// Bytes that the peer's application has not read.
    unread: usize,
    has_ended: bool,
    expected: u64,
    early: BTreeMap<u64, Segment>,
    ready: VecDeque<Bytes>,
    peer_has_ended: bool,
    opened: Instant,
    timeout: Duration,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl ConnectionEnd {
    const fn new(now: Instant, route: PacketRoute, expected: u64) -> Self {
        Self {
            route,
            phase: ConnectionPhase::Opening,
            is_closed: false,
            next: 0,
            unacknowledged: BTreeMap::new(),
            unread: 0,
            has_ended: false,
            expected,
            early: BTreeMap::new(),
            ready: VecDeque::new(),
            peer_has_ended: false,
            opened: now,
            timeout: FIRST_TIMEOUT,
            reader: None,
            writer: None,
        }
    }

    /// The peer has the first segment.
    fn is_open(&mut self, now: Instant) {
        if let Some(first) = self.unacknowledged.remove(&0)
            && first.transmissions == 1
        {
            let round_trip = now.saturating_since(self.opened);
            self.timeout = (2 * round_trip).clamp(SHORTEST_TIMEOUT, LONGEST_TIMEOUT);
        }
        self.phase = ConnectionPhase::Open;
    }

    fn wake(&mut self, woken: &mut Vec<Waker>) {
        woken.extend(self.reader.take().into_iter().chain(self.writer.take()));
    }
}

/// A listener's connections that were not accepted.
#[derive(Debug, Default)]
struct Backlog {
    waiting: VecDeque<EndId>,
    waker: Option<Waker>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Connections {
    listeners: BTreeMap<SocketAddr, Backlog>,
    ends: BTreeMap<EndId, ConnectionEnd>,
    /// Those whose segments are lost.
    silenced: BTreeSet<u64>,
    opened: u64,
}

impl Connections {
    pub(crate) fn listen(&mut self, host: IpAddr, port: u16) -> io::Result<SocketAddr> {
        let free = |port: &u16| !self.listeners.contains_key(&SocketAddr::new(host, *port));
        let chosen = match port {
            0 => (FIRST_DYNAMIC..=u16::MAX).find(free),
            port => Some(port).filter(free),
        };
        let address = SocketAddr::new(host, chosen.ok_or(io::ErrorKind::AddrInUse)?);
        self.listeners.insert(address, Backlog::default());
        Ok(address)
    }

    /// Closes a listener. Connections that it has not accepted are reset.
    pub(crate) fn unlisten(&mut self, now: Instant, links: &mut Links, address: SocketAddr) {
        let backlog = self.listeners.remove(&address).unwrap_or_default();
        backlog.waiting.into_iter().for_each(|id| self.reset(now, links, id));
    }

    /// The next connection of a listener, and the address of its client.
    pub(crate) fn poll_accept(
        &mut self,
        cx: &Context<'_>,
        address: SocketAddr,
    ) -> Poll<(EndId, SocketAddr)> {
        let Some(backlog) = self.listeners.get_mut(&address) else { return Poll::Pending };
        while let Some(id) = backlog.waiting.pop_front() {
            // One that was reset meanwhile was never there.
            if let Some(end) = self.ends.get(&id) {
                return Poll::Ready((id, end.route.to));
            }
        }
        backlog.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Begins to open a connection.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        links: &mut Links,
        host: IpAddr,
        to: SocketAddr,
    ) -> EndId {
        let dynamic = u64::from(u16::MAX - FIRST_DYNAMIC) + 1;
        let port = FIRST_DYNAMIC + (self.opened % dynamic) as u16;
        let id = EndId { connection: self.opened, side: EndSide::Client };
        self.opened += 1;
        let route = PacketRoute { from: SocketAddr::new(host, port), to };
        self.ends.insert(id, ConnectionEnd::new(now, route, 0));
        self.push(now, links, id, SegmentKind::Open, Bytes::new());
        id
    }

    /// Whether a connection that is opened is open.
    pub(crate) fn poll_open(&mut self, cx: &Context<'_>, id: EndId) -> Poll<io::Result<()>> {
        let Some(end) = self.ends.get_mut(&id) else { return Poll::Ready(Err(gone())) };
        match end.phase {
            ConnectionPhase::Opening => {
                end.writer = Some(cx.waker().clone());
                Poll::Pending
            }
            ConnectionPhase::Open => Poll::Ready(Ok(())),
            ConnectionPhase::Failed(kind) => Poll::Ready(Err(kind.into())),
        }
    }

    pub(crate) fn poll_read(
        &mut self,
        cx: &Context<'_>,
        links: &mut Links,
        id: EndId,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(end) = self.ends.get_mut(&id) else { return Poll::Ready(Err(gone())) };
        let before = buffer.remaining();
        while let Some(part) = end.ready.front_mut()
            && buffer.remaining() > 0
        {
            let length = part.len().min(buffer.remaining());
            buffer.put_slice(&part.split_to(length));
            if part.is_empty() {
                end.ready.pop_front();
            }
        }
        let read = before - buffer.remaining();
        match end.phase {
            _ if read > 0 => {
                if let Some(peer) = self.ends.get_mut(&id.other()) {
                    peer.unread = peer.unread.saturating_sub(read);
                    links.woken.extend(peer.writer.take());
                }
                Poll::Ready(Ok(()))
            }
            _ if end.peer_has_ended => Poll::Ready(Ok(())),
            ConnectionPhase::Failed(kind) => Poll::Ready(Err(kind.into())),
            ConnectionPhase::Opening | ConnectionPhase::Open => {
                end.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(crate) fn poll_write(
        &mut self,
        cx: &Context<'_>,
        now: Instant,
        links: &mut Links,
        id: EndId,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(end) = self.ends.get_mut(&id) else { return Poll::Ready(Err(gone())) };
        if let ConnectionPhase::Failed(kind) = end.phase {
            return Poll::Ready(Err(kind.into()));
        }
        if end.has_ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let length = bytes.len().min(WINDOW - end.unread);
        if length == 0 && !bytes.is_empty() {
            end.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        end.unread += length;
        for part in bytes[..length].chunks(SEGMENT) {
            self.push(now, links, id, SegmentKind::Data, Bytes::copy_from_slice(part));
        }
        Poll::Ready(Ok(length))
    }

    /// Sends the end of a direction.
    pub(crate) fn shut_down(&mut self, now: Instant, links: &mut Links, id: EndId) {
        let Some(end) = self.ends.get_mut(&id) else { return };
        if end.phase == ConnectionPhase::Open && !end.has_ended {
            end.has_ended = true;
            self.push(now, links, id, SegmentKind::End, Bytes::new());
        }
    }

    /// The application has closed it. One that has not read everything resets it (RFC 1122 section 4.2.2.13).
    pub(crate) fn close(&mut self, now: Instant, links: &mut Links, id: EndId) {
        let Some(end) = self.ends.get_mut(&id) else { return };
        match end.phase {
            ConnectionPhase::Open if end.ready.is_empty() => {
                end.is_closed = true;
                self.shut_down(now, links, id);
                self.forget_if_done(id);
            }
            ConnectionPhase::Open => self.reset(now, links, id),
            ConnectionPhase::Opening | ConnectionPhase::Failed(_) => drop(self.ends.remove(&id)),
        }
    }

    /// A packet has arrived that goes this way, at this end.
    pub(crate) fn arrived(
        &mut self,
        now: Instant,
        links: &mut Links,
        route: PacketRoute,
        id: EndId,
        segment: Segment,
    ) {
        match segment.kind {
            SegmentKind::Reset => self.fail(links, id, io::ErrorKind::ConnectionReset),
            SegmentKind::Acknowledgement => {
                self.acknowledged(now, links, id, segment.number);
            }
            SegmentKind::Open if !self.ends.contains_key(&id) => {
                let Some(backlog) = self.listeners.get(&route.to) else {
                    return self.answer(now, links, route, id, 0, SegmentKind::Reset);
                };
                if backlog.waiting.len() < BACKLOG {
                    let back = PacketRoute { from: route.to, to: route.from };
                    self.ends.insert(id, ConnectionEnd::new(now, back, 1));
                    self.push(now, links, id, SegmentKind::Opened, Bytes::new());
                }
            }
            // A copy: the answer to the first one is sent until it is acknowledged.
            SegmentKind::Open => {}
            SegmentKind::Opened | SegmentKind::Data | SegmentKind::End => {
                let is_refused = self.ends.get(&id).is_none_or(|end| {
                    let is_new_data =
                        segment.kind == SegmentKind::Data && segment.number >= end.expected;
                    matches!(end.phase, ConnectionPhase::Failed(_)) || end.is_closed && is_new_data
                });
                if is_refused {
                    if self.ends.get(&id).is_some_and(|end| end.is_closed) {
                        self.ends.remove(&id);
                    }
                    return self.answer(now, links, route, id, 0, SegmentKind::Reset);
                }
                let number = segment.number;
                self.answer(now, links, route, id, number, SegmentKind::Acknowledgement);
                // Bytes after the client's acknowledgement show that it was sent.
                if id.side == EndSide::Server {
                    self.acknowledged(now, links, id, 0);
                }
                self.take(now, links, id, segment);
            }
        }
    }

    /// Takes a segment in order.
    fn take(&mut self, now: Instant, links: &mut Links, id: EndId, segment: Segment) {
        let Some(end) = self.ends.get_mut(&id) else { return };
        if segment.number >= end.expected {
            end.early.insert(segment.number, segment);
        }
        while let Some(segment) = end.early.remove(&end.expected) {
            end.expected += 1;
            match segment.kind {
                SegmentKind::Opened => end.is_open(now),
                SegmentKind::Data => end.ready.push_back(segment.bytes),
                _ => end.peer_has_ended = true,
            }
            end.wake(&mut links.woken);
        }
    }

    fn acknowledged(&mut self, now: Instant, links: &mut Links, id: EndId, number: u64) {
        let Some(end) = self.ends.get_mut(&id) else { return };
        if number > 0 {
            end.unacknowledged.remove(&number);
            return self.forget_if_done(id);
        }
        // A client's first segment is acknowledged by the server's.
        if id.side == EndSide::Client || end.phase != ConnectionPhase::Opening {
            return;
        }
        end.is_open(now);
        let listener = end.route.from;
        match self.listeners.get_mut(&listener) {
            Some(backlog) => {
                backlog.waiting.push_back(id);
                links.woken.extend(backlog.waker.take());
            }
            None => self.reset(now, links, id),
        }
    }

    /// A segment was not acknowledged in time.
    pub(crate) fn again(&mut self, now: Instant, links: &mut Links, id: EndId, number: u64) {
        let Some(end) = self.ends.get(&id) else { return };
        let Some(late) = end.unacknowledged.get(&number) else { return };
        let most = if end.phase == ConnectionPhase::Opening { OPENING_TRIES } else { TRIES };
        if late.transmissions < most {
            self.transmit(now, links, id, number);
        } else {
            self.fail(links, id, io::ErrorKind::TimedOut);
        }
    }

    /// Ends the connections between two hosts on both sides.
    pub(crate) fn reset_between(&mut self, links: &mut Links, one: IpAddr, other: IpAddr) {
        for id in self.between(one, other) {
            self.fail(links, id, io::ErrorKind::ConnectionReset);
        }
    }

    /// Loses all that is sent over the open connections between two hosts from now on.
    pub(crate) fn silence_between(&mut self, one: IpAddr, other: IpAddr) {
        let silenced = self.between(one, other).into_iter().map(|id| id.connection);
        self.silenced.extend(silenced);
    }

    fn between(&self, one: IpAddr, other: IpAddr) -> Vec<EndId> {
        let pairs = [(one, other), (other, one)];
        let is_between =
            |end: &ConnectionEnd| pairs.contains(&(end.route.from.ip(), end.route.to.ip()));
        self.ends.iter().filter(|(_, end)| is_between(end)).map(|(id, _)| *id).collect()
    }

    fn fail(&mut self, links: &mut Links, id: EndId, kind: io::ErrorKind) {
        let Some(end) = self.ends.get_mut(&id) else { return };
        let is_opening = end.phase == ConnectionPhase::Opening;
        end.phase = ConnectionPhase::Failed(match kind {
            io::ErrorKind::ConnectionReset if is_opening => io::ErrorKind::ConnectionRefused,
            kind => kind,
        });
        end.wake(&mut links.woken);
        // No application has it, or will close it.
        if end.is_closed || is_opening && id.side == EndSide::Server {
            self.ends.remove(&id);
        } else {
            end.unacknowledged.clear();
            end.early.clear();
        }
    }

    fn forget_if_done(&mut self, id: EndId) {
        let is_done = |end: &ConnectionEnd| end.is_closed && end.unacknowledged.is_empty();
        if self.ends.get(&id).is_some_and(is_done) {
            self.ends.remove(&id);
        }
    }

    fn reset(&mut self, now: Instant, links: &mut Links, id: EndId) {
        if let Some(end) = self.ends.remove(&id) {
            let segment = Segment { number: 0, kind: SegmentKind::Reset, bytes: Bytes::new() };
            self.emit(now, links, end.route, Packet::Segment(id.other(), segment));
        }
    }

    /// Answers a packet that came this way to this end.
    fn answer(
        &self,
        now: Instant,
        links: &mut Links,
        route: PacketRoute,
        id: EndId,
        number: u64,
        kind: SegmentKind,
    ) {
        let back = PacketRoute { from: route.to, to: route.from };
        let segment = Segment { number, kind, bytes: Bytes::new() };
        self.emit(now, links, back, Packet::Segment(id.other(), segment));
    }

    /// Sends a segment until it is acknowledged.
    fn push(
        &mut self,
        now: Instant,
        links: &mut Links,
        id: EndId,
        kind: SegmentKind,
        bytes: Bytes,
    ) {
        let Some(end) = self.ends.get_mut(&id) else { return };
        let number = end.next;
        end.next += 1;
        let segment = Segment { number, kind, bytes };
        end.unacknowledged.insert(number, Unacknowledged { segment, transmissions: 0 });
        self.transmit(now, links, id, number);
    }

    fn transmit(&mut self, now: Instant, links: &mut Links, id: EndId, number: u64) {
        let Some(end) = self.ends.get_mut(&id) else { return };
        let Some(sent) = end.unacknowledged.get_mut(&number) else { return };
        let wait = end.timeout.saturating_mul(1 << sent.transmissions.min(16));
        sent.transmissions += 1;
        let packet = Packet::Segment(id.other(), sent.segment.clone());
        links.schedule(now + wait.min(LONGEST_TIMEOUT), AgendaEntry::Again(id, number));
        let route = end.route;
        self.emit(now, links, route, packet);
    }

    fn emit(&self, now: Instant, links: &mut Links, route: PacketRoute, packet: Packet) {
        let is_silenced = match &packet {
            Packet::Segment(id, _) => self.silenced.contains(&id.connection),
            Packet::Datagram { .. } => false,
        };
        if is_silenced || links.unplugged.contains(&route.from.ip()) {
            links.record(now, route, &packet, PacketFate::Cut);
        } else {
            links.carry(now, route, &packet);
        }
    }
}

fn gone() -> io::Error {
    io::ErrorKind::NotConnected.into()
}
