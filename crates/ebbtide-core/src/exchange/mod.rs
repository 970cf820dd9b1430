//! The state kept between a message and its end: exchanges, message IDs, tokens, duplicates,
//! timers.

pub(crate) mod dedup;
pub(crate) mod message_id;
mod observe;
pub(crate) mod outbox;
pub(crate) mod table;
pub(crate) mod timers;
pub(crate) mod token;
pub(crate) mod under_way;

pub use observe::Freshness;
pub use table::ExchangeId;
