//! A message over a reliable transport: another header in front of the same [`Body`] (RFC 8323
//! sections 3.2 and 4.2).

use core::fmt;

use super::body::{Body, Path, read_token_len};
use super::code::Code;
use super::error::FormatError;
use super::header::{MessageId, Type};
use super::length::{extend, extension_len};
use super::number::OptionNumber;
use super::option::{Opt, OptionIter};
use super::token::{Token, TokenDigits};

/// The maximum number of bytes before the token: the first byte, four of extended length, the
/// code, and two that extend the length of the token.
pub const MAX_FRAME_HEADER: usize = 8;

/// How a receiver finds the end of a message.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Framing {
    /// By the length in the header, on a byte stream such as TCP or TLS (RFC 8323 section 3.2).
    Stream,
    /// By the WebSocket frame around it. The length in the header is zero (section 4.2).
    WebSocket,
}

/// The contents of a message's header.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FrameHeader {
    /// The message's code.
    pub code: Code,
    /// The length of the token in bytes, 0 to 65804.
    pub token_len: u32,
    /// The number of bytes before the token, 2 to 8.
    pub header_len: u8,
    /// The length of options, payload marker and payload in bytes, as stated in the header: 0
    /// within a WebSocket frame.
    pub rest_len: u64,
}

impl FrameHeader {
    /// Reads the header at the start of `bytes`; `None` if it is incomplete.
    ///
    /// # Errors
    ///
    /// [`FormatError::TokenLength15`]: it is reserved (RFC 8974 section 2.1), so the start of the
    /// next message is unknown. [`FormatError::LengthInWebSocket`].
    #[inline]
    pub const fn parse(framing: Framing, bytes: &[u8]) -> Result<Option<Self>, FormatError> {
        let [first, ..] = *bytes else { return Ok(None) };
        let token_len = first & 0x0f;
        if token_len == 15 {
            return Err(FormatError::TokenLength15);
        }
        let length = first >> 4;
        if matches!(framing, Framing::WebSocket) && length != 0 {
            return Err(FormatError::LengthInWebSocket(length));
        }
        // RFC 8323 section 3.2: 13, 14 and 15 stand for one, two and four bytes that follow.
        let (header_len, rest_len, code): (usize, _, _) = match (length, bytes) {
            (13, &[_, a, code, ..]) => (3, a as u64 + 13, code),
            (14, &[_, a, b, code, ..]) => (4, u16::from_be_bytes([a, b]) as u64 + 269, code),
            (15, &[_, a, b, c, d, code, ..]) => {
                (6, u32::from_be_bytes([a, b, c, d]) as u64 + 65_805, code)
            }
            (0..13, &[_, code, ..]) => (2, length as u64, code),
            _ => return Ok(None),
        };
        // "Extended TKL" stands between the code and the token (RFC 8974 section 2.1, figure 2).
        let (_, after_code) = bytes.split_at(header_len);
        match read_token_len(token_len, after_code) {
            Ok(Some((token_len, extension))) => Ok(Some(Self {
                code: Code(code),
                // At most 65804, and 8.
                token_len: token_len as u32,
                header_len: (header_len + extension) as u8,
                rest_len,
            })),
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The length of the whole message on a byte stream in bytes, including the header, which is
    /// what Max-Message-Size limits (RFC 8323 section 5.3.1).
    #[inline]
    #[must_use]
    pub const fn message_len(&self) -> u64 {
        self.header_len as u64 + self.token_len as u64 + self.rest_len
    }
}

/// The header of a message whose options and payload take `rest` bytes, and the header's length.
#[inline]
pub(super) fn frame_header(
    framing: Framing,
    code: Code,
    token_len: usize,
    rest: usize,
) -> ([u8; MAX_FRAME_HEADER], usize) {
    // The length field cannot express more than four gigabytes, and no buffer is that long.
    let rest = if matches!(framing, Framing::WebSocket) { 0 } else { rest as u64 };
    let (mut header, len) = match rest {
        0..13 => ([(rest as u8) << 4, code.0, 0, 0, 0, 0, 0, 0], 2),
        13..269 => ([0xd0, (rest - 13) as u8, code.0, 0, 0, 0, 0, 0], 3),
        269..65_805 => {
            let [a, b] = ((rest - 269) as u16).to_be_bytes();
            ([0xe0, a, b, code.0, 0, 0, 0, 0], 4)
        }
        _ => {
            let [a, b, c, d] = ((rest - 65_805) as u32).to_be_bytes();
            ([0xf0, a, b, c, d, code.0, 0, 0], 6)
        }
    };
    let (nibble, len) = extend(&mut header, len, token_len);
    header[0] |= nibble;
    (header, len)
}

/// A view of a complete and validated message on a reliable transport.
///
/// It has neither a type nor a message ID, since the transport provides what they are for (RFC
/// 8323 section 3.2).
#[derive(Copy, Clone)]
pub struct Frame<'a> {
    code: Code,
    /// The bytes that extend the length of the token, token, options, payload: as over UDP.
    content: &'a [u8],
    body: Body<'a>,
}

impl<'a> Frame<'a> {
    /// Validates a complete message that begins with `header`.
    ///
    /// # Errors
    ///
    /// Returns the first error in its token, options and payload. The options of signaling
    /// messages have other meanings but the same format (RFC 8323 section 5.2).
    #[inline]
    pub fn parse(header: FrameHeader, message: &'a [u8]) -> Result<Self, FormatError> {
        let code = header.code;
        if code.is_reserved() {
            return Err(FormatError::ReservedCodeClass(code));
        }
        let (token_len, at) = (header.token_len as usize, usize::from(header.header_len));
        let body = Body::parse(token_len, message.get(at..).unwrap_or_default())?;
        let extension = extension_len(token_len);
        let content = message.get(at.saturating_sub(extension)..).unwrap_or_default();
        Ok(Self { code, content, body })
    }

