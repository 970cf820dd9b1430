//! Answers that are sent later: those of slow handlers, to groups, and those that wait for room.

use super::carrier::{Carrier, Sink};
use super::inner::{Inner, Service};
use super::origin::AddressTrust;
use super::reply::PendingAnswer;
use crate::message::Response;
use crate::net::clock::fraction;
use ebbtide_core::session::server::Outgoing;
use ebbtide_core::session::{FairShares, Finished, FinishedRef, NotSent};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Code;
use ebbtide_core::{PeerId, Source};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

/// How long an answer waits for the end of an exchange before it is tried in any case.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why there is no place for a handler at work.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// As many work as may, or for this source as many as are free to others.
    Taken,
    /// Half of the places are taken, and the address may be forged.
    Unverified,
}

/// An answer that comes later, with the place of its handler.
pub(super) struct LaterAnswer {
    pub(super) pending: PendingAnswer,
    pub(super) place: HandlerPlace,
}

/// The place of a handler among those at work.
pub(super) enum HandlerPlace {
    /// It was taken before the handler was called.
    Taken(HandlersAtWork),
    /// The handler may have changed something: its request cannot be refused any more.
    Due,
    /// Nothing has changed: without a place, the request is refused.
    Wanted,
}

/// Bytes of a request, or of its body, for which it takes one place among those at work; a longer one takes more, so
/// that the number of places bounds the memory as well.
const PLACE: usize = 16 << 10;

/// The places of a request of so many bytes, of `max`. None needs more than half: it would not find them, even alone.
fn places(bytes: usize, max: usize) -> usize {
    (bytes / PLACE + 1).min(max.div_ceil(2)).max(1)
}

/// Counts a task that works on a request, and no longer when it is over, however it ends.
pub(super) struct HandlersAtWork {
    pub(super) service: Service,
    places: usize,
    /// The source in whose share it is counted, once it takes longer than a moment.
    holder: Option<Source>,
}

impl HandlersAtWork {
    /// A place for a request of `from` of so many bytes, or why there is none.
    pub(super) fn begin(service: &Service, from: PeerId, bytes: usize) -> Result<Self, NoPlace> {
        let (inner, max) = (&service.inner, service.inner.config.max_working);
        let places = places(bytes, max);
        let (working, taken) = Self::take(service, places);
        // Most handlers are ready at once: none of them waits for the lock.
        if 2 * (taken + places - 1) < max {
            return Ok(working);
        }
        if !service.trusts(from) {
            return Err(NoPlace::Unverified);
        }
        let may = taken < max && shares(inner).admit_places(from.source(), places, taken, max);
        if may { Ok(working) } else { Err(NoPlace::Taken) }
    }

    /// A place for a request of so many bytes that has one in any case.
    pub(super) fn begin_regardless(service: &Service, bytes: usize) -> Self {
        Self::take(service, places(bytes, service.inner.config.max_working)).0
    }

    /// Takes so many places. Returns how many were taken before as well.
    fn take(service: &Service, places: usize) -> (Self, usize) {
        let taken = service.inner.working.fetch_add(places, Ordering::Relaxed);
        (Self { service: service.clone(), places, holder: None }, taken)
    }

    /// It takes longer: it is counted in the share of `from`.
    pub(super) fn hold(mut self, from: Source) -> Self {
        shares(&self.service.inner).add_places(from, self.places);
        self.holder = Some(from);
        self
    }
}

fn shares(inner: &Inner) -> MutexGuard<'_, FairShares> {
    inner.shares.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for HandlersAtWork {
    fn drop(&mut self) {
        if let Some(from) = self.holder {
            shares(&self.service.inner).remove_places(from, self.places);
        }
        self.service.inner.working.fetch_sub(self.places, Ordering::Relaxed);
    }
}

impl Service {
    pub(super) fn send_all<C: Carrier>(
        &self,
        carrier: &Arc<C>,
        state: &mut C::State,
        now: Instant,
        outgoing: &Outgoing<'_>,
    ) {
        self.count(outgoing);
        for finished in outgoing.iter() {
            self.send_one(carrier, state, now, finished);
        }
    }

    /// Sends an answer: now, when there is room, or to a group's client after a delay.
    fn send_one<C: Carrier>(
        &self,
        carrier: &Arc<C>,
        state: &mut C::State,
        now: Instant,
        finished: FinishedRef<'_>,
    ) {
        if finished.requester().group {
            return at_leisure(self, carrier, finished);
        }
        if let Err(error) = state.send(now, finished) {
            if error.is_for_want_of_room() {
                when_there_is_room(self, carrier, state, finished.to_owned());
            } else {
                give_up(state, now, finished, error);
            }
        }
    }
}

/// Sends an answer as soon as there is room.
pub(super) fn when_there_is_room<C: Carrier>(
    service: &Service,
    carrier: &Arc<C>,
    state: &C::State,
    finished: Finished,
) {
    let from = finished.requester().peer();
    let Ok(working) = HandlersAtWork::begin(service, from, 0) else {
        let peer = state.shown(finished.requester().peer());
        tracing::warn!(%peer, "too many responses wait to be sent");
        return;
    };
    let (carrier, working) = (carrier.clone(), working.hold(from.source()));
    tokio::spawn(async move {
        wait(&*carrier, &finished).await;
        drop(working);
    });
}

/// Sends an answer, after waiting for room for as long as necessary.
pub(super) async fn wait<C: Carrier>(carrier: &C, finished: &Finished) {
    loop {
        let room = carrier.with(|state, now| match state.send(now, finished.as_borrowed()) {
            Ok(()) => None,
            Err(error) if error.is_for_want_of_room() => state.wait_for_room(finished.requester()),
            Err(error) => {
                give_up(state, now, finished.as_borrowed(), error);
                None
            }
        });
        let Some(room) = room else { return };
        // The end of an exchange and the end of the wait both lead to another attempt.
        let _ = tokio::time::timeout(PATIENCE, room).await;
    }
}

/// Answers a request to a group: after a delay, so that the members' answers do not collide, and
/// not at all if there is nothing to report (RFC 7252 section 8.2).
pub(super) fn at_leisure<C: Carrier>(
    service: &Service,
    carrier: &Arc<C>,
    finished: FinishedRef<'_>,
) {
    if !finished.is_useful() {
        return;
    }
    let from = finished.requester().peer();
    let Ok(working) = HandlersAtWork::begin(service, from, 0) else { return };
    let leisure = service.config().endpoint.params.default_leisure.to_duration();
    let part = fraction();
    let (carrier, working, finished) =
        (carrier.clone(), working.hold(from.source()), finished.to_owned());
    tokio::spawn(async move {
        tokio::time::sleep(leisure.mul_f64(part)).await;
        wait(&*carrier, &finished).await;
        drop(working);
    });
}

/// Sends an error in place of an answer that cannot be sent.
pub(super) fn give_up(
    state: &mut impl Sink,
    now: Instant,
    finished: FinishedRef<'_>,
    error: NotSent,
) {
    let peer = state.shown(finished.requester().peer());
    tracing::warn!(%peer, %error, "response not sent");
    let sorry = finished.instead(Response::new(Code::INTERNAL_SERVER_ERROR));
    if state.send(now, sorry.as_borrowed()).is_err() {
        state.give_up(now);
    }
}
