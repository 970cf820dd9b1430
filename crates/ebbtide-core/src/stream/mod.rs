//! Connections: CoAP over reliable transports (RFC 8323), without a clock or a socket.
//!
//! A [`Connection`] is one side of one connection, whichever side opened it; both sides may send
//! requests and responses. The transport below (TCP, TLS or WebSockets) is reliable, ordered and
//! congestion-controlled, so there are no message IDs, no acknowledgements and no congestion
//! control here.
//!
//! # Contract
//!
//! The driver owns the transport and the clock. It reports events to the connection and fetches
//! the connection's output:
//!
//! ```text
//! loop {
//!     while let Some(event) = connection.poll_event() { handle it; after Closed, close the transport }
//!     while let bytes @ [_, ..] = connection.poll_transmit() {
//!         write them; connection.handle_transmitted(now, how many were taken)
//!     }
//!     wait for bytes (if connection.wants_input()), for room to write (if some bytes are left),
//!     for the application, or for connection.poll_timeout();
//!     while let Some(taken) = connection.handle_input(now, unread bytes) { handle it }
//!     or request / respond / handle_timeout(now) / handle_eof(now) / handle_loss(now)
//! }
//! ```
//!
//! * Our CSM is queued from the start; messages may follow it at once (RFC 8323 section 5.3).
//! * A message is processed when it is complete, and its contents are borrowed from the driver's
//!   buffer. [`Connection::expects`] returns the required size of that buffer, which never exceeds
//!   Max-Message-Size.
//! * On a byte stream, many waiting messages form one run of bytes for a single write. Over
//!   WebSockets each message is a frame of its own.
//! * While [`Connection::wants_input`] is false no input is processed, because too much is
//!   unanswered or unsent. The memory that a peer can occupy is therefore bounded.
//! * Time never runs backwards: the connection replaces an earlier `now` by the latest one seen.
//! * `handle_*` never fails. A peer that violates the protocol receives an Abort with the reason,
//!   and its connection ends. Calls that send return an error if the message cannot be accepted,
//!   and then have no effect.
//! * Every accepted request ends exactly once: with [`Received::Response`], [`Event::Failed`], or
//!   the caller's [`Connection::cancel`]. An observation may also end with
//!   [`Connection::deregister`].
//! * Every request of the peer must be answered with [`Connection::respond`] or dismissed with
//!   [`Connection::dismiss`].

mod buffer;
mod config;
mod deadlines;
mod receive;
mod requests;
mod send;
mod types;

pub use buffer::Input;
pub use config::Config;
pub use requests::RequestId;
pub use types::{
    Capabilities, Closed, Counters, Event, Failure, Fault, Ignored, Incoming, Received, SendError,
    Taken,
};

use crate::peer_token::PeerToken;
use crate::time::Instant;
use crate::wire::{BASE_MAX_MESSAGE_SIZE, Framing};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use buffer::Output;
use deadlines::Deadlines;
use requests::Requests;

/// One side of a connection. The [module](self) documentation states how a driver uses it.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    framing: Framing,
    now: Instant,
    phase: Phase,
    /// The capabilities in the peer's CSM; `None` until it arrived.
    peer: Option<Capabilities>,
    requests: Requests,
    /// Requests of the peer that the application has not answered yet.
    unanswered: u32,
    custody: PongCustody,
    output: Output,
    events: VecDeque<Event>,
    deadlines: Deadlines,
    /// Total bytes of the message that has begun to arrive, as far as known.
    expects: usize,
    counters: Counters,
}

/// The phase of the connection's life.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// We sent a Release. The peer answers open requests and closes.
    Releasing,
    /// The peer sent a Release or closed its side. Open requests are answered, then we close.
    Leaving(Closed),
    /// The connection has ended; waiting bytes are still sent.
    Closing(Closed),
    /// The connection has ended, and the driver has been notified.
    Closed,
}

/// The Pong that waits until everything before its Ping is processed (RFC 8323 section 5.4.1).
#[derive(Clone, Debug, Default)]
struct PongCustody {
    /// The number of Pings with Custody so far.
    epoch: u32,
    /// The Ping's token, and the number of earlier requests that are unanswered.
    held: Option<(PeerToken, u32)>,
}

impl Connection {
    /// A connection whose transport has just been established by either side. Our CSM waits to be
    /// sent.
    #[must_use]
    pub fn new(now: Instant, framing: Framing, config: Config) -> Self {
        let mut connection = Self {
            framing,
            now,
            phase: Phase::Open,
            peer: None,
            requests: Requests::new(config.max_requests, config.token_length),
            unanswered: 0,
            custody: PongCustody::default(),
            output: Output::new(framing),
            events: VecDeque::new(),
            deadlines: Deadlines::new(now, &config),
            expects: 0,
            counters: Counters::default(),
            config,
        };
        connection.send_csm();
        connection
    }

