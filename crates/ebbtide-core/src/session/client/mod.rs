//! The client's side: one request and its response in whatever number of messages.
//!
//! A [`Transfer`] is told a request and driven like an endpoint: [`Transfer::poll`] says which exchange to
//! start, or until when to wait; answers and losses are told to it. What sends the messages, an
//! [`Endpoint`](crate::endpoint::Endpoint) or a [`Connection`](crate::stream::Connection), is the
//! driver's affair. An [`Observation`] is driven in the same way.

mod download;
mod observation;
mod progress;
mod q_block;
mod request;
mod step;
mod transfer;
mod upload;

pub use observation::{Observation, ObservationSettings, Watch};
pub use progress::UploadProgress;
pub use request::{Patience, RequestParts, RequestTag, TransferSettings};
pub use step::{Loss, Outgoing, Step, TransferError};
pub use transfer::Transfer;
