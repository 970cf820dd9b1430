//! Block-wise transfers on the server's side (RFC 7959), with bounded memory.

use super::bounded::Bounded;
use crate::message::{BurstMark, Response, Sizes};
use bytes::{Bytes, BytesMut};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Block, Code, Message, OptionNumber};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

/// How many blocks after the first one that is missing are taken of an upload: as many as a client may
/// have in flight (`client::Upload::in_flight`).
const MAX_AHEAD: usize = 255;

/// Which transfer a request belongs to: who asks, and a hash of all options that make the request
/// (RFC 7959 section 2.3, RFC 9175 section 3.3: Request-Tag is among them).
pub(super) type Key = (SocketAddr, u64);

pub(super) fn key(remote: SocketAddr, message: &Message<'_>) -> Key {
    let mut hasher = DefaultHasher::new();
    message.code().0.hash(&mut hasher);
    for opt in message.options() {
        let of_blocks = matches!(
            opt.number,
            OptionNumber::BLOCK1
                | OptionNumber::BLOCK2
                | OptionNumber::Q_BLOCK1
                | OptionNumber::Q_BLOCK2
                | OptionNumber::SIZE1
                | OptionNumber::SIZE2
                | OptionNumber::OBSERVE
                | OptionNumber::ECHO
        );
        if !of_blocks && !opt.number.is_no_cache_key() || opt.number == OptionNumber::REQUEST_TAG {
            (opt.number.0, opt.value).hash(&mut hasher);
        }
    }
    (remote, hasher.finish())
}

/// Bodies in parts.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub(crate) bodies: Bounded<Upload, Response>,
    max_body: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Upload {
    body: BytesMut,
    /// Blocks that overtook the one that follows `body`, by where they begin.
    ahead: BTreeMap<usize, Bytes>,
    /// The last block is here.
    whole: bool,
    /// The answer, once there is one: for duplicates of the last block.
    done: Option<Response>,
}

impl Upload {
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

/// What to do with a request that may be a part of one.
pub(crate) enum Part {
    /// It is whole, or its last block is here: let the handler answer.
    Whole(Option<Bytes>),
    /// The answer is known.
    Answer(Response),
}

impl Blocks {
    /// A transfer may pause, and its end is remembered, for `lifetime`: EXCHANGE_LIFETIME (RFC 7959
    /// section 2.4 leaves it to the server).
    pub(crate) fn new((max_body, max_bytes): (usize, usize), lifetime: Duration) -> Self {
        Self { bodies: Bounded::new(max_bytes, lifetime), max_body: max_body.min(max_bytes) }
    }

    /// Whether a request begins an upload while half of the room is taken.
    pub(crate) fn would_press(&self, message: &Message<'_>, sizes: Sizes) -> bool {
        self.bodies.is_half_full()
            && matches!(block(message, OptionNumber::BLOCK1, sizes), Ok(Some(b)) if b.num() == 0 && b.more())
    }

    /// Whether a request has anything to do with blocks.
    #[inline]
    pub(crate) fn concern(message: &Message<'_>) -> bool {
        message
            .options()
            .skip_while(|opt| opt.number < OptionNumber::BLOCK2)
            .any(|opt| matches!(opt.number, OptionNumber::BLOCK1 | OptionNumber::BLOCK2))
    }

    /// Takes a request with block options.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        message: &Message<'_>,
        sizes: Sizes,
    ) -> Part {
        self.bodies.expire(now);
        match block(message, OptionNumber::BLOCK1, sizes) {
            Err(()) => return Part::Answer(Response::new(Code::BAD_REQUEST)),
            Ok(Some(block)) => return self.upload(now, key(remote, message), message, block),
            Ok(None) => {}
        }
        match block(message, OptionNumber::BLOCK2, sizes) {
            Err(()) => Part::Answer(Response::new(Code::BAD_REQUEST)),
            Ok(Some(wanted)) if wanted.num() > 0 => {
                match self.bodies.downloads.get(&key(remote, message)) {
                    Some(response) => {
                        let part = slice(response, wanted, sizes);
                        self.bodies.downloads.advance(now, key(remote, message));
                        Part::Answer(part)
                    }
                    // What changes nothing may be asked for again.
                    None if matches!(message.code(), Code::GET | Code::FETCH) => Part::Whole(None),
                    None => Part::Answer(Response::new(Code::REQUEST_ENTITY_INCOMPLETE)),
                }
            }
            Ok(_) => Part::Whole(None),
        }
    }

