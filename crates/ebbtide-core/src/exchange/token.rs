//! Tokens and marks, which match an answer to its request and to one of its transmissions.

use crate::cc::Marking;
use crate::wire::{MAX_TOKEN_LEN, Token};
use rand_core::Rng;

/// The maximum number of transmissions that marks can distinguish; 255 in Rexmit-Cnt has a meaning
/// of its own.
pub(crate) const MAX_MARK: u8 = 254;

/// A random token of `len` bytes, preceded by a zero byte for the ordinal if tokens are marked
/// (RFC 7252 section 5.3.1: at least 32 bits of randomness where an attacker may guess).
pub(crate) fn random_token(len: u8, marking: Marking, rng: &mut dyn Rng) -> Token {
    let mark = usize::from(marking == Marking::Token);
    // A copy's token is longer by the mark.
    let room = MAX_TOKEN_LEN - usize::from(marking == Marking::CopyToken);
    let len = (usize::from(len) + mark).min(room);
    let mut bytes = [0; MAX_TOKEN_LEN];
    if let Some(random) = bytes.get_mut(mark..len).filter(|random| !random.is_empty()) {
        rng.fill_bytes(random);
    }
    bytes.get(..len).and_then(Token::new).unwrap_or_default()
}

/// The original's token, and the ordinal in this one.
pub(crate) fn unmark(token: Token) -> Option<(Token, u8)> {
    Some((token.with_first(0)?, *token.as_slice().first()?))
}

/// The original's token, and the ordinal in front of it in this one.
pub(crate) fn strip_mark(token: Token) -> Option<(Token, u8)> {
    let (&ordinal, original) = token.as_slice().split_first()?;
    Some((Token::new(original)?, ordinal))
}

/// The ordinal in a token, if it is the token of one of the transmissions of a request.
#[inline]
pub(crate) fn ordinal_in(
    token: Token,
    original: Token,
    marking: Marking,
    transmissions: u8,
) -> Option<u8> {
    let (named, ordinal) = match marking {
        Marking::Token => unmark(token)?,
        Marking::CopyToken if token != original => {
            strip_mark(token).filter(|&(_, ordinal)| ordinal > 0)?
        }
        Marking::None | Marking::Option | Marking::CopyToken => (token, 0),
    };
    (named == original && ordinal < transmissions.max(1)).then_some(ordinal)
}
