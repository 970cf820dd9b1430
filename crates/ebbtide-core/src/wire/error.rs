//! Errors of received messages and of messages to be sent.

use core::{error, fmt};

use super::code::Code;
use super::header::{MessageId, Type};
use super::number::OptionNumber;

/// The reason why a datagram is not a valid message. The fault is the peer's or the path's, never
/// the caller's.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Shorter than the four-byte header: not CoAP, ignored.
    TooShort,
    /// A version other than 1. "Messages with unknown version numbers MUST be silently ignored"
    /// (RFC 7252 section 3).
    Version(u8),
    /// The header is readable but the message must be rejected: a Confirmable one by a Reset with
    /// its message ID, any other by ignoring it (RFC 7252 sections 4.2 and 4.3).
    Format {
        /// The error.
        reason: FormatError,
        /// The message's type, which decides whether a Reset is sent.
        kind: Type,
        /// The message ID for the Reset.
        message_id: MessageId,
    },
}

/// The error in a message whose header is readable.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FormatError {
    /// A token longer than its receiver takes: without RFC 8974, of more than eight bytes, which "MUST be
    /// processed as a message format error" (RFC 7252 section 3).
    TokenLength(u32),
    /// A token length field of 15, which is reserved (RFC 8974 section 2.1).
    TokenLength15,
    /// The message ends within its header, which is only possible in a WebSocket frame or at the
    /// end of a stream.
    HeaderTruncated,
    /// The message ends within its token.
    TokenTruncated,
    /// An option delta of 15 that is not the payload marker (RFC 7252 section 3.1).
    OptionDelta15,
    /// An option length of 15 (RFC 7252 section 3.1).
    OptionLength15,
    /// The message ends within an option.
    OptionTruncated,
    /// The deltas add up to more than 65535.
    OptionNumberOverflow,
    /// "The presence of a marker followed by a zero-length payload MUST be processed as a message
    /// format error" (RFC 7252 section 3).
    PayloadMarkerWithoutPayload,
    /// Code 0.00 with a token, options or a payload (RFC 7252 section 4.1).
    EmptyMessageWithContent,
    /// A code of class 1, 6 or, over UDP, 7: reserved (RFC 7252 sections 4.2 and 4.3).
    ReservedCodeClass(Code),
    /// A code that this type of message cannot carry: an Empty NON, an ACK with a request, an RST
    /// that is not Empty (RFC 7252 section 4.3, table 1).
    CodeNotForType(Code),
    /// A nonzero length in a message within a WebSocket frame: "The Length (Len) field MUST be set
    /// to zero" (RFC 8323 section 4.2).
    LengthInWebSocket(u8),
}

/// The reason why a message could not be encoded. The fault is the caller's.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EncodeError {
    /// The message is longer than the buffer.
    BufferTooSmall,
    /// An option was given after one with a greater number, or after the payload.
    OptionOrder {
        /// The option that was written last.
        previous: OptionNumber,
        /// The option that must not follow it.
        number: OptionNumber,
    },
    /// The token is longer than [`MAX_EXTENDED_TOKEN_LEN`](super::MAX_EXTENDED_TOKEN_LEN).
    TokenTooLong {
        /// The length of the token in bytes.
        len: usize,
    },
    /// The value is longer than [`MAX_OPTION_LEN`](super::MAX_OPTION_LEN).
    OptionTooLong {
        /// The option's number.
        number: OptionNumber,
        /// The length of the value in bytes.
        len: usize,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort => f.write_str("datagram shorter than the 4-byte header"),
            Self::Version(version) => write!(f, "version {version}, not 1"),
            Self::Format { reason, kind, message_id } => {
                write!(f, "{kind} {message_id}: {reason}")
            }
        }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TokenLength(len) => write!(f, "a token of {len} bytes is too long"),
            Self::TokenLength15 => f.write_str("token length 15 is reserved"),
            Self::HeaderTruncated => f.write_str("message ends within its header"),
            Self::TokenTruncated => f.write_str("message ends within its token"),
            Self::OptionDelta15 => f.write_str("option delta 15 is reserved"),
            Self::OptionLength15 => f.write_str("option length 15 is reserved"),
            Self::OptionTruncated => f.write_str("message ends within an option"),
            Self::OptionNumberOverflow => f.write_str("option number above 65535"),
            Self::PayloadMarkerWithoutPayload => f.write_str("payload marker without a payload"),
            Self::EmptyMessageWithContent => {
                f.write_str("empty message with bytes after its message ID")
            }
            Self::ReservedCodeClass(code) => write!(f, "code {code} is of a reserved class"),
            Self::CodeNotForType(code) => {
                write!(f, "code {code} in a type of message that cannot carry it")
            }
            Self::LengthInWebSocket(len) => {
                write!(f, "length {len} within a WebSocket frame, where it must be 0")
            }
        }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BufferTooSmall => f.write_str("message longer than the buffer"),
            Self::OptionOrder { previous, number } => {
                write!(f, "{number} cannot come after {previous} or a payload")
            }
            Self::TokenTooLong { len } => {
                write!(
                    f,
                    "token of {len} bytes, at most {} possible",
                    super::MAX_EXTENDED_TOKEN_LEN
                )
            }
            Self::OptionTooLong { number, len } => {
                write!(f, "{number} of {len} bytes, at most {} possible", super::MAX_OPTION_LEN)
            }
        }
    }
}

impl error::Error for ParseError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Format { reason, .. } => Some(reason),
            Self::TooShort | Self::Version(_) => None,
        }
    }
}
impl error::Error for FormatError {}
impl error::Error for EncodeError {}
