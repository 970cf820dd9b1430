//! Block-wise transfers on the server's side (RFC 7959), with bounded memory.

use crate::message::{Response, Sizes};
use bytes::{Bytes, BytesMut};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Block, Code, Message, OptionNumber};
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

/// How long a transfer may pause; EXCHANGE_LIFETIME with the default parameters (RFC 7959 section
/// 2.4 leaves it to the server).
const LIFETIME: Duration = Duration::from_secs(247);
/// Transfers in each direction.
const MAX_TRANSFERS: usize = 1024;

/// Which transfer a request belongs to: who asks, and a hash of all options that make the request
/// (RFC 7959 section 2.3, RFC 9175 section 3.3: Request-Tag is among them).
type Key = (SocketAddr, u64);

fn key(remote: SocketAddr, message: &Message<'_>) -> Key {
    let mut hasher = DefaultHasher::new();
    message.code().0.hash(&mut hasher);
    for opt in message.options() {
        let of_blocks = matches!(
            opt.number,
            OptionNumber::BLOCK1
                | OptionNumber::BLOCK2
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
    uploads: HashMap<Key, Upload>,
    downloads: HashMap<Key, Download>,
    /// Keys in the order of their beginning; all live equally long at least.
    upload_order: VecDeque<(Instant, Key)>,
    download_order: VecDeque<(Instant, Key)>,
    bytes: usize,
    max_body: usize,
    max_bytes: usize,
}

#[derive(Debug)]
struct Upload {
    body: BytesMut,
    /// The answer, once the last block is here: for its duplicates.
    done: Option<Response>,
}

#[derive(Debug)]
struct Download {
    response: Response,
}

/// What to do with a request that may be a part of one.
pub(crate) enum Part {
    /// It is whole, or its last block is here: let the handler answer.
    Whole(Option<Bytes>),
    /// The answer is known.
    Answer(Response),
}

impl Blocks {
    pub(crate) fn new(max_body: usize, max_bytes: usize) -> Self {
        Self {
            uploads: HashMap::new(),
            downloads: HashMap::new(),
            upload_order: VecDeque::new(),
            download_order: VecDeque::new(),
            bytes: 0,
            max_body,
            max_bytes,
        }
    }

    /// Bytes of bodies in parts, uploads, and downloads that are kept.
    pub(crate) fn held(&self) -> (usize, usize, usize) {
        (self.bytes, self.uploads.len(), self.downloads.len())
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
        self.expire(now);
        match block(message, OptionNumber::BLOCK1, sizes) {
            Err(()) => return Part::Answer(Response::new(Code::BAD_REQUEST)),
            Ok(Some(block)) => return self.upload(now, key(remote, message), message, block),
            Ok(None) => {}
        }
        match block(message, OptionNumber::BLOCK2, sizes) {
            Err(()) => Part::Answer(Response::new(Code::BAD_REQUEST)),
            Ok(Some(wanted)) if wanted.num() > 0 => {
                match self.downloads.get(&key(remote, message)) {
                    Some(download) => Part::Answer(slice(&download.response, wanted, sizes)),
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
            if self.drop_upload(&key) {
                self.upload_order.retain(|(_, other)| *other != key);
            }
            return too_large(self.max_body);
        }
        if block.more() && !block.is_full(payload.len()) {
            return Part::Answer(Response::new(Code::BAD_REQUEST));
        }
        if block.num() == 0 {
            if let Some(done) = self.uploads.get(&key).and_then(|upload| upload.done.clone())
                && !block.more()
            {
                return Part::Answer(done);
            }
            let known = self.drop_upload(&key);
            if known {
                self.upload_order.retain(|(_, other)| *other != key);
            }
            if !block.more() {
                return Part::Whole(None);
            }
            if self.upload_order.len() >= MAX_TRANSFERS || self.bytes + end > self.max_bytes {
                return Part::Answer(Response::new(Code::SERVICE_UNAVAILABLE).max_age(10));
            }
            self.uploads.insert(key, Upload { body: BytesMut::new(), done: None });
            self.upload_order.push_back((now, key));
        }
        let Some(upload) = self.uploads.get_mut(&key) else {
            // RFC 7959 section 2.9.2: the blocks before this one are missing.
            return Part::Answer(Response::new(Code::REQUEST_ENTITY_INCOMPLETE));
        };
        if let Some(done) = &upload.done {
            return Part::Answer(done.clone());
        }
        let offset = block.offset() as usize;
        if offset + payload.len() <= upload.body.len() {
            // A block that is here already.
        } else if offset != upload.body.len() {
            return Part::Answer(Response::new(Code::REQUEST_ENTITY_INCOMPLETE));
        } else if self.bytes + payload.len() > self.max_bytes {
            self.drop_upload(&key);
            return Part::Answer(Response::new(Code::SERVICE_UNAVAILABLE).max_age(10));
        } else {
            upload.body.extend_from_slice(payload);
            self.bytes += payload.len();
        }
        if block.more() {
            let mut response = Response::new(Code::CONTINUE);
            response.options.push_uint(OptionNumber::BLOCK1, block.to_uint());
            return Part::Answer(response);
        }
        // It stays until there is an answer: a copy of the last block that comes while a handler is
        // at work is as much a request as the block itself.
        Part::Whole(Some(upload.body.clone().freeze()))
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
        if response.payload.len() > sizes.whole || wanted.num() > 0 {
            if response.options.get(OptionNumber::ETAG).is_none() && response.code == Code::CONTENT
            {
                // RFC 7959 section 2.4: so that the client does not mix two versions.
                let mut hasher = DefaultHasher::new();
                response.payload.hash(&mut hasher);
                response = response.etag(&hasher.finish().to_be_bytes());
            }
            self.keep(now, key, &response);
            response = slice(&response, wanted, sizes);
        }
        if let Ok(Some(block1)) = block(message, OptionNumber::BLOCK1, sizes) {
            response.options.push_uint(OptionNumber::BLOCK1, block1.to_uint());
            if let Some(upload) = self.uploads.get_mut(&key) {
                upload.done = Some(response.clone());
                self.bytes -= core::mem::take(&mut upload.body).len();
            }
        }
        response
    }

    fn keep(&mut self, now: Instant, key: Key, response: &Response) {
        let size = response.payload.len();
        if size > self.max_bytes {
            return;
        }
        let make_room = |blocks: &Self| {
            blocks.download_order.len() >= MAX_TRANSFERS || blocks.bytes + size > blocks.max_bytes
        };
        if self.drop_download(&key) {
            self.download_order.retain(|(_, other)| *other != key);
        }
        while make_room(self) {
            let Some((_, oldest)) = self.download_order.pop_front() else { return };
            self.drop_download(&oldest);
        }
        self.bytes += size;
        self.downloads.insert(key, Download { response: response.clone() });
        self.download_order.push_back((now, key));
    }

    fn expire(&mut self, now: Instant) {
        while let Some(&(began, key)) = self.upload_order.front()
            && began + LIFETIME <= now
        {
            self.upload_order.pop_front();
            self.drop_upload(&key);
        }
        while let Some(&(began, key)) = self.download_order.front()
            && began + LIFETIME <= now
        {
            self.download_order.pop_front();
            self.drop_download(&key);
        }
    }

    fn drop_upload(&mut self, key: &Key) -> bool {
        let upload = self.uploads.remove(key);
        self.bytes -= upload.as_ref().map_or(0, |upload| upload.body.len());
        upload.is_some()
    }

    fn drop_download(&mut self, key: &Key) -> bool {
        let download = self.downloads.remove(key);
        self.bytes -= download.as_ref().map_or(0, |download| download.response.payload.len());
        download.is_some()
    }
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
