//! A gate: so many requests are behind it at once, and the others wait in front of it.

use super::budget::{Budget, Demand, ExchangeEnd};
use super::queue::{Applicant, FairQueue, Place};
use crate::system;
use std::net::IpAddr;
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
    in_flight: u32,
    queue: FairQueue<oneshot::Sender<Permit>>,
}

/// A place behind the gate; [`Self::end`] gives it back. If it is dropped before, because its client no longer waits for the
/// answer, it stays taken for a mean round trip from its beginning, because its request is still in the network.
#[derive(Debug)]
pub(crate) struct Permit {
    gate: Arc<CellGate>,
    since: Instant,
    left: bool,
}

/// A place in the queue at the time when it was taken.
#[derive(Copy, Clone, Debug)]
pub(crate) struct NextPlace {
    ahead: usize,
    served: u64,
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
    pub(crate) fn new(max: u32) -> Arc<Self> {
        let state =
            GateState { budget: Budget::new(max), in_flight: 0, queue: FairQueue::default() };
        Arc::new(Self(Mutex::new(state)))
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place. Cancel safe: a future that is dropped waits no longer.
    pub(crate) async fn enter(self: &Arc<Self>, applicant: Applicant) -> Permit {
        let (granted, place) = {
            let mut state = self.lock();
            if state.queue.len() == 0 && state.in_flight < state.budget.size() {
                state.in_flight += 1;
                drop(state);
                return self.permit();
            }
            let (grant, granted) = oneshot::channel();
            (granted, state.queue.push(applicant, grant))
        };
        let waiting = QueuedPlace { gate: self, place };
        let permit = granted.await;
        drop(waiting);
        // Only a grant takes a request from the queue of a gate that is in use.
        permit.unwrap_or_else(|_| self.permit())
    }

    fn permit(self: &Arc<Self>) -> Permit {
        Permit { gate: self.clone(), since: system::now(), left: false }
    }

    /// The place in the queue that a further request of this client would have.
    pub(crate) fn next_place(&self, client: IpAddr) -> NextPlace {
        let state = self.lock();
        NextPlace { ahead: state.queue.ahead(client), served: state.queue.served() }
    }

    /// How long a request that was given this place still waits, as far as is known, and for its answer. `None` if there
    /// is no queue, or before the first answer.
    pub(crate) fn expected(&self, place: NextPlace) -> Option<Duration> {
        let state = self.lock();
        if state.in_flight < state.budget.size() {
            return None;
        }
        let passed = usize::try_from(state.queue.served() - place.served).unwrap_or(usize::MAX);
        state.budget.wait(place.ahead.saturating_sub(passed))
    }

    /// The mean round trip; `None` before the first answer.
    pub(crate) fn mean(&self) -> Option<Duration> {
        self.lock().budget.mean()
    }

    /// The requests in flight and those that wait.
    #[cfg(test)]
    pub(crate) fn load(&self) -> (u32, usize) {
        let state = self.lock();
        (state.in_flight, state.queue.len())
    }

    fn leave(self: &Arc<Self>, end: ExchangeEnd) {
        let mut granted = Vec::new();
        {
            let mut state = self.lock();
            let demand = if state.queue.len() > 0 { Demand::Waiting } else { Demand::Satisfied };
            state.in_flight = state.in_flight.saturating_sub(1);
            state.budget.on_end(system::now(), end, demand);
            while state.in_flight < state.budget.size() {
                let Some(grant) = state.queue.pop() else { break };
                state.in_flight += 1;
                granted.push(grant);
            }
        }
        // Without the lock: a permit that nobody waits for any more is dropped here, and leaves.
        for grant in granted {
            if let Err(mut unused) = grant.send(self.permit()) {
                unused.left = true;
                self.leave(ExchangeEnd::Unmeasured);
            }
        }
    }
}

impl Permit {
    /// The request has ended.
    pub(crate) fn end(mut self, end: ExchangeEnd) {
        self.left = true;
        self.gate.leave(end);
    }

    /// The time since the place was taken.
    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.left {
            return;
        }
        let mean = self.gate.lock().budget.mean();
        let (gate, until) = (self.gate.clone(), self.since + mean.unwrap_or(FIRST_TIMEOUT));
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(async move {
                    tokio::time::sleep_until(until).await;
                    gate.leave(ExchangeEnd::Unmeasured);
                });
            }
            Err(_) => gate.leave(ExchangeEnd::Unmeasured),
        }
    }
}

/// How long a request is expected to be in the network while nothing is known of it (ACK_TIMEOUT, RFC 7252 section 4.8).
const FIRST_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn of(client: u8) -> Applicant {
        Applicant { client: IpAddr::from([192, 0, 2, client]), urgency: 3 }
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_are_behind_it_than_the_budget_allows() {
        let gate = CellGate::new(2);
        let (first, second) = (gate.enter(of(1)).await, gate.enter(of(1)).await);
        let third = tokio::spawn({
            let gate = gate.clone();
            async move { gate.enter(of(2)).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(gate.load(), (2, 1));
        first.end(ExchangeEnd::Answered(Duration::from_secs(1)));
        let third = third.await.unwrap();
        assert_eq!(gate.load(), (2, 0));
        second.end(ExchangeEnd::Lost);
        third.end(ExchangeEnd::Lost);
        assert_eq!(gate.load(), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_nobody_waits_for_keeps_its_place_while_it_is_in_the_network() {
        let gate = CellGate::new(1);
        drop(gate.enter(of(1)).await);
        tokio::task::yield_now().await;
        assert_eq!(gate.load(), (1, 0));
        let began = crate::system::now();
        let next = gate.enter(of(1)).await;
        assert_eq!(began.elapsed(), FIRST_TIMEOUT);
        next.end(ExchangeEnd::Lost);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_stops_waiting_leaves_the_queue() {
        let gate = CellGate::new(1);
        let first = gate.enter(of(1)).await;
        for client in 1..100 {
            let waits = gate.enter(of(client));
            assert!(tokio::time::timeout(Duration::ZERO, waits).await.is_err());
        }
        assert_eq!(gate.load(), (1, 0));
        first.end(ExchangeEnd::Lost);
        assert_eq!(gate.load(), (0, 0));
    }
}
