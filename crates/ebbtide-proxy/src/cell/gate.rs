//! A gate: so many requests are behind it at once, and the others wait in front of it.
//!
//! A device that does not answer would keep its place until the deadline, and many of them all places. So a cell's gate
//! lets a request go that is overdue: it is retransmitted at intervals that double, and hardly loads the network.

use super::budget::{Budget, Demand, ExchangeEnd};
use super::queue::{Applicant, FairQueue, Place};
use super::shares::{Offer, PlaceShares};
use super::taken::{PlaceHolder, TakenPlaces};
use crate::system;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct CellGate(Mutex<GateState>);

#[derive(Debug)]
struct GateState {
    budget: Budget,
    taken: TakenPlaces,
    shares: PlaceShares,
    overdue: Overdue,
    queue: FairQueue<oneshot::Sender<Permit>>,
}

/// The fate of the place of a request whose answer is overdue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// It is free, and counts as lost: for many devices, of which some may be dead.
    Freed,
    /// It stays taken: for one device.
    Kept,
}

/// How many mean round trips after its beginning a request is overdue, but not before [`FIRST_TIMEOUT`].
const OVERDUE: u32 = 4;
/// How often those that wait look for such requests.
const LOOK_FOR_OVERDUE: Duration = Duration::from_secs(1);

/// A place behind the gate; [`Self::end`] gives it back, and so does dropping it, unless its request has left: if its
/// client no longer waits for the answer, the place stays taken for a mean round trip from its beginning, because the
/// request is still in the network.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<CellGate>,
    holder: PlaceHolder,
    since: Instant,
    stage: PermitStage,
}

/// The use of a place.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum PermitStage {
    /// A request that has not left.
    Reserved,
    /// A request in the network.
    Sent,
    /// Nothing any more.
    Ended,
}

/// A place in the queue at the time when it was taken.
#[derive(Copy, Clone, Debug)]
pub(crate) struct NextPlace {
    client: IpAddr,
    ahead: usize,
    served: u64,
}

/// The requests behind a gate and in front of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct GateLoad {
    pub(crate) in_flight: usize,
    pub(crate) waiting: usize,
    /// The number that may be in flight.
    pub(crate) budget: u32,
    /// The mean round trip; `None` before the first answer.
    pub(crate) mean: Option<Duration>,
}

/// A request in front of the gate, until it is dropped.
struct QueuedPlace<'g> {
    gate: &'g CellGate,
    place: Place,
}

impl Drop for QueuedPlace<'_> {
    fn drop(&mut self) {
        self.gate.lock().queue.remove(self.place);
    }
}

