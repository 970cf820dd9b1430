//! A response's body, of which blocks arrive in any order.

use crate::message::Response;
use bytes::BytesMut;
use ebbtide_core::q_block::{Arrival, QBlockParameters, Receiver};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Block, OptionNumber};

/// One version of a body.
#[derive(Debug)]
pub(super) struct Download {
    pub(super) receiver: Receiver,
    /// Its options, without those of a block.
    response: Response,
    etag: Option<Vec<u8>>,
    szx: u8,
    bytes: BytesMut,
}

/// Why a block belongs to no body that can be put together.
#[derive(Debug)]
pub(super) enum Unfit {
    /// The body is longer than is wanted.
    TooLarge,
    /// What it says contradicts itself.
    Broken(&'static str),
}

impl Download {
    /// The body that a block is of; the block itself is not taken yet.
    pub(super) fn begin(
        now: Instant,
        first: &Response,
        block: Block,
        limit: usize,
        params: QBlockParameters,
    ) -> Result<Self, Unfit> {
        // RFC 9177 section 4.6: Size2 is exact, and in every block.
        let size = first.options.get_uint(OptionNumber::SIZE2);
        let size = size.ok_or(Unfit::Broken("a block does not say how long the body is"))?;
        let size = usize::try_from(size).ok().filter(|size| *size <= limit);
        let size = size.ok_or(Unfit::TooLarge)?;
        let blocks = u32::try_from(size.div_ceil(block.size())).map_err(|_| Unfit::TooLarge)?;
        let mut response = Response::new(first.code);
        for opt in first.options.iter() {
            if !matches!(opt.number, OptionNumber::Q_BLOCK2 | OptionNumber::SIZE2) {
                response.options.push(opt.number, opt.value);
            }
        }
        Ok(Self {
            receiver: Receiver::new(now, blocks, params),
            etag: etag(first),
            szx: block.szx(),
            bytes: BytesMut::zeroed(size),
            response,
        })
    }

    /// Whether a block is of another version of the resource (RFC 9177 section 4.4).
    pub(super) fn is_other(&self, response: &Response) -> bool {
        etag(response) != self.etag
    }

    /// Takes a block.
    pub(super) fn take(
        &mut self,
        now: Instant,
        response: &Response,
        block: Block,
    ) -> Result<(), Unfit> {
        if block.szx() != self.szx {
            return Err(Unfit::Broken("its blocks have several sizes"));
        }
        let (start, size) = (block.offset() as usize, self.bytes.len());
        let end = (start + block.size()).min(size);
        let room = self.bytes.get_mut(start..end);
        let room = room.filter(|room| room.len() == response.payload.len());
        let Some(room) = room.filter(|_| block.more() == (end < size)) else {
            return Err(Unfit::Broken("a block is not as long as it says"));
        };
        if self.receiver.on_block(now, block.num()) == Arrival::New {
            room.copy_from_slice(&response.payload);
        }
        Ok(())
    }

    /// The block from which on the server may continue, or that is asked for.
    pub(super) fn block(&self, num: u32, more: bool) -> u32 {
        // Every block of the body has a number that fits, or there would be no body.
        Block::new(num, more, self.szx).map_or(0, Block::to_uint)
    }

    /// The whole response.
    pub(super) fn finish(self) -> Response {
        self.response.payload(self.bytes.freeze())
    }
}

fn etag(response: &Response) -> Option<Vec<u8>> {
    response.options.get(OptionNumber::ETAG).map(|opt| opt.value.to_vec())
}
