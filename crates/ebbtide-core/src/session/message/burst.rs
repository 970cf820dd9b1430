//! The mark of a message that belongs to a burst.

use super::options::Options;
use crate::wire::{Message, OptionNumber, encode_uint};
use core::fmt;

/// The position of a message in a burst: the elective option 65052.
///
/// The number is from the range for experiments (RFC 7252 section 12.2). It is elective, so a
/// server that does not know it processes the message as usual; it is safe to forward and not part
/// of the cache key. A query argument would make each message a different resource, and the
/// sequence numbers of Observe belong to the server. The value consists of four bytes that
/// distinguish the bursts of one sender, a byte [`behind`](Self::behind), and the sequence number
/// as an unsigned integer of 0 to 4 bytes (RFC 7252 section 3.2).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BurstMark {
    /// The number of the burst, unique for its sender.
    pub burst: u32,
    /// The distance to the oldest message that was neither acknowledged nor given up when this one
    /// was first sent. No earlier message will arrive.
    pub behind: u8,
    /// The sequence number of the message, from 0.
    pub sequence: u32,
}

impl BurstMark {
    /// The option's number.
    pub const OPTION: OptionNumber = OptionNumber(65052);
    /// The maximum length: four bytes, one, and up to four.
    const LONGEST: usize = 9;

    /// Adds the mark to a message's options.
    pub fn push(self, options: &mut Options) {
        let mut value = [0; Self::LONGEST];
        let mut uint = [0; 4];
        let sequence = encode_uint(self.sequence, &mut uint);
        let parts = self.burst.to_be_bytes().into_iter().chain([self.behind]);
        let length = 5 + sequence.len();
        for (place, byte) in value.iter_mut().zip(parts.chain(sequence.iter().copied())) {
            *place = byte;
        }
        options.push(Self::OPTION, value.get(..length).unwrap_or_default());
    }

    /// The mark of a message; `None` if it has none, or one that is not valid.
    #[must_use]
    pub fn of(message: &Message<'_>) -> Option<Self> {
        let value = message.option(Self::OPTION)?.value;
        let (burst, rest) = value.split_first_chunk::<4>()?;
        let (&behind, sequence) = rest.split_first()?;
        if sequence.len() > 4 {
            return None;
        }
        let sequence = sequence.iter().fold(0, |number, &byte| number << 8 | u32::from(byte));
        let behind = u8::try_from(u32::from(behind).min(sequence)).unwrap_or(u8::MAX);
        Some(Self { burst: u32::from_be_bytes(*burst), behind, sequence })
    }

    /// The oldest message that may still arrive, or arrive again.
    pub fn first_open(self) -> u32 {
        self.sequence.saturating_sub(self.behind.into())
    }
}

impl fmt::Display for BurstMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "message {} of burst {:08x}", self.sequence, self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Code, Content, MessageId, Token, Type};
    use alloc::{vec, vec::Vec};

    /// A message with this value of the option, if there is one.
    fn message(options: &Options) -> Vec<u8> {
        options.with_slice(None, |options| {
            let content = Content { code: Code::POST, options, payload: b"x" };
            let mut bytes = vec![0; 4 + content.encoded_len()];
            content.encode(&mut bytes, Type::Confirmable, MessageId(1), Token::EMPTY).unwrap();
            bytes
        })
    }

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for (burst, behind, sequence) in
            [(0, 0, 0), (1, 1, 1), (u32::MAX, 255, 256), (7, 3, u32::MAX)]
        {
            let mark = BurstMark { burst, behind, sequence };
            let mut options = Options::new();
            mark.push(&mut options);
            let bytes = message(&options);
            assert_eq!(BurstMark::of(&Message::parse(&bytes).unwrap()), Some(mark));
        }
    }

    #[test]
    fn an_invalid_value_is_not_a_mark() {
        for value in [&b""[..], b"1234", b"123456789A"] {
            let mut options = Options::new();
            options.push(BurstMark::OPTION, value);
            let bytes = message(&options);
            assert_eq!(BurstMark::of(&Message::parse(&bytes).unwrap()), None, "{value:?}");
        }
        // The distance cannot exceed the number of earlier messages.
        let mut options = Options::new();
        options.push(BurstMark::OPTION, &[0, 0, 0, 0, 200, 7]);
        let bytes = message(&options);
        let mark = BurstMark::of(&Message::parse(&bytes).unwrap()).unwrap();
        assert_eq!((mark.behind, mark.first_open()), (7, 0));
    }

    #[test]
    fn the_option_is_elective_safe_to_forward_and_no_cache_key() {
        let number = BurstMark::OPTION;
        assert!(!number.is_critical() && number.is_no_cache_key());
        assert_eq!(number.0 & 2, 0);
    }
}
