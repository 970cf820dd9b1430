//! What a message says, apart from how it is delivered: code, options, payload.

use super::build::{Encoder, option_header_len};
use super::code::Code;
use super::error::EncodeError;
use super::frame::{Framing, frame_header};
use super::header::{MessageId, Type};
use super::number::OptionNumber;
use super::option::Opt;
use super::token::Token;

/// A request or response to be sent: all of a message that does not change with its type, ID and
/// token.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Content<'a> {
    /// The method or response code.
    pub code: Code,
    /// The options in any order; those of one number stay in theirs. Sorting needs no memory but
    /// takes time that grows with the square of their count, unless they are sorted already.
    pub options: &'a [Opt<'a>],
    /// The payload; an empty one is none.
    pub payload: &'a [u8],
}

/// Where things are in a message that was written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The message's length.
    pub len: usize,
    /// Where the options end: at the payload marker, or at the end of the message.
    pub options_end: usize,
    /// The number of the last option, 0 if there is none: from which another one's delta counts.
    pub last_option: OptionNumber,
}

impl Content<'_> {
    /// As [`Message::is_idempotent`](super::Message::is_idempotent), before it is a message.
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
    /// [`EncodeError::BufferTooSmall`] or [`EncodeError::OptionTooLong`]; what `buf` then holds is
    /// no message.
    pub fn encode(
        &self,
        buf: &mut [u8],
        kind: Type,
        id: MessageId,
        token: Token,
    ) -> Result<Encoded, EncodeError> {
        self.write(Encoder::new(buf, kind, self.code, id, token)?)
    }

    /// The bytes of the whole message on a reliable transport.
    #[must_use]
    pub fn framed_len(&self, framing: Framing, token: Token) -> usize {
        let rest = self.encoded_len();
        // At most 8 by the type.
        let (_, header) = frame_header(framing, self.code, token.len() as u8, rest);
        header + token.len() + rest
    }

    /// Writes the whole message to the start of `buf` in the form of reliable transports (RFC 8323
    /// sections 3.2 and 4.2). [`Self::framed_len`] bytes suffice.
    ///
    /// # Errors
    ///
    /// As [`Self::encode`].
    pub fn encode_framed(
        &self,
        buf: &mut [u8],
        framing: Framing,
        token: Token,
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

/// Options in the order of their numbers, those of one number in the order given (RFC 7252 section
/// 3.1; the order of equals is the path's or the query's, section 5.10.1).
struct InOrder<'a> {
    options: &'a [Opt<'a>],
    /// Whether `options` is in order.
    sorted: bool,
    /// Unless it is: the number that is being given out.
    number: OptionNumber,
    /// The next place to look at; if unsorted, for another option of `number`.
    at: usize,
}

impl<'a> InOrder<'a> {
    #[inline]
    fn new(options: &'a [Opt<'a>]) -> Self {
        let sorted = options.is_sorted_by_key(|opt| opt.number);
        Self { options, sorted, number: OptionNumber(0), at: 0 }
    }

    /// One pass for another option of this number; if there is none, one for the next number.
    fn select(&mut self) -> Option<Opt<'a>> {
        let more = self.options.get(self.at..).unwrap_or_default();
        let (at, opt) = match more.iter().position(|opt| opt.number == self.number) {
            Some(offset) => (self.at + offset, more.get(offset)?),
            None => {
                let later = self.options.iter().enumerate();
                // Of equals the first.
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
