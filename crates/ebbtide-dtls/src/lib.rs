//! Sans-IO DTLS 1.2 (RFC 6347) with pre-shared keys, X.509 certificates and raw public keys, as used by
//! constrained devices.
//!
//! * `TLS_PSK_WITH_AES_128_CCM_8`, `_CCM` and `_GCM_SHA256` (feature `gcm`, on by default), with the extended master
//!   secret (RFC 7627);
//! * with the feature `certificates`, `TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8`, `_CCM` and `_GCM_SHA256` on
//!   P-256, with certificates or raw public keys (RFC 7250) of the server or of both sides;
//! * connection IDs in both directions (RFC 9146) and the return routability check (RFC 9853), so
//!   that a session survives a change of its peer's address;
//! * stateless cookies: the server keeps no state for a client that has not shown that it receives
//!   at its address;
//! * sessions that are resumed by their ID; an idle session takes less than 500 bytes.
//!
//! A device with one server takes a [`PskClient`] instead of an [`Endpoint`]: it has the same handshake without tables.
//!
//! Not supported: DTLS 1.3, renegotiation (refused), compression.
//!
//! # Contract
//!
//! The driver owns the socket and the clock. It reports events to the endpoint and fetches the
//! endpoint's output:
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
//! * Time never runs backwards: the endpoint replaces an earlier `now` by the latest one seen.
//! * `handle_*` never fails: a faulty datagram is the peer's fault and is counted.
//! * Each session ends once, with [`Event::Ended`] or [`Endpoint::close`].
//! * The driver decides when flights are retransmitted ([`Timing`], [`Endpoint::set_timing`]),
//!   usually by means of a congestion control, which learns the handshake's round trips from
//!   [`Event::RoundTrip`].
//! * All randomness comes from the generator that is passed to [`Endpoint::new`]: the same seed
//!   gives the same bytes.
#![no_std]

extern crate alloc;
#[cfg(any(test, doc))]
extern crate std;

mod alert;
mod certificate;
mod cid;
mod client;
mod config;
mod cookie;
#[cfg(feature = "certificates")]
mod ec;
#[cfg(not(feature = "certificates"))]
#[path = "no_ec.rs"]
mod ec;
mod endpoint;
mod failure;
mod flight;
#[cfg(feature = "gcm")]
mod gcm;
#[cfg(not(feature = "gcm"))]
#[path = "no_gcm.rs"]
mod gcm;
mod handshake;
mod key_exchange;
mod key_log;
mod keys;
mod message;
mod outbox;
mod prf;
mod protect;
mod record;
mod replay;
mod session;
mod shared;
mod suite;
mod trusted_keys;
mod wire;

pub use alert::AlertDescription;
pub use certificate::{
    CertificateError, CertificateType, CertificateVerifier, CertifiedKey, ClientCertificates,
    ServerCertificates, Verified,
};
pub use client::{ClientData, ClientIo, ClientState, PskClient};
pub use config::{Config, Limits, PskLookup, Timing};
pub use cookie::Cookies;
pub use ec::SigningKey;
pub use endpoint::{
    Counters, Endpoint, Event, Output, SendError, SessionId, SessionPeer, StoredSession, reserve,
};
pub use failure::Failure;
pub use flight::RoundTrip;
pub use handshake::{CertificateCredentials, ClientCredentials, Credentials};
pub use key_log::KeyLog;
pub use keys::{Psk, PskError, Role};
pub use session::SavedSession;
pub use suite::CipherSuite;
pub use trusted_keys::{Fingerprint, FingerprintError, TrustedKeys};
