//! A request as a handler sees it.

use super::body_stream::BodyStream;
use super::origin::Origin;
use super::rest_of_path::RestOfPath;
use crate::client::Peer;
use crate::message::{BurstMark, ContentFormat};
use crate::net::peer::PeerInfo;
use crate::proved_identity::ProvedIdentity;
use bytes::Bytes;
use core::fmt;
use ebbtide_core::PeerId;
use ebbtide_core::wire::{Code, Message, OptionNumber};
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

/// The maximum number of path parameters of one route.
pub(crate) const MAX_PARAMS: usize = 4;

/// The path parameters of a call: the route's names with the segments that they matched.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Params<'a> {
    pub(crate) values: [&'a [u8]; MAX_PARAMS],
    pub(crate) count: usize,
}

impl Params<'_> {
    pub(crate) const NONE: Self = Self { values: [&[]; MAX_PARAMS], count: 0 };
}

/// A request that a handler answers.
///
/// A handler that answers at once takes `&Call<'_>`, which borrows the datagram and copies nothing.
/// An asynchronous handler takes `Call<'static>`, which owns copies and can be sent to another
/// task. [`Self::to_owned`] converts the former to the latter.
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
pub struct Call<'a>(RequestStorage<'a>);

#[derive(Clone)]
enum RequestStorage<'a> {
    Borrowed(Borrowed<'a>),
    Kept(Arc<OwnedRequest>),
}

/// A request that borrows its datagram.
#[derive(Copy, Clone)]
pub(crate) struct Borrowed<'a> {
    pub(crate) origin: &'a Origin<'a>,
    pub(crate) message: Message<'a>,
    /// The whole body. It is longer than the message's payload if it arrived in blocks.
    pub(crate) payload: &'a [u8],
    pub(crate) names: &'a [String],
    pub(crate) params: &'a Params<'a>,
    /// The segments that a final `{*name}` of the route matches.
    pub(crate) rest: Option<&'a RestOfPath<'a>>,
    /// The body, where it is taken as it arrives.
    pub(crate) arriving: Option<&'a BodyStream>,
    /// Whether the first block of the request's body has If-None-Match.
    pub(crate) if_none_match: bool,
}

/// Copies of the parts of a request.
struct OwnedRequest {
    info: PeerInfo,
    peer: Peer,
    is_verified: bool,
    is_notification: bool,
    datagram: Bytes,
    payload: Bytes,
    params: Box<[(String, String)]>,
    arriving: Option<BodyStream>,
    if_none_match: bool,
}

impl<'a> From<Borrowed<'a>> for Call<'a> {
    #[inline]
    fn from(borrowed: Borrowed<'a>) -> Self {
        Self(RequestStorage::Borrowed(borrowed))
    }
}

impl Borrowed<'_> {
    fn param(&self, name: &str) -> Option<&str> {
        let index = self.names.iter().position(|known| known == name)?;
        if let Some(rest) = self.rest.filter(|_| index + 1 == self.names.len()) {
            return Some(rest.as_str());
        }
        let params = self.params.values.get(index).filter(|_| index < self.params.count)?;
        core::str::from_utf8(params).ok()
    }

    fn owned_request(&self) -> OwnedRequest {
        // A segment that is not UTF-8 is left out, as in a borrowed call.
        let named = |name: &String| Some((name.clone(), self.param(name)?.to_owned()));
        OwnedRequest {
            info: self.origin.to_info(),
            peer: self.origin.peer(),
            is_verified: self.origin.is_verified(),
            is_notification: self.origin.is_notified(),
            datagram: Bytes::copy_from_slice(self.message.as_bytes()),
            payload: Bytes::copy_from_slice(self.payload),
            params: self.names.iter().filter_map(named).collect(),
            arriving: self.arriving.cloned(),
            if_none_match: self.if_none_match,
        }
    }
}

