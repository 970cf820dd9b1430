//! `application/missing-blocks+cbor-seq`: the blocks of a body that did not arrive (RFC 9177
//! section 5).

use super::block::Block;
use core::{error, fmt};

/// The numbers of the blocks that a server is missing: the payload of 4.08 Request Entity
/// Incomplete with the Content-Format [`Self::CONTENT_FORMAT`], a CBOR sequence of unsigned
/// integers (RFC 9177 section 5, RFC 8742). There is at least one number, and the numbers ascend,
/// so there are no duplicates.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MissingBlocks<'a> {
    /// Validated.
    payload: &'a [u8],
}

/// The reason why a payload is not a valid list of missing blocks. A client drops such a response
/// (RFC 9177 section 5).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MissingError {
    /// There is no number.
    Empty,
    /// An item that is not an unsigned integer, or is not well-formed (RFC 8949 section 3).
    NotUnsigned,
    /// The payload ends within a number.
    Truncated,
    /// A number above [`Block::MAX_NUM`].
    TooLarge,
    /// A number that is not above the one before it.
    Order,
}

impl<'a> MissingBlocks<'a> {
    /// The Content-Format number of the media type (RFC 9177 section 12.3).
    pub const CONTENT_FORMAT: u16 = 272;
    /// The maximum number of bytes of one encoded number.
    pub const MAX_NUMBER_LEN: usize = 5;

    /// Validates a payload. Its length is bounded by that of a datagram, which bounds the number
    /// of items.
    ///
    /// # Errors
    ///
    /// See [`MissingError`].
    pub fn parse(payload: &'a [u8]) -> Result<Self, MissingError> {
        let (mut rest, mut least) = (payload, 0);
        if rest.is_empty() {
            return Err(MissingError::Empty);
        }
        while !rest.is_empty() {
            let (number, after) = unsigned(rest)?;
            if number > u64::from(Block::MAX_NUM) {
                return Err(MissingError::TooLarge);
            }
            if number < least {
                return Err(MissingError::Order);
            }
            (rest, least) = (after, number + 1);
        }
        Ok(Self { payload })
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + 'a {
        let mut rest = self.payload;
        core::iter::from_fn(move || {
            let (number, after) = unsigned(rest).ok()?;
            rest = after;
            // At most `Block::MAX_NUM`.
            Some(number as u32)
        })
    }

    /// Writes as many of `numbers`, which must ascend, to the start of `buf` as fit; the others
    /// can be requested another time (RFC 9177 section 5). Returns the number of bytes written.
    pub fn encode(numbers: impl IntoIterator<Item = u32>, buf: &mut [u8]) -> usize {
        let mut len = 0;
        for number in numbers {
            let (item, size) = shortest(number);
            let (Some(room), Some(item)) = (buf.get_mut(len..len + size), item.get(..size)) else {
                break;
            };
            room.copy_from_slice(item);
            len += size;
        }
        len
    }
}

/// A number in CBOR's preferred serialisation (RFC 8949 section 4.1), and its length.
fn shortest(number: u32) -> ([u8; MissingBlocks::MAX_NUMBER_LEN], usize) {
    let [a, b, c, d] = number.to_be_bytes();
    match number {
        0..=23 => ([d, 0, 0, 0, 0], 1),
        24..=0xff => ([24, d, 0, 0, 0], 2),
        0x100..=0xffff => ([25, c, d, 0, 0], 3),
        _ => ([26, a, b, c, d], 5),
    }
}

/// The first item of a sequence, which must be of major type 0 (RFC 8949 section 3.1), and the
/// bytes after it. Longer forms than the shortest are well-formed, too.
fn unsigned(bytes: &[u8]) -> Result<(u64, &[u8]), MissingError> {
    let (&first, rest) = bytes.split_first().ok_or(MissingError::Truncated)?;
    let len = match first {
        0..=23 => return Ok((u64::from(first), rest)),
        24..=27 => 1 << (first - 24),
        _ => return Err(MissingError::NotUnsigned),
    };
    let (argument, rest) = rest.split_at_checked(len).ok_or(MissingError::Truncated)?;
    let number = argument.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    Ok((number, rest))
}

impl fmt::Display for MissingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "no block number",
            Self::NotUnsigned => "an item that is not an unsigned integer",
            Self::Truncated => "the payload ends within a block number",
            Self::TooLarge => "a block number above 2^20-1",
            Self::Order => "block numbers that do not ascend",
        })
    }
}

impl error::Error for MissingError {}
