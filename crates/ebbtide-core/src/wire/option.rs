//! Options as encoded in a message: delta, length, value (RFC 7252 section 3.1).

use core::fmt;

use super::PAYLOAD_MARKER;
use super::error::FormatError;
use super::number::OptionNumber;

/// The maximum number of bytes before an option's value: one, and two for each extension.
pub const MAX_OPTION_HEADER: usize = 5;

/// An option: its number and its value.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct Opt<'a> {
    /// The option's number.
    pub number: OptionNumber,
    /// The option's value, in the format that the option's definition gives.
    pub value: &'a [u8],
}

impl<'a> Opt<'a> {
    /// The value as an unsigned integer in network byte order (RFC 7252 section 3.2). The empty
    /// value is 0, and leading zeros are allowed. `None` if it is longer than four bytes.
    #[inline]
    #[must_use]
    pub const fn as_uint(&self) -> Option<u32> {
        if self.value.len() > 4 {
            return None;
        }
        let (mut number, mut rest) = (0, self.value);
        while let [byte, others @ ..] = rest {
            number = number << 8 | *byte as u32;
            rest = others;
        }
        Some(number)
    }

    /// The value as a string, if it is UTF-8 (RFC 7252 section 3.2).
    #[inline]
    #[must_use]
    pub fn as_str(&self) -> Option<&'a str> {
        core::str::from_utf8(self.value).ok()
    }

    /// Whether the value's length is allowed by the option's definition. An option for which this
    /// is false "MUST be treated like an unrecognized option" (RFC 7252 section 5.4.3).
    #[inline]
    #[must_use]
    pub const fn is_well_formed(&self) -> bool {
        self.number.allows_length(self.value.len())
    }
}

impl fmt::Debug for Opt<'_> {
    /// `Uri-Path: "temperature"`, bytes that are not ASCII escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: \"{}\"", self.number, self.value.escape_ascii())
    }
}

/// The result of parsing the start of an option list.
pub(super) enum OptionStep<'a> {
    /// An option, and the bytes after it.
    Option(Opt<'a>, &'a [u8]),
    /// The payload marker, and the bytes after it.
    Payload(&'a [u8]),
    /// The message ends here.
    End,
}

/// Parses one option from `bytes`; `previous` is the number of the option before it, 0 at the
/// start.
#[inline]
pub(super) fn step(bytes: &[u8], previous: OptionNumber) -> Result<OptionStep<'_>, FormatError> {
    let Some((&first, rest)) = bytes.split_first() else {
        return Ok(OptionStep::End);
    };
    if first == PAYLOAD_MARKER {
        return Ok(OptionStep::Payload(rest));
    }
    let (delta, rest) = extended(first >> 4, rest, FormatError::OptionDelta15)?;
    let (length, rest) = extended(first & 0x0f, rest, FormatError::OptionLength15)?;
    // The greatest number is 65535, since the registry has no more (RFC 7252 section 12.2).
    let number = u16::try_from(u32::from(previous.0) + delta)
        .map_err(|_| FormatError::OptionNumberOverflow)?;
    let (value, rest) =
        rest.split_at_checked(length as usize).ok_or(FormatError::OptionTruncated)?;
    Ok(OptionStep::Option(Opt { number: OptionNumber(number), value }, rest))
}

/// Resolves a delta or length nibble whose extension bytes are at the start of `rest`. On a nibble
/// of 15, RFC 7252 section 3.1 says: "If the field is set to this value but the entire byte is not
/// the payload marker, this MUST be processed as a message format error."
#[inline]
fn extended(nibble: u8, rest: &[u8], at_15: FormatError) -> Result<(u32, &[u8]), FormatError> {
    match nibble {
        13 => match rest {
            [a, rest @ ..] => Ok((u32::from(*a) + 13, rest)),
            _ => Err(FormatError::OptionTruncated),
        },
        14 => match rest {
            [a, b, rest @ ..] => Ok((u32::from(u16::from_be_bytes([*a, *b])) + 269, rest)),
            _ => Err(FormatError::OptionTruncated),
        },
        15 => Err(at_15),
        _ => Ok((u32::from(nibble), rest)),
    }
}

/// The options of a validated message, in the order of their numbers.
#[derive(Copy, Clone)]
pub struct OptionIter<'a> {
    /// Whole options and nothing else.
    rest: &'a [u8],
    previous: OptionNumber,
}

impl<'a> OptionIter<'a> {
    /// Iterates over `options`, which [`step`] has walked to its end without an error.
    #[inline]
    pub(super) const fn new(options: &'a [u8]) -> Self {
        Self { rest: options, previous: OptionNumber(0) }
    }
}

impl<'a> Iterator for OptionIter<'a> {
    type Item = Opt<'a>;

    #[inline]
    fn next(&mut self) -> Option<Opt<'a>> {
        match step(self.rest, self.previous) {
            Ok(OptionStep::Option(opt, rest)) => {
                self.rest = rest;
                self.previous = opt.number;
                Some(opt)
            }
            _ => None,
        }
    }
}

impl core::iter::FusedIterator for OptionIter<'_> {}

impl fmt::Debug for OptionIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

/// Encodes `value` in the fewest bytes, none for 0 (RFC 7252 section 3.2: "A sender SHOULD
/// represent the integer with as few bytes as possible, i.e., without leading zero bytes").
#[inline]
#[must_use]
pub fn encode_uint(value: u32, buf: &mut [u8; 4]) -> &[u8] {
    *buf = value.to_be_bytes();
    let leading = value.leading_zeros() as usize / 8;
    buf.get(leading..).unwrap_or_default()
}
