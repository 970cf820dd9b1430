//! Which observer is notified next, and which ones have to wait.

use super::in_flight::{SharesInFlight, push_swept};
use super::{CONFIRM_EVERY, InFlightNotification, Observer, ObserverId, Observers, SLACK, seconds};
use crate::endpoint::Reliability;
use crate::exchange::ExchangeId;
use crate::peer::{PeerId, is_fair};
use crate::peer_token::PeerToken;
use crate::session::message::{ContentFormat, Response};
use crate::shared::Shared;
use crate::time::Instant;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::IpAddr;

/// The maximum number of Confirmable notifications in flight from one socket. A change with very
/// many observers must neither take all exchanges nor overflow queues on the path.
const MAX_UNDER_WAY: usize = 4096;
/// Of these, the maximum to observers that have never acknowledged one, so that a client that
/// registers the addresses of others cannot delay real observers.
const MAX_UNPROVEN: usize = 1024;
/// Of these, the maximum to observers whose addresses may also be forged.
const MAX_UNVERIFIED: usize = 512;

/// A notification to be created.
#[derive(Clone, Debug)]
pub struct Due {
    /// The observer.
    pub observer: ObserverId,
    /// The observer's address.
    pub remote: PeerId,
    /// The token of the notification.
    pub token: PeerToken,
    /// The local address to send from, if that matters.
    pub local: Option<IpAddr>,
    /// The observer's request, which is answered again.
    pub request: Shared<[u8]>,
    /// Whether it must be acknowledged.
    pub confirmable: bool,
    /// Whether the observer has acknowledged a notification before.
    pub proven: bool,
    /// Whether its address may be forged: no client at this address has echoed a challenge or acknowledged
    /// a notification.
    pub unverified: bool,
    /// The value of Observe, if the notification is a success.
    pub sequence: u32,
    /// The response to send. `None` stands for the handler's answer to the request.
    pub event: Option<Response>,
    /// The length of the response to the request in bytes, with headers, which counts against the
    /// limit of an unverified address.
    pub sent: usize,
    /// The Content-Format of that response, if it named one.
    pub format: Option<ContentFormat>,
}

impl Due {
    /// Whether a response has the Content-Format in which the observation began, as a successful
    /// notification must (RFC 7641 section 4.2). A response that names none is a 2.03 (Valid), or
    /// leaves the format to the application.
    #[must_use]
    pub fn keeps_format(&self, response: &Response) -> bool {
        match (self.format, response.content_format()) {
            (Some(first), Some(format)) => first == format || !response.is_success(),
            _ => true,
        }
    }
}

/// The event for which a notification without room waits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// The end of an exchange with this scope
    /// ([`Endpoint::scope_of`](crate::endpoint::Endpoint::scope_of)).
    Scope(PeerId),
    /// The end of any exchange.
    Any,
}

/// The observers to notify, in their order, and the notifications in flight.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Observers that are due: first the proven ones, then those whose addresses were verified when
    /// they registered, then those that may be forged.
    proven: VecDeque<u32>,
    verified: VecDeque<u32>,
    unverified: VecDeque<u32>,
    /// Observers that wait for room.
    parked: BTreeMap<PeerId, VecDeque<ObserverId>>,
    parked_for_any: VecDeque<ObserverId>,
    /// The Confirmable notifications in flight by source, and who waits for their ends.
    shares: SharesInFlight,
    /// The number of Confirmable notifications in flight, and of those to observers that are not
    /// proven.
    under_way: usize,
    unproven_under_way: usize,
    unverified_under_way: usize,
    /// The exchanges that carry a state, by the observer's slot: a newer state may replace it.
    states: BTreeMap<u32, ExchangeId>,
    /// Exchanges whose observer has meanwhile received a newer state.
    superseded: Vec<ExchangeId>,
}

impl Queue {
    /// An observer has received the newest state as the answer to a registration, so a notification
    /// of an older one in flight is no longer needed.
    pub(super) fn supersede(&mut self, observer: &mut Observer, index: u32) {
        observer.dirty = false;
        if let Some(exchange) = self.states.remove(&index) {
            self.superseded.push(exchange);
            self.released(observer);
        }
    }

    pub(super) fn push(&mut self, observer: &mut Observer, index: u32) {
        if !observer.queued && observer.under_way == InFlightNotification::Nothing {
            observer.queued = true;
            self.queue_of(observer).push_back(index);
        }
    }

    fn queue_of(&mut self, observer: &Observer) -> &mut VecDeque<u32> {
        match (observer.proven, observer.unverified) {
            (true, _) => &mut self.proven,
            (false, false) => &mut self.verified,
            (false, true) => &mut self.unverified,
        }
    }

