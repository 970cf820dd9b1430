//! Responses of clients and servers.

use super::options::Options;
use crate::params::Parameters;
use crate::wire::{Body, Code, Message, Opt, OptionNumber};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::string::String;
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;

/// A response: what a handler returns and what a client receives.
///
/// ```
/// use ebbtide_core::session::{ContentFormat, Response};
/// use ebbtide_core::wire::Code;
///
/// let response = Response::content("22.3 C").format(ContentFormat::TEXT).max_age(60);
/// assert_eq!(response.code(), Code::CONTENT);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Response {
    /// The code.
    pub(crate) code: Code,
    /// The options.
    pub(crate) options: Options,
    /// The payload, or the whole body of a block-wise transfer.
    pub(crate) payload: Bytes,
    /// Whether its request may have been sent more than once.
    pub(crate) repeated: bool,
    /// Its origin; `None` for a response that was not received.
    pub(crate) arrival: Option<Box<Arrival>>,
}

/// The origin of a response, and its duration.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The peer's address.
    pub remote: SocketAddr,
    /// How long the application waited for it.
    pub round_trip: Duration,
}

impl Response {
    /// Creates a response with this code, without options and payload.
    #[inline]
    #[must_use]
    pub fn new(code: Code) -> Self {
        Self {
            code,
            options: Options::new(),
            payload: Bytes::new(),
            repeated: false,
            arrival: None,
        }
    }

    /// Creates a 2.05 (Content) with this payload, which may be static, shared or owned.
    #[inline]
    #[must_use]
    pub fn content(payload: impl Into<Bytes>) -> Self {
        Self::new(Code::CONTENT).payload(payload)
    }

    /// Creates an error with a diagnostic payload for people (RFC 7252 section 5.5.2).
    #[must_use]
    pub fn error(code: Code, diagnostic: impl Into<Bytes>) -> Self {
        Self::new(code).payload(diagnostic)
    }

    /// Sets the payload.
    #[inline]
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Sets Content-Format (RFC 7252 section 5.10.3).
    #[inline]
    #[must_use]
    pub fn format(mut self, format: ContentFormat) -> Self {
        self.options.set_uint(OptionNumber::CONTENT_FORMAT, format.0.into());
        self
    }

    /// Sets Max-Age in seconds (RFC 7252 section 5.10.5). Without it, 60 s apply.
    #[inline]
    #[must_use]
    pub fn max_age(mut self, seconds: u32) -> Self {
        self.options.set_uint(OptionNumber::MAX_AGE, seconds);
        self
    }

    /// Sets the ETag, 1 to 8 bytes that identify this version of the resource (section 5.10.6).
    #[inline]
    #[must_use]
    pub fn etag(mut self, etag: &[u8]) -> Self {
        self.options.remove(OptionNumber::ETAG);
        self.options.push(OptionNumber::ETAG, etag);
        self
    }

    /// Adds an option.
    #[inline]
    #[must_use]
    pub fn option(mut self, number: OptionNumber, value: &[u8]) -> Self {
        self.options.push(number, value);
        self
    }

    /// The code.
    #[inline]
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// Replaces the code.
    #[inline]
    #[must_use]
    pub fn with_code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// Whether the code is of class 2.
    #[inline]
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.code.class() == 2
    }

    /// Whether it asks the client to repeat its request with an Echo option (RFC 9175 section 2.3). A server
    /// must not send it in a Confirmable message, which it would repeat to an address that may be forged
    /// (section 2.4).
    #[must_use]
    pub fn is_challenge(&self) -> bool {
        self.code == Code::UNAUTHORIZED && self.echo().is_some()
    }

    /// The value of its Echo option. One that is not of 1 to 40 bytes is as good as none (RFC 9175 section 2.2.1,
    /// RFC 7252 section 5.4.3).
    #[must_use]
    pub fn echo(&self) -> Option<&[u8]> {
        let value = self.options.get(OptionNumber::ECHO)?.value;
        OptionNumber::ECHO.allows_length(value.len()).then_some(value)
    }

    /// Returns the response if its [code is a success](Self::is_success), and an error with the
    /// response otherwise.
    ///
    /// # Errors
    ///
    /// Returns an error if the code is not of class 2.
    pub fn error_for_status(self) -> Result<Self, StatusError> {
        if self.is_success() { Ok(self) } else { Err(StatusError(Box::new(self))) }
    }

    /// The peer's address; `None` if no client received the response.
    #[must_use]
    pub fn remote(&self) -> Option<SocketAddr> {
        Some(self.arrival.as_ref()?.remote)
    }

    /// The duration of the request, from its start until the whole response arrived, including the
    /// wait for room, retransmissions and all blocks. `None` if no client received the response.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        Some(self.arrival.as_ref()?.round_trip)
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The options, to be changed.
    #[must_use]
    pub fn options_mut(&mut self) -> &mut Options {
        &mut self.options
    }

    /// The payload, or the whole body of a block-wise transfer.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.payload
    }

    /// The payload, or the whole body of a block-wise transfer, without the rest.
    #[must_use]
    pub fn into_body(self) -> Bytes {
        self.payload
    }

    /// The payload as text, with invalid UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.payload)
    }

    /// The time after which the server, which is busy now, accepts the same request: the Max-Age of
    /// a 5.03 (Service Unavailable) or 4.29 (Too Many Requests), 60 s if it has none (RFC 7252
    /// section 5.9.3.4, RFC 8516 section 3); at most a day, since Max-Age reaches to 136 years, and no server may
    /// silence a client for good. `None` for other responses.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if !matches!(self.code, Code::SERVICE_UNAVAILABLE | Code::TOO_MANY_REQUESTS) {
            return None;
        }
        let seconds = self.options.get_uint(OptionNumber::MAX_AGE).unwrap_or(60);
        Some(Duration::from_secs(seconds.into()).min(Parameters::LONGEST_SPAN.to_duration()))
    }

    /// The Content-Format, if the response has one.
    #[must_use]
    pub fn content_format(&self) -> Option<ContentFormat> {
        let value = self.options.get_uint(OptionNumber::CONTENT_FORMAT)?;
        u16::try_from(value).ok().map(ContentFormat)
    }

    /// Records the origin of a received response; for drivers.
    #[must_use]
    pub fn with_arrival(mut self, arrival: Arrival) -> Self {
        self.arrival = Some(Box::new(arrival));
        self
    }

    /// Whether its request may have been sent more than once, so that a request that is not idempotent may
    /// have been processed earlier as well.
    #[must_use]
    pub fn is_repeated(&self) -> bool {
        self.repeated
    }

    /// Records whether the request may have been sent more than once; for drivers.
    #[must_use]
    pub fn with_repeated(mut self, repeated: bool) -> Self {
        self.repeated = repeated;
        self
    }

    /// A copy of a received message.
    pub fn from_message(message: &Message<'_>) -> Self {
        Self::from_body(message.code(), message.body())
    }

    /// A copy of a received message, on any transport.
    pub fn from_body(code: Code, body: &Body<'_>) -> Self {
        let payload = Bytes::copy_from_slice(body.payload());
        Self { code, options: body.options().into(), payload, repeated: false, arrival: None }
    }

    /// Calls `with` with the response in the form of the wire layer, with one more option.
    #[inline]
    pub fn with_content<R>(
        &self,
        extra: Option<Opt<'_>>,
        with: impl FnOnce(&crate::wire::Content<'_>) -> R,
    ) -> R {
        self.options.with_slice(extra, |options| {
            with(&crate::wire::Content { code: self.code, options, payload: &self.payload })
        })
    }
}

