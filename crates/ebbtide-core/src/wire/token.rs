//! Tokens, which match a response to its request (RFC 7252 section 5.3.1, RFC 8974 section 2).

use super::length::extension_len;
use core::{fmt, hash};

/// The longest token of RFC 7252 (section 3).
pub const MAX_TOKEN_LEN: usize = 8;

/// The longest token of RFC 8974, to which the length of tokens has been extended (section 2.1).
pub const MAX_EXTENDED_TOKEN_LEN: usize = 65_804;

/// The number of bytes that a token of `len` bytes takes in a message, with those that extend its length.
#[inline]
#[must_use]
pub const fn encoded_token_len(len: usize) -> usize {
    extension_len(len) + len
}

/// The bytes of a token as two hexadecimal digits each.
pub(super) struct TokenDigits<'t>(pub(super) &'t [u8]);

impl fmt::Display for TokenDigits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Zero to eight bytes that the client chooses and the server echoes. Ebbtide's own requests have no
/// longer ones.
///
/// Two tokens are equal if their lengths and bytes are equal: `[0]` is not `[0, 0]`.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
pub struct Token {
    len: u8,
    /// Zero from `len` on, so that equality of the whole is equality of the token.
    bytes: [u8; MAX_TOKEN_LEN],
}

impl Token {
    /// The token of no bytes.
    pub const EMPTY: Self = Self { len: 0, bytes: [0; MAX_TOKEN_LEN] };

    /// Creates a token from these bytes; `None` if there are more than [`MAX_TOKEN_LEN`].
    #[inline]
    #[must_use]
    pub fn new(token: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_TOKEN_LEN];
        bytes.get_mut(..token.len())?.copy_from_slice(token);
        // At most 8 by the line above.
        Some(Self { len: token.len() as u8, bytes })
    }

    /// The same token with another first byte; `None` if it has none.
    #[inline]
    pub(crate) fn with_first(mut self, byte: u8) -> Option<Self> {
        self.bytes[0] = byte;
        (!self.is_empty()).then_some(self)
    }

    /// The token's bytes.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len()).unwrap_or_default()
    }

    /// The length in bytes, 0 to 8.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether this is [`Token::EMPTY`].
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl AsRef<[u8]> for Token {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl hash::Hash for Token {
    /// One word and the length: hashing costs the same for any token.
    #[inline]
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from_le_bytes(self.bytes));
        state.write_u8(self.len);
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({self})")
    }
}

impl fmt::Display for Token {
    /// Two hexadecimal digits per byte, nothing for the empty token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TokenDigits(self.as_slice()).fmt(f)
    }
}