    /// The observer's notification is no longer in flight.
    pub(super) fn released(&mut self, observer: &mut Observer) {
        let ended = core::mem::replace(&mut observer.under_way, InFlightNotification::Nothing);
        if ended == InFlightNotification::Confirmable {
            self.shares.remove(observer.remote.source());
            self.under_way -= 1;
            self.unproven_under_way -= usize::from(!observer.proven);
            self.unverified_under_way -= usize::from(!observer.proven && observer.unverified);
        }
    }

    /// The observer was removed.
    pub(super) fn forget(&mut self, observer: &mut Observer, index: u32) {
        self.states.remove(&index);
        self.released(observer);
    }

    /// The queue from which the next observer is taken.
    fn turn(&mut self) -> Option<&mut VecDeque<u32>> {
        if self.under_way >= MAX_UNDER_WAY {
            None
        } else if !self.proven.is_empty() {
            Some(&mut self.proven)
        } else if self.unproven_under_way >= MAX_UNPROVEN {
            None
        } else if !self.verified.is_empty() {
            Some(&mut self.verified)
        } else if self.unverified_under_way < MAX_UNVERIFIED && !self.unverified.is_empty() {
            Some(&mut self.unverified)
        } else {
            None
        }
    }

    /// Whether a Confirmable notification to this observer, which is next, is within the share of its source.
    fn is_fair(&self, observer: &Observer) -> bool {
        let (taken, max) = match (observer.proven, observer.unverified) {
            (true, _) => (self.under_way, MAX_UNDER_WAY),
            (false, false) => (self.unproven_under_way, MAX_UNPROVEN),
            (false, true) => (self.unverified_under_way, MAX_UNVERIFIED),
        };
        is_fair(self.shares.of(observer.remote.source()), 1, max.saturating_sub(taken))
    }

    fn any(&self) -> bool {
        self.under_way < MAX_UNDER_WAY
            && (!self.proven.is_empty()
                || self.shares.has_room()
                || (self.unproven_under_way < MAX_UNPROVEN
                    && (!self.verified.is_empty()
                        || (self.unverified_under_way < MAX_UNVERIFIED
                            && !self.unverified.is_empty()))))
    }
}

impl Observers {
    /// Whether an observer is due and may be notified now.
    #[inline]
    #[must_use]
    pub fn any_due(&self) -> bool {
        self.due.any()
    }

    /// The next notification to create. The observer is busy, and receives no other, until the driver has
    /// called one of these:
    ///
    /// * [`Self::acknowledged`], [`Self::lost`] or [`Self::remove`] at the end of a Confirmable notification;
    /// * [`Self::arrived`] when a Non-confirmable one has left, which is when the endpoint returns
    ///   [`Sent::Exchange`](crate::endpoint::Sent::Exchange) for its exchange with a timeout of
    ///   zero. Nothing acknowledges it, and its exchange ends only after `response_timeout`, with
    ///   [`Failure::NoResponse`](crate::endpoint::Failure::NoResponse), which does not concern the
    ///   observer;
    /// * [`Self::unsent`] or [`Self::postponed`] if it could not leave.
    pub fn pop_due(&mut self, now: Instant) -> Option<Due> {
        while let Some(id) = self.due.shares.pop(|id| self.places.find(id).is_some()) {
            self.unpark(self.places.find(id));
        }
        while let Some(index) = self.due.turn().and_then(VecDeque::pop_front) {
            let id = self.places.name(index);
            // Its slot may be empty by now, or belong to another observer that is not due.
            let Some(observer) = self.places.at_mut(index).filter(|observer| observer.queued)
            else {
                continue;
            };
            let is_busy = observer.under_way != InFlightNotification::Nothing;
            if is_busy || !observer.has_news() {
                observer.queued = false;
                continue;
            }
            let is_challenged = observer.unverified && !observer.proven;
            // RFC 7641 section 7: without a sign of interest there are no further notifications.
            let confirmable =
                observer.next.map_or(observer.confirmable, |kind| kind == Reliability::Confirmable)
                    || is_challenged
                    || seconds(now).saturating_sub(observer.confirmed) >= CONFIRM_EVERY - SLACK;
            if confirmable && !self.due.is_fair(observer) {
                // It stays queued.
                let source = observer.remote.source();
                self.due.shares.wait(source, id, |id| self.places.find(id).is_some());
                continue;
            }
            observer.queued = false;
            observer.next = None;
            let event = observer.events.as_mut().and_then(|events| events.pop_front());
            if event.is_none() {
                observer.dirty = false;
            }
            observer.sequence = observer.sequence.wrapping_add(1) & 0xff_ffff;
            if is_challenged || super::saved::is_to_be_stored(observer.sequence) {
                self.version += 1;
            }
            if confirmable {
                observer.confirmed = seconds(now);
                self.due.shares.add(observer.remote.source());
                self.due.under_way += 1;
                self.due.unproven_under_way += usize::from(!observer.proven);
                self.due.unverified_under_way +=
                    usize::from(!observer.proven && observer.unverified);
            }
            observer.under_way = if confirmable {
                InFlightNotification::Confirmable
            } else {
                InFlightNotification::NonConfirmable
            };
            return Some(Due {
                observer: id,
                remote: observer.remote,
                token: observer.token.clone(),
                local: self.locals.get(observer.local),
                request: observer.request.clone(),
                confirmable,
                proven: observer.proven,
                unverified: observer.unverified && !observer.proven,
                sequence: observer.sequence,
                event,
                sent: observer.sent.into(),
                format: observer.format,
            });
        }
        None
    }

