//! The part of a message that is the same on every transport: token, options, payload.

use super::error::FormatError;
use super::number::OptionNumber;
use super::option::{Opt, OptionIter, OptionStep, step};
use super::token::Token;

/// A token, options and a payload that have been validated.
///
/// RFC 8323 section 3 puts another header in front of them and leaves the rest as it is over UDP;
/// hence this separate type.
#[derive(Copy, Clone, Debug)]
pub struct Body<'a> {
    token: &'a [u8],
    options: &'a [u8],
    payload: &'a [u8],
    /// The numbers of the options.
    numbers: OptionSet,
}

/// A set of option numbers: a bit for each below 64; those from 64 on share bit 0, whose number is
/// reserved. It says at once that a message has no such option, which is what most lookups find.
#[derive(Copy, Clone, Debug)]
pub(crate) struct OptionSet(u64);

impl OptionSet {
    const EMPTY: Self = Self(0);
    /// The critical ones: their numbers are odd (RFC 7252 section 5.4.6). Those from 64 on may be.
    const CRITICAL: Self = Self(0xaaaa_aaaa_aaaa_aaab);

    /// These numbers.
    pub(crate) const fn of(numbers: &[OptionNumber]) -> Self {
        let (mut set, mut rest) = (Self::EMPTY, numbers);
        while let [number, others @ ..] = rest {
            set = set.with(*number);
            rest = others;
        }
        set
    }

    #[inline]
    const fn with(self, number: OptionNumber) -> Self {
        let bit = if number.0 < 64 { number.0 } else { 0 };
        Self(self.0 | 1 << bit)
    }
}

impl<'a> Body<'a> {
    /// A body without token, options and payload.
    pub const EMPTY: Self =
        Self { token: &[], options: &[], payload: &[], numbers: OptionSet::EMPTY };

    /// Validates `bytes`: a token of `token_len` bytes, then options, then an optional payload to
    /// the end.
    ///
    /// # Errors
    ///
    /// Returns the first error, counted from the left.
    pub fn parse(token_len: usize, bytes: &'a [u8]) -> Result<Self, FormatError> {
        let (token, after_token) =
            bytes.split_at_checked(token_len).ok_or(FormatError::TokenTruncated)?;

        let mut rest = after_token;
        let mut previous = OptionNumber(0);
        let mut numbers = OptionSet::EMPTY;
        let payload = loop {
            match step(rest, previous)? {
                OptionStep::Option(opt, after) => {
                    previous = opt.number;
                    numbers = numbers.with(opt.number);
                    rest = after;
                }
                OptionStep::Payload([]) => return Err(FormatError::PayloadMarkerWithoutPayload),
                OptionStep::Payload(payload) => break payload,
                OptionStep::End => break &[],
            }
        };
        // `rest` begins with the payload marker or is empty.
        let options_len = after_token.len() - rest.len();
        let options = after_token.get(..options_len).unwrap_or_default();
        Ok(Self { token, options, payload, numbers })
    }

    /// The token; `None` if it has more than eight bytes (RFC 8974), as no request of an endpoint of this
    /// crate has.
    #[inline]
    #[must_use]
    pub fn token(&self) -> Option<Token> {
        Token::new(self.token)
    }

    /// The bytes of the token, however many.
    #[inline]
    #[must_use]
    pub const fn token_bytes(&self) -> &'a [u8] {
        self.token
    }

    /// Every option in the order of the message, including options that are to be ignored.
    #[inline]
    #[must_use]
    pub const fn options(&self) -> OptionIter<'a> {
        OptionIter::new(self.options)
    }

    /// The first option with this number, if the message has one whose length is allowed. An
    /// option of a wrong length counts as unrecognized, and so does a repeated option that must
    /// not be repeated (RFC 7252 sections 5.4.3 and 5.4.5).
    #[inline]
    #[must_use]
    pub fn option(&self, number: OptionNumber) -> Option<Opt<'a>> {
        if self.has_none_of(OptionSet::of(&[number])) { None } else { self.find(number) }
    }

    fn find(&self, number: OptionNumber) -> Option<Opt<'a>> {
        let rest = self.options().skip_while(|opt| opt.number < number);
        for opt in rest.take_while(|opt| opt.number == number) {
            if opt.is_well_formed() {
                return Some(opt);
            }
            if !number.is_repeatable() {
                return None;
            }
        }
        None
    }

    /// Whether the message is a request to a proxy (RFC 7252 section 5.10.2).
    #[inline]
    pub(crate) const fn is_for_proxy(&self) -> bool {
        const ASKS: OptionSet =
            OptionSet::of(&[OptionNumber::PROXY_URI, OptionNumber::PROXY_SCHEME]);
        !self.has_none_of(ASKS)
    }

    /// Whether the message has no option with a number of this set. Where it has options from number 64
    /// on, it does not tell these apart.
    #[inline]
    pub(crate) const fn has_none_of(&self, set: OptionSet) -> bool {
        self.numbers.0 & set.0 == 0
    }

    /// The bytes after the payload marker; empty if there is none.
    #[inline]
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The values of Uri-Path, one per segment (RFC 7252 section 5.10.1).
    #[inline]
    #[must_use]
    pub const fn path(&self) -> Path<'a> {
        Path { options: self.options() }
    }

    /// The first critical option that must be treated as unrecognized; see
    /// [`Message::first_unknown_critical`](super::Message::first_unknown_critical).
    #[inline]
    #[must_use]
    pub fn first_unknown_critical(&self) -> Option<OptionNumber> {
        self.first_critical_unless(OptionNumber::is_known)
    }

    /// The first critical option that must be treated as unrecognized by a receiver that
    /// understands the options for which `is_known` holds.
    #[inline]
    #[must_use]
    pub fn first_critical_unless(
        &self,
        is_known: impl Fn(OptionNumber) -> bool,
    ) -> Option<OptionNumber> {
        if self.has_none_of(OptionSet::CRITICAL) {
            return None;
        }
        // No option has number 0 (RFC 7252 section 12.2); if there were one, it would be elective.
        let mut previous = OptionNumber(0);
        self.options()
            .map(|opt| {
                let repeated = opt.number == previous;
                previous = opt.number;
                (opt, repeated)
            })
            .find(|(opt, repeated)| {
                opt.number.is_critical()
                    && (!is_known(opt.number)
                        || !opt.is_well_formed()
                        || (*repeated && !opt.number.is_repeatable()))
            })
            .map(|(opt, _)| opt.number)
    }
}

/// The segments of a message's path, each the bytes of one Uri-Path option.
#[derive(Clone, Debug)]
pub struct Path<'a> {
    options: OptionIter<'a>,
}

impl<'a> Iterator for Path<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.options.find(|opt| opt.number == OptionNumber::URI_PATH).map(|opt| opt.value)
    }
}

/// Reads the length of a token. `nibble` is the field TKL of the header, and `rest` begins where the
/// length is extended. Returns it with the number of bytes that extend it; `None` if they are not all
/// there (RFC 8974 section 2.1).
#[inline]
pub(super) const fn read_token_len(
    nibble: u8,
    rest: &[u8],
) -> Result<Option<(usize, usize)>, FormatError> {
    match (nibble, rest) {
        (0..=12, _) => Ok(Some((nibble as usize, 0))),
        (13, &[a, ..]) => Ok(Some((a as usize + 13, 1))),
        (14, &[a, b, ..]) => Ok(Some((u16::from_be_bytes([a, b]) as usize + 269, 2))),
        (13 | 14, _) => Ok(None),
        // "This value MUST NOT be sent and MUST be processed as a message-format error."
        _ => Err(FormatError::TokenLength15),
    }
}
