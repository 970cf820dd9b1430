//! Subjects, which clients observe (RFC 7641).

use crate::message::Response;
use crate::net::shared::Shared;
use crate::stream::Link;
use ebbtide_core::endpoint::Reliability;
use ebbtide_core::session::Observers;
use ebbtide_core::wire::{Code, Message};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// A subject of observations: the state of a resource, or its events.
///
/// Cloning it is cheap, and all clones are the same subject.
///
/// ```
/// use ebbtide::{Response, server::{Call, Router, Subject, get}};
///
/// let temperature = Subject::new();
/// let router: Router = Router::new().route(
///     "/temperature",
///     get(|_: &Call<'_>| Response::content("22.3 C")).observable(&temperature),
/// );
/// // After each change; the GET handler returns the current state.
/// temperature.changed();
/// ```
#[derive(Clone, Debug)]
pub struct Subject {
    inner: Arc<SubjectInner>,
}

#[derive(Debug)]
struct SubjectInner {
    id: u32,
    confirmable: bool,
    /// See [`Subject::close`].
    closed: AtomicBool,
    /// See [`Subject::limit`].
    max: AtomicUsize,
    /// Whether there were as many when the last request to observe came.
    full: AtomicBool,
    /// The number of changes.
    changes: AtomicU64,
    /// The minimum time between two notifications.
    span: Mutex<Option<Duration>>,
    /// Paths whose span has not passed, and whether they have changed since.
    waiting: Mutex<BTreeMap<Option<String>, bool>>,
    sockets: Mutex<ObservedTransports>,
}

/// The transports at which clients observe, by the addresses of what they are in memory: a connection is found among
/// ten thousand without a look at the others.
#[derive(Debug, Default)]
struct ObservedTransports {
    all: BTreeMap<usize, Weak<dyn Observed>>,
    /// How many there were when closed ones were last removed.
    swept: usize,
}

impl ObservedTransports {
    fn attach<O: Observed + 'static>(&mut self, transport: &Arc<O>) {
        // A weak reference keeps the memory of a closed one, so that no other has its address.
        self.all.entry(Arc::as_ptr(transport).addr()).or_insert_with(|| {
            let transport: Arc<dyn Observed> = transport.clone();
            Arc::downgrade(&transport)
        });
        if self.all.len() > 2 * self.swept + MIN_SWEPT {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        self.all.retain(|_, transport| transport.strong_count() > 0);
        self.swept = self.all.len();
    }

    fn live(&mut self) -> Vec<Arc<dyn Observed>> {
        self.sweep();
        self.all.values().filter_map(Weak::upgrade).collect()
    }
}

/// So few transports are not searched for closed ones.
const MIN_SWEPT: usize = 16;

/// A socket or a connection with observers.
pub(super) trait Observed: core::fmt::Debug + Send + Sync {
    /// Changes its observers, and notifies those that are due.
    fn change_observers(&self, change: &mut dyn FnMut(&mut Observers));
}

impl Observed for Shared {
    fn change_observers(&self, change: &mut dyn FnMut(&mut Observers)) {
        self.with(|state, _| change(&mut state.observers));
    }
}

impl Observed for Link {
    fn change_observers(&self, change: &mut dyn FnMut(&mut Observers)) {
        self.with(|state, _| change(&mut state.observers));
    }
}

static NEXT_SUBJECT: AtomicU32 = AtomicU32::new(1);

impl Default for Subject {
    fn default() -> Self {
        Self::new()
    }
}

/// The span after a change, until it has passed or the runtime that waits for its end has ended.
struct SpanPasses {
    subject: Subject,
    key: Option<String>,
    has_passed: bool,
}

impl Drop for SpanPasses {
    fn drop(&mut self) {
        if !self.has_passed {
            let waiting = &self.subject.inner.waiting;
            waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
        }
    }
}

impl Subject {
    /// Creates a subject whose notifications are Confirmable. If an observer does not acknowledge
    /// one, it is removed.
    #[must_use]
    pub fn new() -> Self {
        Self::notifying(Reliability::Confirmable)
    }

