//! Block-wise transfers, from the server's side (RFC 7959), with bounded memory.

use super::etags::ETags;
use super::key::TransferKey;
use super::message::{BlockSizes, BurstMark, Response};
use super::transfer_cache::TransferCache;
use crate::exchange::source::{is_fair, source};
use crate::time::{Duration, Instant};
use crate::wire::{Block, Code, Message, OptionNumber};
use alloc::collections::BTreeMap;
use bytes::{Bytes, BytesMut};

/// How many blocks after the first one that is missing are taken of an upload: as many as a client may
/// have in flight (`client::Upload::in_flight`).
const MAX_AHEAD: usize = 255;

/// How long an upload that advances is waited for before it gives way to others.
const PATIENCE: Duration = Duration::from_secs(5);
/// When a client that found no room may try again, in seconds.
const MAX_AGE: u32 = 10;

/// Bodies in parts.
#[derive(Debug)]
pub(super) struct BlockTransfers {
    pub(super) bodies: TransferCache<Upload, Response, Response>,
    pub(super) etags: ETags,
}

#[derive(Debug, Default)]
pub(super) struct Upload {
    body: BytesMut,
    /// Blocks that overtook the one that follows `body`, by where they begin.
    ahead: BTreeMap<usize, Bytes>,
    /// Bytes that the client has announced.
    announced: usize,
    /// When it last advanced, if it did after its first block.
    advanced: Option<Instant>,
    /// The last block is here.
    whole: bool,
}

impl Upload {
    /// Whether it may be given up for the sake of others: it has not gone on after its first block, or
    /// not for some time.
    fn may_go(&self, now: Instant) -> bool {
        self.advanced.is_none_or(|at| now.saturating_since(at) >= PATIENCE)
    }

    /// Bytes that it takes or will take.
    fn promised(&self) -> usize {
        self.body.len().max(self.announced)
    }

    /// Whether a block is of another body, that began as this one did.
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

    /// Whether a block that contradicts nothing is here already.
    fn has(&self, block: &Block, length: usize) -> bool {
        let offset = block.offset() as usize;
        offset + length <= self.body.len() || block.more() && self.ahead.contains_key(&offset)
    }

    /// Whether a block that is new may be taken: it is the next one, or others may still come before
    /// it. The last one makes the body whole, so nothing may be missing then.
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
pub(super) enum Taken {
    /// The body is whole: let the handler answer.
    Whole(Bytes),
    /// The request is all of the body.
    Single,
    /// The last block is a copy: the answer as it was sent.
    Known(Response),
    /// This is the answer: more blocks are to come, or the block is refused.
    Answer(Response),
}

impl BlockTransfers {
    /// A transfer may pause, and its end is remembered, for `lifetime`: EXCHANGE_LIFETIME (RFC 7959
    /// section 2.4 leaves it to the server).
    pub(super) fn new(max_bytes: usize, lifetime: Duration) -> Self {
        let bodies = TransferCache::new(max_bytes, lifetime, Upload::may_go);
        Self { bodies, etags: ETags::default() }
    }

    /// Takes a block of a request's body, which may have `max_body` bytes.
    pub(super) fn take(
        &mut self,
        now: Instant,
        key: TransferKey,
        message: &Message<'_>,
        block: Block,
        announced: Option<u32>,
        max_body: usize,
    ) -> Taken {
        self.bodies.expire(now);
        let payload = message.payload();
        let end = block.offset() as usize + payload.len();
        if end > max_body || announced.is_some_and(|size| size as usize > max_body) {
            self.bodies.uploads.remove(&key);
            // Another body has begun: its later blocks are not copies of those that were answered.
            self.bodies.answers.remove(&key);
            return Taken::Answer(too_large(max_body));
        }
        if block.more() && !block.is_full(payload.len()) {
            return Taken::Answer(Response::new(Code::BAD_REQUEST));
        }
        if block.num() == 0 {
            if !block.more() {
                self.bodies.uploads.remove(&key);
                return Taken::Single;
            }
            // A late copy of the first block must not undo those after it.
            let upload = self.bodies.uploads.get(&key);
            if !upload.is_some_and(|upload| upload.body.starts_with(payload)) {
                let announced = announced.map_or(0, |size| size as usize);
                let upload = Upload { announced, ..Upload::default() };
                if !self.has_room_for(now, &key, announced.max(payload.len()))
                    || !self.bodies.begin_upload(now, key, upload, 0)
                {
                    self.bodies.answers.remove(&key);
                    return Taken::Answer(no_room());
                }
            }
        }
        let Some(upload) = self.bodies.uploads.get_mut(&key) else {
            return self.missing(&key);
        };
        let offset = block.offset() as usize;
        if upload.contradicts(&block, payload) {
            // The client has begun again, and begins with the first block once more: that overwrites
            // what is left of the body before (RFC 7959 section 2.5).
            self.bodies.uploads.remove(&key);
            return Taken::Answer(Response::new(Code::REQUEST_ENTITY_INCOMPLETE));
        }
        if upload.has(&block, payload.len()) {
            // Nothing new.
        } else if !upload.may_wait(&block, payload.len()) {
            return self.missing(&key);
        } else {
            // It may have been the only one to make room.
            let Some(upload) = self.bodies.grow_upload(now, key, payload.len()) else {
                return Taken::Answer(no_room());
            };
            upload.add(offset, payload);
            upload.advanced = (block.num() > 0).then_some(now);
            if block.num() > 0 {
                // This is another body, not a late copy of the first block of one that is answered.
                self.bodies.answers.remove(&key);
            }
        }
        if block.more() {
            let mut response = Response::new(Code::CONTINUE);
            if BurstMark::of(message).is_some()
                && let Some(mark) = message.option(BurstMark::OPTION)
            {
                // The client asks whether blocks may come in any order: they may.
                response.options.push(BurstMark::OPTION, mark.value);
            }
            return Taken::Answer(response);
        }
        // It stays until there is an answer: a copy of the last block that comes while a handler is
        // at work is as much a request as the block itself.
        match self.bodies.uploads.get_mut(&key) {
            Some(upload) => {
                upload.whole = true;
                Taken::Whole(upload.body.clone().freeze())
            }
            None => Taken::Single,
        }
    }

