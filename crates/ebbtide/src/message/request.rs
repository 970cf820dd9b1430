//! Requests that a client sends.

use super::ContentFormat;
use super::Options;
use super::uri::{Uri, UriError};
use bytes::Bytes;
use ebbtide_core::endpoint::Reliability;
#[cfg(feature = "serde")]
use ebbtide_core::session::{DataError, to_cbor, to_json};
use ebbtide_core::wire::{Code, OptionNumber};
use std::time::Duration;

/// A request to be sent: a method, a URI, and how to ask.
///
/// ```
/// use ebbtide::{ContentFormat, Request};
/// # fn main() -> Result<(), ebbtide::UriError> {
/// let request = Request::put("coap://192.0.2.7/lamp")?
///     .payload("{\"on\":true}")
///     .format(ContentFormat::JSON);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) code: Code,
    pub(crate) uri: Uri,
    /// Beside those of the URI.
    pub(crate) options: Options,
    pub(crate) payload: Bytes,
    pub(crate) reliability: Reliability,
    pub(crate) timeout: Option<Duration>,
    pub(crate) block_szx: Option<u8>,
    pub(crate) q_block: bool,
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident $code:ident;)*) => {
        $($(#[$doc])*
        ///
        /// # Errors
        ///
        /// If `uri` is not a valid CoAP URI.
        pub fn $name(uri: impl TryInto<Uri, Error: Into<UriError>>) -> Result<Self, UriError> {
            Self::new(Code::$code, uri)
        })*
    };
}

impl Request {
    methods! {
        /// A GET (RFC 7252 section 5.8.1).
        get GET;
        /// A POST (section 5.8.2).
        post POST;
        /// A PUT (section 5.8.3).
        put PUT;
        /// A DELETE (section 5.8.4).
        delete DELETE;
        /// A FETCH (RFC 8132 section 2).
        fetch FETCH;
        /// A PATCH (RFC 8132 section 3).
        patch PATCH;
        /// An iPATCH (RFC 8132 section 3).
        ipatch IPATCH;
    }

    /// A request with any method.
    ///
    /// # Errors
    ///
    /// If `uri` is not a valid CoAP URI.
    pub fn new(
        code: Code,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
    ) -> Result<Self, UriError> {
        Ok(Self {
            code,
            uri: uri.try_into().map_err(Into::into)?,
            options: Options::new(),
            payload: Bytes::new(),
            reliability: Reliability::Confirmable,
            timeout: None,
            block_szx: None,
            q_block: false,
        })
    }

    /// Sets the payload; one longer than a block travels block-wise (RFC 7959).
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Sets the payload to a value in JSON, with its format.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be written in JSON.
    #[cfg(feature = "serde")]
    pub fn json(self, value: &(impl serde::Serialize + ?Sized)) -> Result<Self, DataError> {
        Ok(self.payload(to_json(value)?).format(ContentFormat::JSON))
    }

    /// Sets the payload to a value in CBOR, with its format.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be written in CBOR.
    #[cfg(feature = "serde")]
    pub fn cbor(self, value: &(impl serde::Serialize + ?Sized)) -> Result<Self, DataError> {
        Ok(self.payload(to_cbor(value)?).format(ContentFormat::CBOR))
    }

    /// Sets the payload's format.
    #[must_use]
    pub fn format(mut self, format: ContentFormat) -> Self {
        self.options.set_uint(OptionNumber::CONTENT_FORMAT, format.0.into());
        self
    }

    /// Asks for a format (RFC 7252 section 5.10.4).
    #[must_use]
    pub fn accept(mut self, format: ContentFormat) -> Self {
        self.options.set_uint(OptionNumber::ACCEPT, format.0.into());
        self
    }

    /// Adds any option. Those of the URI and of protocols that the library speaks (Observe, blocks,
    /// Echo, Request-Tag) are set by it.
    #[must_use]
    pub fn option(mut self, number: OptionNumber, value: &[u8]) -> Self {
        self.options.push(number, value);
        self
    }

    /// Sends it Non-confirmable: once, without acknowledgement (RFC 7252 section 4.3). Unless
    /// [`timeout`](Self::timeout) says otherwise, its response is waited for as long as a Confirmable
    /// message would be repeated (MAX_TRANSMIT_SPAN, 45 s by default).
    #[must_use]
    pub fn non_confirmable(mut self) -> Self {
        self.reliability = Reliability::NonConfirmable;
        self
    }

    /// Gives up after this span, in which everything has to happen: name look-up, waiting for room,
    /// retransmissions, all blocks; for an observation, each answer to a registration.
    ///
    /// Within it, messages that the network does not deliver (no route, all retransmissions unanswered) are
    /// tried again after a pause, unless doing the request twice would be more than doing it once. Without
    /// it that is done only as long as the server was heard within MAX_TRANSMIT_WAIT (RFC 7252 section
    /// 4.8.2): what was never answered fails when the message layer gives its first message up.
    #[must_use]
    pub fn timeout(mut self, span: Duration) -> Self {
        self.timeout = Some(span);
        self
    }

    /// The size of blocks: 16, 32, 64, 128, 256, 512 or 1024 bytes; other values are rounded down
    /// to one of these. By default 1024, or what the server prefers.
    #[must_use]
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.block_szx = Some(szx(bytes));
        self
    }

    /// Lets bodies travel in Non-confirmable blocks of RFC 9177, many at once instead of one per round
    /// trip, both the request's and the response's: where a body is long and the round trip, too, or
    /// where answers get lost. How fast, [`Config::q_block`](crate::Config::q_block) says. The server is
    /// asked first whether it understands that; if not, or over a connection, the blocks are the
    /// usual ones.
    ///
    /// The paths it is meant for are known to bear it (RFC 9177 section 3.2): ten blocks leave at
    /// once, whatever the congestion control of the peer has learnt.
    #[must_use]
    pub fn q_block(mut self) -> Self {
        self.q_block = true;
        self
    }

    /// The URI.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uri
    }
}

/// The size exponent of the longest blocks that are not longer than this (RFC 7959 section 2.2).
pub(crate) fn szx(bytes: usize) -> u8 {
    (bytes.clamp(16, 1024).ilog2() - 4) as u8
}
