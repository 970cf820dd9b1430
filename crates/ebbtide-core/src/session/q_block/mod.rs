//! Bodies in Non-confirmable blocks at the server (RFC 9177).

mod download;
mod pace;
mod part;
mod store;
mod upload;

pub(super) use download::{QBlockDownload, slice};
pub(super) use part::{BlockRequest, BodyBlock, QBlockPart, RequestedBlocks};
pub(super) use store::{BlockOutcome, QBlockTransfers};
