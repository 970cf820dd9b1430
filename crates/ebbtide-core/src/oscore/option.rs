//! The value of the OSCORE option (RFC 8613 section 6.1).

use super::numbers::MAX_SEQUENCE_NUMBER;
use super::short::{MAX_CONTEXT_ID, MAX_PEER_ID, ShortBytes};

/// The maximum length of a Partial IV in bytes.
pub(super) const MAX_PARTIAL_IV: usize = 5;
/// The longest value that is sent: flags, Partial IV, the length of the ID Context and it, the sender's ID.
const MAX: usize = 1 + MAX_PARTIAL_IV + 1 + MAX_CONTEXT_ID + MAX_PEER_ID;

const KID: u8 = 0x08;
const KID_CONTEXT: u8 = 0x10;
/// The low three bits: the length of the Partial IV.
const PARTIAL_IV: u8 = 0x07;

/// The contents of an OSCORE option.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct OscoreOption<'a> {
    /// The sequence number of the sender, if it is sent.
    pub partial_iv: Option<u64>,
    /// The ID Context, if it is sent.
    pub kid_context: Option<&'a [u8]>,
    /// The sender's ID, if it is sent.
    pub kid: Option<&'a [u8]>,
}

impl<'a> OscoreOption<'a> {
    /// Decodes a value. `None` if it is malformed: a reserved flag or length, bytes that are
    /// missing or left over, zeros in front of a Partial IV, or flags without a meaning where the
    /// value is to be empty.
    #[must_use]
    pub fn decode(value: &'a [u8]) -> Option<Self> {
        let Some((&flags, rest)) = value.split_first() else { return Some(Self::default()) };
        if flags == 0 || flags & !(KID | KID_CONTEXT | PARTIAL_IV) != 0 {
            return None;
        }
        let (partial_iv, rest) = rest.split_at_checked(usize::from(flags & PARTIAL_IV))?;
        let partial_iv = match partial_iv {
            [] => None,
            [0, _, ..] => return None,
            digits if digits.len() > MAX_PARTIAL_IV => return None,
            digits => Some(digits.iter().fold(0, |number, digit| number << 8 | u64::from(*digit))),
        };
        let (kid_context, rest) = if flags & KID_CONTEXT == 0 {
            (None, rest)
        } else {
            let (&len, rest) = rest.split_first()?;
            let (kid_context, rest) = rest.split_at_checked(len.into())?;
            (Some(kid_context), rest)
        };
        let kid = (flags & KID != 0).then_some(rest);
        if kid.is_none() && !rest.is_empty() {
            return None;
        }
        Some(Self { partial_iv, kid_context, kid })
    }

    /// Encodes the value. The number must be at most [`MAX_SEQUENCE_NUMBER`], and the identifiers
    /// within their bounds; what is longer is left out.
    #[must_use]
    pub fn encode(&self) -> OscoreValue {
        let mut value = OscoreValue::EMPTY;
        let partial_iv = self.partial_iv.map(partial_iv_of);
        let partial_iv = partial_iv.as_ref().map_or(&[][..], PartialIv::as_slice);
        let kid_context = self.kid_context.filter(|id| id.len() <= MAX_CONTEXT_ID);
        let kid = self.kid.filter(|id| id.len() <= MAX_PEER_ID);
        let flags = partial_iv.len() as u8
            | if kid_context.is_some() { KID_CONTEXT } else { 0 }
            | if kid.is_some() { KID } else { 0 };
        if flags == 0 {
            return value;
        }
        value.push(&[flags]);
        value.push(partial_iv);
        if let Some(kid_context) = kid_context {
            value.push(&[kid_context.len() as u8]);
            value.push(kid_context);
        }
        value.push(kid.unwrap_or_default());
        value
    }
}

/// A Partial IV.
pub(super) type PartialIv = ShortBytes<MAX_PARTIAL_IV>;

/// The Partial IV of a number, without leading zeros; that of 0 is one byte (RFC 8613 section 5).
pub(super) fn partial_iv_of(number: u64) -> PartialIv {
    debug_assert!(number <= MAX_SEQUENCE_NUMBER, "a Partial IV has five bytes");
    let len = (8 - number.leading_zeros() / 8).clamp(1, MAX_PARTIAL_IV as u32);
    let [digits @ .., _, _, _] = (number << (64 - 8 * len)).to_be_bytes();
    PartialIv::from_padded(digits, len as u8)
}

/// The bytes of an OSCORE option's value.
#[derive(Copy, Clone, Debug)]
pub struct OscoreValue {
    bytes: [u8; MAX],
    len: u8,
}

impl OscoreValue {
    const EMPTY: Self = Self { bytes: [0; MAX], len: 0 };

    fn push(&mut self, bytes: &[u8]) {
        let at = usize::from(self.len);
        if let Some(room) = self.bytes.get_mut(at..at + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len() as u8;
        }
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len.into()).unwrap_or_default()
    }
}
