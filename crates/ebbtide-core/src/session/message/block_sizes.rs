//! How long a body may be in one message, and how long its blocks.

use crate::stream::Connection;
use crate::wire::{Block, BlockError, Opt};

/// Bytes of a message on a connection that are left for header, token and short options.
const OVERHEAD: usize = 128;

/// The sizes of bodies and blocks that fit into one message on a transport.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// Bytes of the longest body that goes without blocks.
    pub whole: usize,
    /// The size exponent of our blocks; 7 is BERT (RFC 8323 section 6).
    pub szx: u8,
    /// Bytes of a block of that size; of BERT as many units as fit.
    pub block: usize,
    /// Whether BERT has a meaning here.
    reliable: bool,
}

impl BlockSizes {
    /// Over UDP: blocks of at most so many bytes.
    #[inline]
    pub fn of_datagrams(block_size: usize) -> Self {
        let szx = Block::szx_of(block_size);
        Self { whole: 16 << szx, szx, block: 16 << szx, reliable: false }
    }

    /// Over a connection, with options of `options` bytes: whole bodies as long as the peer takes
    /// them, then BERT, if it does.
    pub fn of_connection(connection: &Connection, options: usize) -> Self {
        let room = connection.message_limit().saturating_sub(OVERHEAD.max(options + 32));
        if connection.peer().bert() && room >= 1024 {
            let block = room - room % 1024;
            return Self { whole: room, szx: Block::BERT_SZX, block, reliable: true };
        }
        let szx = Block::szx_of(room);
        Self { whole: room.max(16), szx, block: 16 << szx, reliable: true }
    }

    /// Returns these sizes, with blocks no larger than those of the size exponent `szx`.
    #[inline]
    pub fn at_most(mut self, szx: u8) -> Self {
        if szx < self.szx {
            self.szx = szx;
            self.block = 16 << szx;
            self.whole = self.block;
        }
        self
    }

    /// Reads a block option.
    #[inline]
    pub fn read(&self, option: &Opt<'_>) -> Result<Block, BlockError> {
        if self.reliable { Block::from_reliable(option) } else { Block::from_option(option) }
    }

    /// The block of this exponent, ours or smaller, that begins at this byte.
    #[inline]
    pub fn at(&self, offset: usize, more: bool, szx: u8) -> Result<Block, BlockError> {
        let unit = szx.min(Block::MAX_SZX) + 4;
        let num = u32::try_from(offset >> unit).map_err(|_| BlockError::TooLarge)?;
        if szx == Block::BERT_SZX { Block::bert(num, more) } else { Block::new(num, more, szx) }
    }

    /// Bytes of a block of this exponent, ours or smaller.
    #[inline]
    pub fn bytes(&self, szx: u8) -> usize {
        if szx == Block::BERT_SZX { self.block } else { 16 << szx }
    }
}
