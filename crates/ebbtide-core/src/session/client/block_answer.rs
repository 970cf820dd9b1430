//! The meaning of an answer to one piece of a request's body (RFC 7959 sections 2.3, 2.5 and 2.9).

use crate::session::{BlockSizes, Response};
use crate::wire::{Block, Code, OptionNumber};

/// A piece of a request's body that was sent in one message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SentPiece {
    /// The whole body, without a block option.
    Whole,
    /// The block that begins at this byte; others follow.
    Block(usize),
    /// The last of several blocks, which begins at this byte.
    Last(usize),
}

/// The meaning of an answer to one piece of a body (RFC 7959 sections 2.3, 2.5 and 2.9).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BlockAnswer {
    /// The server has the block and waits for the next one; in blocks of this size exponent from then on, if it names
    /// a smaller one.
    Taken {
        /// The size exponent.
        smaller: Option<u8>,
    },
    /// The server does not have the first piece, and requests smaller blocks.
    Smaller {
        /// Their size exponent.
        szx: u8,
    },
    /// It is the answer to the whole body, or the error that ends the transfer.
    Ended,
}

impl SentPiece {
    /// Evaluates the answer to this piece, which was cut by these sizes.
    ///
    /// # Errors
    ///
    /// The rule that the server violates.
    pub fn evaluate(
        self,
        sizes: &BlockSizes,
        answer: &Response,
    ) -> Result<BlockAnswer, &'static str> {
        let option = answer.options().get(OptionNumber::BLOCK1);
        let block = option.map(|option| sizes.read(&option)).transpose();
        let block = block.map_err(|_| "its answer has an invalid Block1 option")?;
        if let (Some(block), Self::Block(at) | Self::Last(at)) = (block, self)
            // An error may apply to all of them.
            && answer.is_success()
            && !acknowledges(block, sizes, at)
        {
            return Err("it acknowledges a block that was not sent");
        }
        let smaller = block.map(Block::szx).filter(|szx| *szx < sizes.szx);
        match (self, answer.code()) {
            (Self::Whole | Self::Last(_), Code::CONTINUE) => {
                Err("it asks for more after the last block")
            }
            // Whatever the code: a server may act on each block by itself (section 2.3).
            (Self::Block(_), _) if answer.is_success() => Ok(BlockAnswer::Taken { smaller }),
            // A hint to begin again with smaller blocks (section 2.9.3).
            (Self::Whole | Self::Block(0), Code::REQUEST_ENTITY_TOO_LARGE) => {
                Ok(smaller.map_or(BlockAnswer::Ended, |szx| BlockAnswer::Smaller { szx }))
            }
            _ => Ok(BlockAnswer::Ended),
        }
    }
}

/// RFC 7959 section 2.3: the response names the acknowledged block. In the server's own block size the same bytes have
/// another number.
fn acknowledges(block: Block, sizes: &BlockSizes, at: usize) -> bool {
    let named = sizes.at(at, true, sizes.szx).is_ok_and(|sent| sent.num() == block.num());
    named || block.szx() < sizes.szx && block.offset() as usize == at
}
