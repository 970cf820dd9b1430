//! Identifiers of a few bytes, without an allocation.

use core::fmt;

/// The maximum length of a Sender or Recipient ID in bytes: that of AES-CCM's nonce less six (RFC 8613 section 3.3).
pub const MAX_PEER_ID: usize = 7;

/// The maximum length of an ID Context in bytes. RFC 8613 has no limit; those in use have 8 to 16 bytes.
pub const MAX_CONTEXT_ID: usize = 32;

/// A Sender or Recipient ID: the `kid` of messages.
pub type PeerId = ShortBytes<MAX_PEER_ID>;

/// An ID Context: the `kid context` of messages.
pub type ContextId = ShortBytes<MAX_CONTEXT_ID>;

/// At most `N` bytes.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShortBytes<const N: usize> {
    /// Zero from `len` on, so that equality of the whole is equality of the bytes.
    bytes: [u8; N],
    len: u8,
}

impl<const N: usize> ShortBytes<N> {
    /// Copies these bytes; `None` if there are more than `N`.
    #[must_use]
    pub fn new(from: &[u8]) -> Option<Self> {
        let mut bytes = [0; N];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(Self { bytes, len: u8::try_from(from.len()).ok()? })
    }

    /// The first `len` of these bytes, which are followed by zeros.
    pub(super) const fn from_padded(bytes: [u8; N], len: u8) -> Self {
        Self { bytes, len }
    }

    /// The bytes, and zeros behind them.
    pub(super) const fn padded(&self) -> &[u8; N] {
        &self.bytes
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl<const N: usize> fmt::Debug for ShortBytes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl<const N: usize> fmt::Display for ShortBytes<N> {
    /// Two hexadecimal digits per byte.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
