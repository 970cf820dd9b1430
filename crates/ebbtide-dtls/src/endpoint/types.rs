//! Outputs, events, errors and counters of an endpoint.

use crate::certificate::{CertificateType, Identity};
use crate::failure::Failure;
use crate::flight::RoundTrip;
use crate::shared::Arc;
use core::fmt;
use core::net::SocketAddr;
use core::ops::AddAssign;
use ebbtide_core::time::Instant;

/// Identifies a session, from the call that began its handshake on. Identifiers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl SessionId {
    /// The identifier as a number.
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

/// The peer of a session.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SessionPeer<'a> {
    /// As [`Endpoint::identity`](crate::Endpoint::identity) returns it.
    pub identity: &'a [u8],
    /// The certificate or raw public key that it has shown, in DER.
    pub certificate: Option<&'a [u8]>,
    /// The form of it.
    pub certificate_type: CertificateType,
}

impl<'a> SessionPeer<'a> {
    /// A peer with an X.509 certificate or none, for the driver of another security protocol.
    #[must_use]
    pub const fn new(identity: &'a [u8], certificate: Option<&'a [u8]>) -> Self {
        Self { identity, certificate, certificate_type: CertificateType::X509 }
    }

    pub(crate) fn of(identity: &'a Identity) -> Self {
        let shown = identity.certificate();
        Self {
            identity: identity.name(),
            certificate: shown.map(|shown| &*shown.der),
            certificate_type: shown.map(|shown| shown.kind).unwrap_or_default(),
        }
    }
}

/// The driver's next action.
#[derive(Debug)]
pub enum Output<'a> {
    /// Send this datagram.
    Transmit {
        /// The peer's real address.
        to: SocketAddr,
        /// The bytes.
        datagram: &'a [u8],
    },
    /// Report this event to the application.
    Event(Event),
    /// Call [`Endpoint::handle_timeout`](crate::Endpoint::handle_timeout) at this instant; without
    /// an instant nothing is due.
    Timeout(Option<Instant>),
}

/// A change of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete, so data can be sent.
    Established {
        /// The session.
        session: SessionId,
        /// Whether an earlier session was resumed.
        resumed: bool,
    },
    /// The session ended, or its handshake failed.
    Ended {
        /// The session.
        session: SessionId,
        /// The peer's last address.
        remote: SocketAddr,
        /// As [`Endpoint::identity`](crate::Endpoint::identity) returned it; empty if it was not sent
        /// yet.
        identity: Arc<[u8]>,
        /// Whether the handshake had been complete.
        established: bool,
        /// The reason.
        reason: Failure,
    },
    /// At a client: the server says that it does not know the session, or the handshake, as after a restart. Nothing
    /// proves that the server has said so: the session goes on, and a driver may begin another one, but not often.
    Doubted {
        /// The session.
        session: SessionId,
    },
    /// A flight was answered, which is a measurement for congestion control.
    RoundTrip {
        /// The session.
        session: SessionId,
        /// The measured round trip.
        sample: RoundTrip,
    },
    /// The peer has confirmed that it receives at a new address.
    AddressChanged {
        /// The session.
        session: SessionId,
        /// The previous address.
        from: SocketAddr,
        /// The new address.
        to: SocketAddr,
    },
}

/// The reason why nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The session does not exist any more.
    NoSession,
    /// The session's handshake is not complete.
    NotEstablished,
    /// The data exceeds the maximum of a record, 16384 bytes (RFC 5246 section 6.2.1).
    TooLong,
    /// The sequence numbers are used up, and the session has ended.
    SequenceNumbersUsedUp,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSession => "the DTLS session has ended",
            Self::NotEstablished => "the DTLS handshake is not complete",
            Self::TooLong => "more than 16384 bytes for a DTLS record",
            Self::SequenceNumbersUsedUp => "the DTLS sequence numbers are used up",
        })
    }
}

impl core::error::Error for SendError {}

/// The counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// ClientHellos without a correct cookie; each was answered by a HelloVerifyRequest without
    /// keeping state.
    pub hellos_verified: u64,
    /// ClientHellos whose answers needed a signature.
    pub signatures: u64,
    /// ClientHellos with a correct cookie that were dropped, because their source has its share of those that
    /// wait for a signature.
    pub hellos_withheld: u64,
    /// Completed handshakes, including those of resumed sessions.
    pub established: u64,
    /// Completed handshakes that resumed a session.
    pub resumed: u64,
    /// Handshakes that failed.
    pub handshakes_failed: u64,
    /// Failed handshakes whose identity is unknown.
    pub unknown_identities: u64,
    /// Failed handshakes with a wrong key.
    pub wrong_keys: u64,
    /// Failed handshakes in which the peer's certificate was not accepted, or missing.
    pub certificates_refused: u64,
    /// Handshakes and sessions dropped because a limit was reached.
    pub evicted: u64,
    /// Records that are not valid, or belong to no session.
    pub records_malformed: u64,
    /// Records that had been received before, or were too old.
    pub records_replayed: u64,
    /// Records whose authentication tag is wrong.
    pub records_not_authentic: u64,
    /// Peers that confirmed a new address.
    pub addresses_changed: u64,
    /// New addresses at which the peer did not answer, or which it soon stopped using.
    pub addresses_refused: u64,
    /// Records withheld from an address that was not confirmed.
    pub unverified_withheld: u64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, more: Self) {
        // By name, so that a counter that is added is not forgotten here.
        let Self {
            hellos_verified,
            signatures,
            hellos_withheld,
            established,
            resumed,
            handshakes_failed,
            unknown_identities,
            wrong_keys,
            certificates_refused,
            evicted,
            records_malformed,
            records_replayed,
            records_not_authentic,
            addresses_changed,
            addresses_refused,
            unverified_withheld,
        } = more;
        self.hellos_verified += hellos_verified;
        self.signatures += signatures;
        self.hellos_withheld += hellos_withheld;
        self.established += established;
        self.resumed += resumed;
        self.handshakes_failed += handshakes_failed;
        self.unknown_identities += unknown_identities;
        self.wrong_keys += wrong_keys;
        self.certificates_refused += certificates_refused;
        self.evicted += evicted;
        self.records_malformed += records_malformed;
        self.records_replayed += records_replayed;
        self.records_not_authentic += records_not_authentic;
        self.addresses_changed += addresses_changed;
        self.addresses_refused += addresses_refused;
        self.unverified_withheld += unverified_withheld;
    }
}
