//! A message over UDP: the four-byte header and a [`Body`] (RFC 7252 section 3).

use core::fmt;

use super::body::{Body, Path, read_token_len};
use super::code::Code;
use super::error::{FormatError, ParseError};
use super::header::{MessageId, Type, VERSION};
use super::number::OptionNumber;
use super::option::{Opt, OptionIter};
use super::token::{Token, TokenDigits};

/// A view of a datagram that has been validated as a message.
///
/// Besides the format, code and type are consistent (RFC 7252 section 4.3, table 1): a NON is
/// never Empty, an ACK is never a request, and an RST is always Empty. A CON may be Empty (a ping,
/// section 4.3).
#[derive(Copy, Clone)]
pub struct Message<'a> {
    bytes: &'a [u8],
    body: Body<'a>,
    message_id: MessageId,
    code: Code,
    kind: Type,
}

impl Message<'static> {
    /// An Empty message, Confirmable, with the message ID 0.
    pub const EMPTY: Self = Self {
        bytes: &[VERSION << 6, 0, 0, 0],
        body: Body::EMPTY,
        message_id: MessageId(0),
        code: Code::EMPTY,
        kind: Type::Confirmable,
    };
}

impl<'a> Message<'a> {
    /// Validates a datagram.
    ///
    /// # Errors
    ///
    /// Returns the error, and whether a Reset is to be sent; see [`ParseError`].
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let [first, code, id_high, id_low, rest @ ..] = datagram else {
            return Err(ParseError::TooShort);
        };
        let version = first >> 6;
        if version != VERSION {
            return Err(ParseError::Version(version));
        }
        let kind = Type::from_first_byte(*first);
        let message_id = MessageId(u16::from_be_bytes([*id_high, *id_low]));
        let code = Code(*code);
        match check(kind, code, first & 0x0f, rest) {
            Ok(body) => Ok(Self { bytes: datagram, body, message_id, code, kind }),
            Err(reason) => Err(ParseError::Format { reason, kind, message_id }),
        }
    }

    /// CON, NON, ACK or RST.
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> Type {
        self.kind
    }

    /// Empty, a request's method or a response's code.
    #[inline]
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The message ID.
    #[inline]
    #[must_use]
    pub const fn message_id(&self) -> MessageId {
        self.message_id
    }

    /// The token, empty in an Empty message; `None` if it is an extended one, of more than eight bytes
    /// (RFC 8974).
    #[inline]
    #[must_use]
    pub fn token(&self) -> Option<Token> {
        self.body.token()
    }

    /// The bytes of the token, however many.
    #[inline]
    #[must_use]
    pub const fn token_bytes(&self) -> &'a [u8] {
        self.body.token_bytes()
    }

    /// All options in the order of their numbers, including options that are to be ignored.
    #[inline]
    #[must_use]
    pub const fn options(&self) -> OptionIter<'a> {
        self.body.options()
    }

    /// The first option with this number, unless it is to be treated as unrecognized; see
    /// [`Body::option`].
    #[inline]
    #[must_use]
    pub fn option(&self, number: OptionNumber) -> Option<Opt<'a>> {
        self.body.option(number)
    }

    /// Whether processing the message twice has the same effect as processing it once: its method
    /// is [idempotent](Code::is_idempotent), and it does not depend on a condition that the first
    /// processing may change (RFC 7252 section 5.10.8).
    #[inline]
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        let has = |number| self.option(number).is_some();
        match self.code {
            Code::GET | Code::FETCH => true,
            code if code.is_idempotent() => {
                !has(OptionNumber::IF_MATCH) && !has(OptionNumber::IF_NONE_MATCH)
            }
            _ => false,
        }
    }

    /// The payload; empty if there is none, since a payload of zero length cannot be sent.
    #[inline]
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.body.payload()
    }

    /// The values of Uri-Path, one per segment (RFC 7252 section 5.10.1).
    #[inline]
    #[must_use]
    pub const fn path(&self) -> Path<'a> {
        self.body.path()
    }

    /// The first option that forbids processing the message: a critical option that is not
    /// [known](OptionNumber::is_known), has a length that is not allowed, or is repeated although
    /// it must not be (RFC 7252 sections 5.4.1, 5.4.3, 5.4.5).
    ///
    /// A Confirmable request with such an option is answered with 4.02 Bad Option, and a response
    /// with one is rejected (section 5.4.1). An application that understands more or fewer options
    /// than Ebbtide calls [`Body::first_critical_unless`].
    #[inline]
    #[must_use]
    pub fn first_unknown_critical(&self) -> Option<OptionNumber> {
        self.body.first_unknown_critical()
    }

    /// Token, options and payload.
    #[inline]
    #[must_use]
    pub const fn body(&self) -> &Body<'a> {
        &self.body
    }

    /// The datagram.
    #[inline]
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Checks the requirements of RFC 7252 for everything after the version.
#[inline]
fn check(kind: Type, code: Code, token_len: u8, rest: &[u8]) -> Result<Body<'_>, FormatError> {
    if code.is_empty() {
        // Section 4.1: "The Token Length field MUST be set to 0 and bytes of data MUST NOT be
        // present after the Message ID field."
        return match (kind, token_len, rest) {
            (Type::NonConfirmable, 0, []) => Err(FormatError::CodeNotForType(code)),
            (_, 0, []) => Ok(Body::EMPTY),
            _ => Err(FormatError::EmptyMessageWithContent),
        };
    }
    // Section 4.2: a message that "uses a code with a reserved class (1, 6, or 7)" is rejected just
    // like one with a format error.
    if !code.is_request() && !code.is_response() {
        return Err(FormatError::ReservedCodeClass(code));
    }
    // Section 4.2: an ACK that "carries a request", an RST that "is not Empty" are rejected.
    if kind == Type::Reset || (kind == Type::Acknowledgement && code.is_request()) {
        return Err(FormatError::CodeNotForType(code));
    }
    let (token_len, extension) =
        read_token_len(token_len, rest)?.ok_or(FormatError::TokenTruncated)?;
    Body::parse(token_len, rest.get(extension..).unwrap_or_default())
}

impl fmt::Debug for Message<'_> {
    /// One line: `CON 0.01 0x7d34 [20] [Uri-Path: "temperature"] 0 bytes`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} [{}] {:?} {} bytes",
            self.kind,
            self.code,
            self.message_id,
            TokenDigits(self.token_bytes()),
            self.options(),
            self.payload().len()
        )
    }
}
