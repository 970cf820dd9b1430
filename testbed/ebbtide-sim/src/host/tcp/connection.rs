//! One end of a connection: CoAP (RFC 8323) over a socket, and the books on it.

use super::ledger::{ArrivedBytes, DepartingSegment, Sent};
use super::segment::Segment;
use super::socket::Socket;
use crate::host::Tag;
use ebbtide_core::stream::{self, Incoming, Received};
use ebbtide_core::time::{Duration, Instant, Micros};
use ebbtide_core::wire::{Content, Framing};
use smoltcp::socket::tcp::State;

/// No end gives a connection up for being slow: the papers' did not, and TCP has timeouts of its
/// own. Longer than any simulation.
const PATIENCE: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Settings of CoAP on a simulated connection, which keeps at most `window` requests open.
pub(super) fn coap_config(token_length: u8, window: u32) -> stream::Config {
    stream::Config {
        token_length: token_length.min(4),
        max_requests: u16::try_from(window).unwrap_or(u16::MAX),
        csm_timeout: PATIENCE,
        message_timeout: PATIENCE,
        write_timeout: PATIENCE,
        response_timeout: PATIENCE,
        release_timeout: PATIENCE,
        ..stream::Config::default()
    }
}

/// Counters of repeated segments and expired timers.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Repeats {
    /// Expired retransmission timeouts.
    pub(crate) timeouts: u32,
    /// Segments that left again.
    pub(crate) retransmissions: u32,
    /// Segments that arrived although all that they carry was there.
    pub(crate) unnecessary: u32,
}

/// One end of a connection.
pub(super) struct TcpConnection {
    socket: Socket,
    config: stream::Config,
    /// CoAP, from the end of the handshake on.
    coap: Option<stream::Connection>,
    /// Received bytes that do not form a whole message yet.
    input: Vec<u8>,
    sent: Sent,
    arrived: ArrivedBytes,
    /// Whether the peer has closed its side and CoAP knows.
    is_at_end: bool,
    /// Whether its timer makes it send what it sends now.
    is_timed: bool,
}

/// A message for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StreamedMessage {
    /// To be answered.
    Request(Incoming),
    /// To the earliest request that is open.
    Response {
        /// Bytes of its payload.
        payload: u64,
    },
}

impl TcpConnection {
    pub(super) fn new(socket: Socket, config: stream::Config) -> Self {
        Self {
            socket,
            config,
            coap: None,
            input: Vec::new(),
            sent: Sent::default(),
            arrived: ArrivedBytes::default(),
            is_at_end: false,
            is_timed: false,
        }
    }

