//! A request's body, whose blocks arrive in any order.

use crate::q_block::{BlockArrival, QBlockParameters, Receiver, Receiving};
use crate::session::message::{ContentFormat, Response};
use crate::session::requester::Requester;
use crate::time::Instant;
use crate::wire::{Block, Code, MissingBlocks, OptionNumber};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};

/// Bytes of the answer that names missing blocks, without their numbers.
const OVERHEAD: usize = 16;

/// The approximate memory of a block in addition to its payload: an entry of a tree, and an
/// allocation. For blocks of 16 bytes it is the larger part.
const ENTRY: usize = 64;

/// One body.
#[derive(Debug)]
pub(in crate::session) struct QBlockUpload {
    receiver: Receiver,
    szx: u8,
    size: usize,
    /// The blocks that have arrived. Memory is allocated for their payloads, not for the announced size.
    blocks: BTreeMap<u32, Bytes>,
    /// The requester that sent the last block, whose token answers carry (RFC 9177 section 4.3).
    requester: Requester,
    state: UploadState,
}

#[derive(Debug)]
enum UploadState {
    Arriving,
    /// Whether a handler is processing it.
    Working,
}

/// The next step of an upload.
#[derive(Debug)]
pub(super) enum UploadStep {
    Send(Response),
    /// The body, which is no longer stored here.
    Whole(Bytes),
    Wait(Option<Instant>),
    Drop,
}

impl QBlockUpload {
    /// The maximum length of a body in blocks of so many bytes: one that fits if nothing else is
    /// stored.
    pub(super) fn longest(block: usize, max_body: usize, max_bytes: usize) -> usize {
        // Each block is in the tree, and has a bit at the receiver.
        let room = max_bytes / (block + ENTRY + 1);
        max_body.min(room.min(Block::MAX_NUM as usize + 1) * block)
    }

    /// Creates the body to which a block belongs; the block itself is not added yet.
    pub(super) fn begin(
        now: Instant,
        block: Block,
        size: usize,
        requester: Requester,
        params: QBlockParameters,
    ) -> Self {
        // A block of the body has a 20-bit number; this is one more than that of the last block.
        let blocks = size.div_ceil(block.size()) as u32;
        Self {
            receiver: Receiver::new(now, blocks, params),
            szx: block.szx(),
            size,
            blocks: BTreeMap::new(),
            requester,
            state: UploadState::Arriving,
        }
    }

    /// Whether a block can belong to this body.
    pub(super) fn fits(&self, block: Block, size: usize) -> bool {
        self.szx == block.szx() && self.size == size
    }

    /// The size exponent of its blocks, and its length.
    pub(super) fn announced(&self) -> (u8, usize) {
        (self.szx, self.size)
    }

    /// Adds a block, and returns the number of bytes that it occupies.
    pub(super) fn take(&mut self, now: Instant, block: Block, payload: &[u8]) -> usize {
        if !matches!(self.state, UploadState::Arriving)
            || self.receiver.on_block(now, block.num()) != BlockArrival::New
        {
            return 0;
        }
        self.blocks.insert(block.num(), Bytes::copy_from_slice(payload));
        payload.len() + ENTRY
    }

    /// The requester of the last block, for whom the others may have proved the address.
    pub(super) fn requester(&self) -> &Requester {
        &self.requester
    }

    /// A block of this requester has arrived.
    pub(super) fn from(&mut self, requester: Requester) {
        let proved = self.requester.proved || requester.proved;
        self.requester = Requester { proved, ..requester };
    }

    /// The number of stored bytes.
    pub(super) fn held(&self) -> usize {
        let blocks: usize = self.blocks.values().map(|payload| payload.len() + ENTRY).sum();
        blocks + self.receiver.blocks() as usize / 8
    }

    /// Returns the next step: a response to send, the whole body, an instant to wait for, or the end.
    pub(super) fn poll(&mut self, now: Instant) -> UploadStep {
        if !matches!(self.state, UploadState::Arriving) {
            return UploadStep::Wait(None);
        }
        // Acknowledged blocks need no other answer (RFC 9177 sections 4.3 and 5).
        let confirmable = self.requester.is_confirmable();
        loop {
            match self.receiver.poll(now) {
                Receiving::Complete => {
                    self.state = UploadState::Working;
                    let mut body = BytesMut::with_capacity(self.size);
                    for block in core::mem::take(&mut self.blocks).into_values() {
                        body.extend_from_slice(&block);
                    }
                    return UploadStep::Whole(body.freeze());
                }
                Receiving::Wait(at) => return UploadStep::Wait(Some(at)),
                Receiving::GiveUp => return UploadStep::Drop,
                Receiving::Continue(_) | Receiving::Missing if confirmable => {}
                Receiving::Continue(from) => {
                    let mut response = Response::new(Code::CONTINUE);
                    if let Ok(block) = Block::new(from.saturating_sub(1), true, self.szx) {
                        response.options.push_uint(OptionNumber::Q_BLOCK1, block.to_uint());
                    }
                    return UploadStep::Send(response);
                }
                Receiving::Missing => return UploadStep::Send(self.ask(now)),
            }
        }
    }

    /// A 4.08 with the numbers of the missing blocks (RFC 9177 section 5).
    fn ask(&mut self, now: Instant) -> Response {
        let missing: Vec<u32> = self.receiver.missing().collect();
        let mut payload = vec![0; missing.len() * MissingBlocks::MAX_NUMBER_LEN];
        let len = MissingBlocks::encode(missing, &mut payload);
        payload.truncate(len);
        self.receiver.sent(now, OVERHEAD + len);
        Response::new(Code::REQUEST_ENTITY_INCOMPLETE)
            .format(ContentFormat(MissingBlocks::CONTENT_FORMAT))
            .payload(payload)
    }
}
