//! Long answers of HTTP servers that CoAP clients fetch block by block (RFC 7959 section 2.4), as fast as they come and
//! as each client asks for them. Of each answer the gateway has what the client may still ask for: its last block and
//! what follows, at most as much as the server sent at once.

use crate::ask::CacheKey;
use crate::blocks::BodyRest;
use crate::cache;
use crate::remainder::MAX_BLOCK;
use crate::system;
use bytes::{Buf, Bytes, BytesMut};
use ebbtide::{Code, OptionNumber, Response};
use ebbtide_core::sharing_prefix;
use ebbtide_core::wire::Block;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as TurnMutex;
use tokio::time::Instant;

/// How long a download waits for its client's second block. Until then the client may be a forged address, and the
/// download occupies a connection. A client whose datagrams are lost repeats one within this time.
const SECOND_BLOCK: Duration = Duration::from_secs(15);
/// Downloads that wait for their second block. The oldest one of the client with most makes room, so that forged
/// addresses leave most connections to others.
pub(crate) const MAX_BEGUN: usize = 64;

/// The client and the request of a download.
type DownloadKey = (SocketAddr, CacheKey);

/// See the [module](self). The connections to HTTP servers, each of which has a place, bound their number.
#[derive(Debug, Default)]
pub(crate) struct WebDownloads(Mutex<BTreeMap<DownloadKey, Arc<WebDownload>>>);

/// An answer of which a client has received the beginning.
#[derive(Debug)]
pub(crate) struct WebDownload {
    /// Its code and its options.
    head: Response,
    /// The first bytes, for a late copy of the request that began it.
    first: Bytes,
    part: TurnMutex<BodyPart>,
    contact: Mutex<Contact>,
}

/// The client's latest request for a block.
#[derive(Copy, Clone, Debug)]
enum Contact {
    /// The one that began the download, whose address may be forged.
    Begun(Instant),
    /// One for a later block.
    GoesOn(Instant),
}

impl Contact {
    fn at(self) -> Instant {
        match self {
            Self::Begun(at) | Self::GoesOn(at) => at,
        }
    }
}

/// The part of a body from the client's last block on.
#[derive(Debug)]
struct BodyPart {
    start: u64,
    bytes: BytesMut,
    end: BodyEnd,
}

/// The continuation of the bytes that are there.
#[derive(Debug)]
enum BodyEnd {
    Awaited(Box<BodyRest>),
    Reached,
    /// It never comes, and why: each further block is refused, so that no repetition ends a shorter body.
    Broken(String),
}

impl WebDownloads {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<DownloadKey, Arc<WebDownload>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether there is a download of which a later block has been asked for.
    pub(crate) fn goes_on(&self, key: &DownloadKey) -> bool {
        self.lock().get(key).is_some_and(|known| matches!(known.contact(), Contact::GoesOn(_)))
    }

    /// The download to which a request for this block belongs. A request for block 0 is a copy of
    /// the one that began the download if no later block has been asked for: the copy may have
    /// crossed the answer.
    pub(crate) fn find(&self, key: &DownloadKey, wanted: Block) -> Option<Arc<WebDownload>> {
        let known = self.lock().get(key).cloned()?;
        (wanted.num() > 0 || matches!(known.contact(), Contact::Begun(_))).then_some(known)
    }

