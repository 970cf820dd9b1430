//! Bodies that handlers receive as they arrive: each block is passed on, and answered when there is
//! room.

use super::arriving::{Arriving, hash};
use super::body_stream::BodyStream;
use super::inner::Service;
use super::later::HandlersAtWork;
use super::origin::Origin;
use super::panics;
use super::reply::{HandlerAnswer, Reply};
use super::route::RouteMatch;
use crate::message::Response;
use crate::refusals::Reason;
use ebbtide_core::Source;
use ebbtide_core::session::TransferKey;
use ebbtide_core::session::server::BodyBlock;
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Message, OptionNumber};
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};
use tokio::sync::watch;

/// The maximum number of bodies, including those whose answers are remembered for copies of the
/// last block.
const MAX: usize = 1024;
/// How long a body of which nothing came is not given up for another one, as bodies that are held.
const PATIENCE: Duration = Duration::from_secs(5);

impl Service {
    /// Whether half of the places of such bodies are taken, which is as many as addresses that may be forged may take. An
    /// answered body counts no more: it gives its place to any other one.
    pub(super) fn has_many_streams(&self, now: Instant) -> bool {
        let bodies = self.streams(now);
        let arrives = |arriving: &&Arriving| arriving.answer.borrow().is_none();
        bodies.len() >= MAX / 2 && bodies.values().filter(arrives).count() >= MAX / 2
    }

    /// The bodies of which something has come within the lifetime of an exchange.
    fn streams(&self, now: Instant) -> MutexGuard<'_, BTreeMap<TransferKey, Arriving>> {
        let lifetime = self.config().endpoint.params.exchange_lifetime();
        let mut bodies = self.inner.streams.lock();
        bodies.retain(|_, arriving| now.saturating_since(arriving.heard) < lifetime);
        bodies
    }

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
            match self.begin(now, key, found, origin, message) {
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
        self.streams(now).get(key).is_some_and(|arriving| arriving.began_with(payload))
    }

    /// Whether a block of a body has come before: nothing is done for it again.
    pub(super) fn is_copy_of_block(&self, part: &BodyBlock, payload: &[u8]) -> bool {
        let streams = self.inner.streams.lock();
        let Some(arriving) = streams.get(&part.transfer) else { return false };
        match part.block.offset() {
            0 => arriving.began_with(payload),
            offset => u64::from(offset) < arriving.next,
        }
    }

    /// Starts the handler.
    fn begin(
        &self,
        now: Instant,
        key: TransferKey,
        found: &RouteMatch<'_, '_>,
        origin: &Origin<'_>,
        message: &Message<'_>,
    ) -> Result<Arriving, Reply> {
        let source = origin.id.source();
        let refused = || {
            self.refused(now, Reason::Overloaded, origin.id);
            Reply::now(Response::new(Code::SERVICE_UNAVAILABLE).max_age(1))
        };
        let working =
            HandlersAtWork::begin(self, origin.id, 0).map_err(|_| refused())?.hold(source);
        let from = source.sharing();
        let has_room = {
            let mut bodies = self.inner.streams.lock();
            // One that begins anew takes the place that it had.
            bodies.contains_key(&key) || make_room(&mut bodies, now, from)
        };
        if !has_room {
            return Err(refused());
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
                HandlerAnswer::Pending(pending) => {
                    pending.future.await.unwrap_or_else(|caught| service.panicked(&caught))
                }
            };
            tell.send_replace(Some(response));
            drop(working);
        });
        let first = hash(message.payload());
        let is_full = Arc::new(watch::Sender::new(false));
        Ok(Arriving { from, feed: Some(feed), first, next: 0, is_full, answer, heard: now })
    }
}

/// Makes room for a body of a source, of which at most as many arrive as are free to others. Returns false if there is
/// none.
fn make_room(bodies: &mut BTreeMap<TransferKey, Arriving>, now: Instant, from: Source) -> bool {
    if 2 * bodies.len() < MAX {
        return true;
    }
    let is_own = |arriving: &Arriving| arriving.from == from;
    // It is remembered only for copies.
    let is_answered = |arriving: &Arriving| arriving.answer.borrow().is_some();
    let has_paused = |arriving: &Arriving| now.saturating_since(arriving.heard) >= PATIENCE;
    let oldest = |may_go: &dyn Fn(&Arriving) -> bool| {
        let all = bodies.iter().filter(|(_, arriving)| may_go(arriving));
        all.min_by_key(|(_, arriving)| arriving.heard).map(|(key, _)| *key)
    };
    let (mut arrive, mut own) = (0, 0);
    for arriving in bodies.values().filter(|arriving| !is_answered(arriving)) {
        arrive += 1;
        own += usize::from(is_own(arriving));
    }
    let free = MAX.saturating_sub(arrive);
    let gone = if free > 0 && own < free {
        if bodies.len() < MAX {
            return true;
        }
        oldest(&|arriving| is_own(arriving) && is_answered(arriving))
            .or_else(|| oldest(&is_answered))
    } else {
        let is_one_of = |arriving: &Arriving| own == 0 || is_own(arriving);
        oldest(&|arriving| is_one_of(arriving) && !is_answered(arriving) && has_paused(arriving))
    };
    gone.is_some_and(|gone| bodies.remove(&gone).is_some())
}

/// The answer to a body that is too long, with the accepted size (RFC 7959 section 2.9.3).
fn too_large(max: usize) -> Response {
    let mut response = Response::new(Code::REQUEST_ENTITY_TOO_LARGE);
    response.options_mut().push_uint(OptionNumber::SIZE1, u32::try_from(max).unwrap_or(u32::MAX));
    response
}