    /// Creates a subject whose notifications are Non-confirmable, except those that congestion
    /// control makes Confirmable to measure the path, one a day, and the first one to an observer
    /// whose address may be forged (RFC 7641 sections 4.5 and 7).
    #[must_use]
    pub fn non_confirmable() -> Self {
        Self::notifying(Reliability::NonConfirmable)
    }

    fn notifying(reliability: Reliability) -> Self {
        let id = NEXT_SUBJECT.fetch_add(1, Ordering::Relaxed);
        Self {
            inner: Arc::new(SubjectInner {
                id,
                confirmable: reliability == Reliability::Confirmable,
                closed: AtomicBool::new(false),
                max: AtomicUsize::new(usize::MAX),
                full: AtomicBool::new(false),
                changes: AtomicU64::new(0),
                span: Mutex::default(),
                waiting: Mutex::default(),
                sockets: Mutex::default(),
            }),
        }
    }

    /// Signals that the state changed. Every observer receives the GET handler's current response.
    /// An observer with an unacknowledged notification receives, once it acknowledges, a single one
    /// for all later changes, because only the latest state counts (RFC 7641 section 1.3).
    pub fn changed(&self) {
        self.inner.changes.fetch_add(1, Ordering::SeqCst);
        self.notify(None);
    }

    /// Notifies observers of changes at most once in this span. Later changes wait for its end,
    /// when observers receive the state of that time. Changes of different paths
    /// ([`Self::changed_at`]) do not wait for each other. The end of the span is a task of the
    /// runtime in which its first change was reported. It applies to all clones of the subject, from
    /// the next change on.
    #[must_use]
    pub fn at_most_every(self, span: Duration) -> Self {
        *self.inner.span.lock().unwrap_or_else(PoisonError::into_inner) = Some(span);
        self
    }

