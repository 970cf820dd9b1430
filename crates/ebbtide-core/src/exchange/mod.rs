//! The state kept between a message and its end: exchanges, message IDs, tokens, duplicates,
//! timers.

pub(crate) mod amplification;
#[cfg(feature = "alloc")]
pub(crate) mod dedup;
pub(crate) mod echo;
#[cfg(feature = "alloc")]
pub(crate) mod mark;
pub(crate) mod message_id;
mod observe;
#[cfg(feature = "alloc")]
pub(crate) mod outbox;
#[cfg(feature = "alloc")]
pub(crate) mod square_wave;
#[cfg(feature = "alloc")]
pub(crate) mod table;
#[cfg(feature = "alloc")]
pub(crate) mod timers;
pub(crate) mod token;
#[cfg(feature = "alloc")]
pub(crate) mod under_way;

pub use observe::Freshness;
#[cfg(feature = "alloc")]
pub use table::ExchangeId;
