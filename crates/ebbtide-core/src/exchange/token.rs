//! Tokens and marks, which match an answer to its request and to one of its transmissions.

use crate::cc::Marking;
use crate::wire::{HEADER_LEN, MAX_TOKEN_LEN, OptionNumber, Token, encode_option};
use alloc::vec::Vec;
use rand_core::Rng;

/// The maximum number of transmissions that marks can distinguish; 255 in Rexmit-Cnt has a meaning
/// of its own.
pub(crate) const MAX_MARK: u8 = 254;

/// The value of Rexmit-Cnt in the first request to an unknown peer (fasor-02).
pub(crate) const COUNT_PROBE: u8 = 255;

/// A random token of `len` bytes, preceded by a zero byte for the ordinal if tokens are marked
/// (RFC 7252 section 5.3.1: at least 32 bits of randomness where an attacker may guess).
pub(crate) fn random_token(len: u8, marking: Marking, rng: &mut dyn Rng) -> Token {
    let mark = usize::from(marking == Marking::Token);
    // A copy's token is longer by the mark.
    let room = MAX_TOKEN_LEN - usize::from(marking == Marking::CopyToken);
    let len = (usize::from(len) + mark).min(room);
    let mut bytes = [0; MAX_TOKEN_LEN];
    if len > mark {
        // A client spends a thirtieth of its instructions on `fill_bytes`, which draws the same words.
        let random = match len - mark {
            ..=4 => rng.next_u32().into(),
            _ => rng.next_u64(),
        };
        bytes[mark..len].copy_from_slice(&random.to_le_bytes()[..len - mark]);
    }
    Token::new(&bytes[..len]).unwrap_or_default()
}

/// The original's token, and the ordinal in this one.
pub(crate) fn unmark(token: Token) -> Option<(Token, u8)> {
    let mut bytes = [0; MAX_TOKEN_LEN];
    let slice = token.as_slice();
    bytes[..slice.len()].copy_from_slice(slice);
    let ordinal = *slice.first()?;
    bytes[0] = 0;
    Some((Token::new(&bytes[..slice.len()])?, ordinal))
}

/// The original's token, and the ordinal in front of it in this one.
pub(crate) fn strip_mark(token: Token) -> Option<(Token, u8)> {
    let (&ordinal, original) = token.as_slice().split_first()?;
    Some((Token::new(original)?, ordinal))
}

/// Appends `message` to `out` with `mark` in front of its token, which must be shorter than the
/// maximum.
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

/// Where the options of an encoded message end.
#[derive(Copy, Clone)]
pub(crate) struct OptionsEnd {
    pub(crate) offset: usize,
    /// The number of the last one, to which the delta of the next one is added (RFC 7252 section 3.1).
    pub(crate) last_option: OptionNumber,
}

/// Appends `message` to `out` with the option Rexmit-Cnt, which has this number, of value `count`
/// as its last option, at `end`. Appends it unchanged if it has an option
/// with a higher number, since that option would have to be re-encoded.
pub(crate) fn with_count_option(
    message: &[u8],
    end: OptionsEnd,
    number: OptionNumber,
    count: u8,
    out: &mut Vec<u8>,
) -> bool {
    let mut option = [0; 8];
    // RFC 7252 section 3.2: zero is the empty value.
    let value = if count == 0 { &[][..] } else { core::slice::from_ref(&count) };
    let encoded = encode_option(&mut option, end.last_option, number, value);
    match (encoded, message.get(..end.offset), message.get(end.offset..)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    #[test]
    fn tokens_are_the_bytes_that_the_generator_fills_in() {
        let (mut drawn, mut filled) =
            (ChaCha8Rng::seed_from_u64(7252), ChaCha8Rng::seed_from_u64(7252));
        for round in 0..1000u32 {
            let len = (round * 5 % 9) as u8;
            let mut bytes = [0; MAX_TOKEN_LEN];
            filled.fill_bytes(&mut bytes[..usize::from(len)]);
            let token = random_token(len, Marking::None, &mut drawn);
            assert_eq!(token.as_slice(), &bytes[..usize::from(len)]);
        }
    }
}
