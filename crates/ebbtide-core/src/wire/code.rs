//! Request and response codes (RFC 7252 sections 3, 5.2, 12.1).

use core::fmt;

use coap_numbers::code;

/// Three bits of class and five of detail, written `class.detail`: 0.01 is GET, 2.05 is Content.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u8);

/// Declares the constants of [`Code`] from the registry's.
macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        impl Code {
            $($(#[doc = $doc])* pub const $name: Self = Self(code::$name);)*
        }
    };
}

codes! {
    /// 0.00: an Empty message, neither request nor response (RFC 7252 section 4.1).
    EMPTY;
    /// 0.01 (RFC 7252 section 5.8.1).
    GET;
    /// 0.02 (RFC 7252 section 5.8.2).
    POST;
    /// 0.03 (RFC 7252 section 5.8.3).
    PUT;
    /// 0.04 (RFC 7252 section 5.8.4).
    DELETE;
    /// 0.05 (RFC 8132 section 2).
    FETCH;
    /// 0.06 (RFC 8132 section 3).
    PATCH;
    /// 0.07, the idempotent PATCH (RFC 8132 section 3).
    IPATCH;
    /// 2.01 (RFC 7252 section 5.9.1.1).
    CREATED;
    /// 2.02 (RFC 7252 section 5.9.1.2).
    DELETED;
    /// 2.03 (RFC 7252 section 5.9.1.3).
    VALID;
    /// 2.04 (RFC 7252 section 5.9.1.4).
    CHANGED;
    /// 2.05 (RFC 7252 section 5.9.1.5).
    CONTENT;
    /// 2.31: this block was received, send the next (RFC 7959 section 2.9.1).
    CONTINUE;
    /// 4.00 (RFC 7252 section 5.9.2.1).
    BAD_REQUEST;
    /// 4.01 (RFC 7252 section 5.9.2.2).
    UNAUTHORIZED;
    /// 4.02: a critical option was not understood (RFC 7252 section 5.9.2.3).
    BAD_OPTION;
    /// 4.03 (RFC 7252 section 5.9.2.4).
    FORBIDDEN;
    /// 4.04 (RFC 7252 section 5.9.2.5).
    NOT_FOUND;
    /// 4.05 (RFC 7252 section 5.9.2.6).
    METHOD_NOT_ALLOWED;
    /// 4.06 (RFC 7252 section 5.9.2.7).
    NOT_ACCEPTABLE;
    /// 4.08: blocks are missing (RFC 7959 section 2.9.2).
    REQUEST_ENTITY_INCOMPLETE;
    /// 4.09 (RFC 8132 section 3.4).
    CONFLICT;
    /// 4.12 (RFC 7252 section 5.9.2.8).
    PRECONDITION_FAILED;
    /// 4.13 (RFC 7252 section 5.9.2.9, RFC 7959 section 2.9.3).
    REQUEST_ENTITY_TOO_LARGE;
    /// 4.15 (RFC 7252 section 5.9.2.10).
    UNSUPPORTED_CONTENT_FORMAT;
    /// 4.22 (RFC 8132 section 3.4).
    UNPROCESSABLE_ENTITY;
    /// 4.29: the client sends requests too often; Max-Age says when to try again (RFC 8516 section
    /// 3).
    TOO_MANY_REQUESTS;
    /// 5.00 (RFC 7252 section 5.9.3.1).
    INTERNAL_SERVER_ERROR;
    /// 5.01 (RFC 7252 section 5.9.3.2).
    NOT_IMPLEMENTED;
    /// 5.02 (RFC 7252 section 5.9.3.3).
    BAD_GATEWAY;
    /// 5.03: Max-Age says when to try again (RFC 7252 section 5.9.3.4).
    SERVICE_UNAVAILABLE;
    /// 5.04 (RFC 7252 section 5.9.3.5).
    GATEWAY_TIMEOUT;
    /// 5.05 (RFC 7252 section 5.9.3.6).
    PROXYING_NOT_SUPPORTED;
    /// 5.08 (RFC 8768 section 4).
    HOP_LIMIT_REACHED;
    /// 7.01: capabilities and settings (RFC 8323 section 5.3).
    CSM;
    /// 7.02 (RFC 8323 section 5.4).
    PING;
    /// 7.03 (RFC 8323 section 5.4).
    PONG;
    /// 7.04 (RFC 8323 section 5.5).
    RELEASE;
    /// 7.05 (RFC 8323 section 5.6).
    ABORT;
}

impl Code {
    /// The code written `class.detail`; the class modulo 8, the detail modulo 32.
    #[inline]
    #[must_use]
    pub const fn new(class: u8, detail: u8) -> Self {
        Self((class << 5) | (detail & 0x1f))
    }

    /// The digit before the dot, 0 to 7.
    #[inline]
    #[must_use]
    pub const fn class(self) -> u8 {
        self.0 >> 5
    }

    /// The digits after the dot, 0 to 31.
    #[inline]
    #[must_use]
    pub const fn detail(self) -> u8 {
        self.0 & 0x1f
    }

    /// 0.00 (RFC 7252 section 4.1).
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it is a success: class 2.
    #[inline]
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.class() == 2
    }

    /// Whether it is an error of the client: class 4.
    #[inline]
    #[must_use]
    pub const fn is_client_error(self) -> bool {
        self.class() == 4
    }

    /// Whether it is an error of the server: class 5.
    #[inline]
    #[must_use]
    pub const fn is_server_error(self) -> bool {
        self.class() == 5
    }

    /// 0.01 to 0.31, registered or not (RFC 7252 section 12.1).
    #[inline]
    #[must_use]
    pub const fn is_request(self) -> bool {
        matches!(self.0, 0x01..=0x1f)
    }

    /// 2.00 to 5.31, registered or not (RFC 7252 section 12.1; an unknown one is to be treated as
    /// its class's .00, section 5.2).
    #[inline]
    #[must_use]
    pub const fn is_response(self) -> bool {
        matches!(self.class(), 2..=5)
    }

    /// 7.00 to 7.31: about the connection itself, over reliable transports only (RFC 8323
    /// section 5).
    #[inline]
    #[must_use]
    pub const fn is_signaling(self) -> bool {
        self.class() == 7
    }

    /// A class without a meaning on any transport, 1 or 6. Over UDP class 7 is reserved as well
    /// (RFC 7252 section 4.2).
    #[inline]
    #[must_use]
    pub const fn is_reserved(self) -> bool {
        matches!(self.class(), 1 | 6)
    }

    /// Whether the method is idempotent: GET, PUT, DELETE (RFC 7252 section 5.1), FETCH (RFC 8132
    /// section 2) and iPATCH (section 3). POST, PATCH and unknown methods are not.
    #[inline]
    #[must_use]
    pub const fn is_idempotent(self) -> bool {
        matches!(self, Self::GET | Self::PUT | Self::DELETE | Self::FETCH | Self::IPATCH)
    }

    /// Whether a message with this code may have a payload. GET and DELETE are not defined to have one
    /// (RFC 7252 sections 5.8.1 and 5.8.4), so a recipient ignores it (section 5.5).
    #[inline]
    #[must_use]
    pub const fn has_payload(self) -> bool {
        !matches!(self, Self::EMPTY | Self::GET | Self::DELETE)
    }

    /// The registered name, such as `GET` or `Not Found`.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        code::to_name(self.0)
    }
}

impl fmt::Display for Code {
    /// Class, dot, two digits of detail: `2.05`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        code::format_dotted(self.0, f)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({self})")
    }
}
