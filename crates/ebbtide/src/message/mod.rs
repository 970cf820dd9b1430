//! Requests and responses as applications hold them.

mod burst;
mod options;
mod request;
mod response;
mod scheme;
mod shown;
mod sizes;
mod uri;

pub use burst::BurstMark;
pub use options::Options;
pub use request::Request;
pub use response::{ContentFormat, Response};
pub use scheme::Scheme;
pub(crate) use shown::{Shown, ShownFrame};
pub(crate) use sizes::Sizes;
pub use uri::{DEFAULT_PORT, Uri, UriError};
