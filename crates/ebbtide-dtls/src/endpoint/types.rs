//! Outputs, events, errors and counters of an endpoint.

use crate::failure::Failure;
use crate::flight::RoundTrip;
use alloc::sync::Arc;
use core::fmt;
use core::net::SocketAddr;
use ebbtide_core::time::Instant;

/// Names a session, from the call that began its handshake on; never used again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl SessionId {
    /// As one number.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The inverse of [`Self::as_u64`].
    #[must_use]
    pub const fn from_u64(number: u64) -> Self {
        Self { index: number as u32, generation: (number >> 32) as u32 }
    }
}

/// The driver's next task.
#[derive(Debug)]
pub enum Output<'a> {
    /// Send this.
    Transmit {
        /// The true address.
        to: SocketAddr,
        /// The bytes.
        datagram: &'a [u8],
    },
    /// Tell the application this.
    Event(Event),
    /// Call [`Endpoint::handle_timeout`](crate::Endpoint::handle_timeout) then; nothing is due without
    /// an instant.
    Timeout(Option<Instant>),
}

/// A change of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Its handshake is complete: data may be sent.
    Established {
        /// The session.
        session: SessionId,
        /// Whether an earlier session was resumed.
        resumed: bool,
    },
    /// It is over, or its handshake failed.
    Ended {
        /// The session.
        session: SessionId,
        /// Where its peer was.
        remote: SocketAddr,
        /// The peer's identity at a server, the own one at a client; empty if it was not named yet.
        identity: Arc<[u8]>,
        /// Whether the handshake had been complete.
        established: bool,
        /// Why.
        reason: Failure,
    },
    /// A flight was answered: a congestion control learns from it.
    RoundTrip {
        /// The session.
        session: SessionId,
        /// How long it took.
        sample: RoundTrip,
    },
    /// The peer has shown that it receives at a new address.
    AddressChanged {
        /// The session.
        session: SessionId,
        /// Where it was.
        from: SocketAddr,
        /// Where it is.
        to: SocketAddr,
    },
}

/// Why nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// There is no such session any more.
    NoSession,
    /// Its handshake is not complete.
    NotEstablished,
    /// More bytes than a record takes: 16384 (RFC 5246 section 6.2.1).
    TooLong,
    /// The peer has not shown yet that it receives at its new address, and has been sent three times
    /// what came from there.
    Unverified,
    /// Sequence numbers are used up; the session is over.
    SequenceNumbersUsedUp,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSession => "the DTLS session is over",
            Self::NotEstablished => "the DTLS handshake is not complete",
            Self::TooLong => "more than 16384 bytes for a DTLS record",
            Self::Unverified => "the peer has not confirmed its new address",
            Self::SequenceNumbersUsedUp => "the DTLS sequence numbers are used up",
        })
    }
}

impl core::error::Error for SendError {}

/// The counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// ClientHellos without the right cookie, each answered by a HelloVerifyRequest and forgotten.
    pub hellos_verified: u64,
    /// Handshakes that were completed, those of resumed sessions included.
    pub established: u64,
    /// Of these, resumptions.
    pub resumed: u64,
    /// Handshakes that failed.
    pub handshakes_failed: u64,
    /// Of these, because the identity is unknown.
    pub unknown_identities: u64,
    /// Of these, because the key is another one.
    pub wrong_keys: u64,
    /// Handshakes and sessions that went because a limit was reached.
    pub evicted: u64,
    /// Records that are not valid, or belong to no session.
    pub records_malformed: u64,
    /// Records received before, or too late.
    pub records_replayed: u64,
    /// Records whose tag is wrong.
    pub records_not_authentic: u64,
    /// Peers that confirmed a new address.
    pub addresses_changed: u64,
    /// New addresses at which the peer did not answer, or from which it was soon heard no more.
    pub addresses_refused: u64,
    /// Records not sent to an address that was not confirmed.
    pub unverified_withheld: u64,
}