impl CellGate {
    pub(crate) fn new(max: u32, overdue: Overdue) -> Arc<Self> {
        Arc::new(Self(Mutex::new(GateState {
            budget: Budget::new(max),
            taken: TakenPlaces::default(),
            shares: PlaceShares::default(),
            overdue,
            queue: FairQueue::default(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place if one is free for this client, and a mean round trip takes no longer than `patience`.
    pub(crate) fn try_enter(
        self: &Arc<Self>,
        client: IpAddr,
        now: Instant,
        patience: Duration,
    ) -> Option<Permit> {
        let mut state = self.lock();
        if state.budget.mean().is_some_and(|mean| mean > patience) {
            return None;
        }
        state.enter(client, now).map(|holder| self.permit(holder, now))
    }

    fn permit(self: &Arc<Self>, holder: PlaceHolder, since: Instant) -> Permit {
        Permit { gate: self.clone(), holder, since, stage: PermitStage::Reserved }
    }

    /// Waits for a place. Cancel safe: a future that is dropped waits no longer.
    pub(crate) async fn enter(self: &Arc<Self>, applicant: Applicant) -> Permit {
        let (granted, place) = {
            let (mut state, now) = (self.lock(), system::now());
            if let Some(holder) = state.enter(applicant.client, now) {
                return self.permit(holder, now);
            }
            let (grant, granted) = oneshot::channel();
            (granted, state.queue.push(applicant, grant))
        };
        let waiting = QueuedPlace { gate: self, place };
        let mut granted = pin!(granted);
        let permit = loop {
            match tokio::time::timeout(LOOK_FOR_OVERDUE, granted.as_mut()).await {
                Ok(permit) => break permit,
                Err(_) => self.free_overdue(),
            }
        };
        drop(waiting);
        permit.unwrap_or_else(|_| {
            // Only a grant takes a request from the queue of a gate that is in use.
            let now = system::now();
            let holder = self.lock().take(applicant.client, now);
            self.permit(holder, now)
        })
    }

    /// The place in the queue that a further request of this client would have.
    pub(crate) fn next_place(&self, client: IpAddr) -> NextPlace {
        let state = self.lock();
        NextPlace { client, ahead: state.queue.ahead(client), served: state.queue.served() }
    }

    /// How long a request that was given this place still waits, as far as is known, and for its
    /// answer. `None` if there is no queue, or before the first answer.
    pub(crate) fn expected(&self, place: NextPlace) -> Option<Duration> {
        let state = self.lock();
        let is_free = state.free() > 0;
        if is_free && !state.queue.has(place.client) {
            return None;
        }
        let passed = usize::try_from(state.queue.served() - place.served).unwrap_or(usize::MAX);
        let ahead = place.ahead.saturating_sub(passed);
        // A client that waits while places are free leaves about half of them to others.
        state.budget.wait(if is_free { 2 * ahead } else { ahead })
    }

    /// The mean round trip; `None` before the first answer.
    pub(crate) fn mean(&self) -> Option<Duration> {
        self.lock().budget.mean()
    }

    /// The present load.
    pub(crate) fn load(&self) -> GateLoad {
        let state = self.lock();
        let (in_flight, waiting) = (state.taken.len(), state.queue.len());
        GateLoad { in_flight, waiting, budget: state.budget.size(), mean: state.budget.mean() }
    }

    fn free_overdue(self: &Arc<Self>) {
        let now = system::now();
        let granted = {
            let mut state = self.lock();
            for holder in state.overdue(now) {
                state.end(now, holder, ExchangeEnd::Lost);
            }
            // What one client leaves to others is its own when these ask no more.
            self.grants(&mut state, now)
        };
        deliver(granted);
    }

    fn leave(self: &Arc<Self>, now: Instant, holder: PlaceHolder, end: ExchangeEnd) {
        let granted = {
            let mut state = self.lock();
            state.end(now, holder, end);
            self.grants(&mut state, now)
        };
        deliver(granted);
    }

    /// The free places for those that wait.
    fn grants(self: &Arc<Self>, state: &mut GateState, now: Instant) -> Vec<Granted> {
        let next = || state.next(now);
        let granted = std::iter::from_fn(next);
        granted.map(|(holder, grant)| (grant, self.permit(holder, now))).collect()
    }
}

type Granted = (oneshot::Sender<Permit>, Permit);

/// To be called while the gate is not locked: a permit whose request no longer waits is dropped here, and leaves.
fn deliver(granted: Vec<Granted>) {
    for (grant, permit) in granted {
        drop(grant.send(permit));
    }
}

impl GateState {
    fn free(&self) -> usize {
        (self.budget.size() as usize).saturating_sub(self.taken.len())
    }

    fn take(&mut self, client: IpAddr, now: Instant) -> PlaceHolder {
        self.shares.add(client);
        self.taken.take(client, now)
    }

    /// The places that there are for a client beside so many others that wait.
    fn offer(&self, rivals: usize, now: Instant) -> Offer {
        let free = self.free();
        let is_at_budget = self.taken.len() == self.budget.size() as usize;
        let spare = usize::from(is_at_budget && self.budget.is_below_maximum());
        Offer { free, spare, rivals, now }
    }

    /// Takes a place for a client of which no other request waits, if one is free for it. Those that wait while places
    /// are free leave them to other clients.
    fn enter(&mut self, client: IpAddr, now: Instant) -> Option<PlaceHolder> {
        self.shares.note(client, now);
        let offer = self.offer(self.queue.clients(), now);
        let may = !self.queue.has(client) && self.shares.may_take(client, offer);
        may.then(|| self.take(client, now))
    }

    /// Takes a place for the request whose turn it is.
    fn next(&mut self, now: Instant) -> Option<(PlaceHolder, oneshot::Sender<Permit>)> {
        let offer = self.offer(self.queue.clients().saturating_sub(1), now);
        if offer.free + offer.spare == 0 {
            return None;
        }
        let (client, grant) = self.queue.pop(|client| self.shares.may_take(client, offer))?;
        Some((self.take(client, now), grant))
    }

    /// An exchange has ended, unless it was overdue.
    fn end(&mut self, now: Instant, holder: PlaceHolder, end: ExchangeEnd) {
        let Some(client) = self.taken.leave(holder) else { return };
        self.shares.remove(client);
        let demand = if self.queue.len() > 0 { Demand::Waiting } else { Demand::Satisfied };
        self.budget.on_end(now, end, demand);
    }

    /// The places whose requests are overdue.
    fn overdue(&self, now: Instant) -> Vec<PlaceHolder> {
        let mean = self.budget.mean().unwrap_or_default();
        let limit = FIRST_TIMEOUT.max(mean.saturating_mul(OVERDUE));
        match (self.overdue, now.checked_sub(limit)) {
            (Overdue::Freed, Some(before)) => self.taken.taken_before(before).collect(),
            (Overdue::Freed, None) | (Overdue::Kept, _) => Vec::new(),
        }
    }
}

impl Permit {
    /// The request leaves.
    pub(crate) fn set_sent(&mut self) {
        self.stage = PermitStage::Sent;
    }

    /// The request has ended.
    pub(crate) fn end(mut self, now: Instant, end: ExchangeEnd) {
        self.stage = PermitStage::Ended;
        self.gate.leave(now, self.holder, end);
    }

    /// The time since the place was taken.
    pub(crate) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        match self.stage {
            PermitStage::Ended => return,
            PermitStage::Reserved => {
                return self.gate.leave(system::now(), self.holder, ExchangeEnd::Unmeasured);
            }
            PermitStage::Sent => {}
        }
        let mean = self.gate.lock().budget.mean();
        let (gate, holder) = (self.gate.clone(), self.holder);
        let until = self.since + mean.unwrap_or(FIRST_TIMEOUT);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(async move {
                    tokio::time::sleep_until(until).await;
                    gate.leave(system::now(), holder, ExchangeEnd::Unmeasured);
                });
            }
            Err(_) => gate.leave(system::now(), holder, ExchangeEnd::Unmeasured),
        }
    }
}

/// How long a request is expected to be in the network while nothing is known of it (ACK_TIMEOUT,
/// RFC 7252 section 4.8).
const FIRST_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    /// The requests in flight and those that wait.
    fn counts(gate: &CellGate) -> (usize, usize) {
        let load = gate.load();
        (load.in_flight, load.waiting)
    }

    fn of(client: u8) -> Applicant {
        Applicant { client: IpAddr::from([192, 0, 2, client]), urgency: 3 }
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_are_behind_it_than_the_budget_allows() {
        let gate = CellGate::new(2, Overdue::Freed);
        let (first, second) = (gate.enter(of(1)).await, gate.enter(of(1)).await);
        let third = tokio::spawn({
            let gate = gate.clone();
            async move { gate.enter(of(2)).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(counts(&gate), (2, 1));
        first.end(system::now(), ExchangeEnd::Answered(Duration::from_secs(1)));
        let third = third.await.unwrap();
        assert_eq!(counts(&gate), (2, 0));
        second.end(system::now(), ExchangeEnd::Lost);
        third.end(system::now(), ExchangeEnd::Lost);
        assert_eq!(counts(&gate), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_nobody_waits_for_keeps_its_place_while_it_is_in_the_network() {
        let gate = CellGate::new(1, Overdue::Freed);
        drop(gate.enter(of(1)).await);
        assert_eq!(counts(&gate), (0, 0), "nothing has left");
        let mut sent = gate.enter(of(1)).await;
        sent.set_sent();
        drop(sent);
        tokio::task::yield_now().await;
        assert_eq!(counts(&gate), (1, 0));
        let began = crate::system::now();
        let next = gate.enter(of(1)).await;
        assert_eq!(began.elapsed(), FIRST_TIMEOUT);
        next.end(system::now(), ExchangeEnd::Lost);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_whose_devices_do_not_answer_leaves_places_to_others() {
        let gate = CellGate::new(4, Overdue::Freed);
        let (greedy, modest) = (of(1), of(2));
        gate.enter(modest).await.end(system::now(), ExchangeEnd::Answered(Duration::from_secs(1)));
        for _ in 0..20 {
            let gate = gate.clone();
            // Each waits until its place is taken from it.
            tokio::spawn(async move {
                let mut permit = gate.enter(greedy).await;
                permit.set_sent();
                tokio::time::sleep(Duration::from_secs(60)).await;
                permit.end(system::now(), ExchangeEnd::Lost);
            });
        }
        tokio::task::yield_now().await;
        let (began, span) = (system::now(), Duration::from_millis(900));
        for _ in 0..20 {
            let permit = gate.enter(modest).await;
            tokio::time::sleep(span).await;
            permit.end(system::now(), ExchangeEnd::Answered(span));
        }
        assert_eq!(began.elapsed(), 20 * span);
        // What it leaves is its own when the others have gone.
        tokio::time::sleep(Duration::from_secs(4)).await;
        let load = gate.load();
        assert_eq!(load.in_flight, load.budget as usize);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_leaves_places_to_others_knows_how_long_its_own_requests_wait() {
        let gate = CellGate::new(4, Overdue::Kept);
        let (greedy, modest) = (of(1), of(2));
        gate.enter(modest).await.end(system::now(), ExchangeEnd::Answered(Duration::from_secs(1)));
        let _taken = [gate.enter(greedy).await, gate.enter(greedy).await];
        for _ in 0..10 {
            let gate = gate.clone();
            tokio::spawn(async move { gate.enter(greedy).await });
        }
        tokio::task::yield_now().await;
        assert_eq!(counts(&gate), (2, 10), "two places are left");
        let expected = |client: Applicant| gate.expected(gate.next_place(client.client));
        // Two of the ten in each round trip, then its own.
        assert_eq!(expected(greedy), Some(Duration::from_secs(6)));
        assert_eq!(expected(modest), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_stops_waiting_leaves_the_queue() {
        let gate = CellGate::new(1, Overdue::Freed);
        let first = gate.enter(of(1)).await;
        for client in 1..100 {
            let waits = gate.enter(of(client));
            assert!(tokio::time::timeout(Duration::ZERO, waits).await.is_err());
        }
        assert_eq!(counts(&gate), (1, 0));
        first.end(system::now(), ExchangeEnd::Lost);
        assert_eq!(counts(&gate), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn devices_that_do_not_answer_lose_their_places_in_a_cell_and_not_that_at_the_device() {
        let began = crate::system::now();
        let cell = CellGate::new(2, Overdue::Freed);
        let dead = [cell.enter(of(1)).await, cell.enter(of(1)).await];
        let next = cell.enter(of(2)).await;
        assert_eq!(began.elapsed(), FIRST_TIMEOUT);
        // Its place is another's by now.
        let load = cell.load();
        dead.into_iter().for_each(|permit| permit.end(system::now(), ExchangeEnd::Lost));
        assert_eq!(cell.load(), load);
        next.end(system::now(), ExchangeEnd::Answered(Duration::from_secs(1)));
        assert_eq!(counts(&cell), (0, 0));

        let device = CellGate::new(1, Overdue::Kept);
        let dead = device.enter(of(1)).await;
        let waits = tokio::time::timeout(Duration::from_secs(60), device.enter(of(2)));
        assert!(waits.await.is_err());
        dead.end(system::now(), ExchangeEnd::Lost);
        assert_eq!(counts(&device), (0, 0));
    }
}
