//! The fixed four-byte header of every message over UDP (RFC 7252 section 3, figure 7).

use core::fmt;

use super::token::MAX_TOKEN_LEN;

/// The number of bytes before the token: version, type, token length, code, message ID.
pub const HEADER_LEN: usize = 4;

/// The maximum number of bytes before the options: the header and an 8-byte token.
pub const MAX_HEADER: usize = HEADER_LEN + MAX_TOKEN_LEN;

/// The only defined version (RFC 7252 section 3: "Implementations of this specification MUST set
/// this field to 1").
pub(super) const VERSION: u8 = 1;

/// The type of a message, which decides its treatment by the message layer (RFC 7252 section 4).
#[repr(u8)]
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// CON: retransmitted until acknowledged or reset (section 4.2).
    Confirmable = 0,
    /// NON: sent once, never acknowledged (section 4.3).
    NonConfirmable = 1,
    /// ACK: answers a CON, empty or with a piggybacked response (section 4.2).
    Acknowledgement = 2,
    /// RST: the message could not be processed (section 4.2).
    Reset = 3,
}

impl Type {
    /// The type in the two bits after the version.
    #[inline]
    pub(super) const fn from_first_byte(byte: u8) -> Self {
        match (byte >> 4) & 0b11 {
            0 => Self::Confirmable,
            1 => Self::NonConfirmable,
            2 => Self::Acknowledgement,
            _ => Self::Reset,
        }
    }

    /// The header's first byte for this type and this value of the field TKL.
    #[inline]
    pub(super) const fn first_byte(self, token_length: u8) -> u8 {
        (VERSION << 6) | ((self as u8) << 4) | token_length
    }
}

impl fmt::Display for Type {
    /// The RFC's abbreviation: `CON`, `NON`, `ACK`, `RST`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Confirmable => "CON",
            Self::NonConfirmable => "NON",
            Self::Acknowledgement => "ACK",
            Self::Reset => "RST",
        })
    }
}

/// Matches an ACK or RST to its message, and a duplicate to its original (RFC 7252 section 4.4).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MessageId(pub u16);

impl MessageId {
    /// The next message ID; 0 follows 65535.
    #[inline]
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageId({self})")
    }
}

impl fmt::Display for MessageId {
    /// Four hexadecimal digits: `0x7d34`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}