impl Call<'_> {
    /// The address of the client that sent the request.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        match &self.0 {
            RequestStorage::Borrowed(call) => call.origin.address(),
            RequestStorage::Kept(call) => call.info.address,
        }
    }

    /// Whether the client's address is verified: by a session, by a connection, or by a challenge that it has echoed
    /// within the hour (RFC 9175 section 2.4); where the response is a notification, also by an acknowledgement of an
    /// earlier one; or whether it need not be ([`Verify`](super::Verify)). Any other address may be forged, and a
    /// stranger can forge any number of them, so all together should have the share of one client.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        match &self.0 {
            RequestStorage::Borrowed(call) => call.origin.is_verified(),
            RequestStorage::Kept(call) => call.is_verified,
        }
    }

    /// Whether the response is a notification: the request of a client that observes the resource is handled again
    /// because its subject has changed (RFC 7641). An error ends the observation, so what would be refused for a while
    /// should wait instead; the observer gets no further notification before this one.
    #[must_use]
    pub fn is_notification(&self) -> bool {
        match &self.0 {
            RequestStorage::Borrowed(call) => call.origin.is_notified(),
            RequestStorage::Kept(call) => call.is_notification,
        }
    }

    /// The client as the endpoint knows it.
    pub(crate) fn peer_id(&self) -> PeerId {
        match &self.0 {
            RequestStorage::Borrowed(call) => call.origin.id,
            RequestStorage::Kept(call) => call.peer.id(),
        }
    }

    /// The identity that the sender has proved: over DTLS that of the pre-shared key, over TLS and
    /// DTLS the first DNS name of its certificate. At a client with a router it is that of the server's certificate,
    /// or of the key that the server knows as well.
    #[must_use]
    pub fn identity(&self) -> Option<&[u8]> {
        self.info()?.identity.as_ref().map(ProvedIdentity::as_bytes)
    }

    /// The X.509 certificate whose key the client has proved to hold, over TLS or DTLS, in DER.
    #[must_use]
    pub fn certificate(&self) -> Option<&[u8]> {
        self.info()?.certificate.as_deref()
    }

    /// The raw public key (RFC 7250) of the client over DTLS, whose private half it has proved to hold, as
    /// SubjectPublicKeyInfo in DER.
    #[must_use]
    pub fn raw_public_key(&self) -> Option<&[u8]> {
        self.info()?.raw_key.as_deref()
    }

    /// The sender of the request, to which requests can be sent over the same session.
    #[must_use]
    pub fn peer(&self) -> Peer {
        match &self.0 {
            RequestStorage::Borrowed(call) => call.origin.peer(),
            RequestStorage::Kept(call) => call.peer.clone(),
        }
    }

    fn info(&self) -> Option<&PeerInfo> {
        match &self.0 {
            RequestStorage::Borrowed(call) => call.origin.info,
            RequestStorage::Kept(call) => Some(&call.info),
        }
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> Code {
        self.with_message(Message::code)
    }

    /// The request's message with all its options.
    #[must_use]
    pub fn message(&self) -> Message<'_> {
        self.with_message(|message| *message)
    }

    /// Whether the request may be carried out only if the resource does not exist (If-None-Match, RFC 7252
    /// section 5.10.8.2). Of a body in blocks only the first one has that option, and
    /// [`Self::message`] is the last one.
    #[must_use]
    pub fn if_none_match(&self) -> bool {
        let of_first_block = match &self.0 {
            RequestStorage::Borrowed(call) => call.if_none_match,
            RequestStorage::Kept(call) => call.if_none_match,
        };
        of_first_block
            || self.with_message(|message| message.option(OptionNumber::IF_NONE_MATCH).is_some())
    }

    /// Looks at the request's message without copying it.
    #[inline]
    fn with_message<'s, R>(&'s self, look: impl FnOnce(&Message<'s>) -> R) -> R {
        match &self.0 {
            RequestStorage::Borrowed(call) => look(&call.message),
            // The bytes were a valid message on arrival.
            RequestStorage::Kept(call) => {
                look(&Message::parse(&call.datagram).unwrap_or(Message::EMPTY))
            }
        }
    }

    /// The payload, or the whole body of a block-wise transfer.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        match &self.0 {
            RequestStorage::Borrowed(call) => call.payload,
            RequestStorage::Kept(call) => &call.payload,
        }
    }

    /// The payload with its own storage: a copy, or a reference count of an owned call.
    #[must_use]
    pub fn body(&self) -> Bytes {
        match &self.0 {
            RequestStorage::Borrowed(call) => Bytes::copy_from_slice(call.payload),
            RequestStorage::Kept(call) => call.payload.clone(),
        }
    }

    /// The body as a stream: of a [streamed](super::Resource::streamed) resource as it arrives, else what is
    /// here of it.
    pub(crate) fn body_stream(&self) -> BodyStream {
        let arriving = match &self.0 {
            RequestStorage::Borrowed(call) => call.arriving.cloned(),
            RequestStorage::Kept(call) => call.arriving.clone(),
        };
        arriving.unwrap_or_else(|| BodyStream::whole(self.body()))
    }

    /// The payload's format, if the request names one.
    #[must_use]
    pub fn format(&self) -> Option<ContentFormat> {
        self.format_in(OptionNumber::CONTENT_FORMAT)
    }

    /// The requested format (Accept), if the request names one.
    #[must_use]
    pub fn accept(&self) -> Option<ContentFormat> {
        self.format_in(OptionNumber::ACCEPT)
    }

    fn format_in(&self, option: OptionNumber) -> Option<ContentFormat> {
        let value = self.with_message(|message| message.option(option)?.as_uint())?;
        u16::try_from(value).ok().map(ContentFormat)
    }

    /// The position of the message in a burst, if the client marked it.
    #[must_use]
    pub fn burst(&self) -> Option<BurstMark> {
        BurstMark::of(&self.message())
    }

    /// The segment that matched `{name}` in the route, or the segments, joined by slashes, that
    /// matched `{*name}`. `None` if the route has no such name or the segment is not UTF-8.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        match &self.0 {
            RequestStorage::Borrowed(call) => call.param(name),
            RequestStorage::Kept(call) => {
                let (_, value) = call.params.iter().find(|(known, _)| known == name)?;
                Some(value)
            }
        }
    }

    /// The route's names with the segments that they matched, in the route's order. A segment that
    /// is not UTF-8 is left out.
    #[cfg(feature = "serde")]
    pub(crate) fn params(&self) -> Vec<(&str, &str)> {
        match &self.0 {
            RequestStorage::Borrowed(call) => {
                let names = call.names.iter().map(String::as_str);
                names.filter_map(|name| Some((name, call.param(name)?))).collect()
            }
            RequestStorage::Kept(call) => {
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

    /// The arguments of the query, one for each Uri-Query option.
    pub fn query(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let options = self.message().options();
        options
            .filter(|opt| opt.number == OptionNumber::URI_QUERY)
            .map(|opt| String::from_utf8_lossy(opt.value))
    }

    /// Converts the call to one that owns its parts, for an asynchronous handler or another task.
    #[must_use]
    pub fn to_owned(&self) -> Call<'static> {
        Call(RequestStorage::Kept(match &self.0 {
            RequestStorage::Borrowed(call) => Arc::new(call.owned_request()),
            RequestStorage::Kept(call) => call.clone(),
        }))
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.method(), self.remote())?;
        write!(f, " for {}", self.path())
    }
}