    fn upload(&mut self, now: Instant, key: Key, message: &Message<'_>, block: Block) -> Part {
        let payload = message.payload();
        let too_large = |max: usize| {
            let mut response = Response::new(Code::REQUEST_ENTITY_TOO_LARGE);
            // RFC 7959 section 2.9.3: the size that would be accepted.
            response.options.push_uint(OptionNumber::SIZE1, u32::try_from(max).unwrap_or(u32::MAX));
            Part::Answer(response)
        };
        let announced = message.option(OptionNumber::SIZE1).and_then(|opt| opt.as_uint());
        let end = block.offset() as usize + payload.len();
        if end > self.max_body || announced.is_some_and(|size| size as usize > self.max_body) {
            self.bodies.uploads.remove(&key);
            return too_large(self.max_body);
        }
        if block.more() && !block.is_full(payload.len()) {
            return Part::Answer(Response::new(Code::BAD_REQUEST));
        }
        if block.num() == 0 {
            if !block.more() {
                self.bodies.uploads.remove(&key);
                return Part::Whole(None);
            }
            // A late copy of the first block must not undo those after it.
            let copy = self
                .bodies
                .uploads
                .get(&key)
                .is_some_and(|upload| upload.body.starts_with(payload));
            if !copy {
                self.bodies.begin_upload(now, key, Upload::default(), 0);
            }
        }
        let Some(upload) = self.bodies.uploads.get_mut(&key) else {
            // RFC 7959 section 2.9.2: the blocks before this one are missing.
            return Part::Answer(Response::new(Code::REQUEST_ENTITY_INCOMPLETE));
        };
        if let Some(done) = &upload.done {
            return Part::Answer(done.clone());
        }
        let offset = block.offset() as usize;
        if upload.contradicts(&block, payload) {
            // The client has begun again, and begins with the first block once more: that overwrites
            // what is left of the body before (RFC 7959 section 2.5).
            self.bodies.uploads.remove(&key);
            return Part::Answer(Response::new(Code::REQUEST_ENTITY_INCOMPLETE));
        }
        if upload.has(&block, payload.len()) {
            // Nothing new.
        } else if !upload.may_wait(&block, payload.len()) {
            // RFC 7959 section 2.9.2: blocks before this one are missing.
            return Part::Answer(Response::new(Code::REQUEST_ENTITY_INCOMPLETE));
        } else {
            // It may have been the only one to make room.
            let Some(upload) = self.bodies.grow_upload(now, key, payload.len()) else {
                return Part::Answer(Response::new(Code::SERVICE_UNAVAILABLE).max_age(10));
            };
            upload.add(offset, payload);
        }
        if block.more() {
            let mut response = Response::new(Code::CONTINUE);
            response.options.push_uint(OptionNumber::BLOCK1, block.to_uint());
            if BurstMark::of(message).is_some()
                && let Some(mark) = message.option(BurstMark::OPTION)
            {
                // The client asks whether blocks may come in any order: they may.
                response.options.push(BurstMark::OPTION, mark.value);
            }
            return Part::Answer(response);
        }
        // It stays until there is an answer: a copy of the last block that comes while a handler is
        // at work is as much a request as the block itself.
        let body = self.bodies.uploads.get_mut(&key).map(|upload| {
            upload.whole = true;
            upload.body.clone().freeze()
        });
        Part::Whole(body)
    }

    /// Makes of a handler's response what is sent: its first block, or the one asked for.
    pub(crate) fn give(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        message: &Message<'_>,
        mut response: Response,
        sizes: Sizes,
    ) -> Response {
        let asked = block(message, OptionNumber::BLOCK2, sizes).ok().flatten();
        let sizes = asked.map_or(sizes, |asked| sizes.at_most(asked.szx()));
        let Ok(first) = sizes.at(0, false, sizes.szx) else { return response };
        let wanted = asked.unwrap_or(first);
        let key = key(remote, message);
        // What went wrong is said as it is, whichever block was asked for.
        let later = wanted.num() > 0 && response.is_success();
        if response.payload.len() > sizes.whole || later {
            if response.code == Code::CONTENT {
                response = with_etag(response);
            }
            // One that is too long to be kept is asked of the handler again for every block.
            self.bodies.keep_download(now, key, response.clone(), response.payload.len());
            response = slice(&response, wanted, sizes);
        }
        if let Ok(Some(block1)) = block(message, OptionNumber::BLOCK1, sizes) {
            response.options.push_uint(OptionNumber::BLOCK1, block1.to_uint());
            // What refuses a block does not end the upload: the block may come again.
            let upload = self.bodies.uploads.get_mut(&key).filter(|upload| upload.whole);
            if let Some(upload) = upload {
                upload.done = Some(response.clone());
                upload.body = BytesMut::new();
                upload.ahead.clear();
                self.bodies.uploads.shrink(&key, 0);
            }
        }
        response
    }
}

/// A response with an ETag, so that a client does not mix two versions (RFC 7959 section 2.4): the
/// handler's, or one that follows from the body.
pub(super) fn with_etag(response: Response) -> Response {
    if response.options.get(OptionNumber::ETAG).is_some() {
        return response;
    }
    let mut hasher = DefaultHasher::new();
    response.payload.hash(&mut hasher);
    response.etag(&hasher.finish().to_be_bytes())
}

/// A block option of a request: an error if it has no meaning (RFC 7959 section 2.2).
fn block(message: &Message<'_>, number: OptionNumber, sizes: Sizes) -> Result<Option<Block>, ()> {
    match message.option(number) {
        None => Ok(None),
        Some(opt) => sizes.read(&opt).map(Some).map_err(|_| ()),
    }
}

/// One block of a response.
fn slice(response: &Response, wanted: Block, sizes: Sizes) -> Response {
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

/// Whether a response needs blocks.
#[inline]
pub(crate) fn is_long(response: &Response, sizes: Sizes) -> bool {
    response.payload.len() > sizes.whole
}
