//! The content of a message, independent of its delivery: code, options, payload.

use super::build::{Encoder, option_header_len};
use super::code::Code;
use super::error::EncodeError;
use super::frame::{Framing, frame_header};
use super::header::{MessageId, Type};
use super::number::OptionNumber;
use super::option::Opt;

/// A request or response to be sent: the parts of a message that do not depend on its type,
/// message ID and token.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Content<'a> {
    /// The method or response code.
    pub code: Code,
    /// The options in any order; options with the same number keep their order. Sorting needs no
    /// memory, but takes time that grows with the square of their number unless they are sorted
    /// already.
    pub options: &'a [Opt<'a>],
    /// The payload; an empty payload is omitted.
    pub payload: &'a [u8],
}

/// The layout of an encoded message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The message's length.
    pub len: usize,
    /// The end of the options: the payload marker, or the end of the message.
    pub options_end: usize,
    /// The number of the last option, from which the delta of another option counts; 0 if there is
    /// none.
    pub last_option: OptionNumber,
}

impl Content<'_> {
    /// Like [`Message::is_idempotent`](super::Message::is_idempotent), for content that is not a
    /// message yet.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        let has = |number| self.options.iter().any(|opt| opt.number == number);
        match self.code {
            Code::GET | Code::FETCH => true,
            code if code.is_idempotent() => {
                !has(OptionNumber::IF_MATCH) && !has(OptionNumber::IF_NONE_MATCH)
            }
            _ => false,
        }
    }

    /// The options in the order of their numbers.
    #[cfg(feature = "oscore")]
    pub(crate) fn in_order(&self) -> impl Iterator<Item = Opt<'_>> {
        InOrder::new(self.options)
    }

    /// The bytes of options, payload marker and payload: the message without header and token.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        let mut previous = 0;
        let mut len = 0;
        for opt in InOrder::new(self.options) {
            len += option_header_len(opt.number.0.saturating_sub(previous), opt.value.len());
            len += opt.value.len();
            previous = opt.number.0;
        }
        len + usize::from(!self.payload.is_empty()) + self.payload.len()
    }

    /// Writes the whole message to the start of `buf`.
    ///
    /// # Errors
    ///
    /// [`EncodeError::BufferTooSmall`], [`EncodeError::TokenTooLong`] or
    /// [`EncodeError::OptionTooLong`]; `buf` then does not hold a valid message.
    pub fn encode(
        &self,
        buf: &mut [u8],
        kind: Type,
        id: MessageId,
        token: impl AsRef<[u8]>,
    ) -> Result<Encoded, EncodeError> {
        self.write(Encoder::new(buf, kind, self.code, id, token)?)
    }

    /// The bytes of the whole message on a reliable transport.
    #[must_use]
    pub fn framed_len(&self, framing: Framing, token: impl AsRef<[u8]>) -> usize {
        let (rest, token) = (self.encoded_len(), token.as_ref().len());
        let (_, header) = frame_header(framing, self.code, token, rest);
        header + token + rest
    }

    /// Writes the whole message to the start of `buf` in the format of reliable transports (RFC
    /// 8323 sections 3.2 and 4.2). [`Self::framed_len`] bytes suffice.
    ///
    /// # Errors
    ///
    /// As [`Self::encode`].
    pub fn encode_framed(
        &self,
        buf: &mut [u8],
        framing: Framing,
        token: impl AsRef<[u8]>,
    ) -> Result<Encoded, EncodeError> {
        self.write(Encoder::framed(buf, framing, self.code, token, self.encoded_len())?)
    }

    fn write(&self, mut encoder: Encoder<'_>) -> Result<Encoded, EncodeError> {
        for opt in InOrder::new(self.options) {
            encoder.option(opt.number, opt.value)?;
        }
        encoder.payload(self.payload)?;
        Ok(Encoded {
            len: encoder.len(),
            options_end: encoder.options_end(),
            last_option: encoder.last_option(),
        })
    }
}

/// The options in the order of their numbers; options with the same number keep the given order
/// (RFC 7252 section 3.1), which for path and query segments has a meaning (section 5.10.1).
struct InOrder<'a> {
    options: &'a [Opt<'a>],
    /// Whether `options` is in order.
    sorted: bool,
    /// If it is not: the number whose options are being returned.
    number: OptionNumber,
    /// The next position to examine; if unsorted, for another option with `number`.
    at: usize,
}

impl<'a> InOrder<'a> {
    #[inline]
    fn new(options: &'a [Opt<'a>]) -> Self {
        let sorted = options.is_sorted_by_key(|opt| opt.number);
        Self { options, sorted, number: OptionNumber(0), at: 0 }
    }

    /// One pass for another option with this number or, if there is none, for the next number.
    fn select(&mut self) -> Option<Opt<'a>> {
        let more = self.options.get(self.at..).unwrap_or_default();
        let (at, opt) = match more.iter().position(|opt| opt.number == self.number) {
            Some(offset) => (self.at + offset, more.get(offset)?),
            None => {
                let later = self.options.iter().enumerate();
                // Of equal numbers, the first one.
                later
                    .filter(|(_, opt)| opt.number > self.number)
                    .min_by_key(|(_, opt)| opt.number)?
            }
        };
        self.at = at + 1;
        self.number = opt.number;
        Some(*opt)
    }
}

impl<'a> Iterator for InOrder<'a> {
    type Item = Opt<'a>;

    #[inline]
    fn next(&mut self) -> Option<Opt<'a>> {
        if !self.sorted {
            return self.select();
        }
        let opt = self.options.get(self.at)?;
        self.at += 1;
        Some(*opt)
    }
}
