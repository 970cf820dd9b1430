//! Requests and responses in the form that applications use.

mod harmless;
mod request;
mod scheme;
mod shown;
mod uri;

pub(crate) use ebbtide_core::session::BlockSizes as Sizes;
#[cfg(feature = "serde")]
pub use ebbtide_core::session::DataError;
pub use ebbtide_core::session::{BurstMark, ContentFormat, Options, Response, StatusError};
pub use harmless::is_harmless;
pub use request::Request;
pub use scheme::Scheme;
pub(crate) use shown::{DisplayMessage, Queries, ShownFrame};
pub use uri::{DEFAULT_PORT, Uri, UriError};
