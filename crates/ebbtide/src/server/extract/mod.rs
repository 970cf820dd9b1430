//! Arguments that handlers may take: parts of the request and the server's state.

mod body;
#[cfg(feature = "serde")]
mod params;
mod parts;
#[cfg(feature = "serde")]
mod typed;
#[cfg(feature = "serde")]
mod values;

pub use body::Body;
#[cfg(feature = "serde")]
pub use params::{Path, Query};
pub use parts::{Accept, ETags, Remote, State};
#[cfg(feature = "serde")]
pub use typed::{Cbor, Data, Json};

use super::call::Call;
use crate::message::{ContentFormat, Response};
use crate::server::IntoResponse;
use bytes::Bytes;
use core::convert::Infallible;
use ebbtide_core::wire::Code;

/// A part of a request, or of the state `S` of the server, that a handler takes as an argument.
///
/// Extraction happens before the handler runs; if it fails, the client gets the rejection instead
/// of the handler's answer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be taken by a handler whose router has the state `{S}`",
    note = "a handler takes `State`, `Path`, `Query`, `Json`, `Cbor`, `Data`, `Body`, `BodyStream`, `Remote`, `Peer`, `Accept`, `ETags` or `Call<'static>`"
)]
pub trait FromCall<S>: Sized {
    /// The answer that the client receives if the part cannot be taken out of the request.
    type Rejection: IntoResponse;

    /// Takes the part out of a request.
    ///
    /// # Errors
    ///
    /// A rejection, if the request does not have this part in the form that is asked for.
    fn from_call(call: &Call<'_>, state: &S) -> Result<Self, Self::Rejection>;
}

/// Why a part of a request cannot be extracted: a client error with a diagnostic payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    code: Code,
    diagnostic: String,
}

impl Rejection {
    /// A rejection with this code, and a text that names what is wrong.
    #[must_use]
    pub fn new(code: Code, diagnostic: impl Into<String>) -> Self {
        Self { code, diagnostic: diagnostic.into() }
    }
}

impl IntoResponse for Rejection {
    fn into_response(self, _: Option<ContentFormat>) -> Response {
        Response::error(self.code, self.diagnostic)
    }
}

impl IntoResponse for Infallible {
    fn into_response(self, _: Option<ContentFormat>) -> Response {
        match self {}
    }
}

/// The whole request.
impl<S> FromCall<S> for Call<'static> {
    type Rejection = Infallible;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Infallible> {
        Ok(call.to_owned())
    }
}

/// The payload; of a block-wise transfer the whole body.
impl<S> FromCall<S> for Bytes {
    type Rejection = Infallible;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Infallible> {
        Ok(call.body())
    }
}

/// The payload as text; 4.00 if it is not UTF-8.
impl<S> FromCall<S> for String {
    type Rejection = Rejection;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Rejection> {
        let text = core::str::from_utf8(call.payload());
        let text = text.map_err(|_| Rejection::new(Code::BAD_REQUEST, "the payload is not UTF-8"));
        text.map(str::to_owned)
    }
}

/// The part if the request has it.
impl<S, T: FromCall<S>> FromCall<S> for Option<T> {
    type Rejection = Infallible;

    fn from_call(call: &Call<'_>, state: &S) -> Result<Self, Infallible> {
        Ok(T::from_call(call, state).ok())
    }
}

/// The part, or why the request does not have it.
impl<S, T: FromCall<S>> FromCall<S> for Result<T, T::Rejection> {
    type Rejection = Infallible;

    fn from_call(call: &Call<'_>, state: &S) -> Result<Self, Infallible> {
        Ok(T::from_call(call, state))
    }
}
