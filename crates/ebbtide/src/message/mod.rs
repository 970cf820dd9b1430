//! Requests and responses as applications hold them.

mod options;
mod request;
mod response;
mod shown;
mod uri;

pub use options::Options;
pub use request::Request;
pub use response::{ContentFormat, Response};
pub(crate) use shown::Shown;
pub use uri::{DEFAULT_PORT, Uri, UriError};