    /// Notifies observers of a change of all paths or of one, now or at the end of the span.
    fn notify(&self, path: Option<&str>) {
        let span = *self.inner.span.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(span) = span else { return self.notify_now(path) };
        let key = path.map(str::to_owned);
        let mut waiting = self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(changed) = waiting.get_mut(&key) {
            // Its span has not passed.
            *changed = true;
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            drop(waiting);
            return self.notify_now(path);
        };
        waiting.insert(key.clone(), false);
        drop(waiting);
        self.notify_now(path);
        let subject = self.clone();
        let passes = SpanPasses { subject: self.clone(), key: key.clone(), has_passed: false };
        runtime.spawn(async move {
            // All of it, not the field alone.
            let mut passes = passes;
            loop {
                tokio::time::sleep(span).await;
                let mut waiting =
                    subject.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner);
                if !waiting.get_mut(&key).map(core::mem::take).unwrap_or_default() {
                    waiting.remove(&key);
                    passes.has_passed = true;
                    return;
                }
                drop(waiting);
                subject.notify_now(key.as_deref());
            }
        });
    }

    fn notify_now(&self, path: Option<&str>) {
        let Some(path) = path else {
            return self.each(|observers| observers.changed(self.inner.id));
        };
        let concerns = |request: &[u8]| {
            // The bytes were a valid message on arrival.
            let Ok(message) = Message::parse(request) else { return false };
            if path.is_empty() {
                return message.path().next().is_none();
            }
            message.path().eq(path.split('/').map(str::as_bytes))
        };
        self.each(|observers| observers.changed_where(self.inner.id, concerns));
    }

    /// Signals that the state changed, and chooses whether the notification of this change is
    /// Confirmable or Non-confirmable. If one notification covers several changes, Confirmable
    /// prevails.
    pub fn changed_as(&self, reliability: Reliability) {
        self.inner.changes.fetch_add(1, Ordering::SeqCst);
        self.each(|observers| observers.changed_as(self.inner.id, reliability));
    }

    /// Signals that the state at one path changed, such as `/rooms/kitchen` of a route
    /// `/rooms/{room}`. Only the observers of that path are notified. Path segments are compared as
    /// they are, without percent-encoding.
    ///
    /// ```
    /// use ebbtide::server::{Path, Router, Subject, get};
    ///
    /// let rooms = Subject::new();
    /// let show = |Path(room): Path<String>| format!("the state of {room}");
    /// let router: Router = Router::new().route("/rooms/{room}", get(show).observable(&rooms));
    /// rooms.changed_at("/rooms/kitchen");
    /// ```
    pub fn changed_at(&self, path: &str) {
        self.inner.changes.fetch_add(1, Ordering::SeqCst);
        self.notify(Some(path.trim_matches('/')));
    }

    /// Ends all observations with this error, such as 4.04 for a resource that is gone (RFC 7641
    /// section 4.2). A code that is not an error is sent as 5.03.
    pub fn clear(&self, code: Code) {
        self.event(&last(code));
    }

    /// Accepts at most so many observers: requests of others are answered without an observation (RFC 7641
    /// section 4.1). If there are more, the observations of those that came last end with this error, as with
    /// [`Self::clear`]. Requests that come at the same time at several sockets may exceed it by one for each of them.
    pub fn limit(&self, observers: usize, code: Code) {
        self.inner.max.store(observers, Ordering::SeqCst);
        let (last, mut spared) = (last(code), observers);
        self.each(|observers| {
            observers.event_beyond(self.inner.id, spared, &last);
            spared = spared.saturating_sub(observers.of(self.inner.id));
        });
    }

    /// The maximum number of observers of a transport at which `max` may be: none if it accepts no further ones.
    pub(super) fn room(&self, max: usize) -> usize {
        if self.inner.full.load(Ordering::SeqCst) { 0 } else { max }
    }

    /// Accepts no further observers: their requests are answered as if the resource could not be observed. Those
    /// that there are remain, until [`Self::clear`] ends their observations.
    pub fn close(&self) {
        self.inner.closed.store(true, Ordering::SeqCst);
    }

    /// Whether it accepts no further observers.
    pub(super) fn is_closed(&self) -> bool {
        self.inner.closed.load(Ordering::SeqCst)
    }

    /// Reports an event: every observer receives each `notification`, in order. At most sixteen
    /// wait for one observer.
    pub fn event(&self, notification: &Response) {
        self.each(|observers| observers.event(self.inner.id, notification));
    }

    /// The number of observers at all sockets.
    #[must_use]
    pub fn observers(&self) -> usize {
        let mut count = 0;
        self.each(|observers| count += observers.of(self.inner.id));
        count
    }

    fn each(&self, mut change: impl FnMut(&mut Observers)) {
        let live = self.inner.sockets.lock().unwrap_or_else(PoisonError::into_inner).live();
        for shared in live {
            shared.change_observers(&mut change);
        }
    }

    /// Counts a transport's observers among its own. No lock of a transport may be held.
    pub(super) fn attach<O: Observed + 'static>(&self, shared: &Arc<O>) {
        let max = self.inner.max.load(Ordering::SeqCst);
        // Counting takes the locks of all transports.
        let is_full = max != usize::MAX && self.observers() >= max;
        self.inner.full.store(is_full, Ordering::SeqCst);
        self.inner.sockets.lock().unwrap_or_else(PoisonError::into_inner).attach(shared);
    }

    /// The number of changes.
    pub(super) fn changes(&self) -> u64 {
        self.inner.changes.load(Ordering::SeqCst)
    }

    /// The subject's name in the session.
    pub(super) fn name(&self) -> ebbtide_core::session::Subject {
        ebbtide_core::session::Subject { id: self.inner.id, confirmable: self.inner.confirmable }
    }
}

/// The notification that ends an observation.
fn last(code: Code) -> Response {
    let is_error = matches!(code.class(), 4 | 5);
    Response::new(if is_error { code } else { Code::SERVICE_UNAVAILABLE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Transport;

    impl Observed for Transport {
        fn change_observers(&self, _: &mut dyn FnMut(&mut Observers)) {}
    }

    #[test]
    fn transports_are_attached_once_and_closed_ones_are_forgotten() {
        let mut attached = ObservedTransports::default();
        let kept: Vec<_> = (0..50).map(|_| Arc::new(Transport)).collect();
        for _ in 0..3 {
            kept.iter().for_each(|transport| attached.attach(transport));
        }
        assert_eq!(attached.all.len(), 50);
        for _ in 0..10_000 {
            attached.attach(&Arc::new(Transport));
            assert!(attached.all.len() <= 2 * 51 + MIN_SWEPT + 1, "{}", attached.all.len());
        }
        assert_eq!(attached.live().len(), 50);
    }
}
