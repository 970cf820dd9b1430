//! A request as a handler sees it.

use crate::message::{BurstMark, ContentFormat};
use crate::net::dtls::Peer;
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

/// A request that a handler answers, borrowed from the datagram that it came in.
#[derive(Copy, Clone)]
pub struct Call<'a> {
    /// Who the endpoint knows: over DTLS the stand-in of the session.
    pub(crate) remote: SocketAddr,
    pub(crate) peer: Option<&'a Peer>,
    pub(crate) message: Message<'a>,
    /// The whole body: more than the message's payload if it came in blocks.
    pub(crate) payload: &'a [u8],
    pub(crate) names: &'a [String],
    pub(crate) params: Params<'a>,
    /// What a last `{*name}` of the route stands for.
    pub(crate) rest: Option<&'a str>,
}

impl<'a> Call<'a> {
    /// Who asks: the address that the request came from.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.peer.map_or(self.remote, |peer| peer.address)
    }

    /// The identity that the client has proved to have the key of, over DTLS.
    #[must_use]
    pub fn identity(&self) -> Option<&'a [u8]> {
        self.peer.map(|peer| &*peer.identity)
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> Code {
        self.message.code()
    }

    /// The request's message: all its options.
    #[must_use]
    pub fn message(&self) -> &Message<'a> {
        &self.message
    }

    /// The payload; of a block-wise transfer the whole body.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The payload's format, if the request names one.
    #[must_use]
    pub fn format(&self) -> Option<ContentFormat> {
        let value = self.message.option(OptionNumber::CONTENT_FORMAT)?.as_uint()?;
        u16::try_from(value).ok().map(ContentFormat)
    }

    /// The format that is asked for, if one is.
    #[must_use]
    pub fn accept(&self) -> Option<ContentFormat> {
        let value = self.message.option(OptionNumber::ACCEPT)?.as_uint()?;
        u16::try_from(value).ok().map(ContentFormat)
    }

    /// Where the message stands in a burst of its sender, if it says so.
    #[must_use]
    pub fn burst(&self) -> Option<BurstMark> {
        BurstMark::of(&self.message)
    }

    /// The segment that stood for `{name}` in the route, or the segments, with slashes between them,
    /// that stood for `{*name}`; `None` if the route has no such name or the segment is not UTF-8.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&'a str> {
        let index = self.names.iter().position(|known| known == name)?;
        if let Some(rest) = self.rest.filter(|_| index + 1 == self.names.len()) {
            return Some(rest);
        }
        core::str::from_utf8(self.params.values.get(index).filter(|_| index < self.params.count)?)
            .ok()
    }

    /// The route's names with the segments that stood for them, in the route's order. A segment that
    /// is not UTF-8 is left out.
    #[cfg(feature = "serde")]
    pub(crate) fn params(&self) -> impl Iterator<Item = (&'a str, &'a str)> + '_ {
        let names = self.names.iter().map(String::as_str);
        names.filter_map(|name| Some((name, self.param(name)?)))
    }

    /// The path as one text, with a slash before each segment.
    #[must_use]
    pub fn path(&self) -> String {
        let segments = self.message.path();
        segments.fold(String::new(), |path, segment| path + "/" + &String::from_utf8_lossy(segment))
    }

    /// The arguments of the query.
    pub fn query(&self) -> impl Iterator<Item = Cow<'a, str>> {
        let options = self.message.options();
        options
            .filter(|opt| opt.number == OptionNumber::URI_QUERY)
            .map(|opt| String::from_utf8_lossy(opt.value))
    }

    /// A copy that an asynchronous handler keeps.
    #[must_use]
    pub fn to_owned(&self) -> OwnedCall {
        let datagram = Bytes::copy_from_slice(self.message.as_bytes());
        let fixed = self.params.values.iter().take(self.params.count);
        let fixed = fixed.map(|value| String::from_utf8_lossy(value).into_owned());
        let mut params: Vec<_> = self.names.iter().cloned().zip(fixed).collect();
        if let (Some(rest), Some(name)) = (self.rest, self.names.last()) {
            params.push((name.clone(), rest.to_owned()));
        }
        OwnedCall {
            remote: self.remote(),
            identity: self.peer.map(|peer| Arc::clone(&peer.identity)),
            params: params.into(),
            payload: Bytes::copy_from_slice(self.payload),
            datagram,
        }
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.message.code(), self.remote())?;
        write!(f, " for {}", self.path())
    }
}

/// A request that an asynchronous handler answers.
#[derive(Clone, Debug)]
pub struct OwnedCall {
    remote: SocketAddr,
    identity: Option<Arc<[u8]>>,
    datagram: Bytes,
    payload: Bytes,
    params: Arc<[(String, String)]>,
}

impl OwnedCall {
    /// Who asks: the address that the request came from.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// The identity that the client has proved to have the key of, over DTLS.
    #[must_use]
    pub fn identity(&self) -> Option<&[u8]> {
        self.identity.as_deref()
    }

    /// The request's message: all its options. Never `None`: the message was validated when it came.
    #[must_use]
    pub fn message(&self) -> Option<Message<'_>> {
        Message::parse(&self.datagram).ok()
    }

    /// The payload; of a block-wise transfer the whole body.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// The segment that stood for `{name}` in the route, or the segments that stood for `{*name}`.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        let (_, value) = self.params.iter().find(|(known, _)| known == name)?;
        Some(value)
    }
}
