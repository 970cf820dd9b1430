//! How a server session is configured, what it holds, and what it turned away.

use crate::q_block::QBlockParameters;
use crate::session::address_validation::Verify;
use crate::time::Duration;

/// Settings of a server's session.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Which addresses get no more than three times the bytes they sent before they have echoed a
    /// challenge (RFC 9175 section 2.4).
    pub verify: Verify,
    /// Requests a second from one address; more are answered 4.29 (RFC 8516). Default: no limit.
    pub max_rate: Option<u32>,
    /// Addresses that are remembered as verified, and addresses whose rate is watched. Default 65536.
    pub max_addresses: usize,
    /// Bytes of the longest body that is put together from blocks. Default 16 MiB.
    pub max_body: usize,
    /// Bytes of bodies in parts, uploads and downloads together, and as many again of those in
    /// Non-confirmable blocks. Default 64 MiB.
    pub max_block_bytes: usize,
    /// Answers of handlers that wait until their address has echoed a challenge. Once there are half
    /// as many, requests that are not idempotent are challenged before their handlers run. Default
    /// 1024.
    pub max_withheld: usize,
    /// Bytes of blocks over UDP, 16 to 1024; rounded down to a power of two (RFC 7959 section 2.2).
    /// Default 1024.
    pub block_size: usize,
    /// How fast bodies go in the blocks of RFC 9177.
    pub q_block: QBlockParameters,
    /// How long a transfer may pause, and its end is remembered: EXCHANGE_LIFETIME (RFC 7252 section
    /// 4.8.2). Default 247 s.
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

/// The memory and state that a server's session holds at present.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// Bytes of bodies in parts.
    pub block_bytes: usize,
    /// Uploads, finished ones that are remembered for copies included.
    pub uploads: usize,
    /// Bodies of responses that are kept for requests of later blocks.
    pub downloads: usize,
    /// Answers that wait until their address has echoed a challenge.
    pub withheld: usize,
    /// Addresses that are verified.
    pub verified: usize,
}

/// Counters of the requests, uploads and observers that a server has turned away since it was created, by
/// reason.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusals {
    /// Requests answered 4.01 with an Echo option: the address has to show that it is there before
    /// it is sent or kept much (RFC 9175 section 2.4).
    pub challenged: u64,
    /// Requests answered 4.29 (RFC 8516).
    pub too_many_requests: u64,
    /// Requests answered 5.03 because as many handlers were at work as may be.
    pub overloaded: u64,
    /// Requests answered 5.00 because their handler panicked.
    pub handler_panics: u64,
    /// Uploads given up for want of room, the one that had not advanced for longest each time.
    pub uploads_evicted: u64,
    /// Registrations of observers that were answered as plain requests for want of room.
    pub observers_refused: u64,
    /// Observers removed because they did not acknowledge a notification.
    pub observers_vanished: u64,
}