    /// A Confirmable notification has left in this exchange. If its observer registers again
    /// meanwhile, the exchange is [superseded](Self::pop_superseded).
    pub fn sent(&mut self, due: &Due, exchange: ExchangeId) {
        if due.confirmable
            && due.event.is_none()
            && let Some(index) = self.places.find(due.observer)
        {
            self.due.states.insert(index, exchange);
        }
    }

    /// An exchange for the driver to cancel, to be called after a request has been completed: its
    /// notification carries an outdated state, and its observer has registered again. On a path
    /// that was down for a while, the observer would otherwise wait for the backed-off timeout of
    /// that message (RFC 7641 section 4.5.2 lets a server give up an outdated state).
    #[inline]
    pub fn pop_superseded(&mut self) -> Option<ExchangeId> {
        self.due.superseded.pop()
    }

    /// A Confirmable notification was acknowledged: the next one may follow.
    pub fn acknowledged(&mut self, observer: ObserverId) {
        let Some(index) = self.places.find(observer) else { return };
        if let Some(observer) = self.places.at_mut(index) {
            self.due.released(observer);
            if !observer.proven {
                observer.proven = true;
                self.version += 1;
            }
        }
        self.arrived(observer);
    }

    /// The notification has arrived, as far as the server can know: the next one may follow.
    pub fn arrived(&mut self, observer: ObserverId) {
        let Some(index) = self.places.find(observer) else { return };
        let Some(observer) = self.places.at_mut(index) else { return };
        self.due.states.remove(&index);
        self.due.released(observer);
        if observer.has_news() {
            self.due.push(observer, index);
        }
    }

    /// A Non-confirmable notification could not be sent. The state is sent again in a Confirmable message,
    /// which is repeated until the path is there again.
    pub fn unsent(&mut self, id: ObserverId) {
        let Some(index) = self.places.find(id) else { return };
        let Some(observer) = self.places.at_mut(index) else { return };
        observer.dirty = true;
        observer.next = Some(Reliability::Confirmable);
        self.due.push(observer, index);
    }

    /// The notification found no room. It is created again when there may be some.
    pub fn postponed(&mut self, id: ObserverId, event: Option<Response>, room: Room) {
        let Some(index) = self.places.find(id) else { return };
        let Some(observer) = self.places.at_mut(index) else { return };
        match event {
            None => observer.dirty = true,
            Some(event) => observer.events.get_or_insert_default().push_front(event),
        }
        self.due.released(observer);
        if observer.queued {
            return;
        }
        observer.queued = true;
        let waiting = match room {
            Room::Scope(scope) => self.due.parked.entry(scope).or_default(),
            Room::Any => &mut self.due.parked_for_any,
        };
        push_swept(waiting, id, |id| self.places.find(id).is_some());
    }

    /// An exchange with this scope has ended: one of the observers that wait for that may be
    /// notified.
    pub fn room(&mut self, scope: PeerId) {
        let parked = &mut self.due.parked;
        // Usually no observer waits.
        if !parked.is_empty() {
            let mut waiting = parked.get_mut(&scope);
            let mut next = None;
            while let Some(id) = waiting.as_mut().and_then(|waiting| waiting.pop_front()) {
                next = self.places.find(id);
                if next.is_some() {
                    break;
                }
            }
            if waiting.is_some_and(|waiting| waiting.is_empty()) {
                parked.remove(&scope);
            }
            self.unpark(next);
        }
        while let Some(id) = self.due.parked_for_any.pop_front() {
            if let Some(index) = self.places.find(id) {
                self.unpark(Some(index));
                break;
            }
        }
    }

    /// The number of observers that wait for room.
    #[must_use]
    pub fn parked(&self) -> usize {
        let scopes: usize = self.due.parked.values().map(VecDeque::len).sum();
        scopes + self.due.parked_for_any.len() + self.due.shares.waiting()
    }

    /// It stays `queued`, in another queue.
    fn unpark(&mut self, index: Option<u32>) {
        let Some(index) = index else { return };
        if let Some(observer) = self.places.at(index) {
            self.due.queue_of(observer).push_back(index);
        }
    }
}
