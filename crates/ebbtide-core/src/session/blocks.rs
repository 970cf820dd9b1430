//! Block-wise transfers at the server (RFC 7959), with bounded memory.

use super::etags::ETags;
use super::key::TransferKey;
use super::message::{BlockSizes, BurstMark, Response};
use super::protection::Protection;
use super::transfer_cache::TransferCache;
use crate::time::{Duration, Instant};
use crate::wire::{Block, Code, Message, OptionNumber};
use alloc::collections::BTreeMap;
use bytes::{Bytes, BytesMut};

/// How many blocks after the first missing one are accepted: as many as a client may have in flight
/// (`client::Upload::in_flight`).
const MAX_AHEAD: usize = 255;

/// How long an upload that has advanced is protected from others, within the share of its source.
const PATIENCE: Duration = Duration::from_secs(5);
/// Max-Age in seconds of the answer to a client that found no room.
const MAX_AGE: u32 = 10;

/// A body in parts.
#[derive(Debug)]
pub(super) struct BlockTransfers {
    bodies: TransferCache<Block1Upload, Response, Response>,
    pub(super) etags: ETags,
    protection: Protection,
    /// How long an upload stays protected: not longer than it may pause.
    patience: Duration,
}

#[derive(Debug, Default)]
struct Block1Upload {
    body: BytesMut,
    /// Blocks that overtook the next one of `body`, by their offsets.
    ahead: BTreeMap<usize, Bytes>,
    /// The size that the client has announced.
    announced: usize,
    /// When it last advanced after its first block.
    advanced: Instant,
    /// With how many bytes it is protected from others, if it is.
    protected: Option<usize>,
    /// Whether the last block has arrived.
    whole: bool,
    /// Whether the first block has If-None-Match, which the others do not have (RFC 7959 section 2.10).
    if_none_match: bool,
}

impl Block1Upload {
    /// Whether it may be dropped in favour of others.
    fn may_go(&self) -> bool {
        self.protected.is_none()
    }

    /// The bytes that it takes or will take.
    fn promised(&self) -> usize {
        self.body.len().max(self.announced)
    }

    /// Whether a block belongs to another body that began in the same way.
    fn contradicts(&self, block: &Block, payload: &[u8]) -> bool {
        let offset = block.offset() as usize;
        let end = offset + payload.len();
        let other = if offset < self.body.len() {
            self.body.get(offset..end) != Some(payload)
        } else {
            self.ahead.get(&offset).is_some_and(|here| here != payload)
        };
        let beyond = self.body.len() > end || self.ahead.range(end..).next().is_some();
        other || !block.more() && beyond
    }

    /// Whether the same block has arrived already.
    fn has(&self, block: &Block, length: usize) -> bool {
        let offset = block.offset() as usize;
        offset + length <= self.body.len() || block.more() && self.ahead.contains_key(&offset)
    }

    /// Whether a new block may be accepted: it is the next one, or those before it may still
    /// arrive. The last block completes the body, so none may be missing then.
    fn may_wait(&self, block: &Block, length: usize) -> bool {
        let (offset, next) = (block.offset() as usize, self.body.len());
        let room =
            self.ahead.len() < MAX_AHEAD && offset.saturating_sub(next) <= MAX_AHEAD * length;
        offset == next || (block.more() && offset > next && room)
    }

    /// Adds a block, and those that waited for it.
    fn add(&mut self, offset: usize, payload: &[u8]) {
        if offset != self.body.len() {
            self.ahead.insert(offset, Bytes::copy_from_slice(payload));
            return;
        }
        self.body.extend_from_slice(payload);
        while let Some(next) = self.ahead.remove(&self.body.len()) {
            self.body.extend_from_slice(&next);
        }
    }
}

/// The outcome of a block of a request's body.
pub(super) enum BlockOutcome {
    /// The body is complete and can be handled.
    Whole(Bytes),
    /// The request contains the whole body.
    Single,
    /// The last block is a copy; this is the answer as it was sent.
    Known(Response),
    /// This is the answer: more blocks follow, or the block is refused.
    Answer(Response),
}

impl BlockTransfers {
    /// Creates a cache in which a transfer may pause, and its end is remembered, for `lifetime`:
    /// EXCHANGE_LIFETIME (RFC 7959 section 2.4 leaves it to the server).
    pub(super) fn new(max_bytes: usize, lifetime: Duration) -> Self {
        let bodies = TransferCache::new(max_bytes, lifetime, Block1Upload::may_go);
        let protection = Protection::new(max_bytes);
        Self { bodies, etags: ETags::default(), protection, patience: PATIENCE.min(lifetime) }
    }

    /// The bytes of bodies, the number of uploads including finished ones, and the number of stored downloads.
    pub(super) fn held(&mut self, now: Instant) -> (usize, usize, usize) {
        self.expire(now);
        self.bodies.held(now)
    }

    /// Whether half of the memory for uploads is taken.
    pub(super) fn is_half_full(&self) -> bool {
        self.bodies.is_half_full()
    }

