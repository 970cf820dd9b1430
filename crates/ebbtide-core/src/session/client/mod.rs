//! The client's side: one request and its response in any number of messages.
//!
//! A [`Transfer`] takes a request and is driven like an endpoint: [`Transfer::poll`] returns the exchange
//! to start or the instant to wait for, and the driver passes answers and losses back to the transfer. The
//! driver also chooses whether an [`Endpoint`](crate::endpoint::Endpoint) or a
//! [`Connection`](crate::stream::Connection) sends the messages. An [`Observation`] is driven in the same
//! way.

mod block_answer;
mod download;
mod observation;
mod progress;
mod q_block;
mod request;
mod step;
mod transfer;
mod upload;

pub use block_answer::{BlockAnswer, SentPiece};
pub use download::check_block;
pub use observation::{Observation, ObservationSettings, ObservationStep};
pub use progress::UploadProgress;
pub use request::{Patience, RequestParts, RequestTag, TransferSettings};
pub use step::{Loss, Outgoing, Step, TransferError};
pub use transfer::Transfer;
