//! Messages in the form that applications own, independent of the transport's encoding.

mod block_sizes;
mod burst;
#[cfg(feature = "serde")]
mod data;
mod options;
mod response;

pub use block_sizes::BlockSizes;
pub use burst::BurstMark;
#[cfg(feature = "serde")]
pub use data::{DataError, from_cbor, from_json, to_cbor, to_json};
pub use options::{Options, with_options};
pub use response::{Arrival, ContentFormat, Response, StatusError};