    /// Uploads that were dropped for lack of memory.
    pub(super) fn evicted(&self) -> u64 {
        self.bodies.evicted
    }

    /// Accepts a block of a request's body, which may have `max_body` bytes.
    pub(super) fn take(
        &mut self,
        now: Instant,
        key: TransferKey,
        message: &Message<'_>,
        block: Block,
        announced: Option<u32>,
        max_body: usize,
    ) -> BlockOutcome {
        self.expire(now);
        let payload = message.payload();
        let end = block.offset() as usize + payload.len();
        if end > max_body || announced.is_some_and(|size| size as usize > max_body) {
            self.drop_upload(&key);
            // Another body has begun, whose later blocks are not copies of the answered ones.
            self.bodies.answers.remove(&key);
            return BlockOutcome::Answer(too_large(max_body));
        }
        let is_too_long = !block.is_bert() && payload.len() > block.size();
        if is_too_long || block.more() && !block.is_full(payload.len()) {
            return BlockOutcome::Answer(Response::new(Code::BAD_REQUEST));
        }
        if block.num() == 0 {
            if !block.more() {
                self.drop_upload(&key);
                self.bodies.answers.remove(&key);
                return BlockOutcome::Single;
            }
            // A late copy of the first block must not discard the blocks after it.
            let upload = self.bodies.uploads.get(&key);
            if !upload.is_some_and(|upload| upload.body.starts_with(payload)) {
                let announced = announced.map_or(0, |size| size as usize);
                let upload = Block1Upload { announced, ..Block1Upload::default() };
                self.unprotect(&key);
                if !self.protection.admits(key.remote.source(), announced.max(payload.len()))
                    || !self.bodies.begin_upload(now, key, upload, 0)
                {
                    self.bodies.answers.remove(&key);
                    return BlockOutcome::Answer(no_room());
                }
                // The endpoint recognises copies of this message, so it begins another body, of which no block
                // is a copy of an answered one.
                self.bodies.answers.remove(&key);
            }
            if let Some(upload) = self.bodies.uploads.get_mut(&key) {
                upload.if_none_match = message.option(OptionNumber::IF_NONE_MATCH).is_some();
            }
        }
        let Some(upload) = self.bodies.uploads.get_mut(&key) else {
            return self.missing(&key, block);
        };
        let offset = block.offset() as usize;
        if upload.contradicts(&block, payload) {
            // The client has begun again with the first block, which replaces the remains of the
            // former body (RFC 7959 section 2.5).
            self.drop_upload(&key);
            return BlockOutcome::Answer(Response::new(Code::REQUEST_ENTITY_INCOMPLETE));
        }
        if upload.has(&block, payload.len()) {
            // The block is a copy.
        } else if !upload.may_wait(&block, payload.len()) {
            return self.missing(&key, block);
        } else {
            let protected = upload.protected;
            let Some(upload) = self.bodies.grow_upload(now, key, payload.len()) else {
                // This upload has itself been dropped.
                if let Some(bytes) = protected {
                    self.protection.remove(key.remote.source(), bytes);
                }
                return BlockOutcome::Answer(no_room());
            };
            upload.add(offset, payload);
            if block.num() > 0 {
                self.protect(now, key);
            }
        }
        if block.more() {
            let mut response = Response::new(Code::CONTINUE);
            if BurstMark::of(message).is_some()
                && let Some(mark) = message.option(BurstMark::OPTION)
            {
                // The client asks whether blocks may arrive in any order: they may.
                response.options.push(BurstMark::OPTION, mark.value);
            }
            return BlockOutcome::Answer(response);
        }
        // The body stays until it is answered: a copy of the last block that arrives while a
        // handler runs is equivalent to the block itself.
        match self.bodies.uploads.get_mut(&key) {
            Some(upload) => {
                upload.whole = true;
                BlockOutcome::Whole(upload.body.clone().freeze())
            }
            None => BlockOutcome::Single,
        }
    }

    /// Whether the upload has If-None-Match.
    pub(super) fn if_none_match(&self, key: &TransferKey) -> bool {
        self.bodies.uploads.get(key).is_some_and(|upload| upload.if_none_match)
    }

    /// The answer to a block that does not continue the upload. A copy of the last block of a body that has
    /// been answered receives that answer; otherwise blocks are missing (RFC 7959 section 2.9.2).
    fn missing(&self, key: &TransferKey, block: Block) -> BlockOutcome {
        let named = |answer: &&Response| {
            answer.options.get_uint(OptionNumber::BLOCK1) == Some(block.to_uint())
        };
        match self.bodies.answers.get(key).filter(named) {
            Some(answer) if !block.more() => BlockOutcome::Known(answer.clone()),
            _ => BlockOutcome::Answer(Response::new(Code::REQUEST_ENTITY_INCOMPLETE)),
        }
    }

