//! The blocks of bodies that are arriving.

use super::body_stream::Feed;
use super::reply::Reply;
use crate::message::Response;
use bytes::Bytes;
use ebbtide_core::Source;
use ebbtide_core::session::TransferKey;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Code;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::watch;

/// The bodies that are arriving, by the key of their transfer.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<BTreeMap<TransferKey, Arriving>>);

#[derive(Debug)]
pub(super) struct Arriving {
    /// In whose share it is.
    pub(super) from: Source,
    /// Receives the chunks; `None` after the last block.
    pub(super) feed: Option<Feed>,
    /// A hash of the first block, so that a late copy of it does not begin another body.
    pub(super) first: u64,
    /// The offset of the next block.
    pub(super) next: u64,
    /// Whether a chunk waits for room.
    pub(super) is_full: Arc<watch::Sender<bool>>,
    /// The handler's answer, once it is ready.
    pub(super) answer: watch::Receiver<Option<Response>>,
    pub(super) heard: Instant,
}

impl Streams {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<TransferKey, Arriving>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Arriving {
    /// Whether it is a body without its end that began with this block.
    pub(super) fn began_with(&self, payload: &[u8]) -> bool {
        self.feed.is_some() && self.first == hash(payload)
    }

    /// Accepts a block of the body; the handler answers the last one.
    pub(super) fn take(&mut self, offset: u64, payload: &[u8], more: bool) -> Reply {
        let early = self.answer.borrow().clone();
        if let Some(answer) = early.filter(|answer| !answer.is_success()) {
            // The handler does not want the rest.
            return Reply::now(answer);
        }
        let end = offset + payload.len() as u64;
        let is_new = offset == self.next && self.feed.is_some();
        if !is_new && (end > self.next || offset == self.next) {
            return Reply::now(Response::new(Code::REQUEST_ENTITY_INCOMPLETE));
        }
        let is_full = *self.is_full.borrow();
        if is_new && is_full {
            // The block before is not answered yet, so the client has not waited for its answer.
            return Reply::now(Response::new(Code::SERVICE_UNAVAILABLE).max_age(1));
        }
        let wait = if is_new { self.pass_on(end, payload, more) } else { None };
        let answered = if more { None } else { Some(self.answer.clone()) };
        // A copy of the block that waits for room waits as well.
        let copied = (is_full && end == self.next).then(|| self.is_full.subscribe());
        if wait.is_none() && answered.is_none() && copied.is_none() {
            return Reply::now(Response::new(Code::CONTINUE));
        }
        Reply::later(async move {
            if let Some(mut is_full) = copied {
                // Its sender goes with the body, of which nothing more is wanted then.
                let _ = is_full.wait_for(|is_full| !is_full).await;
            }
            if let Some((feed, chunks, is_full)) = wait {
                for chunk in chunks {
                    // A handler that has answered accepts no more.
                    let _ = feed.0.send(chunk).await;
                }
                is_full.send_replace(false);
            }
            let Some(mut answer) = answered else { return Response::new(Code::CONTINUE) };
            match answer.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(response)) => response.clone(),
                _ => Response::new(Code::INTERNAL_SERVER_ERROR),
            }
        })
    }

    /// Passes a block on to the handler. Returns chunks without room, to be sent when there is
    /// some.
    fn pass_on(&mut self, end: u64, payload: &[u8], more: bool) -> Option<Waits> {
        self.next = end;
        let feed = self.feed.as_ref()?;
        let mut chunks = Vec::new();
        let end = (!more).then(Bytes::new);
        let chunk = Some(payload).filter(|payload| !payload.is_empty());
        for chunk in chunk.map(Bytes::copy_from_slice).into_iter().chain(end) {
            match feed.0.try_send(chunk) {
                Err(TrySendError::Full(chunk)) => chunks.push(chunk),
                // A handler that has answered accepts no more.
                Ok(()) | Err(TrySendError::Closed(_)) => {}
            }
        }
        let feed = if more { Feed(feed.0.clone()) } else { self.feed.take()? };
        let waits = !chunks.is_empty();
        self.is_full.send_replace(waits);
        waits.then(|| (feed, chunks, self.is_full.clone()))
    }
}

/// Where chunks wait for room, which they are, and what says that they do.
type Waits = (Feed, Vec<Bytes>, Arc<watch::Sender<bool>>);

pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
