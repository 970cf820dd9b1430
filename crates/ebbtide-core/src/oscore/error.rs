//! The reasons for which messages are neither protected nor accepted.

use crate::wire::{Code, EncodeError, OptionNumber};
use core::fmt;

/// The reason why a message was not protected. Nothing may be sent then.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ProtectError {
    /// All sequence numbers are used up: the peers need a new context (RFC 8613 section 7.2.1).
    Exhausted,
    /// The [`SequenceStore`](super::SequenceStore) could not reserve numbers.
    NotReserved,
    /// A message with this option cannot be protected: it has an OSCORE option already, or a
    /// Proxy-Uri, which would show its path and query to all proxies (section 4.1.3.3; Proxy-Scheme
    /// and Uri-Host take its place).
    NotProtectable(OptionNumber),
    /// It cannot be encoded.
    Encode(EncodeError),
    /// It is longer than the algorithm can encrypt.
    TooLong,
}

impl fmt::Display for ProtectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exhausted => {
                f.write_str("the sequence numbers of the security context are used up")
            }
            Self::NotReserved => f.write_str("sequence numbers could not be reserved"),
            Self::NotProtectable(number) => {
                write!(f, "OSCORE cannot protect a message with {number}")
            }
            Self::Encode(error) => error.fmt(f),
            Self::TooLong => f.write_str("message longer than the algorithm can encrypt"),
        }
    }
}

impl core::error::Error for ProtectError {}

impl From<EncodeError> for ProtectError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

/// The reason why a request is refused, which its sender learns in an unprotected response (RFC 8613 section 8.2).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// Its OSCORE option cannot be decoded, or what is encrypted is not a request.
    Malformed,
    /// There is no context of this name.
    NoContext,
    /// It was accepted before, or is too old to tell.
    Replayed,
    /// It was not made with the context's key, or was changed.
    NotAuthentic,
    /// It is longer than the receiver can decrypt.
    TooLong,
}

impl Refusal {
    /// The code of the response.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::Malformed => Code::BAD_OPTION,
            Self::NoContext | Self::Replayed => Code::UNAUTHORIZED,
            Self::NotAuthentic => Code::BAD_REQUEST,
            Self::TooLong => Code::REQUEST_ENTITY_TOO_LARGE,
        }
    }

    /// The diagnostic payload of the response: the words of section 8.2, and nothing that they do not say.
    #[must_use]
    pub const fn diagnostic(self) -> &'static str {
        match self {
            Self::Malformed => "Failed to decode COSE",
            Self::NoContext => "Security context not found",
            Self::Replayed => "Replay detected",
            Self::NotAuthentic => "Decryption failed",
            Self::TooLong => "",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "malformed OSCORE message",
            Self::NoContext => "no security context of this name",
            Self::Replayed => "replayed request",
            Self::NotAuthentic => "decryption failed",
            Self::TooLong => "message too long to decrypt",
        })
    }
}

impl core::error::Error for Refusal {}

/// The reason why a response was not accepted.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum ResponseFault {
    /// It has no OSCORE option. Errors of a server that cannot verify a request look like this.
    Unprotected,
    /// Its OSCORE option cannot be decoded, or what is encrypted is not a response.
    Malformed,
    /// It was not made with the context's key for this request, or was changed.
    NotAuthentic,
    /// It is a notification that is not newer than the latest one.
    Outdated,
    /// It is longer than the receiver can decrypt.
    TooLong,
}

impl fmt::Display for ResponseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unprotected => "the response is not protected",
            Self::Malformed => "malformed OSCORE response",
            Self::NotAuthentic => "the response cannot be decrypted",
            Self::Outdated => "outdated notification",
            Self::TooLong => "the response is too long to decrypt",
        })
    }
}

impl core::error::Error for ResponseFault {}