    /// A packet arrives; [`Self::next_message`] says what is in it.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        packet: &[u8],
        segment: &Segment,
        repeats: &mut Repeats,
    ) {
        let is_repeated = self.arrived.note(segment);
        repeats.unnecessary += u32::from(is_repeated);
        if is_repeated {
            self.socket.becomes_quick();
        }
        self.socket.receive(now, packet);
        if self.socket.is_quick() {
            // Nor does that of a segment, before the application reads it.
            self.socket.serve(now);
        }
        if self.coap.is_none()
            && matches!(self.socket.state(), State::Established | State::CloseWait)
        {
            // The acknowledgement of a SYN-ACK does not wait for the application.
            self.socket.serve(now);
            let coap = stream::Connection::new(now, Framing::Stream, self.config);
            self.sent.write(coap.output_len(), None);
            self.coap = Some(coap);
            self.flush(now);
        }
        self.socket.read(&mut self.input);
    }

    /// The next message that has arrived as a whole.
    pub(super) fn next_message(&mut self, now: Instant) -> Option<StreamedMessage> {
        let coap = self.coap.as_mut()?;
        let mut found = None;
        let mut taken = 0;
        while found.is_none()
            && let Some(next) = coap.handle_input(now, &self.input[taken..])
        {
            taken += next.bytes;
            found = match next.received {
                Received::Request(incoming, _) => Some(StreamedMessage::Request(incoming)),
                Received::Response { message, .. } => {
                    Some(StreamedMessage::Response { payload: message.payload().len() as u64 })
                }
                _ => None,
            };
        }
        self.input.drain(..taken);
        found
    }

    /// Sends a request. Whether it was accepted: it is not before the handshake is over.
    pub(super) fn request(&mut self, now: Instant, content: &Content<'_>, tag: Tag) -> bool {
        self.send(now, tag, |coap| coap.request(now, content).is_ok())
    }

    /// Answers a request.
    pub(super) fn respond(
        &mut self,
        now: Instant,
        incoming: &Incoming,
        content: &Content<'_>,
        tag: Tag,
    ) -> bool {
        self.send(now, tag, |coap| coap.respond(now, incoming, content).is_ok())
    }

    fn send(
        &mut self,
        now: Instant,
        tag: Tag,
        queue: impl FnOnce(&mut stream::Connection) -> bool,
    ) -> bool {
        let Some(coap) = &mut self.coap else { return false };
        let before = coap.output_len();
        if !queue(coap) {
            return false;
        }
        self.sent.write(coap.output_len() - before, Some(tag));
        self.socket.becomes_interactive();
        self.flush(now);
        self.end_input(now);
        true
    }

    /// Hands what waits to TCP: each message is a `send()` of its own.
    fn flush(&mut self, now: Instant) {
        if let Some(coap) = &mut self.coap {
            while let taken @ 1.. = self.socket.write(coap.poll_transmit()) {
                coap.handle_transmitted(now, taken);
            }
        }
        self.socket.serve(now);
    }

    /// The timer may be due: what leaves next does so on its account.
    pub(super) fn handle_timeout(&mut self) {
        self.is_timed = true;
    }

    /// Hands the packets that leave to `each`, with the timeout that was armed for them if they
    /// armed one. Returns when it wants to be called again.
    pub(super) fn drain(
        &mut self,
        now: Instant,
        repeats: &mut Repeats,
        mut each: impl FnMut(&[u8], DepartingSegment, Option<Micros>),
    ) -> Option<Instant> {
        self.flush(now);
        let due = self.socket.timeout(now);
        let unacknowledged = self.unacknowledged();
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
            if departure.is_repeated {
                repeats.retransmissions += 1;
                repeats.timeouts += u32::from(std::mem::take(&mut self.is_timed));
            }
            let arms = departure.is_earliest || segment.syn;
            // smoltcp's clock has microseconds: the timeout counts from the last whole one.
            let armed = Instant::from_nanos(now.as_nanos() / 1000 * 1000);
            let timeout = due.filter(|_| arms).map(|due| due.micros_since(armed));
            each(packet, departure, timeout);
        }
        self.socket.clear_packets();
        self.is_timed = false;
        if is_in_vain {
            self.give_up();
            return None;
        }
        due
    }

    /// Ends it as if it had never existed; the other end is not notified.
    pub(super) fn give_up(&mut self) {
        self.socket.give_up();
    }

    /// Bytes that the peer has not acknowledged, sent or not.
    fn unacknowledged(&self) -> u64 {
        let waiting = self.coap.as_ref().map_or(0, stream::Connection::output_len);
        (self.socket.unacknowledged() + waiting) as u64
    }

    /// Whether all that was sent is acknowledged.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.unacknowledged() == 0
    }

    /// Whether the handshake and the exchange of CSMs are over and nothing is under way.
    pub(super) fn is_settled(&self) -> bool {
        self.coap.as_ref().is_some_and(stream::Connection::is_established) && self.is_acknowledged()
    }

    /// All that has arrived was looked at. If that was the last of it, the connection is closed once
    /// all is answered.
    pub(super) fn end_input(&mut self, now: Instant) {
        let Some(coap) = &mut self.coap else { return };
        if !self.is_at_end && self.socket.state() == State::CloseWait {
            self.is_at_end = true;
            coap.handle_eof(now);
        }
        while let Some(event) = coap.poll_event() {
            if let stream::Event::Closed(_) = event {
                self.socket.close();
            }
        }
    }

    /// Closes our side, after what was sent.
    pub(super) fn close(&mut self) {
        self.socket.close();
    }

    /// Whether nothing of it is left.
    pub(super) fn is_gone(&self) -> bool {
        self.socket.is_gone()
    }
}
