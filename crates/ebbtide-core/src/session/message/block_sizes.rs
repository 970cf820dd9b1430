//! The maximum lengths of a body in one message and of its blocks.

use crate::peer_token::PeerToken;
use crate::stream::Connection;
use crate::wire::{Block, BlockError, MAX_TOKEN_LEN, Opt};

/// Bytes of a message on a connection that are reserved for the header, the token and short
/// options.
const OVERHEAD: usize = 128;

/// The sizes of bodies and blocks that fit into one message on a transport.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// The maximum length of a body without blocks, in bytes.
    pub whole: usize,
    /// The size exponent of blocks to be sent; 7 is BERT (RFC 8323 section 6).
    pub szx: u8,
    /// The length of a block of that size; with BERT, as many units as fit.
    pub block: usize,
    /// Whether BERT is allowed.
    reliable: bool,
}

impl BlockSizes {
    /// The sizes over UDP: blocks of `2^(szx + 4)` bytes.
    #[inline]
    pub fn of_datagrams(block_size: usize) -> Self {
        let szx = Block::szx_of(block_size);
        Self { whole: 16 << szx, szx, block: 16 << szx, reliable: false }
    }

    /// The sizes over a connection, with options of `options` bytes: whole bodies up to the peer's
    /// maximum, then BERT, if the peer supports it.
    pub fn of_connection(connection: &Connection, options: usize) -> Self {
        let room = connection.message_limit().saturating_sub(OVERHEAD.max(options + 32));
        if connection.peer().bert() && room >= 1024 {
            let block = room - room % 1024;
            return Self { whole: room, szx: Block::BERT_SZX, block, reliable: true };
        }
        let szx = Block::szx_of(room);
        Self { whole: room.max(16), szx, block: 16 << szx, reliable: true }
    }

    /// Returns these sizes for a connection, whose peer may name BERT.
    #[must_use]
    pub fn on_connection(mut self) -> Self {
        self.reliable = true;
        self
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

    /// Returns these sizes, with bodies and blocks of at most so many bytes in one message, 1024 or more.
    #[must_use]
    pub fn within(mut self, bytes: usize) -> Self {
        self.whole = self.whole.min(bytes);
        if self.block > bytes {
            // Only BERT has blocks of more than 1024 bytes (RFC 8323 section 6).
            self.block = bytes - bytes % 1024;
        }
        self
    }

    /// Returns these sizes for messages with this token, which takes room from the body if it is extended
    /// (RFC 8974).
    #[inline]
    #[must_use]
    pub fn beside(self, token: &PeerToken) -> Self {
        match token.encoded_len().saturating_sub(MAX_TOKEN_LEN) {
            0 => self,
            more => self.less(more),
        }
    }

    fn less(mut self, bytes: usize) -> Self {
        self.whole = self.whole.saturating_sub(bytes).max(16);
        if self.szx == Block::BERT_SZX && self.whole >= 1024 {
            return self.within(self.whole);
        }
        self.szx = Block::szx_of(self.whole);
        self.block = 16 << self.szx;
        if !self.reliable {
            self.whole = self.block;
        }
        self
    }

    /// Reads a block option.
    #[inline]
    pub fn read(&self, option: &Opt<'_>) -> Result<Block, BlockError> {
        if self.reliable { Block::from_reliable(option) } else { Block::from_option(option) }
    }

    /// The block of this exponent, or a smaller one, that begins at this byte.
    #[inline]
    pub fn at(&self, offset: usize, more: bool, szx: u8) -> Result<Block, BlockError> {
        let unit = szx.min(Block::MAX_SZX) + 4;
        let num = u32::try_from(offset >> unit).map_err(|_| BlockError::TooLarge)?;
        if szx == Block::BERT_SZX { Block::bert(num, more) } else { Block::new(num, more, szx) }
    }

    /// The length of a block of this exponent, or of a smaller one.
    #[inline]
    pub fn bytes(&self, szx: u8) -> usize {
        if szx == Block::BERT_SZX { self.block } else { 16 << szx }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_bert_down_to_one_unit_of_1024_bytes() {
        let bert = |whole| BlockSizes { whole, szx: Block::BERT_SZX, block: 1024, reliable: true };
        assert_eq!(bert(1034).less(10), bert(1024));
        assert_eq!(bert(1034).less(11), BlockSizes { szx: 5, block: 512, ..bert(1023) });
    }
}
