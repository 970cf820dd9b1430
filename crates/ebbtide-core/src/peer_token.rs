//! Tokens of peers' requests, which may be longer than ours (RFC 8974).

use crate::shared::Shared;
use crate::wire::{Token, encoded_token_len};
use alloc::boxed::Box;
use core::fmt;

/// The token of a peer's request, which every answer to it repeats: one of up to eight bytes, or an extended
/// one (RFC 8974). Clones share the bytes of an extended token.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PeerToken(Form);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    Short(Token),
    /// More than eight bytes. Boxed twice, so that the short form is not larger.
    Extended(Shared<Box<[u8]>>),
}

const _: () = assert!(size_of::<PeerToken>() <= 16);

impl PeerToken {
    /// A token of these bytes.
    #[inline]
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let extended = || Form::Extended(Shared::new(bytes.into()));
        Self(Token::new(bytes).map_or_else(extended, Form::Short))
    }

    /// The token's bytes.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Form::Short(token) => token.as_slice(),
            Form::Extended(bytes) => bytes,
        }
    }

    /// The number of bytes that it takes in a message, with those that extend its length.
    #[inline]
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        match &self.0 {
            // Nothing extends so short a length.
            Form::Short(token) => token.len(),
            Form::Extended(bytes) => encoded_token_len(bytes.len()),
        }
    }
}

impl From<Token> for PeerToken {
    #[inline]
    fn from(token: Token) -> Self {
        Self(Form::Short(token))
    }
}

impl AsRef<[u8]> for PeerToken {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Debug for PeerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PeerToken({self})")
    }
}

impl fmt::Display for PeerToken {
    /// Two hexadecimal digits per byte, nothing for the empty token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
