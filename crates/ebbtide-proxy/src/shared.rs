//! Equal requests at the same time are sent once.

use crate::ask::CacheKey;
use crate::outcome::{self, ForwardOutcome};
use ebbtide::Response;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio::time::error::Elapsed;

/// The progress of a request that several clients may wait for.
#[derive(Debug)]
pub(crate) struct RequestProgress {
    /// When it was sent.
    sent: OnceLock<Instant>,
    /// Whether a client has changed the resource since it began: its answer may be that of before.
    outdated: AtomicBool,
    /// When the last of them stops waiting.
    deadline: Mutex<Instant>,
}

impl RequestProgress {
    pub(crate) fn new(deadline: Instant) -> Arc<Self> {
        let (sent, outdated) = (OnceLock::new(), AtomicBool::new(false));
        Arc::new(Self { sent, outdated, deadline: Mutex::new(deadline) })
    }

    pub(crate) fn set_sent(&self, now: Instant) {
        // A request is sent once.
        let _ = self.sent.set(now);
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.sent.get().is_some()
    }

    pub(crate) fn sent(&self) -> Option<Instant> {
        self.sent.get().copied()
    }

    /// The answer if the time limit has passed.
    pub(crate) fn too_late(&self) -> Response {
        if self.is_sent() {
            return outcome::timed_out();
        }
        outcome::unavailable(Duration::from_secs(1), "the cell is busy")
    }

    pub(crate) fn is_outdated(&self) -> bool {
        self.outdated.load(Ordering::Acquire)
    }

    pub(crate) fn deadline(&self) -> Instant {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for work until the deadline, which may be extended meanwhile.
    pub(crate) async fn within<T>(
        &self,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, Elapsed> {
        loop {
            let deadline = self.deadline();
            match tokio::time::timeout_at(deadline, work.as_mut()).await {
                Err(elapsed) if self.deadline() <= deadline => return Err(elapsed),
                Err(_) => {}
                answered => return answered,
            }
        }
    }

    /// It is awaited until then, or longer.
    pub(crate) fn extend(&self, deadline: Instant) {
        let mut known = self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        *known = deadline.max(*known);
    }
}

/// A request that is under way for all that wait for it. It ends when the last of them no longer does.
#[derive(Clone, Debug)]
pub(crate) struct SharedRequest {
    pub(crate) progress: Arc<RequestProgress>,
    pub(crate) outcome: Shared<BoxFuture<'static, ForwardOutcome>>,
}

/// The requests under way, by key.
#[derive(Debug, Default)]
pub(crate) struct SharedRequests(Mutex<BTreeMap<Vec<u8>, Known>>);

#[derive(Debug)]
struct Known {
    progress: Arc<RequestProgress>,
    outcome: WeakShared<BoxFuture<'static, ForwardOutcome>>,
}

/// Forgets a request when it is over.
struct Entered {
    flights: Arc<SharedRequests>,
    key: Vec<u8>,
    progress: Arc<RequestProgress>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut known = self.flights.lock();
        // Another one may have begun meanwhile.
        if known.get(&self.key).is_some_and(|known| Arc::ptr_eq(&known.progress, &self.progress)) {
            known.remove(&self.key);
        }
    }
}

impl SharedRequests {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the equal request that is under way, or begins one.
    pub(crate) fn join<F>(
        self: &Arc<Self>,
        key: Vec<u8>,
        deadline: Instant,
        begin: impl FnOnce(Arc<RequestProgress>) -> F,
    ) -> SharedRequest
    where
        F: Future<Output = ForwardOutcome> + Send + 'static,
    {
        let mut known = self.lock();
        if let Some(known) = known.get(&key)
            && let Some(outcome) = known.outcome.upgrade()
        {
            known.progress.extend(deadline);
            return SharedRequest { progress: known.progress.clone(), outcome };
        }
        let progress = RequestProgress::new(deadline);
        let entered =
            Entered { flights: self.clone(), key: key.clone(), progress: progress.clone() };
        let work = begin(progress.clone());
        let outcome = async move {
            let _entered = entered;
            work.await
        };
        let outcome = outcome.boxed().shared();
        // It was created a moment ago and has not been polled, so it can be downgraded.
        if let Some(weak) = outcome.downgrade() {
            known.insert(key, Known { progress: progress.clone(), outcome: weak });
        }
        SharedRequest { progress, outcome }
    }

    /// A client has changed the resource with this URI: no further client joins a request that began before.
    pub(crate) fn outdate(&self, uri: &CacheKey) {
        let mut known = self.lock();
        while let Some(key) = {
            let from = (Bound::Included(&*uri.0), Bound::Unbounded);
            let next = known.range::<[u8], _>(from).next().map(|(key, _)| key);
            next.filter(|key| key.starts_with(&uri.0)).cloned()
        } {
            if let Some(known) = known.remove(&key) {
                known.progress.outdated.store(true, Ordering::Release);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[tokio::test(start_paused = true)]
    async fn equal_requests_share_one_and_it_ends_with_the_last_that_waits() {
        let flights = Arc::new(SharedRequests::default());
        let (began, dropped) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
        let join = || {
            let (began, held) = (began.clone(), dropped.clone());
            flights.join(vec![1], crate::system::now(), move |_| async move {
                began.fetch_add(1, Ordering::Relaxed);
                let _held = held;
                tokio::time::sleep(Duration::from_secs(10)).await;
                ForwardOutcome::Refusal(outcome::timed_out())
            })
        };
        let (first, second) = (join(), join());
        let short = tokio::time::timeout(Duration::from_secs(1), first.outcome);
        assert!(short.await.is_err());
        assert_eq!(second.outcome.await.code(), ebbtide::Code::GATEWAY_TIMEOUT);
        assert_eq!((began.load(Ordering::Relaxed), flights.count()), (1, 0));
        let last = join();
        assert!(tokio::time::timeout(Duration::from_secs(1), last.outcome).await.is_err());
        assert_eq!((flights.count(), Arc::strong_count(&dropped)), (0, 1), "it was cancelled");
    }
}
