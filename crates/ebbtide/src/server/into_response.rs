//! Types that handlers may return.

use crate::message::{ContentFormat, Response};
use bytes::Bytes;
use core::fmt;
use ebbtide_core::wire::Code;
use std::error::Error;

/// A type that a handler may return.
///
/// | type | response |
/// |---|---|
/// | [`Response`] | itself |
/// | [`Code`] | an empty response with this code |
/// | `&'static str`, `String` | 2.05 with `text/plain` |
/// | `Vec<u8>`, [`Bytes`] | 2.05 with `application/octet-stream` |
/// | `(Code, T)` | that of `T`, with this code if `T` succeeded |
/// | `Option<T>` | that of `T`, or 4.04 |
/// | `Result<T, E>` | that of `T` or `E`; see [`HandlerError`] |
/// | `Json<T>`, `Cbor<T>`, `Data<T>` | 2.05 with the serialized value (feature `serde`) |
///
/// A representation in a format that the request does not accept becomes 4.06 (RFC 7252 section
/// 5.10.4).
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned by a handler",
    note = "a handler returns a `Response`, a `Code`, text, bytes, `Json`, `Cbor`, an `Option` or a `Result` of these"
)]
pub trait IntoResponse {
    /// Converts it to a response; `accept` is the format that the request accepts, if it names one.
    fn into_response(self, accept: Option<ContentFormat>) -> Response;
}

/// A representation, unless the client accepts only another format.
pub(crate) fn represented(
    body: impl Into<Bytes>,
    format: ContentFormat,
    accept: Option<ContentFormat>,
) -> Response {
    if accept.is_some_and(|accept| accept != format) {
        return Response::new(Code::NOT_ACCEPTABLE);
    }
    Response::content(body).format(format)
}

impl IntoResponse for Response {
    #[inline]
    fn into_response(self, _: Option<ContentFormat>) -> Response {
        self
    }
}

impl IntoResponse for Code {
    fn into_response(self, _: Option<ContentFormat>) -> Response {
        Response::new(self)
    }
}

impl IntoResponse for &'static str {
    fn into_response(self, accept: Option<ContentFormat>) -> Response {
        represented(self, ContentFormat::TEXT, accept)
    }
}

impl IntoResponse for String {
    fn into_response(self, accept: Option<ContentFormat>) -> Response {
        represented(self, ContentFormat::TEXT, accept)
    }
}

impl IntoResponse for Vec<u8> {
    fn into_response(self, accept: Option<ContentFormat>) -> Response {
        represented(self, ContentFormat::OCTETS, accept)
    }
}

impl IntoResponse for Bytes {
    fn into_response(self, accept: Option<ContentFormat>) -> Response {
        represented(self, ContentFormat::OCTETS, accept)
    }
}

impl<T: IntoResponse> IntoResponse for (Code, T) {
    fn into_response(self, accept: Option<ContentFormat>) -> Response {
        let response = self.1.into_response(accept);
        if response.is_success() { response.with_code(self.0) } else { response }
    }
}

impl<T: IntoResponse> IntoResponse for Option<T> {
    fn into_response(self, accept: Option<ContentFormat>) -> Response {
        self.map_or_else(|| Response::new(Code::NOT_FOUND), |found| found.into_response(accept))
    }
}

impl<T: IntoResponse, E: IntoResponse> IntoResponse for Result<T, E> {
    fn into_response(self, accept: Option<ContentFormat>) -> Response {
        match self {
            Ok(value) => value.into_response(accept),
            Err(error) => error.into_response(accept),
        }
    }
}

/// The error of a handler that uses `?`.
///
/// Any error converts to it. Its text goes to the log and not to the client, which receives 5.00,
/// since errors of a database, for example, may contain secrets. [`HandlerError::new`] creates an
/// error with a text for the client.
///
/// ```
/// use ebbtide::Code;
/// use ebbtide::server::HandlerError;
///
/// fn parse(text: &str) -> Result<u16, HandlerError> {
///     if text.is_empty() {
///         return Err(HandlerError::new(Code::BAD_REQUEST, "the level is missing"));
///     }
///     Ok(text.parse()?)
/// }
/// ```
#[derive(Debug)]
pub struct HandlerError {
    code: Code,
    diagnostic: Bytes,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl HandlerError {
    /// Creates an error with a code and a diagnostic payload for people (RFC 7252 section 5.5.2),
    /// which may be empty.
    #[must_use]
    pub fn new(code: Code, diagnostic: impl Into<Bytes>) -> Self {
        Self { code, diagnostic: diagnostic.into(), source: None }
    }

    /// Creates an error that needs no text, such as 4.04.
    #[must_use]
    pub fn code(code: Code) -> Self {
        Self::new(code, "")
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => source.fmt(f),
            None => write!(f, "{} {}", self.code, String::from_utf8_lossy(&self.diagnostic)),
        }
    }
}

// It does not implement `Error`, because this conversion would then also convert it to itself.
impl<E: Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let (code, diagnostic) = (Code::INTERNAL_SERVER_ERROR, Bytes::new());
        Self { code, diagnostic, source: Some(Box::new(error)) }
    }
}

impl IntoResponse for HandlerError {
    fn into_response(self, _: Option<ContentFormat>) -> Response {
        if let Some(error) = &self.source {
            let causes = core::iter::successors(error.source(), |&cause| cause.source());
            let causes = causes.map(ToString::to_string).collect::<Vec<_>>();
            tracing::error!(%error, ?causes, "a handler failed");
        }
        Response::error(self.code, self.diagnostic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(value: impl IntoResponse, accept: Option<ContentFormat>) -> (Code, Bytes) {
        let response = value.into_response(accept);
        (response.code(), response.body().clone())
    }

    #[test]
    fn text_is_a_representation_in_plain_text() {
        let text = "22.3 C".into_response(None);
        assert_eq!(text.content_format(), Some(ContentFormat::TEXT));
        assert_eq!(response("22.3 C", Some(ContentFormat::TEXT)), (Code::CONTENT, "22.3 C".into()));
        assert_eq!(
            response("22.3 C", Some(ContentFormat::JSON)),
            (Code::NOT_ACCEPTABLE, Bytes::new())
        );
    }

    #[test]
    fn a_code_beside_a_value_replaces_only_a_success() {
        assert_eq!(response((Code::CREATED, "made"), None), (Code::CREATED, "made".into()));
        let refused = (Code::CREATED, Option::<&str>::None);
        assert_eq!(response(refused, None), (Code::NOT_FOUND, Bytes::new()));
    }

    #[test]
    fn an_error_without_a_code_is_5_00_without_its_text() {
        let failed: Result<&str, HandlerError> =
            Err(std::io::Error::other("the password is secret").into());
        assert_eq!(response(failed, None), (Code::INTERNAL_SERVER_ERROR, Bytes::new()));
    }

    #[test]
    fn an_error_with_a_code_says_what_it_was_told_to() {
        let refused: Result<&str, _> = Err(HandlerError::new(Code::FORBIDDEN, "not yours"));
        assert_eq!(response(refused, None), (Code::FORBIDDEN, "not yours".into()));
    }
}
