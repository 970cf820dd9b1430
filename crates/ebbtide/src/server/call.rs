//! A request as a handler sees it.

use super::extract::BodyStream;
use crate::message::{BurstMark, ContentFormat};
use crate::net::peer::Peer;
use bytes::Bytes;
use core::fmt;
use ebbtide_core::wire::{Code, Message, OptionNumber};
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

/// The most path parameters that one route has.
pub(crate) const MAX_PARAMS: usize = 4;

/// The path parameters of a call: the route's names with the segments that stood for them.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Params<'a> {
    pub(crate) values: [&'a [u8]; MAX_PARAMS],
    pub(crate) count: usize,
}

/// A request that a handler answers.
///
/// A handler that answers at once borrows it from the datagram that it came in, as `&Call<'_>`, and
/// copies nothing. An asynchronous handler takes a `Call<'static>`, which keeps copies of what it needs and
/// may be sent anywhere; [`Self::to_owned`] makes one of the other.
///
/// ```
/// use ebbtide::server::{Call, Router, get, put};
///
/// async fn store(call: Call<'static>) -> String {
///     format!("{} bytes for {}", call.payload().len(), call.path())
/// }
///
/// let router: Router = Router::new()
///     .route("/length", get(|call: &Call<'_>| call.payload().len().to_string()))
///     .route("/store/{name}", put(store));
/// ```
#[derive(Clone)]
pub struct Call<'a>(Source<'a>);

#[derive(Clone)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for every request")]
enum Source<'a> {
    Borrowed(Borrowed<'a>),
    Kept(Arc<Kept>),
}

/// A request where it lies in its datagram.
#[derive(Copy, Clone)]
pub(crate) struct Borrowed<'a> {
    /// The address by which the endpoint knows the client: over DTLS the stand-in of the session.
    pub(crate) remote: SocketAddr,
    pub(crate) peer: Option<&'a Peer>,
    pub(crate) message: Message<'a>,
    /// The whole body: more than the message's payload if it came in blocks.
    pub(crate) payload: &'a [u8],
    pub(crate) names: &'a [String],
    pub(crate) params: Params<'a>,
    /// The segments that a last `{*name}` of the route matches.
    pub(crate) rest: Option<&'a str>,
    /// The body, where it is taken as it arrives.
    pub(crate) arriving: Option<&'a BodyStream>,
}

/// Copies of what a request consists of.
struct Kept {
    peer: Peer,
    datagram: Bytes,
    payload: Bytes,
    params: Box<[(String, String)]>,
    arriving: Option<BodyStream>,
}

impl<'a> From<Borrowed<'a>> for Call<'a> {
    #[inline]
    fn from(borrowed: Borrowed<'a>) -> Self {
        Self(Source::Borrowed(borrowed))
    }
}

impl Borrowed<'_> {
    fn param(&self, name: &str) -> Option<&str> {
        let index = self.names.iter().position(|known| known == name)?;
        if let Some(rest) = self.rest.filter(|_| index + 1 == self.names.len()) {
            return Some(rest);
        }
        let params = self.params.values.get(index).filter(|_| index < self.params.count)?;
        core::str::from_utf8(params).ok()
    }

    fn keep(&self) -> Kept {
        let unknown = || Peer { address: self.remote, identity: None, certificate: None };
        // A segment that is not UTF-8 is left out, as it is where the call is borrowed.
        let named = |name: &String| Some((name.clone(), self.param(name)?.to_owned()));
        Kept {
            peer: self.peer.cloned().unwrap_or_else(unknown),
            datagram: Bytes::copy_from_slice(self.message.as_bytes()),
            payload: Bytes::copy_from_slice(self.payload),
            params: self.names.iter().filter_map(named).collect(),
            arriving: self.arriving.cloned(),
        }
    }
}

