//! Sans-IO DTLS 1.2 (RFC 6347) with pre-shared keys, as constrained devices use it: bytes and
//! instants in, bytes and instants out.
//!
//! * `TLS_PSK_WITH_AES_128_CCM_8`, `_CCM` and `_GCM_SHA256`, with the extended master secret
//!   (RFC 7627);
//! * connection IDs both ways (RFC 9146) and the return routability check (RFC 9853), so that a session
//!   outlives its peer's address;
//! * cookies without state: nothing is kept of a client that has not shown that it receives at its
//!   address;
//! * sessions that are resumed by their ID; an idle one takes less than 500 bytes.
//!
//! Not supported: certificates, raw public keys, DTLS 1.3, renegotiation (refused), compression.
//!
//! # Contract
//!
//! The driver owns the socket and the clock. It passes in what happens and fetches what is wanted:
//!
//! ```text
//! loop {
//!     while let Transmit or Event = endpoint.poll_output() { send it / handle it }
//!     // poll_output gave Timeout(at) last
//!     wait for a datagram, the application, or `at`;
//!     endpoint.handle_datagram(now, from, bytes, deliver) / connect / send / handle_timeout(now)
//! }
//! ```
//!
//! * Time never runs backwards: an earlier `now` is taken for the latest one seen.
//! * `handle_*` never fails: what is wrong with a datagram is the peer's fault, and counted.
//! * Each session ends once: with [`Event::Ended`], or [`Endpoint::close`].
//! * When flights are repeated is the driver's decision ([`Timing`], [`Endpoint::set_timing`]): a congestion
//!   control's, which learns of the handshake's round trips by [`Event::RoundTrip`].
//! * All randomness comes from the generator that [`Endpoint::new`] is given: the same seed gives the same
//!   bytes.
#![no_std]

extern crate alloc;
#[cfg(any(test, doc))]
extern crate std;

mod alert;
mod cid;
mod config;
mod cookie;
mod endpoint;
mod failure;
mod flight;
mod handshake;
mod key_log;
mod keys;
mod message;
mod outbox;
mod prf;
mod protect;
mod record;
mod replay;
mod session;
mod suite;
mod wire;

pub use alert::AlertDescription;
pub use config::{Config, Limits, PskLookup, Timing};
pub use endpoint::{Counters, Endpoint, Event, Output, SendError, SessionId};
pub use failure::Failure;
pub use flight::RoundTrip;
pub use handshake::Credentials;
pub use key_log::KeyLog;
pub use keys::{Psk, Role};
pub use session::SavedSession;
pub use suite::CipherSuite;
