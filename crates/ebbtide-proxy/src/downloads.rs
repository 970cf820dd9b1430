//! Long answers of HTTP servers that CoAP clients fetch block by block (RFC 7959 section 2.4), as fast as they come and
//! as each client asks for them. Of each answer the gateway has what the client may still ask for: its last block and
//! what follows, at most as much as the server sent at once.

use crate::ask::CacheKey;
use crate::blocks::BodyRest;
use crate::cache;
use crate::system;
use bytes::{Buf, BytesMut};
use ebbtide::{Code, OptionNumber, Response};
use ebbtide_core::wire::Block;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as TurnMutex;
use tokio::time::Instant;

/// The client and the request of a download: a client's later request for the same begins it anew.
type DownloadKey = (SocketAddr, CacheKey);

/// See the [module](self). The connections to HTTP servers, each of which has a place, bound their number.
#[derive(Debug, Default)]
pub(crate) struct WebDownloads(Mutex<BTreeMap<DownloadKey, Arc<WebDownload>>>);

/// An answer of which a client has received the beginning.
#[derive(Debug)]
pub(crate) struct WebDownload {
    /// Its code and its options.
    head: Response,
    part: TurnMutex<BodyPart>,
    heard: Mutex<Instant>,
}

/// The part of a body from the client's last block on.
#[derive(Debug)]
struct BodyPart {
    start: u64,
    bytes: BytesMut,
    rest: Option<BodyRest>,
}

impl WebDownloads {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<DownloadKey, Arc<WebDownload>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// The download that a client goes on with.
    pub(crate) fn find(&self, key: &DownloadKey) -> Option<Arc<WebDownload>> {
        self.lock().get(key).cloned()
    }

    /// Begins a download. It is forgotten when its client has not asked for `patience`.
    pub(crate) fn begin(
        self: &Arc<Self>,
        key: DownloadKey,
        mut beginning: Response,
        rest: BodyRest,
        patience: Duration,
    ) -> Arc<WebDownload> {
        if cache::etag(&beginning).is_none() {
            // By it the client notices that a block is one of another answer (RFC 7959 section 2.4).
            beginning = beginning.etag(&system::seed().to_be_bytes());
        }
        let bytes = BytesMut::from(beginning.body().as_ref());
        let part = TurnMutex::new(BodyPart { start: 0, bytes, rest: Some(rest) });
        let head = beginning.payload("");
        let download = Arc::new(WebDownload { head, part, heard: Mutex::new(system::now()) });
        self.lock().insert(key.clone(), download.clone());
        let (all, own) = (self.clone(), Arc::downgrade(&download));
        tokio::spawn(async move {
            while let Some(until) = own.upgrade().map(|own| own.heard() + patience) {
                if until > system::now() {
                    tokio::time::sleep_until(until).await;
                    continue;
                }
                let mut known = all.lock();
                // Another one may have begun meanwhile.
                if known.get(&key).is_some_and(|known| Arc::as_ptr(known) == own.as_ptr()) {
                    known.remove(&key);
                }
                return;
            }
        });
        download
    }
}

impl WebDownload {
    fn heard(&self) -> Instant {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The response with a block. Cancel safe.
    pub(crate) async fn block(&self, wanted: Block) -> Response {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = system::now();
        let mut part = self.part.lock().await;
        match part.block(wanted).await {
            Ok((bytes, block)) => {
                let mut response = self.head.clone().payload(bytes);
                response.options_mut().push_uint(OptionNumber::BLOCK2, block.to_uint());
                response
            }
            Err(refusal) => refusal,
        }
    }
}

impl BodyPart {
    async fn block(&mut self, wanted: Block) -> Result<(Vec<u8>, Block), Response> {
        // A connection's clients may ask for several of the largest blocks at once, and take one (RFC 8323 section 6).
        let (szx, offset) = (wanted.szx().min(6), u64::from(wanted.offset()));
        let size = 16 << szx;
        let passed = offset.checked_sub(self.start).and_then(|passed| usize::try_from(passed).ok());
        let Some(passed) = passed.filter(|passed| *passed <= self.bytes.len()) else {
            // RFC 7959 section 2.9.2; the client begins again.
            return Err(Response::new(Code::REQUEST_ENTITY_INCOMPLETE));
        };
        (self.start, self.bytes) = (offset, self.bytes.split_off(passed));
        while self.bytes.len() <= size
            && let Some(rest) = &mut self.rest
        {
            match rest.next().await {
                Ok(Some(bytes)) => self.bytes.extend_from_slice(&bytes),
                Ok(None) => self.rest = None,
                Err(error) => {
                    self.bytes.clear();
                    let why = Response::error(Code::BAD_GATEWAY, error.to_string());
                    return Err(why.max_age(1));
                }
            }
        }
        let length = size.min(self.bytes.len());
        let num = u32::try_from(offset / size as u64).unwrap_or(u32::MAX);
        let block = Block::new(num, length < self.bytes.len(), szx);
        let block = block.map_err(|_| {
            Response::error(Code::BAD_GATEWAY, "the answer has more blocks than can be counted")
        })?;
        Ok((self.bytes.chunk().get(..length).unwrap_or_default().to_vec(), block))
    }
}
