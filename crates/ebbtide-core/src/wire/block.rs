//! The value of Block1 and Block2 (RFC 7959 section 2.2).

use core::{error, fmt};

use super::option::Opt;

/// A block of a body: its number, whether more blocks follow, and its size.
///
/// A size exponent of 7 is reserved over UDP (RFC 7959 section 2.2) and refused, except by the
/// constructors for reliable transports. There it means BERT: a block is any number of units of
/// 1024 bytes and is numbered in these units (RFC 8323 section 6).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Block {
    num: u32,
    more: bool,
    szx: u8,
}

/// The reason why a block option is not valid. A request with such an option is answered with 4.00
/// Bad Request (RFC 7959 section 2.2).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BlockError {
    /// More than three bytes, or a block number of more than 20 bits.
    TooLarge,
    /// A size exponent of 7, except over reliable transports, or more.
    Szx(u8),
}

impl Block {
    /// The largest block number: 20 bits.
    pub const MAX_NUM: u32 = 0xf_ffff;
    /// The largest size exponent: blocks of 1024 bytes.
    pub const MAX_SZX: u8 = 6;
    /// The size exponent that means BERT (RFC 8323 section 6).
    pub const BERT_SZX: u8 = 7;

    /// Block `num` of blocks of `2^(szx + 4)` bytes, with `more` after it or not.
    ///
    /// # Errors
    ///
    /// Returns an error if `num` is above [`Self::MAX_NUM`] or `szx` above [`Self::MAX_SZX`].
    #[inline]
    pub const fn new(num: u32, more: bool, szx: u8) -> Result<Self, BlockError> {
        if num > Self::MAX_NUM {
            return Err(BlockError::TooLarge);
        }
        if szx > Self::MAX_SZX {
            return Err(BlockError::Szx(szx));
        }
        Ok(Self { num, more, szx })
    }

    /// A BERT block that begins at unit `num` of 1024 bytes (RFC 8323 section 6).
    ///
    /// # Errors
    ///
    /// Returns an error if `num` is above [`Self::MAX_NUM`].
    #[inline]
    pub const fn bert(num: u32, more: bool) -> Result<Self, BlockError> {
        if num > Self::MAX_NUM {
            return Err(BlockError::TooLarge);
        }
        Ok(Self { num, more, szx: Self::BERT_SZX })
    }

    /// Reads an option's value on a reliable transport, where the block may be a BERT block.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is too large.
    #[inline]
    pub const fn from_reliable(opt: &Opt<'_>) -> Result<Self, BlockError> {
        match opt.as_uint() {
            Some(value) if opt.value.len() <= 3 && value & 0b111 == Self::BERT_SZX as u32 => {
                Self::bert(value >> 4, value & 0b1000 != 0)
            }
            _ => Self::from_option(opt),
        }
    }

    /// Reads the option's value as an integer: number, one bit for more, three for the size.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    #[inline]
    pub const fn from_uint(value: u32) -> Result<Self, BlockError> {
        Self::new(value >> 4, value & 0b1000 != 0, (value & 0b111) as u8)
    }

    /// Reads an option's value.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    #[inline]
    pub const fn from_option(opt: &Opt<'_>) -> Result<Self, BlockError> {
        match opt.as_uint() {
            Some(value) if opt.value.len() <= 3 => Self::from_uint(value),
            _ => Err(BlockError::TooLarge),
        }
    }

    /// The option's value, for [`Encoder::uint_option`](super::Encoder::uint_option).
    #[inline]
    #[must_use]
    pub const fn to_uint(self) -> u32 {
        (self.num << 4) | ((self.more as u32) << 3) | self.szx as u32
    }

    /// The block's number, counted from 0 in blocks of this size.
    #[inline]
    #[must_use]
    pub const fn num(self) -> u32 {
        self.num
    }

    /// Whether more blocks follow.
    #[inline]
    #[must_use]
    pub const fn more(self) -> bool {
        self.more
    }

    /// The size exponent of the longest blocks of at most `bytes` bytes, 0 for those of 16 bytes (RFC 7959
    /// section 2.2).
    #[inline]
    #[must_use]
    pub const fn szx_of(bytes: usize) -> u8 {
        let bytes = if bytes < 16 { 16 } else { bytes };
        let szx = bytes.ilog2() - 4;
        if szx > Self::MAX_SZX as u32 { Self::MAX_SZX } else { szx as u8 }
    }

    /// The size exponent, 0 to 6; 7 for BERT.
    #[inline]
    #[must_use]
    pub const fn szx(self) -> u8 {
        self.szx
    }

    /// Whether this is BERT.
    #[inline]
    #[must_use]
    pub const fn is_bert(self) -> bool {
        self.szx == Self::BERT_SZX
    }

    /// The block size in bytes, 16 to 1024; for BERT, the size of a unit.
    #[inline]
    #[must_use]
    pub const fn size(self) -> usize {
        16 << self.unit_szx()
    }

    /// Whether a payload of `len` bytes is a complete block of this size with more blocks after
    /// it: exactly one block or, for BERT, one or more units (RFC 8323 section 6).
    #[inline]
    #[must_use]
    pub const fn is_full(self, len: usize) -> bool {
        if self.is_bert() { len > 0 && len.is_multiple_of(self.size()) } else { len == self.size() }
    }

    /// The size exponent of the unit in which blocks are numbered.
    const fn unit_szx(self) -> u8 {
        if self.is_bert() { Self::MAX_SZX } else { self.szx }
    }

    /// The offset of the block in the body; at most 2^30 - 2^10.
    #[inline]
    #[must_use]
    pub const fn offset(self) -> u32 {
        self.num << (self.unit_szx() + 4)
    }
}

impl fmt::Display for Block {
    /// RFC 7959's notation: number, more, size, as in `3/1/64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = u8::from(self.more);
        match self.is_bert() {
            true => write!(f, "{}/{more}/BERT", self.num),
            false => write!(f, "{}/{more}/{}", self.num, self.size()),
        }
    }
}

impl fmt::Display for BlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => {
                f.write_str("block option longer than 3 bytes or number above 2^20-1")
            }
            Self::Szx(szx) => write!(f, "block size exponent {szx}, at most 6 allowed"),
        }
    }
}

impl error::Error for BlockError {}