impl Call<'_> {
    /// The address of the client that sent the request.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        match &self.0 {
            Source::Borrowed(call) => call.peer.map_or(call.remote, |peer| peer.address),
            Source::Kept(call) => call.peer.address,
        }
    }

    /// The identity that the client has proved to have the key of: over DTLS that of its pre-shared
    /// key, over TLS and DTLS the first DNS name of its certificate.
    #[must_use]
    pub fn identity(&self) -> Option<&[u8]> {
        self.peer()?.identity.as_deref()
    }

    /// The X.509 certificate that the client has proved to have the key of, over TLS or DTLS, in DER.
    #[must_use]
    pub fn certificate(&self) -> Option<&[u8]> {
        self.peer()?.certificate.as_deref()
    }

    fn peer(&self) -> Option<&Peer> {
        match &self.0 {
            Source::Borrowed(call) => call.peer,
            Source::Kept(call) => Some(&call.peer),
        }
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> Code {
        self.message().code()
    }

    /// The request's message: all its options.
    #[must_use]
    pub fn message(&self) -> Message<'_> {
        match &self.0 {
            Source::Borrowed(call) => call.message,
            // It was a message when it came.
            Source::Kept(call) => Message::parse(&call.datagram).unwrap_or(Message::EMPTY),
        }
    }

    /// The payload; of a block-wise transfer the whole body.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        match &self.0 {
            Source::Borrowed(call) => call.payload,
            Source::Kept(call) => &call.payload,
        }
    }

    /// The payload to be kept: a copy, or of a call that is kept itself a reference to its.
    #[must_use]
    pub fn body(&self) -> Bytes {
        match &self.0 {
            Source::Borrowed(call) => Bytes::copy_from_slice(call.payload),
            Source::Kept(call) => call.payload.clone(),
        }
    }

    /// The body as a stream: of a [streamed](super::Resource::streamed) resource as it arrives, else what is
    /// here of it.
    pub(crate) fn body_stream(&self) -> BodyStream {
        let arriving = match &self.0 {
            Source::Borrowed(call) => call.arriving.cloned(),
            Source::Kept(call) => call.arriving.clone(),
        };
        arriving.unwrap_or_else(|| BodyStream::whole(self.body()))
    }

    /// The payload's format, if the request names one.
    #[must_use]
    pub fn format(&self) -> Option<ContentFormat> {
        let value = self.message().option(OptionNumber::CONTENT_FORMAT)?.as_uint()?;
        u16::try_from(value).ok().map(ContentFormat)
    }

    /// The format that is asked for, if one is.
    #[must_use]
    pub fn accept(&self) -> Option<ContentFormat> {
        let value = self.message().option(OptionNumber::ACCEPT)?.as_uint()?;
        u16::try_from(value).ok().map(ContentFormat)
    }

    /// Where the message stands in a burst of its sender, if it says so.
    #[must_use]
    pub fn burst(&self) -> Option<BurstMark> {
        BurstMark::of(&self.message())
    }

    /// The segment that stood for `{name}` in the route, or the segments, with slashes between them,
    /// that stood for `{*name}`; `None` if the route has no such name or the segment is not UTF-8.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        match &self.0 {
            Source::Borrowed(call) => call.param(name),
            Source::Kept(call) => {
                let (_, value) = call.params.iter().find(|(known, _)| known == name)?;
                Some(value)
            }
        }
    }

    /// The route's names with the segments that stood for them, in the route's order. A segment that
    /// is not UTF-8 is left out.
    #[cfg(feature = "serde")]
    pub(crate) fn params(&self) -> Vec<(&str, &str)> {
        match &self.0 {
            Source::Borrowed(call) => {
                let names = call.names.iter().map(String::as_str);
                names.filter_map(|name| Some((name, call.param(name)?))).collect()
            }
            Source::Kept(call) => {
                call.params.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
            }
        }
    }

    /// The path as one text, with a slash before each segment.
    #[must_use]
    pub fn path(&self) -> String {
        let message = self.message();
        let segments = message.path();
        segments.fold(String::new(), |path, segment| path + "/" + &String::from_utf8_lossy(segment))
    }

    /// The arguments of the query.
    pub fn query(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let options = self.message().options();
        options
            .filter(|opt| opt.number == OptionNumber::URI_QUERY)
            .map(|opt| String::from_utf8_lossy(opt.value))
    }

    /// The same call, to be kept: by an asynchronous handler, or to be sent to another task.
    #[must_use]
    pub fn to_owned(&self) -> Call<'static> {
        Call(Source::Kept(match &self.0 {
            Source::Borrowed(call) => Arc::new(call.keep()),
            Source::Kept(call) => call.clone(),
        }))
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.method(), self.remote())?;
        write!(f, " for {}", self.path())
    }
}
