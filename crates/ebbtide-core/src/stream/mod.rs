//! Connections: CoAP over reliable transports (RFC 8323), without a clock or a socket.
//!
//! A [`Connection`] is one side of one connection, whichever side opened it: both may ask and
//! answer. The transport below, TCP, TLS or WebSockets, repeats, orders and paces, so there is no
//! message ID, no acknowledgement and no congestion control here.
//!
//! # Contract
//!
//! The driver owns the transport and the clock. It passes in what happens and fetches what is
//! wanted:
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
//! * Our CSM waits to be sent from the start; messages may follow it at once (RFC 8323 section
//!   5.3).
//! * A message is taken when it is whole, and what it holds is borrowed from the driver's buffer.
//!   [`Connection::expects`] says how large that must be: never more than Max-Message-Size.
//! * Many messages wait as one run of bytes: one write for all. Within WebSockets it is one message
//!   at a time, each a frame of its own.
//! * While [`Connection::wants_input`] is false nothing is taken: too much is unanswered or
//!   unsent. So what a peer can make us hold is bounded, whatever it does.
//! * Time never runs backwards: an earlier `now` is taken for the latest one seen.
//! * `handle_*` never fails. A peer that breaks a rule is sent an Abort that says which, and its
//!   connection ends. Calls that send return an error if the caller asked for too much, and then
//!   did nothing.
//! * Every accepted request ends exactly once: with [`Received::Response`], [`Event::Failed`], or
//!   the caller's [`Connection::cancel`]; an observation also with [`Connection::deregister`].
//! * Every request of the peer is answered with [`Connection::respond`] or let be with
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

use crate::time::Instant;
use crate::wire::{BASE_MAX_MESSAGE_SIZE, Framing, Token};
use alloc::collections::VecDeque;
use buffer::Output;
use deadlines::Deadlines;
use requests::Requests;

/// One side of a connection. See the [module](self) for how it is driven.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    framing: Framing,
    now: Instant,
    phase: Phase,
    /// What the peer's CSM said; nothing until it came.
    peer: Option<Capabilities>,
    requests: Requests,
    /// Requests of the peer that the application has not answered.
    unanswered: u32,
    custody: Custody,
    output: Output,
    events: VecDeque<Event>,
    deadlines: Deadlines,
    /// Bytes of the message that has begun to arrive, as far as known.
    expects: usize,
    counters: Counters,
}

/// How far the connection is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// We sent a Release: the peer answers what is open and closes.
    Releasing,
    /// The peer sent a Release or closed its side: what is open is answered, then we close.
    Leaving(Closed),
    /// Over; what waits is still sent.
    Closing(Closed),
    /// Over, and the driver knows.
    Closed,
}

/// The Pong that waits until what came before its Ping is processed (RFC 8323 section 5.4.1).
#[derive(Copy, Clone, Debug, Default)]
struct Custody {
    /// Pings with Custody so far.
    epoch: u32,
    /// The Ping's token, and how many earlier requests are unanswered.
    held: Option<(Token, u32)>,
}

impl Connection {
    /// A connection whose transport has just been established, by either side. Our CSM waits to be
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
            custody: Custody::default(),
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

    /// What happened without a message. To be fetched after every call that takes `now`.
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

    /// What the transport is to send: all messages that wait, or within WebSockets one of them.
    /// Empty if none waits.
    #[inline]
    #[must_use]
    pub fn poll_transmit(&self) -> &[u8] {
        self.output.next()
    }

    /// The transport took this many bytes of [`Self::poll_transmit`].
    #[inline]
    pub fn handle_transmitted(&mut self, now: Instant, bytes: usize) {
        let now = self.advance(now);
        if bytes > 0 {
            self.output.take(bytes);
            self.deadlines.write =
                (!self.output.is_empty()).then(|| now + self.config.write_timeout);
        }
    }

    /// Whether input is taken now. If not, it is again after something was answered or sent; the
    /// driver leaves unread what it has not read, so that the transport slows the peer down.
    #[inline]
    #[must_use]
    pub fn wants_input(&self) -> bool {
        self.output.len() < self.config.max_output / 2
            && self.unanswered < self.config.max_unanswered.max(1)
    }

    /// How many bytes of input the next message needs, as far as is known; 0 if nothing is. At most
    /// [`Config::max_message_size`].
    #[inline]
    #[must_use]
    pub const fn expects(&self) -> usize {
        self.expects
    }

    /// The peer has closed its side: no more bytes will come. Within WebSockets: its Close frame
    /// came.
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

    /// The transport failed: nothing can be sent or received any more.
    pub fn handle_loss(&mut self, now: Instant) {
        let now = self.advance(now);
        self.output.clear();
        match self.phase {
            Phase::Open | Phase::Releasing | Phase::Leaving(_) => self.close(now, Closed::Lost),
            Phase::Closing(_) | Phase::Closed => {}
        }
    }

    /// What the peer takes: what its CSM said, and 1152 bytes until it came.
    #[must_use]
    pub fn peer(&self) -> Capabilities {
        self.peer.unwrap_or(Capabilities {
            max_message_size: BASE_MAX_MESSAGE_SIZE,
            block_wise_transfer: false,
        })
    }

    /// Whether the peer's CSM has come.
    #[must_use]
    pub const fn is_established(&self) -> bool {
        self.peer.is_some()
    }

    /// Bytes of the longest message that may be sent now.
    #[must_use]
    pub fn message_limit(&self) -> usize {
        self.peer().max_message_size.min(self.config.max_message_size) as usize
    }

    /// Whether new requests are accepted: neither side wants the connection to end.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Requests of ours that have not ended.
    #[must_use]
    pub const fn open_requests(&self) -> usize {
        self.requests.open()
    }

    /// Requests of the peer that have not been answered.
    #[must_use]
    pub const fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Bytes that wait to be sent.
    #[must_use]
    pub const fn output_len(&self) -> usize {
        self.output.len()
    }

    /// Bytes of room for those.
    #[must_use]
    pub const fn output_capacity(&self) -> usize {
        self.output.capacity()
    }

    /// What has been counted.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The latest time seen; a clock that jumps back stands still instead.
    #[inline]
    fn advance(&mut self, now: Instant) -> Instant {
        let now = self.now.max(now);
        if !self.wants_input() {
            // Since the last call nothing of the peer's was taken.
            self.deadlines.postpone(now.saturating_since(self.now));
        }
        self.now = now;
        now
    }

    /// No more of ours; ends when nothing is open.
    fn leave(&mut self, now: Instant, closed: Closed) {
        self.phase = Phase::Leaving(closed);
        self.deadlines.end.get_or_insert(now + self.config.response_timeout);
        self.close_if_drained(now);
    }

    /// Ends a connection that the peer wants to end, once nothing is open any more.
    fn close_if_drained(&mut self, now: Instant) {
        if let Phase::Leaving(closed) = self.phase
            && self.unanswered == 0
            && self.requests.open() == 0
        {
            self.close(now, closed);
        }
    }

    /// Ends the connection: what is open fails, what waits is still sent.
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
        let reason = Failure::Closed(closed);
        let ended = self.requests.end_all();
        self.events.extend(ended.into_iter().map(|request| Event::Failed { request, reason }));
    }
}
