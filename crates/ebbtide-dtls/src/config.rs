//! The configuration of an endpoint.

use crate::keys::Psk;
use crate::suite::CipherSuite;
use alloc::vec::Vec;
use ebbtide_core::time::Duration;
use ebbtide_core::turns::TurnLimits;

/// The settings of an [`Endpoint`](crate::Endpoint).
#[derive(Clone, Debug)]
pub struct Config {
    /// The cipher suites in order of preference.
    pub suites: Vec<CipherSuite>,
    /// Connection IDs (RFC 9146): the length in bytes of the IDs that this endpoint issues, at
    /// most 8. Zero: it uses the peer's in its records and needs none itself, like a client with
    /// one peer. `None`: connection IDs are not used.
    pub cid_length: Option<u8>,
    /// The first bytes of the IDs that this endpoint issues, by which a balancer or another
    /// endpoint at the same address finds it. Four bytes at least remain for the session; longer
    /// prefixes are cut. Default: none.
    pub cid_prefix: Vec<u8>,
    /// Whether peers must show that they receive at a new address (RFC 9853).
    pub return_routability: bool,
    /// Bytes of the longest handshake datagram.
    pub mtu: usize,
    /// The retransmission of flights in a server's handshakes. A client passes its own timing to
    /// [`Endpoint::connect`](crate::Endpoint::connect).
    pub timing: Timing,
    /// The limits on memory.
    pub limits: Limits,
    /// The lifetime of the key of cookies. A cookie is valid for one to two such periods.
    pub cookie_period: Duration,
    /// How long a server allows a session to be resumed.
    pub resumption_lifetime: Duration,
    /// Whether this server serves DTLS 1.3 as well, by other means. Its random number then ends as RFC 8446
    /// section 4.1.3 demands, so that a client of DTLS 1.3 notices if an attacker has removed that version from
    /// its ClientHello. Default false.
    pub serves_dtls13: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            suites: CipherSuite::ALL.to_vec(),
            cid_length: Some(6),
            cid_prefix: Vec::new(),
            return_routability: true,
            mtu: 1232,
            timing: Timing::SERVER,
            limits: Limits::default(),
            cookie_period: Duration::from_secs(60),
            resumption_lifetime: Duration::from_secs(86_400),
            serves_dtls13: false,
        }
    }
}

impl Config {
    /// These settings on a path whose round trips take up to `round_trip`: a server's flight is retransmitted
    /// after two of them, and a cookie is valid for one at least. Where the defaults, 60 s, are longer, they
    /// stay.
    #[must_use]
    pub fn for_round_trips(mut self, round_trip: Duration) -> Self {
        let first = self.timing.first_timeout.max(round_trip.saturating_mul(2));
        self.timing = self.timing.beginning_with(first);
        self.cookie_period = self.cookie_period.max(round_trip);
        self
    }
}

/// When a flight is retransmitted: after the first timeout, then after twice that, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The first timeout. RFC 6347 section 4.2.4.1 recommends 1 s and RFC 7925 section 11
    /// recommends 9 s; a congestion control that knows the path provides a better value.
    pub first_timeout: Duration,
    /// The longest timeout (RFC 6347 section 4.2.4.1: 60 s).
    pub max_timeout: Duration,
    /// How often a flight is retransmitted before the handshake fails.
    pub max_retransmit: u8,
}

impl Timing {
    /// This timing with another first timeout, for example that of a congestion control. The longest
    /// timeout is at least four times the first.
    #[must_use]
    pub fn beginning_with(self, first_timeout: Duration) -> Self {
        Self {
            first_timeout,
            max_timeout: self.max_timeout.max(first_timeout.saturating_mul(4)),
            ..self
        }
    }

    /// The default for the flights of a server. A client repeats its flight if the answer does not come, and
    /// the server then repeats its own. Repetitions by the server's timer are therefore hardly ever
    /// necessary, and they make a crowd of handshakes on a slow link collapse, because the server cannot
    /// know how long its flights wait there.
    pub const SERVER: Self = Self {
        first_timeout: Duration::from_secs(60),
        max_timeout: Duration::from_secs(60),
        max_retransmit: 1,
    };
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            first_timeout: Duration::from_secs(2),
            max_timeout: Duration::from_secs(60),
            max_retransmit: 5,
        }
    }
}

/// The limits on an endpoint's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions, including those in a handshake. At the limit the least recently used one is
    /// dropped; of the source that has most, while that is more than an equal share.
    pub sessions: usize,
    /// Handshakes in progress with peers whose cookie was correct. A source that has as many as are free to
    /// others loses its oldest one; at the limit the oldest one of the source with most is dropped.
    pub handshakes: usize,
    /// ClientHellos whose answers need a signature.
    pub signatures: TurnLimits,
    /// Sessions that can be resumed at a server. At the limit the oldest one is dropped.
    pub resumable: usize,
    /// Records of unknown sessions that a server answers within a second, with an alert.
    pub unknown_answered: u32,
    /// Bytes that wait for the driver. At the limit datagrams are dropped, as if the network had
    /// lost them.
    pub outbox_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 131_072,
            handshakes: 4096,
            signatures: TurnLimits { per_second: 64, at_once: 128, waiting: 1024, sources: 16_384 },
            resumable: 131_072,
            unknown_answered: 1024,
            outbox_bytes: 4 << 20,
        }
    }
}

/// The source of a server's keys.
pub trait PskLookup {
    /// The key of this identity; `None` if it is not known. Called once in a handshake, and once
    /// more when a session is resumed, so that a revoked key cannot be used to resume.
    fn key(&mut self, identity: &[u8]) -> Option<Psk>;

    /// A second key of this identity, which is tried if the client does not have the first one:
    /// while the keys of devices are replaced, some have the old one and others the new one. By
    /// default there is none.
    fn other_key(&mut self, identity: &[u8]) -> Option<Psk> {
        let _ = identity;
        None
    }
}

impl<F: FnMut(&[u8]) -> Option<Psk>> PskLookup for F {
    fn key(&mut self, identity: &[u8]) -> Option<Psk> {
        self(identity)
    }
}
