//! Requests of a client.

use super::ContentFormat;
use super::Options;
use super::uri::{Uri, UriError};
use bytes::Bytes;
use ebbtide_core::endpoint::Reliability;
#[cfg(feature = "serde")]
use ebbtide_core::session::{DataError, to_cbor, to_json};
use ebbtide_core::wire::{Code, OptionNumber};
use std::time::Duration;

/// A request: a method, a URI, and options on how to send it.
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
    /// The options in addition to those of the URI.
    pub(crate) options: Options,
    pub(crate) payload: Bytes,
    pub(crate) reliability: Reliability,
    pub(crate) timeout: Option<Duration>,
    pub(crate) block_size: Option<usize>,
    pub(crate) max_body: Option<usize>,
    pub(crate) q_block: bool,
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident $code:ident;)*) => {
        $($(#[$doc])*
        ///
        /// # Errors
        ///
        /// Returns an error if `uri` is not a valid CoAP URI.
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

    /// Creates a request with any method.
    ///
    /// # Errors
    ///
    /// Returns an error if `uri` is not a valid CoAP URI.
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
            block_size: None,
            max_body: None,
            q_block: false,
        })
    }

    /// Sets the payload. A payload longer than a block is transferred block-wise (RFC 7959). A GET or
    /// DELETE has no payload (RFC 7252 section 5.5), so that it is not sent.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Sets the payload to a value in JSON, with its Content-Format.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be written in JSON.
    #[cfg(feature = "serde")]
    pub fn json(self, value: &(impl serde::Serialize + ?Sized)) -> Result<Self, DataError> {
        Ok(self.payload(to_json(value)?).format(ContentFormat::JSON))
    }

    /// Sets the payload to a value in CBOR, with its Content-Format.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be written in CBOR.
    #[cfg(feature = "serde")]
    pub fn cbor(self, value: &(impl serde::Serialize + ?Sized)) -> Result<Self, DataError> {
        Ok(self.payload(to_cbor(value)?).format(ContentFormat::CBOR))
    }

    /// Sets the payload's Content-Format.
    #[must_use]
    pub fn format(mut self, format: ContentFormat) -> Self {
        self.options.set_uint(OptionNumber::CONTENT_FORMAT, format.0.into());
        self
    }

    /// Requests a Content-Format with the option Accept (RFC 7252 section 5.10.4).
    #[must_use]
    pub fn accept(mut self, format: ContentFormat) -> Self {
        self.options.set_uint(OptionNumber::ACCEPT, format.0.into());
        self
    }

    /// Adds an option. The library itself sets the options of the URI and of the protocols that it
    /// implements (Observe, blocks, Echo, Request-Tag).
    #[must_use]
    pub fn option(mut self, number: OptionNumber, value: &[u8]) -> Self {
        self.options.push(number, value);
        self
    }

    /// Sends the request as Non-confirmable: once, without acknowledgement (RFC 7252 section 4.3). Congestion controls
    /// other than `default` and its variants, and so the one that a client has unless told otherwise, make every
    /// eighth such message to a peer Confirmable, with its retransmissions, in order to measure the path.
    /// Unless [`timeout`](Self::timeout) sets another limit, the client waits for the response as
    /// long as a Confirmable message would be retransmitted (MAX_TRANSMIT_SPAN, 45 s by default).
    #[must_use]
    pub fn non_confirmable(mut self) -> Self {
        self.reliability = Reliability::NonConfirmable;
        self
    }

    /// Sets a time limit for the whole request: name look-up, waiting for room, retransmissions
    /// and all blocks. For an observation it applies to each response to a registration.
    ///
    /// Within the limit, messages that the network does not deliver (no route, all retransmissions
    /// unanswered) are tried again after a pause if the request is idempotent. Without a limit
    /// they are tried again only while the server was last heard from within MAX_TRANSMIT_WAIT
    /// (RFC 7252 section 4.8.2); a request that was never answered fails when the message layer
    /// gives its first message up.
    #[must_use]
    pub fn timeout(mut self, span: Duration) -> Self {
        self.timeout = Some(span);
        self
    }

    /// Sets the block size: 16, 32, 64, 128, 256, 512 or 1024 bytes. Other values are rounded down
    /// to one of these. The default is 1024, or the size that the server prefers.
    #[must_use]
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.block_size = Some(bytes);
        self
    }

    /// Sets the maximum length of the response's body, in bytes, if it comes in blocks: at a block
    /// beyond it the request ends with [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge).
    /// Default: that of the client ([`ClientConfig::max_body`](crate::ClientConfig::max_body)).
    #[must_use]
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.max_body = Some(bytes);
        self
    }

    /// Transfers the bodies of request and response in the Non-confirmable blocks of RFC 9177, many
    /// at once instead of one per round trip. Use it if both the body and the round trip are long,
    /// or if answers get lost.
    /// [`TransportConfig::q_block`](crate::config::TransportConfig::q_block) sets the pace. The
    /// client first asks the server whether it supports RFC 9177; if it does not, or over a
    /// connection, RFC 7959's blocks are used.
    ///
    /// RFC 9177 is intended for paths that are known to tolerate it (section 3.2): ten blocks
    /// leave at once, whatever congestion control has learnt about the peer.
    #[must_use]
    pub fn q_block(mut self) -> Self {
        self.q_block = true;
        self
    }

    /// The request's URI.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uri
    }
}
