//! One observation of a server's resource for all clients that observe it through the gateway (RFC 7641).

use crate::ask::{Ask, CacheKey};
use crate::cell::ExchangeEnd;
use crate::open::Counted;
use crate::options;
use crate::outcome;
use crate::system;
use crate::upstream::{Route, SharedUpstream, Upstream};
use ebbtide::server::Subject;
use ebbtide::{OptionNumber, Response};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How often the gateway checks that a client still observes.
const LOOK: Duration = Duration::from_secs(10);
/// The freshness of a state that does not say it (RFC 7252 section 5.10.5).
const MAX_AGE: u32 = 60;

/// A resource that is observed.
#[derive(Debug)]
pub(crate) struct ObservedResource {
    subject: Subject,
    latest: watch::Sender<Option<State>>,
}

/// The state of a resource.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// The server will report further states.
    Current { response: Response, at: Instant },
    /// This answer was the last.
    Last(Response),
}

impl State {
    /// The answer for a client, with the Max-Age that remains.
    pub(crate) fn response(&self) -> Response {
        match self {
            Self::Last(response) => response.clone(),
            Self::Current { response, at } => {
                let age = response.options().get_uint(OptionNumber::MAX_AGE).unwrap_or(MAX_AGE);
                let passed = u32::try_from(at.elapsed().as_secs()).unwrap_or(u32::MAX);
                response.clone().max_age(age.saturating_sub(passed))
            }
        }
    }
}

/// The resources that are observed, by the request that observes them.
#[derive(Debug, Default)]
pub(crate) struct Observations(Mutex<BTreeMap<Arc<CacheKey>, Arc<ObservedResource>>>);

impl Observations {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<CacheKey>, Arc<ObservedResource>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The subject that observers of such a request have.
    pub(crate) fn subject(&self, key: &CacheKey) -> Option<Subject> {
        self.lock().get(key).map(|observed| observed.subject.clone())
    }

    /// Follows the states of a resource, and begins to observe it if no other client does. `admit`
    /// counts the bytes of its request; `None` if there are too many.
    pub(crate) fn follow(
        self: &Arc<Self>,
        upstream: &SharedUpstream,
        ask: Ask,
        admit: impl FnOnce(usize) -> Option<Counted>,
    ) -> Option<watch::Receiver<Option<State>>> {
        let key = ask.key();
        let mut all = self.lock();
        if let Some(observed) = all.get(&key) {
            return Some(observed.latest.subscribe());
        }
        // The request has the parts of its key once more, and a body that may not be one of them.
        let counted = admit(2 * key.0.len() + ask.payload.len())?;
        let (latest, follower) = watch::channel(None);
        let observed = Arc::new(ObservedResource { subject: Subject::new(), latest });
        let key = Arc::new(key);
        all.insert(key.clone(), observed.clone());
        let entered = Entered { all: self.clone(), key, observed };
        let upstream = upstream.clone();
        tokio::spawn(async move {
            let _counted = counted;
            let last = entered.observe(&upstream, &ask).await;
            entered.end(last);
        });
        Some(follower)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}

/// An observation in the table, until it is dropped.
struct Entered {
    all: Arc<Observations>,
    key: Arc<CacheKey>,
    observed: Arc<ObservedResource>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}

impl Entered {
    fn is_followed(&self) -> bool {
        self.observed.latest.receiver_count() > 0 || self.observed.subject.observers() > 0
    }

    /// Observes for as long as a client follows. Returns the answer that ends it.
    async fn observe(&self, upstream: &Upstream, ask: &Ask) -> Option<Response> {
        let Route { uri, address } = match upstream.route(&ask.target).await {
            Ok(route) => route,
            Err(refusal) => return Some(refusal),
        };
        let request = match Upstream::request(ask, uri) {
            Ok(request) => request,
            Err(error) => return Some(outcome::failed(&error)),
        };
        // The registration is a request like others; notifications come when the server sends them.
        let mut place = upstream.cells.cell(address.ip()).enter(ask.applicant).await;
        place.set_sent();
        let mut observation = match upstream.client.observe_with(request).await {
            Ok(observation) => observation,
            Err(error) => return Some(outcome::failed(&error)),
        };
        let first = tokio::time::timeout_at(ask.deadline, observation.next()).await;
        place.end(system::now(), ExchangeEnd::Unmeasured);
        let mut next = match first {
            Ok(next) => next,
            Err(_) => return Some(outcome::timed_out()),
        };
        loop {
            let response = match next {
                None => return None,
                Some(Err(error)) => return Some(outcome::failed(&error)),
                Some(Ok(response)) => options::of_response(response, &upstream.name),
            };
            // Whether the server goes on is known at once.
            let goes_on = tokio::time::timeout(Duration::ZERO, observation.next()).await;
            if !response.is_success() || matches!(goes_on, Ok(None)) {
                return Some(response);
            }
            let state = State::Current { response, at: system::now() };
            let former = self.observed.latest.send_replace(Some(state));
            // Those that wait for the first state have it as the answer to their registration.
            if former.is_some() {
                self.observed.subject.changed();
            }
            next = match goes_on {
                Ok(next) => next,
                Err(_) => loop {
                    tokio::select! {
                        next = observation.next() => break next,
                        () = tokio::time::sleep(LOOK) => {
                            if !self.is_followed() {
                                // Without an answer, the Reset to the next notification ends it.
                                let _ = observation.cancel().await;
                                return None;
                            }
                        }
                    }
                },
            };
        }
    }

    fn end(self, last: Option<Response>) {
        let Self { observed, .. } = &self;
        observed.subject.close();
        if let Some(last) = last {
            let code = last.code();
            observed.latest.send_replace(Some(State::Last(last)));
            observed.subject.clear(code);
        }
    }
}

/// Waits for the state after the one that was seen; `None` at the end of the observation.
pub(crate) async fn next(follower: &mut watch::Receiver<Option<State>>) -> Option<State> {
    loop {
        let changed = follower.changed().await;
        if let Some(state) = follower.borrow_and_update().clone().filter(|_| changed.is_ok()) {
            return Some(state);
        }
        changed.ok()?;
    }
}