    /// Empty, a request's method, a response's code, or a signal's.
    #[inline]
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The token; `None` if it is an extended one, of more than eight bytes (RFC 8974).
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

    /// All options in the order of their numbers.
    #[inline]
    #[must_use]
    pub const fn options(&self) -> OptionIter<'a> {
        self.body.options()
    }

    /// The first option with this number, unless it is to be treated as unrecognized; see
    /// [`Body::option`]. Do not use it for signaling messages, in which numbers have another
    /// meaning.
    #[inline]
    #[must_use]
    pub fn option(&self, number: OptionNumber) -> Option<Opt<'a>> {
        self.body.option(number)
    }

    /// The payload; empty if there is none.
    #[inline]
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.body.payload()
    }

    /// The values of Uri-Path, one per segment.
    #[inline]
    #[must_use]
    pub const fn path(&self) -> Path<'a> {
        self.body.path()
    }

    /// Token, options and payload.
    #[inline]
    #[must_use]
    pub const fn body(&self) -> &Body<'a> {
        &self.body
    }

    /// The header of the same message over UDP and the bytes that follow it there. With them, code
    /// that handles [`Message`](super::Message)s can process a message that arrived over TCP.
    /// Signaling messages have no such form.
    #[inline]
    #[must_use]
    pub fn as_datagram(&self, kind: Type, id: MessageId) -> ([u8; super::HEADER_LEN], &'a [u8]) {
        let [id_high, id_low] = id.0.to_be_bytes();
        let (nibble, _) = extend(&mut [0; 2], 0, self.token_bytes().len());
        let first = kind.first_byte(nibble);
        ([first, self.code.0, id_high, id_low], self.content)
    }
}

impl fmt::Debug for Frame<'_> {
    /// One line: `0.01 [20] [Uri-Path: "temperature"] 0 bytes`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}] ", self.code, TokenDigits(self.token_bytes()))?;
        if self.code.is_signaling() {
            // Their options have names of their own.
            let options = self.options().map(|opt| (opt.number.0, opt.value));
            f.debug_list().entries(options).finish()?;
        } else {
            write!(f, "{:?}", self.options())?;
        }
        write!(f, " {} bytes", self.payload().len())
    }
}
