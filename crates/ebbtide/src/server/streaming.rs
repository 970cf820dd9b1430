//! Bodies that handlers receive as they arrive: each block is passed on, and answered when there is
//! room.

use super::body_stream::{BodyStream, Feed};
use super::later::HandlersAtWork;
use super::origin::Origin;
use super::panics;
use super::reply::{HandlerAnswer, Reply};
use super::route::RouteMatch;
use super::service::Service;
use crate::message::Response;
use crate::refusals::Reason;
use bytes::Bytes;
use ebbtide_core::session::TransferKey;
use ebbtide_core::session::server::BodyBlock;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Message, OptionNumber};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::watch;

/// The maximum number of bodies, including those whose answers are remembered for copies of the
/// last block.
const MAX: usize = 1024;

/// The bodies that are arriving, by the key of their transfer.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<BTreeMap<TransferKey, Arriving>>);

#[derive(Debug)]
struct Arriving {
    /// Receives the chunks; `None` after the last block.
    feed: Option<Feed>,
    /// A hash of the first block, so that a late copy of it does not begin another body.
    first: u64,
    /// The offset of the next block.
    next: u64,
    /// Whether a chunk waits for room.
    is_full: Arc<watch::Sender<bool>>,
    /// The handler's answer, once it is ready.
    answer: watch::Receiver<Option<Response>>,
    heard: Instant,
}

impl Streams {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TransferKey, Arriving>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// Accepts a block of a body that a handler receives as it arrives. The first block starts the
    /// handler.
    pub(super) fn stream_block(
        &self,
        now: Instant,
        found: &RouteMatch<'_, '_>,
        origin: &Origin<'_>,
        message: &Message<'_>,
        part: &BodyBlock,
    ) -> Reply {
        let (block, payload, max) = (part.block, message.payload(), found.route.resource.max_body);
        let (offset, key) = (u64::from(block.offset()), part.transfer);
        let end = offset + payload.len() as u64;
        if end.max(part.announced.unwrap_or(0).into()) > max as u64 {
            self.inner.streams.lock().remove(&key);
            return Reply::now(too_large(max));
        }
        let is_too_long = !block.is_bert() && payload.len() > block.size();
        if is_too_long || block.more() && !block.is_full(payload.len()) {
            return Reply::now(Response::new(Code::BAD_REQUEST));
        }
        if offset == 0 && !self.has_begun(now, &key, payload) {
            match self.begin(now, found, origin, message) {
                Ok(arriving) => drop(self.inner.streams.lock().insert(key, arriving)),
                Err(refusal) => return refusal,
            }
        }
        let mut streams = self.inner.streams.lock();
        let Some(arriving) = streams.get_mut(&key) else {
            return Reply::now(Response::new(Code::REQUEST_ENTITY_INCOMPLETE));
        };
        arriving.heard = now;
        arriving.take(offset, payload, block.more())
    }

    /// Whether a first block is a copy of the one with which a body began.
    fn has_begun(&self, now: Instant, key: &TransferKey, payload: &[u8]) -> bool {
        let lifetime = self.config().endpoint.params.exchange_lifetime();
        let mut streams = self.inner.streams.lock();
        streams.retain(|_, arriving| now.saturating_since(arriving.heard) < lifetime);
        let arriving = streams.get(key);
        arriving.is_some_and(|arriving| arriving.feed.is_some() && arriving.first == hash(payload))
    }

    /// Starts the handler.
    fn begin(
        &self,
        now: Instant,
        found: &RouteMatch<'_, '_>,
        origin: &Origin<'_>,
        message: &Message<'_>,
    ) -> Result<Arriving, Reply> {
        let source = origin.id.source();
        let refused = || {
            self.refused(now, Reason::Overloaded, origin.id);
            Reply::now(Response::new(Code::SERVICE_UNAVAILABLE).max_age(1))
        };
        let working = HandlersAtWork::begin(self, source).ok_or_else(refused)?.hold(source);
        {
            let mut streams = self.inner.streams.lock();
            if streams.len() >= MAX {
                // An answered body is remembered only for copies.
                let answered =
                    streams.iter().filter(|(_, arriving)| arriving.answer.borrow().is_some());
                let oldest = answered.min_by_key(|(_, arriving)| arriving.heard);
                let oldest = *oldest.ok_or_else(refused)?.0;
                streams.remove(&oldest);
            }
        }
        let resource = &found.route.resource;
        let lifetime = self.config().endpoint.params.exchange_lifetime();
        let (body, feed) = BodyStream::new(resource.max_pause.unwrap_or(lifetime));
        let reply = found
            .call_arriving(origin, message, message.payload(), Some(&body), |call| {
                panics::catch(|| resource.call(call))
            })
            .unwrap_or_else(|caught| Reply::now(self.panicked(&caught)));
        let (tell, answer) = watch::channel(None);
        let service = self.clone();
        tokio::spawn(async move {
            let response = match reply.0 {
                HandlerAnswer::Ready(response) => response,
                HandlerAnswer::Pending(future) => {
                    panics::caught(future).await.unwrap_or_else(|caught| service.panicked(&caught))
                }
            };
            tell.send_replace(Some(response));
            drop(working);
        });
        let first = hash(message.payload());
        let is_full = Arc::new(watch::Sender::new(false));
        Ok(Arriving { feed: Some(feed), first, next: 0, is_full, answer, heard: now })
    }
}

impl Arriving {
    /// Accepts a block of the body; the handler answers the last one.
    fn take(&mut self, offset: u64, payload: &[u8], more: bool) -> Reply {
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

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// The answer to a body that is too long, with the accepted size (RFC 7959 section 2.9.3).
fn too_large(max: usize) -> Response {
    let mut response = Response::new(Code::REQUEST_ENTITY_TOO_LARGE);
    response.options_mut().push_uint(OptionNumber::SIZE1, u32::try_from(max).unwrap_or(u32::MAX));
    response
}
