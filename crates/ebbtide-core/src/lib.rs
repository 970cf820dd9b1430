//! Sans-IO CoAP: bytes and instants in, bytes and instants out.
//!
//! * [`wire`]: the codec. No allocator needed.
//! * [`cc`]: twenty-three congestion controls for CoAP behind one interface. No allocator needed.
//! * [`device`]: a client and a server for a handful of peers in fixed tables. No allocator needed.
//! * [`endpoint`]: RFC 7252's message layer for any number of peers (feature `alloc`, on by
//!   default).
//! * `oscore`: messages that are protected end to end (RFC 8613; feature `oscore`). No allocator
//!   needed.
//! * `aes_ccm`: the cipher of OSCORE and DTLS (feature `aes-ccm`). No allocator needed.
//! * [`q_block`]: RFC 9177's bodies in Non-confirmable blocks (feature `alloc`).
//! * [`session`]: protocols above messages, such as bodies in blocks (feature `alloc`).
//! * [`stream`]: RFC 8323's connections over reliable transports (feature `alloc`).
//!
//! This crate does not read a clock, open a socket or ask the operating system for randomness. The
//! same code runs under a virtual clock in the testbed, under tokio, and on a microcontroller.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(test, doc))]
extern crate std;

#[cfg(feature = "aes-ccm")]
pub mod aes_ccm;
pub mod cc;
pub mod device;
#[cfg(feature = "alloc")]
pub mod endpoint;
mod exchange;
#[cfg(feature = "oscore")]
pub mod oscore;
pub mod params;
mod peer;
#[cfg(feature = "alloc")]
mod peer_token;
#[cfg(feature = "alloc")]
pub mod q_block;
#[cfg(feature = "alloc")]
pub mod session;
#[cfg(feature = "alloc")]
mod shared;
#[cfg(feature = "alloc")]
mod shares;
#[cfg(feature = "alloc")]
pub mod stream;
#[cfg(feature = "alloc")]
#[doc(hidden)]
pub mod testbed;
pub mod time;
#[cfg(feature = "alloc")]
pub mod turns;
pub mod wire;

#[cfg(feature = "alloc")]
pub use exchange::ExchangeId;
pub use exchange::Freshness;
pub use peer::{PeerId, SessionKey, Source, sharing_prefix};
#[cfg(feature = "alloc")]
pub use peer_token::PeerToken;
#[cfg(feature = "alloc")]
pub use shares::Shares;