    /// An upload has advanced: it is protected from others, if it and the protected ones of its source are within the
    /// share of that. Many can begin at once, and without an announcement each can become long, so that the look at
    /// the first block does not suffice.
    fn protect(&mut self, now: Instant, key: TransferKey) {
        let Some(upload) = self.bodies.uploads.get_mut(&key) else { return };
        upload.advanced = now;
        let bytes = upload.promised();
        if upload.protected == Some(bytes) {
            return;
        }
        let was_protected = self.unprotect(&key);
        if !self.protection.admits(key.remote.source(), bytes) {
            return;
        }
        self.protection.add(key.remote.source(), bytes);
        if let Some(upload) = self.bodies.uploads.get_mut(&key) {
            upload.protected = Some(bytes);
        }
        if !was_protected {
            self.bodies.uploads.wait(&key, Some(now + self.patience));
        }
    }

    /// An upload is not protected any more. Returns whether it was.
    fn unprotect(&mut self, key: &TransferKey) -> bool {
        let upload = self.bodies.uploads.get_mut(key);
        let Some(bytes) = upload.and_then(|upload| upload.protected.take()) else { return false };
        self.protection.remove(key.remote.source(), bytes);
        true
    }

    fn drop_upload(&mut self, key: &TransferKey) {
        self.unprotect(key);
        self.bodies.uploads.remove(key);
    }

    /// Ends the protection of uploads that have not advanced for some time.
    fn lapse(&mut self, now: Instant) {
        while let Some(key) = self.bodies.uploads.pop_due(now) {
            let Some(upload) = self.bodies.uploads.get(&key) else { continue };
            let end = upload.advanced + self.patience;
            if end > now {
                self.bodies.uploads.wait(&key, Some(end));
            } else {
                self.unprotect(&key);
            }
        }
    }

    /// Drops transfers that have paused for too long.
    fn expire(&mut self, now: Instant) {
        self.lapse(now);
        self.bodies.expire(now);
    }

    /// A later block of a stored response. A request that does not repeat the body of the first one
    /// receives the latest response.
    pub(super) fn later_block(
        &mut self,
        now: Instant,
        key: TransferKey,
        wanted: Block,
        sizes: BlockSizes,
    ) -> Option<Response> {
        self.expire(now);
        let key = match self.bodies.downloads.get(&key) {
            None if key.has_no_body() => self.bodies.downloads.newest(key.with_later_bodies())?,
            _ => key,
        };
        let part = slice(self.bodies.downloads.get(&key)?, wanted, sizes);
        self.bodies.downloads.advance(now, key);
        Some(part)
    }

    /// The requested block of a response, which is stored whole for requests of other blocks.
    pub(super) fn keep(
        &mut self,
        now: Instant,
        key: TransferKey,
        mut response: Response,
        wanted: Block,
        sizes: BlockSizes,
    ) -> Response {
        if response.code == Code::CONTENT {
            response = self.etags.with_etag(response);
        }
        self.lapse(now);
        // If it is too long to be stored, the handler is called again for every block.
        self.bodies.keep_download(now, key, response.clone(), response.payload.len());
        slice(&response, wanted, sizes)
    }

    /// Stores the answer to an upload, as it is sent, for copies of the last block. An answer that
    /// refuses a block does not end the upload, since the block may be sent again.
    pub(super) fn finish(&mut self, now: Instant, key: TransferKey, answer: &Response) {
        if self.bodies.uploads.get(&key).is_some_and(|upload| upload.whole) {
            self.unprotect(&key);
            self.bodies.finish(now, key, answer.clone());
        }
    }
}

/// The answer to an upload that does not fit in addition to those that advance.
fn no_room() -> Response {
    Response::new(Code::SERVICE_UNAVAILABLE).max_age(MAX_AGE)
}

/// The answer to a body that is too long, with the accepted size (RFC 7959 section 2.9.3).
pub(super) fn too_large(max_body: usize) -> Response {
    let mut response = Response::new(Code::REQUEST_ENTITY_TOO_LARGE);
    let max = u32::try_from(max_body).unwrap_or(u32::MAX);
    response.options.push_uint(OptionNumber::SIZE1, max);
    response
}

/// One block of a response.
fn slice(response: &Response, wanted: Block, sizes: BlockSizes) -> Response {
    // A smaller block than requested begins at the same byte (RFC 7959 section 2.4).
    let szx = wanted.szx().min(sizes.szx);
    let start = wanted.offset() as usize;
    let total = response.payload.len();
    if start >= total && start > 0 {
        return Response::new(Code::BAD_REQUEST).payload("no such block");
    }
    let end = (start + sizes.bytes(szx)).min(total);
    let mut part = response.clone();
    part.payload = response.payload.slice(start..end);
    if let Ok(block) = sizes.at(start, end < total, szx) {
        part.options.push_uint(OptionNumber::BLOCK2, block.to_uint());
    }
    if start == 0 {
        part.options.push_uint(OptionNumber::SIZE2, u32::try_from(total).unwrap_or(u32::MAX));
    }
    part
}
