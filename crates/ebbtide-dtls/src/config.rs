//! The configuration of an endpoint.

use crate::CipherSuite;
use crate::keys::Psk;
use alloc::vec::Vec;
use ebbtide_core::time::Duration;

/// The settings of an [`Endpoint`](crate::Endpoint).
#[derive(Clone, Debug)]
pub struct Config {
    /// The cipher suites, the preferred one first.
    pub suites: Vec<CipherSuite>,
    /// Connection IDs (RFC 9146): bytes of those that this endpoint gives out, at most 8. Zero: it
    /// puts the peer's into its records, and needs none itself, as a client with one peer does. `None`:
    /// no connection IDs.
    pub cid_length: Option<u8>,
    /// Whether peers are asked to show that they receive at a new address (RFC 9853).
    pub return_routability: bool,
    /// Bytes of the longest datagram of a handshake.
    pub mtu: usize,
    /// When the flights of a server's handshakes are repeated; a client names it with each handshake.
    pub timing: Timing,
    /// How much is kept.
    pub limits: Limits,
    /// How long the key of cookies is used. A cookie is good for one to two such periods.
    pub cookie_period: Duration,
    /// How long a server lets sessions be resumed.
    pub resumption_lifetime: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            suites: CipherSuite::ALL.to_vec(),
            cid_length: Some(6),
            return_routability: true,
            mtu: 1232,
            timing: Timing::default(),
            limits: Limits::default(),
            cookie_period: Duration::from_secs(60),
            resumption_lifetime: Duration::from_secs(86_400),
        }
    }
}

/// When a flight is repeated: after the first timeout, then after twice that, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The first timeout. RFC 6347 section 4.2.4.1 says 1 s, RFC 7925 section 11 says 9 s; where a
    /// congestion control knows the path, it says.
    pub first_timeout: Duration,
    /// No timeout is longer (RFC 6347 section 4.2.4.1: 60 s).
    pub max_timeout: Duration,
    /// How often a flight is repeated before the handshake fails.
    pub max_retransmit: u8,
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

/// How much an endpoint keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions, those in a handshake included; at the limit the least recently used one goes.
    pub sessions: usize,
    /// Handshakes under way with peers whose cookie was right; at the limit the oldest one goes.
    pub handshakes: usize,
    /// Sessions that a server lets be resumed; at the limit the oldest one goes.
    pub resumable: usize,
    /// Bytes that wait for the driver.
    pub outbox_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { sessions: 131_072, handshakes: 4096, resumable: 131_072, outbox_bytes: 4 << 20 }
    }
}

/// Where a server's keys come from.
pub trait PskLookup {
    /// The key of this identity, if it is known. Called once in a handshake, and once more when a
    /// session is resumed, so that a withdrawn key opens nothing.
    fn key(&mut self, identity: &[u8]) -> Option<Psk>;
}

impl<F: FnMut(&[u8]) -> Option<Psk>> PskLookup for F {
    fn key(&mut self, identity: &[u8]) -> Option<Psk> {
        self(identity)
    }
}
