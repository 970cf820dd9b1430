//! Bodies as values in JSON and CBOR, by serde.

use super::{Call, ContentFormat, FromCall, Rejection};
use crate::message::Response;
use crate::server::IntoResponse;
use crate::server::into_response::represented;
use core::fmt::Display;
use ebbtide_core::wire::Code;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value in JSON (RFC 8259), in a request or a response.
///
/// A request with another Content-Format is answered 4.15, one whose body is not such a value
/// 4.00; a response to a request that accepts only another format is 4.06.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// A value in CBOR (RFC 8949). As [`Json`] otherwise.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Cbor<T>(pub T);

/// A value in JSON or CBOR, as the client has it: in a request by its Content-Format, in a
/// response by Accept. Where the client does not say, it is JSON.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Data<T>(pub T);

fn unsupported(formats: &str) -> Rejection {
    let text = format!("the Content-Format must be {formats}");
    Rejection::new(Code::UNSUPPORTED_CONTENT_FORMAT, text)
}

fn malformed(format: &str, error: impl Display) -> Rejection {
    Rejection::new(Code::BAD_REQUEST, format!("the {format} body is not valid: {error}"))
}

fn from_json<T: DeserializeOwned>(call: &Call<'_>) -> Result<T, Rejection> {
    serde_json::from_slice(call.payload()).map_err(|error| malformed("JSON", error))
}

fn from_cbor<T: DeserializeOwned>(call: &Call<'_>) -> Result<T, Rejection> {
    ciborium::from_reader(call.payload()).map_err(|error| malformed("CBOR", error))
}

/// A value that cannot be serialized is the server's fault: 5.00, and the reason in the log.
fn unserializable(error: impl Display) -> Response {
    tracing::error!(%error, "a response cannot be serialized");
    Response::new(Code::INTERNAL_SERVER_ERROR)
}

fn to_json(value: &impl Serialize, accept: Option<ContentFormat>) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => represented(body, ContentFormat::JSON, accept),
        Err(error) => unserializable(error),
    }
}

fn to_cbor(value: &impl Serialize, accept: Option<ContentFormat>) -> Response {
    let mut body = Vec::new();
    match ciborium::into_writer(value, &mut body) {
        Ok(()) => represented(body, ContentFormat::CBOR, accept),
        Err(error) => unserializable(error),
    }
}

impl<S, T: DeserializeOwned> FromCall<S> for Json<T> {
    type Rejection = Rejection;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Rejection> {
        match call.format() {
            None | Some(ContentFormat::JSON) => from_json(call).map(Self),
            Some(_) => Err(unsupported("application/json (50)")),
        }
    }
}

impl<S, T: DeserializeOwned> FromCall<S> for Cbor<T> {
    type Rejection = Rejection;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Rejection> {
        match call.format() {
            None | Some(ContentFormat::CBOR) => from_cbor(call).map(Self),
            Some(_) => Err(unsupported("application/cbor (60)")),
        }
    }
}

impl<S, T: DeserializeOwned> FromCall<S> for Data<T> {
    type Rejection = Rejection;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Rejection> {
        match call.format() {
            None | Some(ContentFormat::JSON) => from_json(call).map(Self),
            Some(ContentFormat::CBOR) => from_cbor(call).map(Self),
            Some(_) => Err(unsupported("application/json (50) or application/cbor (60)")),
        }
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self, accept: Option<ContentFormat>) -> Response {
        to_json(&self.0, accept)
    }
}

impl<T: Serialize> IntoResponse for Cbor<T> {
    fn into_response(self, accept: Option<ContentFormat>) -> Response {
        to_cbor(&self.0, accept)
    }
}

impl<T: Serialize> IntoResponse for Data<T> {
    fn into_response(self, accept: Option<ContentFormat>) -> Response {
        match accept {
            Some(ContentFormat::CBOR) => to_cbor(&self.0, accept),
            _ => to_json(&self.0, accept),
        }
    }
}
