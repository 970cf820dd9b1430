//! Which observer is notified next, and which ones have to wait.

use super::in_flight::{MIN_SWEPT, SharesInFlight, Tier};
use super::parked::{Parked, Room};
use super::{
    Awaited, CONFIRM_EVERY, InFlightNotification, Observer, ObserverId, Observers, SLACK, seconds,
};
use crate::endpoint::Reliability;
use crate::exchange::ExchangeId;
use crate::peer::PeerId;
use crate::peer_token::PeerToken;
use crate::session::message::{ContentFormat, Response};
use crate::shared::Shared;
use crate::time::Instant;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::IpAddr;

/// The length of an empty queue that keeps its memory. A change may concern very many observers, and rarely does.
const MAX_KEPT: usize = 1024;

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

/// The observers to notify, in their order, and the notifications in flight.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Observers whose turn comes, by their tiers.
    proven: VecDeque<ObserverId>,
    verified: VecDeque<ObserverId>,
    unverified: VecDeque<ObserverId>,
    /// How many of them were removed meanwhile.
    gone: usize,
    /// Observers that wait for room.
    pub(super) parked: Parked,
    /// The Confirmable notifications in flight, and who waits for their ends.
    pub(super) shares: SharesInFlight,
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

    pub(super) fn push(&mut self, observer: &mut Observer, id: ObserverId) {
        let is_busy = observer.under_way != InFlightNotification::Nothing;
        if observer.awaits == Awaited::Nothing && !is_busy {
            self.await_turn(observer, id, Awaited::Turn);
        }
    }

    /// The observer waits for its turn, in this way.
    pub(super) fn await_turn(&mut self, observer: &mut Observer, id: ObserverId, how: Awaited) {
        observer.awaits = how;
        self.of(observer.tier()).push_back(id);
    }

    fn of(&mut self, tier: Tier) -> &mut VecDeque<ObserverId> {
        match tier {
            Tier::Proven => &mut self.proven,
            Tier::Verified => &mut self.verified,
            Tier::Unverified => &mut self.unverified,
        }
    }

    /// The observer's notification is no longer in flight.
    pub(super) fn released(&mut self, observer: &mut Observer) {
        let ended = core::mem::replace(&mut observer.under_way, InFlightNotification::Nothing);
        if let InFlightNotification::Confirmable(tier) = ended {
            self.shares.remove(observer.remote.source(), tier);
        }
    }

    /// The observer was removed. Returns the room that it was about to take.
    pub(super) fn forget(&mut self, observer: &mut Observer, index: u32) -> Option<Room> {
        self.states.remove(&index);
        self.released(observer);
        let awaited = core::mem::replace(&mut observer.awaits, Awaited::Nothing);
        self.gone += usize::from(awaited.is_turn());
        match awaited {
            Awaited::TurnFromLine(tier) => {
                self.shares.follow(observer.remote.source(), tier);
                None
            }
            Awaited::TurnWithRoom => self.parked.take_room(index),
            _ => None,
        }
    }

    /// Removes those that are gone once they are the most.
    pub(super) fn sweep(&mut self, is_there: impl Fn(ObserverId) -> bool) {
        let len = self.proven.len() + self.verified.len() + self.unverified.len();
        if self.gone >= MIN_SWEPT && 2 * self.gone > len {
            self.gone = 0;
            Tier::ALL.into_iter().for_each(|tier| self.of(tier).retain(|id| is_there(*id)));
        }
    }

    /// The observer whose turn it is.
    fn pop(&mut self) -> Option<ObserverId> {
        let is_next = |tier: &Tier| self.shares.has_place(*tier) && self.has_one(*tier);
        let tier = Tier::ALL.into_iter().find(is_next)?;
        let queue = self.of(tier);
        let next = queue.pop_front();
        if queue.is_empty() && queue.capacity() > MAX_KEPT {
            *queue = VecDeque::new();
        }
        next
    }

    fn has_one(&self, tier: Tier) -> bool {
        let queue = match tier {
            Tier::Proven => &self.proven,
            Tier::Verified => &self.verified,
            Tier::Unverified => &self.unverified,
        };
        !queue.is_empty()
    }

    fn any(&self) -> bool {
        let may = |tier| self.shares.has_place(tier);
        may(Tier::Proven) && self.shares.has_called()
            || Tier::ALL.into_iter().any(|tier| self.has_one(tier) && may(tier))
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
        loop {
            while let Some((tier, id)) = self.due.shares.pop(|id| self.places.find(id).is_some()) {
                if let Some(observer) = self.places.find(id).and_then(|at| self.places.at_mut(at)) {
                    self.due.await_turn(observer, id, Awaited::TurnFromLine(tier));
                }
            }
            let id = self.due.pop()?;
            let Some(index) = self.places.find(id) else {
                self.due.gone = self.due.gone.saturating_sub(1);
                continue;
            };
            let Some(observer) = self.places.at_mut(index) else { continue };
            let awaited = core::mem::replace(&mut observer.awaits, Awaited::Nothing);
            let (source, tier) = (observer.remote.source(), observer.tier());
            let is_challenged = tier == Tier::Unverified;
            // RFC 7641 section 7: without a sign of interest there are no further notifications.
            let confirmable =
                observer.next.map_or(observer.confirmable, |kind| kind == Reliability::Confirmable)
                    || is_challenged
                    || seconds(now).saturating_sub(observer.confirmed) >= CONFIRM_EVERY - SLACK;
            let is_busy = observer.under_way != InFlightNotification::Nothing;
            let is_wanted = !is_busy && observer.has_news();
            let is_first = awaited == Awaited::TurnFromLine(tier);
            let waits = is_wanted && confirmable && {
                let may_pass = is_first || !self.due.shares.has_line(source, tier);
                !may_pass || !self.due.shares.is_fair(source, tier)
            };
            if waits {
                observer.awaits = Awaited::Share;
            }
            if waits && is_first {
                self.due.shares.wait_again(source, tier, id);
                continue;
            }
            if let Awaited::TurnFromLine(tier) = awaited {
                self.due.shares.follow(source, tier);
            }
            let room = self.due.parked.take_room(index);
            if waits || !is_wanted {
                if waits {
                    self.due.shares.wait(source, tier, id, |id| self.places.find(id).is_some());
                }
                // Another may use the room.
                room.into_iter().for_each(|room| self.unpark(room));
                continue;
            }
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
                self.due.shares.add(source, tier);
            }
            observer.under_way = if confirmable {
                InFlightNotification::Confirmable(tier)
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
                unverified: is_challenged,
                sequence: observer.sequence,
                event,
                sent: observer.sent.into(),
                format: observer.format,
            });
        }
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
    pub fn arrived(&mut self, id: ObserverId) {
        let Some(index) = self.places.find(id) else { return };
        let Some(observer) = self.places.at_mut(index) else { return };
        self.due.states.remove(&index);
        self.due.released(observer);
        if observer.has_news() {
            self.due.push(observer, id);
        }
    }

    /// A Non-confirmable notification could not be sent. The state is sent again in a Confirmable message,
    /// which is repeated until the path is there again.
    pub fn unsent(&mut self, id: ObserverId) {
        let Some(index) = self.places.find(id) else { return };
        let Some(observer) = self.places.at_mut(index) else { return };
        observer.dirty = true;
        observer.next = Some(Reliability::Confirmable);
        self.due.push(observer, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::observers::{Registration, Subject};
    use core::net::SocketAddr;

    #[test]
    fn observers_that_go_before_their_turns_leave_nothing_behind() {
        let mut observers = Observers::new(1);
        let token = PeerToken::new(&[1]);
        let register = |observers: &mut Observers, n: u16| {
            let [high, low] = n.to_be_bytes();
            let remote = PeerId::Address(SocketAddr::from(([10, 0, high, low], 5683)));
            let (subject, request) = (Subject { id: 1, confirmable: true }, &[0x40, 1, 0, 0][..]);
            let (token, format) = (PeerToken::new(&[1]), None);
            let (local, unverified, sent) = (None, true, 40);
            let new =
                Registration { remote, token, local, unverified, subject, request, sent, format };
            observers.register(Instant::ZERO, &new, 1000).unwrap();
            remote
        };
        for n in 0..600 {
            register(&mut observers, n);
        }
        observers.changed(1);
        // All that may be in flight to addresses that may be forged.
        while observers.pop_due(Instant::ZERO).is_some() {}
        for n in 1000..9000 {
            let remote = register(&mut observers, n);
            observers.changed(1);
            observers.deregister(remote, &token);
        }
        let waiting = observers.due.unverified.len();
        assert!(waiting <= 2 * 88 + MIN_SWEPT, "{waiting}");
    }
}
