//! Bodies as values in JSON and CBOR, by serde.

use super::{Call, ContentFormat, FromCall, Rejection};
use crate::message::Response;
use crate::server::IntoResponse;
use crate::server::into_response::represented;
use ebbtide_core::session::{DataError, from_cbor, from_json, to_cbor, to_json};
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

fn malformed(error: DataError) -> Rejection {
    Rejection::new(Code::BAD_REQUEST, error.to_string())
}

/// A value that cannot be serialized is the server's fault: 5.00, and the reason in the log.
fn to_response(
    written: Result<Vec<u8>, DataError>,
    format: ContentFormat,
    accept: Option<ContentFormat>,
) -> Response {
    match written {
        Ok(body) => represented(body, format, accept),
        Err(error) => {
            tracing::error!(%error, "a response cannot be serialized");
            Response::new(Code::INTERNAL_SERVER_ERROR)
        }
    }
}

impl<S, T: DeserializeOwned> FromCall<S> for Json<T> {
    type Rejection = Rejection;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Rejection> {
        match call.format() {
            None | Some(ContentFormat::JSON) => {
                from_json(call.payload()).map(Self).map_err(malformed)
            }
            Some(_) => Err(unsupported("application/json (50)")),
        }
    }
}

impl<S, T: DeserializeOwned> FromCall<S> for Cbor<T> {
    type Rejection = Rejection;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Rejection> {
        match call.format() {
            None | Some(ContentFormat::CBOR) => {
                from_cbor(call.payload()).map(Self).map_err(malformed)
            }
            Some(_) => Err(unsupported("application/cbor (60)")),
        }
    }
}

impl<S, T: DeserializeOwned> FromCall<S> for Data<T> {
    type Rejection = Rejection;

    fn from_call(call: &Call<'_>, _: &S) -> Result<Self, Rejection> {
        match call.format() {
            None | Some(ContentFormat::JSON) => {
                from_json(call.payload()).map(Self).map_err(malformed)
            }
            Some(ContentFormat::CBOR) => from_cbor(call.payload()).map(Self).map_err(malformed),
            Some(_) => Err(unsupported("application/json (50) or application/cbor (60)")),
        }
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self, accept: Option<ContentFormat>) -> Response {
        to_response(to_json(&self.0), ContentFormat::JSON, accept)
    }
}

impl<T: Serialize> IntoResponse for Cbor<T> {
    fn into_response(self, accept: Option<ContentFormat>) -> Response {
        to_response(to_cbor(&self.0), ContentFormat::CBOR, accept)
    }
}

impl<T: Serialize> IntoResponse for Data<T> {
    fn into_response(self, accept: Option<ContentFormat>) -> Response {
        match accept {
            Some(ContentFormat::CBOR) => to_response(to_cbor(&self.0), ContentFormat::CBOR, accept),
            _ => to_response(to_json(&self.0), ContentFormat::JSON, accept),
        }
    }
}