    /// Begins a download that was requested at this time, unless the client has gone on with another one since: the
    /// request was a late copy. It is forgotten when its client has not asked for `patience`.
    pub(crate) fn begin(
        self: &Arc<Self>,
        key: DownloadKey,
        requested: Instant,
        mut beginning: Response,
        rest: BodyRest,
    ) -> Arc<WebDownload> {
        let mut known = self.lock();
        if let Some(known) = known.get(&key)
            && known.contact().at() > requested
        {
            return known.clone();
        }
        let patience = rest.patience;
        if cache::etag(&beginning).is_none() {
            // By it the client notices that a block is one of another answer (RFC 7959 section 2.4).
            beginning = beginning.etag(&system::seed().to_be_bytes());
        }
        let bytes = BytesMut::from(beginning.body().as_ref());
        let first = beginning.body().slice(..bytes.len().min(MAX_BLOCK));
        let part =
            TurnMutex::new(BodyPart { start: 0, bytes, end: BodyEnd::Awaited(Box::new(rest)) });
        let (head, contact) = (beginning.payload(""), Mutex::new(Contact::Begun(system::now())));
        let download = Arc::new(WebDownload { head, first, part, contact });
        known.insert(key.clone(), download.clone());
        make_room(&mut known);
        drop(known);
        let (all, own) = (self.clone(), Arc::downgrade(&download));
        tokio::spawn(async move {
            while let Some(until) = own.upgrade().map(|own| own.until(patience)) {
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

/// Forgets a download that waits for its second block, if there are too many.
fn make_room(known: &mut BTreeMap<DownloadKey, Arc<WebDownload>>) {
    let mut begun: BTreeMap<IpAddr, Vec<(Instant, &DownloadKey)>> = BTreeMap::new();
    for (key, download) in known.iter() {
        if let Contact::Begun(at) = download.contact() {
            begun.entry(sharing_prefix(key.0.ip())).or_default().push((at, key));
        }
    }
    if begun.values().map(Vec::len).sum::<usize>() <= MAX_BEGUN {
        return;
    }
    let most = begun.values().max_by_key(|of_client| of_client.len());
    if let Some((_, oldest)) = most.and_then(|of_client| of_client.iter().min()) {
        let oldest = (*oldest).clone();
        known.remove(&oldest);
    }
}

impl WebDownload {
    fn contact(&self) -> Contact {
        *self.contact.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When it is forgotten if its client does not ask.
    fn until(&self, patience: Duration) -> Instant {
        match self.contact() {
            Contact::Begun(at) => at + patience.min(SECOND_BLOCK),
            Contact::GoesOn(at) => at + patience,
        }
    }

    /// The first block and its bytes. A longer body goes on after it.
    fn first_block(&self, wanted: Block) -> Result<(Vec<u8>, Block), Response> {
        let szx = wanted.szx().min(Block::MAX_SZX);
        let bytes = self.first.get(..16 << szx).ok_or_else(gone)?;
        Ok((bytes.to_vec(), Block::new(0, true, szx).map_err(|_| gone())?))
    }

    /// The response with a block. Cancel safe.
    pub(crate) async fn block(&self, wanted: Block) -> Response {
        let found = match wanted.num() {
            0 => self.first_block(wanted),
            _ => {
                let contact = Contact::GoesOn(system::now());
                *self.contact.lock().unwrap_or_else(PoisonError::into_inner) = contact;
                self.part.lock().await.block(wanted).await
            }
        };
        match found {
            Ok((bytes, block)) => {
                let mut response = self.head.clone().payload(bytes);
                response.options_mut().push_uint(OptionNumber::BLOCK2, block.to_uint());
                response
            }
            Err(refusal) => refusal,
        }
    }
}

/// The answer for a block that is no longer there, or not yet. RFC 7959 has no code for it; the client begins again, as
/// with a request's body (section 2.9.2).
fn gone() -> Response {
    Response::new(Code::REQUEST_ENTITY_INCOMPLETE)
}

impl BodyPart {
    async fn block(&mut self, wanted: Block) -> Result<(Vec<u8>, Block), Response> {
        // A connection's clients may ask for several of the largest blocks at once, and take one (RFC 8323 section 6).
        let (szx, offset) = (wanted.szx().min(Block::MAX_SZX), u64::from(wanted.offset()));
        let size = 16 << szx;
        let passed = offset.checked_sub(self.start).and_then(|passed| usize::try_from(passed).ok());
        let Some(passed) = passed.filter(|passed| *passed <= self.bytes.len()) else {
            return Err(gone());
        };
        self.start = offset;
        self.bytes.advance(passed);
        while self.bytes.len() <= size {
            match &mut self.end {
                BodyEnd::Reached => break,
                BodyEnd::Awaited(rest) => match rest.next().await {
                    Ok(Some(bytes)) => self.bytes.extend_from_slice(&bytes),
                    Ok(None) => self.end = BodyEnd::Reached,
                    Err(error) => self.end = BodyEnd::Broken(error.to_string()),
                },
                BodyEnd::Broken(why) => {
                    return Err(Response::error(Code::BAD_GATEWAY, why.clone()).max_age(1));
                }
            }
        }
        let length = size.min(self.bytes.len());
        let num = u32::try_from(offset / size as u64).unwrap_or(u32::MAX);
        let block = Block::new(num, length < self.bytes.len(), szx);
        let block = block.map_err(|_| {
            Response::error(Code::BAD_GATEWAY, "the answer has more blocks than can be counted")
        })?;
        Ok((self.bytes.get(..length).unwrap_or_default().to_vec(), block))
    }
}
