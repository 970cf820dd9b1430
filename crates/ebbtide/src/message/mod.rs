//! Requests and responses as applications hold them.

mod options;
mod request;
mod response;
mod uri;

pub use options::Options;
pub use request::Request;
pub use response::{ContentFormat, Response};
pub use uri::{DEFAULT_PORT, Uri, UriError};
