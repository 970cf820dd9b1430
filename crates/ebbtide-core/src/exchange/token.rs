//! Tokens and marks: what matches an answer to its request, and to its transmission.

use crate::cc::Marking;
use crate::wire::{HEADER_LEN, MAX_TOKEN_LEN, OptionNumber, Token, encode_option};
use alloc::vec::Vec;
use rand_core::Rng;

/// The most transmissions a mark can tell apart: 255 in Rexmit-Cnt has a meaning of its own.
pub(crate) const MAX_MARK: u8 = 254;

/// What the first request to an unknown peer carries in Rexmit-Cnt (fasor-02).
pub(crate) const COUNT_PROBE: u8 = 255;

/// A random token of `len` bytes, behind a zero byte for the ordinal if tokens are marked (RFC 7252
/// section 5.3.1: at least 32 bits of randomness where an attacker may guess).
pub(crate) fn random_token(len: u8, marking: Marking, rng: &mut dyn Rng) -> Token {
    let mark = usize::from(marking == Marking::Token);
    // A copy's token is longer by the mark.
    let room = MAX_TOKEN_LEN - usize::from(marking == Marking::CopyToken);
    let len = (usize::from(len) + mark).min(room);
    let mut bytes = [0; MAX_TOKEN_LEN];
    if len > mark {
        rng.fill_bytes(&mut bytes[mark..len]);
    }
    Token::new(&bytes[..len]).unwrap_or_default()
}

/// The token that the original carried, and the ordinal that this one names.
pub(crate) fn unmark(token: Token) -> Option<(Token, u8)> {
    let mut bytes = [0; MAX_TOKEN_LEN];
    let slice = token.as_slice();
    bytes[..slice.len()].copy_from_slice(slice);
    let ordinal = *slice.first()?;
    bytes[0] = 0;
    Some((Token::new(&bytes[..slice.len()])?, ordinal))
}

/// The token that the original carried, and the ordinal that stands before it in this one.
pub(crate) fn strip_mark(token: Token) -> Option<(Token, u8)> {
    let (&ordinal, original) = token.as_slice().split_first()?;
    Some((Token::new(original)?, ordinal))
}

/// Appends `message`, whose token is not the longest one, to `out` with `mark` before the token.
pub(crate) fn with_marked_token(message: &[u8], mark: u8, out: &mut Vec<u8>) {
    let (header, rest) = message.split_at(HEADER_LEN.min(message.len()));
    let start = out.len();
    out.extend_from_slice(header);
    // The length of the token is the low half of the first byte (RFC 7252 section 3).
    if let Some(first) = out.get_mut(start) {
        *first += 1;
    }
    out.push(mark);
    out.extend_from_slice(rest);
}

/// Appends `message` to `out` with the option Rexmit-Cnt of value `count` as its last option;
/// `options_end` and `last_option` say where that goes. Unchanged if an option of a higher number
/// is there already, since it would have to be renumbered.
pub(crate) fn with_count_option(
    message: &[u8],
    (options_end, last_option): (usize, OptionNumber),
    (number, count): (OptionNumber, u8),
    out: &mut Vec<u8>,
) -> bool {
    let mut option = [0; 8];
    // RFC 7252 section 3.2: zero is the empty value.
    let value = if count == 0 { &[][..] } else { core::slice::from_ref(&count) };
    let encoded = encode_option(&mut option, last_option, number, value);
    match (encoded, message.get(..options_end), message.get(options_end..)) {
        (Ok(len), Some(head), Some(tail)) => {
            out.extend_from_slice(head);
            out.extend_from_slice(&option[..len]);
            out.extend_from_slice(tail);
            true
        }
        _ => {
            out.extend_from_slice(message);
            false
        }
    }
}
