//! A request to a gateway, from whatever protocol it came.

use crate::cell::Applicant;
use crate::options::Forwarded;
use crate::target::{Target, TargetScheme};
use bytes::Bytes;
use ebbtide::Scheme;
use ebbtide::client::RequestParts;
use ebbtide::server::BodyStream;
use ebbtide_core::wire::{Code, Opt, OptionNumber};
use std::net::IpAddr;
use tokio::time::Instant;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) applicant: Applicant,
    pub(crate) target: Target,
    pub(crate) code: Code,
    pub(crate) forwarded: Forwarded,
    pub(crate) payload: Bytes,
    /// The instant at which the client stops waiting.
    pub(crate) deadline: Instant,
    pub(crate) freshness: StoredUse,
    pub(crate) body: BodyForm,
    /// The request's own body, if it is sent on as it arrives.
    pub(crate) arriving: Option<BodyStream>,
}

/// How the client receives a long body.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum BodyForm {
    /// Whole, since its own transfer has the size of blocks that it chooses.
    Held,
    /// Block by block.
    Streamed,
}

/// Which stored answers the client takes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoredUse {
    /// A fresh one (RFC 7252 section 5.6.1).
    Stored,
    /// One that the server confirms (`Cache-Control: no-cache`, RFC 9111 section 5.2.1.4).
    Validated,
}

/// The room that most keys need.
const KEY_BYTES: usize = 128;

/// Identifies equal requests (RFC 7252 section 5.6). It has the whole request, not a hash of it, so
/// a client cannot make two requests seem equal. The keys of one URI are neighbours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CacheKey(pub(crate) Vec<u8>);

/// The kinds of the parts of a URI in a key. Each part has a length, so no URI's key begins with another's.
const NAME: u8 = 4;
const QUERY: u8 = 3;
const PATH: u8 = 2;
const ADDRESS: u8 = 1;
const END: u8 = 0;

impl CacheKey {
    /// The beginning of all keys of a URI.
    pub(crate) fn of_uri(target: &Target) -> Self {
        let mut key = Vec::with_capacity(KEY_BYTES);
        let mut add = |kind: u8, part: &[u8]| {
            key.push(kind);
            // A URI comes in a message, or in the head of an HTTP request.
            key.extend((part.len() as u32).to_be_bytes());
            key.extend(part);
        };
        match target.address {
            Some(IpAddr::V4(address)) => add(ADDRESS, &address.octets()),
            Some(IpAddr::V6(address)) => add(ADDRESS, &address.octets()),
            None => add(NAME, target.host.as_bytes()),
        }
        add(NAME, target.scheme.name().as_bytes());
        add(NAME, &target.port.to_be_bytes());
        target.path.iter().for_each(|segment| add(PATH, segment.as_bytes()));
        target.query.iter().for_each(|argument| add(QUERY, argument.as_bytes()));
        key.push(END);
        Self(key)
    }
}

impl Ask {
    /// Whether its answer may be stored, and shared with equal requests (RFC 7252 section 5.6, RFC 8132 section 2.1).
    pub(crate) fn is_shareable(&self) -> bool {
        // The answer to a protected request is for its client alone (RFC 8613 section 4.1.3.1).
        let protected = self.forwarded.options.get(OptionNumber::OSCORE).is_some();
        matches!(self.code, Code::GET | Code::FETCH) && !protected
    }

    /// Whether the gateway hardly works for it: others have handshakes, or look names up.
    pub(crate) fn is_brief(&self) -> bool {
        let is_plain = self.target.scheme == TargetScheme::Coap(Scheme::Coap);
        is_plain && self.target.address.is_some()
    }

    /// Whether its resource can be observed. HTTP has no observations.
    pub(crate) fn is_observable(&self) -> bool {
        self.is_shareable() && matches!(self.target.scheme, TargetScheme::Coap(_))
    }

    pub(crate) fn key(&self) -> CacheKey {
        let mut key = CacheKey::of_uri(&self.target).0;
        key.push(self.code.0);
        for opt in self.forwarded.options.iter() {
            // The ETag says what the client has, not what it wants.
            if opt.number == OptionNumber::ETAG || opt.number.is_no_cache_key() {
                continue;
            }
            key.extend(opt.number.0.to_be_bytes());
            // The length of an option is at most that of a message.
            key.extend((opt.value.len() as u32).to_be_bytes());
            key.extend(opt.value);
        }
        if self.code == Code::FETCH {
            key.extend(&self.payload);
        }
        CacheKey(key)
    }

    /// The request in the form in which it leaves for an address that is its target's host.
    pub(crate) fn parts(&self) -> RequestParts {
        let Target { path, query, .. } = &self.target;
        let path = path.iter().map(|part| (OptionNumber::URI_PATH, part));
        let query = query.iter().map(|part| (OptionNumber::URI_QUERY, part));
        let uri = path.chain(query).map(|(number, part)| Opt { number, value: part.as_bytes() });
        let options = uri.chain(self.forwarded.leaving()).collect();
        let (code, payload) = (self.code, self.payload.clone());
        RequestParts { code, options, payload, block_size: None }
    }

    /// Whether the client has the version of the resource with this ETag.
    pub(crate) fn has_version(&self, etag: &[u8]) -> bool {
        let options = &self.forwarded.options;
        options.iter().any(|opt| opt.number == OptionNumber::ETAG && opt.value == etag)
    }
}
