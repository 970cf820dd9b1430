//! The response's body in blocks (RFC 7959 section 2.4).

use crate::session::{BlockSizes, Response};
use crate::wire::{Block, OptionNumber};
use alloc::vec::Vec;

/// A body whose first block has arrived.
#[derive(Clone, Debug)]
pub(super) struct Download {
    response: Response,
    body: Vec<u8>,
    etag: Option<Vec<u8>>,
    szx: u8,
    limit: usize,
}

/// The kind of a first response: the whole response, or the first of several blocks.
#[derive(Debug)]
pub(super) enum FirstResponse {
    /// The whole response.
    Whole(Response),
    /// The first of several blocks.
    Block(Download),
}

/// The kind of a response to a request for a further block.
#[derive(Debug)]
pub(super) enum NextBlock {
    /// Further blocks follow.
    Part,
    /// It was the last block; this is the whole response.
    Whole(Response),
    /// A block of another version of the resource.
    Changed,
    /// An error, instead of a block.
    Refused(Response),
}

/// The reason for which blocks cannot be assembled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum AssemblyError {
    /// The body is longer than the limit.
    TooLarge,
    /// A block is invalid or contradicts the earlier ones; the text says how.
    Broken(&'static str),
}

impl Download {
    pub(super) fn begin(
        first: Response,
        sizes: &BlockSizes,
        limit: usize,
    ) -> Result<FirstResponse, AssemblyError> {
        let Some(option) = first.options().get(OptionNumber::BLOCK2) else {
            return Ok(FirstResponse::Whole(first));
        };
        let Some(block) = sizes.read(&option).ok().filter(|block| block.more()) else {
            return Ok(FirstResponse::Whole(first));
        };
        check_block(block, 0, first.body().len()).map_err(AssemblyError::Broken)?;
        let announced = first.options().get_uint(OptionNumber::SIZE2).unwrap_or(0) as usize;
        if announced.max(first.body().len()) > limit {
            return Err(AssemblyError::TooLarge);
        }
        let body = first.body().to_vec();
        let etag = etag(&first);
        Ok(FirstResponse::Block(Self { response: first, body, etag, szx: block.szx(), limit }))
    }

    /// The offset of the next block, and its size exponent.
    pub(super) fn next(&self) -> (usize, u8) {
        (self.body.len(), self.szx)
    }

    /// Takes the answer to the request for the next block.
    pub(super) fn on_answer(
        &mut self,
        answer: Response,
        sizes: &BlockSizes,
    ) -> Result<NextBlock, AssemblyError> {
        let block = answer.options().get(OptionNumber::BLOCK2);
        let Some(block) = block.and_then(|option| sizes.read(&option).ok()) else {
            return if answer.is_success() {
                Err(AssemblyError::Broken("a block has no block option"))
            } else {
                Ok(NextBlock::Refused(answer))
            };
        };
        if etag(&answer) != self.etag {
            return Ok(NextBlock::Changed);
        }
        check_block(block, self.body.len(), answer.body().len()).map_err(AssemblyError::Broken)?;
        if self.body.len() + answer.body().len() > self.limit {
            return Err(AssemblyError::TooLarge);
        }
        self.body.extend_from_slice(answer.body());
        self.szx = self.szx.min(Block::szx(block));
        if block.more() {
            return Ok(NextBlock::Part);
        }
        let mut response = core::mem::replace(&mut self.response, Response::new(answer.code()));
        response.options.remove(OptionNumber::BLOCK2);
        Ok(NextBlock::Whole(response.payload(core::mem::take(&mut self.body))))
    }
}

/// Checks that a block of `length` bytes is the one that was requested, which begins at the byte `at`, and that it is
/// as long as it states (RFC 7959 section 2.2).
///
/// # Errors
///
/// The rule that the server violates.
pub fn check_block(block: Block, at: usize, length: usize) -> Result<(), &'static str> {
    if block.offset() as usize != at {
        return Err("it sent another block than the one asked for");
    }
    if block.more() && !block.is_full(length) {
        return Err("a block does not have the length that it states");
    }
    Ok(())
}

pub(super) fn etag(response: &Response) -> Option<Vec<u8>> {
    response.options().get(OptionNumber::ETAG).map(|opt| opt.value.to_vec())
}