    /// The answer to a block that does not continue the upload. If the body is answered, the block is a copy,
    /// and gets that answer; otherwise blocks are missing (RFC 7959 section 2.9.2).
    fn missing(&self, key: &TransferKey) -> Taken {
        match self.bodies.answers.get(key) {
            Some(answer) => Taken::Known(answer.clone()),
            None => Taken::Answer(Response::new(Code::REQUEST_ENTITY_INCOMPLETE)),
        }
    }

    /// Whether a body of so many bytes finds room beside those that advance, once they are whole, and is
    /// within the share of its source.
    fn has_room_for(&self, now: Instant, key: &TransferKey, bytes: usize) -> bool {
        let from = source(key.remote.ip());
        let (mut promised, mut own) = (0, 0);
        for (other, upload) in self.bodies.uploads.entries() {
            if other != key && !upload.may_go(now) {
                promised += upload.promised();
                own += if source(other.remote.ip()) == from { upload.promised() } else { 0 };
            }
        }
        is_fair(own, bytes, self.bodies.max_bytes().saturating_sub(promised))
    }

    /// A later block of a response's body that is kept. A request that does not repeat the body of the
    /// first one asks for the latest response.
    pub(super) fn later_block(
        &mut self,
        now: Instant,
        key: TransferKey,
        wanted: Block,
        sizes: BlockSizes,
    ) -> Option<Response> {
        self.bodies.expire(now);
        let key = match self.bodies.downloads.get(&key) {
            None if key.has_no_body() => self.bodies.downloads.newest(key.with_later_bodies())?,
            _ => key,
        };
        let part = slice(self.bodies.downloads.get(&key)?, wanted, sizes);
        self.bodies.downloads.advance(now, key);
        Some(part)
    }

    /// The block of a response that is sent, the whole of which is kept for requests of the others.
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
        // One that is too long to be kept is asked of the handler again for every block.
        self.bodies.keep_download(now, key, response.clone(), response.payload.len());
        slice(&response, wanted, sizes)
    }

    /// The answer to an upload, as it is sent, for copies of the last block. An answer that refuses a
    /// block does not end the upload: the block may come again.
    pub(super) fn finish(&mut self, now: Instant, key: TransferKey, answer: &Response) {
        if self.bodies.uploads.get(&key).is_some_and(|upload| upload.whole) {
            self.bodies.finish(now, key, answer.clone());
        }
    }
}

/// The answer to an upload that finds no room beside those that advance.
fn no_room() -> Response {
    Response::new(Code::SERVICE_UNAVAILABLE).max_age(MAX_AGE)
}

/// The answer to a body that is too long: with the size that would be accepted (RFC 7959 section
/// 2.9.3).
pub(super) fn too_large(max_body: usize) -> Response {
    let mut response = Response::new(Code::REQUEST_ENTITY_TOO_LARGE);
    let max = u32::try_from(max_body).unwrap_or(u32::MAX);
    response.options.push_uint(OptionNumber::SIZE1, max);
    response
}

/// One block of a response.
fn slice(response: &Response, wanted: Block, sizes: BlockSizes) -> Response {
    // A smaller block than asked for begins at the same byte (RFC 7959 section 2.4).
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
