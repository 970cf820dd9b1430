//! The layer above messages: bodies in blocks, observations, Echo, the stages of a request.
//!
//! Nothing here reads a clock, owns a socket or calls a handler: instants and randomness are
//! arguments, and the next action is a return value. The same code serves the loop of a device, an
//! asynchronous runtime and a simulation.

mod address_validation;
mod blocks;
pub mod client;
mod etags;
mod finished;
mod key;
mod message;
mod observers;
mod protection;
mod q_block;
mod rate_limiter;
mod recency;
mod requester;
pub mod server;
mod shares;
mod transfer_cache;
mod transport;

pub use address_validation::{AddressValidation, Verify};
pub use finished::{Finished, FinishedRef};
pub use key::TransferKey;
pub use message::{
    Arrival, BlockSizes, BurstMark, ContentFormat, Options, Response, StatusError, with_options,
};
#[cfg(feature = "serde")]
pub use message::{DataError, from_cbor, from_json, to_cbor, to_json};
pub use observers::{Due, ObserverId, Observers, Registration, Room, SavedObserver, Subject};
pub use rate_limiter::RateLimiter;
pub use requester::{IncomingRequest, Requester, SecuredRequest};
pub use shares::FairShares;
pub use transport::{NotSent, Transport};
