//! Messages as applications hold them: owned, in no transport's encoding.

mod block_sizes;
mod burst;
mod options;
mod response;

pub use block_sizes::BlockSizes;
pub use burst::BurstMark;
pub use options::Options;
pub use response::{ContentFormat, Response, StatusError};
