//! The configuration of a server's session, its load, and its counters of refusals.

use crate::q_block::QBlockParameters;
use crate::session::address_validation::Verify;
use crate::time::Duration;

/// Settings of a server's session.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Address validation: which addresses receive at most three times the bytes they sent until
    /// they have echoed a challenge (RFC 9175 section 2.4).
    pub verify: Verify,
    /// The maximum number of requests per second from one address; further ones are answered 4.29
    /// (RFC 8516). Default: no limit.
    pub max_rate: Option<u32>,
    /// The maximum number of verified addresses, and of addresses whose rate is counted. Default
    /// 65536.
    pub max_addresses: usize,
    /// The maximum length of a body that is assembled from blocks, in bytes. Default 16 MiB.
    pub max_body: usize,
    /// The maximum number of bytes of block-wise transfers in progress, uploads and downloads
    /// together; those in Non-confirmable blocks have the same limit again. Default 64 MiB.
    pub max_block_bytes: usize,
    /// The maximum number of answers that wait until their address has echoed a challenge. From
    /// half of it on, non-idempotent requests are challenged before their handlers run. Default
    /// 1024.
    pub max_withheld: usize,
    /// The size of blocks over UDP in bytes, 16 to 1024, rounded down to a power of two (RFC 7959
    /// section 2.2). Default 1024.
    pub block_size: usize,
    /// The pace of bodies in the blocks of RFC 9177.
    pub q_block: QBlockParameters,
    /// How long a transfer may pause, and how long its end is remembered: EXCHANGE_LIFETIME (RFC
    /// 7252 section 4.8.2). Default 247 s.
    pub exchange_lifetime: Duration,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            verify: Verify::default(),
            max_rate: None,
            max_addresses: 65_536,
            max_body: 16 << 20,
            max_block_bytes: 64 << 20,
            max_withheld: 1024,
            block_size: 1024,
            q_block: QBlockParameters::DEFAULT,
            exchange_lifetime: crate::params::Parameters::DEFAULT.exchange_lifetime(),
        }
    }
}

/// The present load of a server's session.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerLoad {
    /// Bytes of block-wise transfers in progress.
    pub block_bytes: usize,
    /// Uploads, including finished ones that are remembered for copies.
    pub uploads: usize,
    /// Response bodies that are stored for requests of later blocks.
    pub downloads: usize,
    /// Answers that wait until their address has echoed a challenge.
    pub withheld: usize,
    /// Verified addresses.
    pub verified: usize,
}

/// Counters of refused requests, uploads and observers since the server was created, by reason.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusals {
    /// Requests answered 4.01 with an Echo option, because their address was not verified (RFC 9175
    /// section 2.4).
    pub challenged: u64,
    /// Requests answered 4.29 (RFC 8516).
    pub too_many_requests: u64,
    /// Requests answered 5.03 because the maximum number of handlers was running.
    pub overloaded: u64,
    /// Requests answered 5.00 because their handler panicked.
    pub handler_panics: u64,
    /// Uploads dropped for lack of memory, each time the one that had not advanced for longest.
    pub uploads_evicted: u64,
    /// Registrations of observers that were answered as plain requests for lack of room.
    pub observers_refused: u64,
    /// Observers removed because they did not acknowledge a notification.
    pub observers_vanished: u64,
}