/// A response that is not a success; see [`Response::error_for_status`].
#[derive(Clone, Debug)]
pub struct StatusError(Box<Response>);

impl StatusError {
    /// The response.
    #[must_use]
    pub fn response(&self) -> &Response {
        &self.0
    }
}

impl core::fmt::Display for StatusError {
    /// The code, and the diagnostic text if there is one (RFC 7252 section 5.5.2), with control
    /// characters escaped.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let code = self.0.code;
        write!(f, "{code} {}", code.name().unwrap_or("unknown code"))?;
        match self.0.text() {
            text if text.is_empty() || self.0.content_format().is_some() => Ok(()),
            text => write!(f, ": {}", text.escape_debug()),
        }
    }
}

impl core::error::Error for StatusError {}

/// The format of a payload (RFC 7252 section 12.3).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContentFormat(pub u16);

/// Names for command lines, with their numbers; the first name of a number is the displayed one.
const FORMATS: &[(&str, u16)] = &[
    ("text/plain", 0),
    ("text", 0),
    ("plain", 0),
    ("image/gif", 21),
    ("image/jpeg", 22),
    ("image/png", 23),
    ("application/link-format", 40),
    ("link-format", 40),
    ("link", 40),
    ("application/xml", 41),
    ("xml", 41),
    ("application/octet-stream", 42),
    ("octets", 42),
    ("octet-stream", 42),
    ("binary", 42),
    ("application/exi", 47),
    ("exi", 47),
    ("application/json", 50),
    ("json", 50),
    ("application/json-patch+json", 51),
    ("application/merge-patch+json", 52),
    ("application/cbor", 60),
    ("cbor", 60),
    ("application/cwt", 61),
    ("application/cbor-seq", 63),
    ("application/cose; cose-type=\"cose-sign\"", 98),
    ("application/senml+json", 110),
    ("senml+json", 110),
    ("application/sensml+json", 111),
    ("application/senml+cbor", 112),
    ("senml+cbor", 112),
    ("application/sensml+cbor", 113),
    ("application/concise-problem-details+cbor", 257),
    ("application/missing-blocks+cbor-seq", 272),
    ("application/vnd.ocf+cbor", 10000),
    ("application/vnd.oma.lwm2m+tlv", 11542),
    ("application/vnd.oma.lwm2m+json", 11543),
    ("application/vnd.oma.lwm2m+cbor", 11544),
    ("text/css", 20000),
    ("text/javascript", 20002),
    ("image/svg+xml", 30000),
];

impl ContentFormat {
    /// text/plain in UTF-8.
    pub const TEXT: Self = Self(0);
    /// application/link-format (RFC 6690).
    pub const LINK_FORMAT: Self = Self(40);
    /// application/octet-stream.
    pub const OCTETS: Self = Self(42);
    /// application/json.
    pub const JSON: Self = Self(50);
    /// application/cbor.
    pub const CBOR: Self = Self(60);

    /// The format with this name or number.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let known = FORMATS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        known.map(|(_, number)| *number).or_else(|| text.parse().ok()).map(Self)
    }

    /// The names that [`Self::parse`] accepts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FORMATS.iter().map(|(name, _)| *name)
    }
}

impl core::fmt::Display for ContentFormat {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match FORMATS.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "format {}", self.0),
        }
    }
}