    /// The next event that was not caused by a message. Call this after every call that takes
    /// `now`.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        match self.phase {
            Phase::Closing(closed) if self.output.is_empty() => {
                self.phase = Phase::Closed;
                Some(Event::Closed(closed))
            }
            _ => None,
        }
    }

    /// The bytes to send: all waiting messages or, over WebSockets, one of them. Empty if there is
    /// none.
    #[inline]
    #[must_use]
    pub fn poll_transmit(&self) -> &[u8] {
        self.output.next()
    }

    /// The transport accepted this many bytes of [`Self::poll_transmit`].
    #[inline]
    pub fn handle_transmitted(&mut self, now: Instant, bytes: usize) {
        let now = self.advance(now);
        if bytes > 0 {
            self.output.take(bytes);
            self.deadlines.write =
                (!self.output.is_empty()).then(|| now + self.config.write_timeout);
        }
    }

    /// Whether input is processed now. If not, it will be after something was answered or sent.
    /// Until then the driver leaves bytes unread, so that the transport slows the peer down.
    #[inline]
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.output.len() < self.config.max_output / 2
            && self.unanswered < self.config.max_unanswered.max(1)
    }

    /// The number of input bytes that the next message needs, as far as known; 0 if nothing is
    /// known. At most [`Config::max_message_size`].
    #[inline]
    #[must_use]
    pub const fn expects(&self) -> usize {
        self.expects
    }

    /// The peer has closed its side, so no more bytes will arrive. Over WebSockets: its Close
    /// frame has arrived.
    pub fn handle_eof(&mut self, now: Instant) {
        let now = self.advance(now);
        match self.phase {
            Phase::Open => {
                self.fail_requests(Closed::ByPeer);
                self.leave(now, Closed::ByPeer);
            }
            Phase::Releasing => self.close(now, Closed::Released),
            // Nothing that is still open on our side will be answered.
            Phase::Leaving(closed) => {
                self.fail_requests(closed);
                self.leave(now, closed);
            }
            Phase::Closing(_) | Phase::Closed => {}
        }
    }

    /// The transport failed, so nothing can be sent or received any more.
    pub fn handle_loss(&mut self, now: Instant) {
        let now = self.advance(now);
        self.output.clear();
        match self.phase {
            Phase::Open | Phase::Releasing | Phase::Leaving(_) => self.close(now, Closed::Lost),
            Phase::Closing(_) | Phase::Closed => {}
        }
    }

    /// The peer's capabilities: those of its CSM, or a message size of 1152 bytes until it
    /// arrived.
    #[must_use]
    pub fn peer(&self) -> Capabilities {
        self.peer.unwrap_or(Capabilities {
            max_message_size: BASE_MAX_MESSAGE_SIZE,
            block_wise_transfer: false,
        })
    }

    /// Whether the peer's CSM has arrived.
    #[must_use]
    pub const fn is_established(&self) -> bool {
        self.peer.is_some()
    }

    /// Bytes of the longest message that can be sent now.
    #[must_use]
    pub fn message_limit(&self) -> usize {
        self.peer().max_message_size.min(self.config.max_message_size) as usize
    }

    /// Whether new requests are accepted, that is, neither side is ending the connection.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// The number of our requests that have not ended.
    #[must_use]
    pub const fn open_requests(&self) -> usize {
        self.requests.open()
    }

    /// The number of the peer's requests that have not been answered.
    #[must_use]
    pub const fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// The number of bytes that wait to be sent.
    #[must_use]
    pub const fn output_len(&self) -> usize {
        self.output.len()
    }

    /// The capacity for those bytes.
    #[must_use]
    pub const fn output_capacity(&self) -> usize {
        self.output.capacity()
    }

    /// The connection's counters.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The latest time seen: if the clock jumps back, time stands still instead.
    #[inline]
    fn advance(&mut self, now: Instant) -> Instant {
        let now = self.now.max(now);
        if !self.wants_input() {
            // Since the last call no input of the peer was processed.
            self.deadlines.postpone(now.saturating_since(self.now));
        }
        self.now = now;
        now
    }

    /// Accepts no more requests of ours; the connection ends when nothing is open.
    fn leave(&mut self, now: Instant, closed: Closed) {
        self.phase = Phase::Leaving(closed);
        self.deadlines.end.get_or_insert(now + self.config.response_timeout);
        self.close_if_drained(now);
    }

    /// Ends a connection that the peer wants to end, once nothing is open.
    fn close_if_drained(&mut self, now: Instant) {
        if let Phase::Leaving(closed) = self.phase
            && self.unanswered == 0
            && self.requests.open() == 0
        {
            self.close(now, closed);
        }
    }

    /// Ends the connection. Open requests fail; waiting bytes are still sent.
    fn close(&mut self, now: Instant, closed: Closed) {
        self.fail_requests(closed);
        self.phase = Phase::Closing(closed);
        self.unanswered = 0;
        self.expects = 0;
        self.deadlines = Deadlines {
            write: Some(now + self.config.write_timeout.min(self.config.release_timeout)),
            ..Deadlines::none(now)
        };
    }

    fn fail_requests(&mut self, closed: Closed) {
        let ended = self.requests.end_all();
        self.fail(ended, closed);
    }

    fn fail(&mut self, ended: Vec<RequestId>, closed: Closed) {
        let reason = Failure::Closed(closed);
        self.events.extend(ended.into_iter().map(|request| Event::Failed { request, reason }));
    }
}
