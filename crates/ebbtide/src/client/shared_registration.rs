//! One registration for all observers of a target resource (RFC 7641 section 3.1: "A client MUST
//! aggregate such requests and MUST NOT register more than once for the same target resource").

use super::registration::Registration;
use super::weak_session::{WeakSession, WeakTransport};
use crate::error::Error;
use crate::message::{Request, Response, Scheme};
use bytes::Bytes;
use ebbtide_core::PeerId;
use ebbtide_core::wire::OptionNumber;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// The target resource of a request: its method, and what identifies its response in a cache (RFC 7252
/// section 5.6, RFC 8132 section 2.3.2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TargetResource {
    server: TargetServer,
    code: u8,
    options: Vec<(u16, Vec<u8>)>,
    payload: Bytes,
}

/// The server of a target resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TargetServer {
    Name(Scheme, String, u16),
    /// The other end of a session: a socket or connection, by its place in memory, which the registration holds, and
    /// the peer.
    Session(usize, PeerId),
}

impl TargetServer {
    fn at_session(session: &WeakSession) -> Self {
        let place = match &session.over {
            WeakTransport::Datagrams(shared) => shared.as_ptr().addr(),
            WeakTransport::Connection(link) => link.as_ptr().addr(),
        };
        Self::Session(place, session.id)
    }
}

impl TargetResource {
    pub(super) fn for_request(request: &Request, session: Option<&WeakSession>) -> Self {
        let (uri, parts) = (&request.uri, request.parts());
        let is_key =
            |number: OptionNumber| number != OptionNumber::OBSERVE && !number.is_no_cache_key();
        let options = parts.options.iter().filter(|opt| is_key(opt.number));
        Self {
            server: session.map_or_else(
                || TargetServer::Name(uri.scheme(), uri.host().to_owned(), uri.port()),
                TargetServer::at_session,
            ),
            code: parts.code.0,
            options: options.map(|opt| (opt.number.0, opt.value.to_vec())).collect(),
            payload: parts.payload,
        }
    }
}

/// The registrations of a client, by their targets.
#[derive(Debug, Default)]
pub(super) struct Registrations(Mutex<BTreeMap<TargetResource, Weak<SharedRegistration>>>);

impl Registrations {
    /// One more observer of this target, which registers if it is the first one.
    pub(super) fn observe(
        &self,
        target: TargetResource,
        register: impl FnOnce() -> Registration,
    ) -> (Arc<SharedRegistration>, Observer) {
        // Dropped after the lock, which its end takes.
        let known;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known = all.get(&target).and_then(Weak::upgrade);
        if let Some(known) = &known
            && let Some(observer) = known.enter()
        {
            return (known.clone(), observer);
        }
        let shared = Arc::new(SharedRegistration::new(target.clone(), register()));
        all.insert(target, Arc::downgrade(&shared));
        drop(all);
        let observer = shared.enter().unwrap_or_default();
        (shared, observer)
    }

    /// A registration has ended. Another one may have taken its place.
    fn forget(&self, target: &TargetResource) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(target).is_some_and(|known| known.strong_count() == 0) {
            all.remove(target);
        }
    }
}

/// The progress of one observer of a registration.
#[derive(Debug, Default)]
pub(super) struct Observer {
    /// Its name for the wakers.
    number: u64,
    /// The number of the last state that it returned.
    seen: u64,
    /// How often the registration had been lost when it came.
    losses: u64,
    /// Whether it ends at the first error.
    ends_at_error: bool,
    is_over: bool,
}

/// Wakes every observer that waits: each of them may drive the registration, and one that was woken need not
/// come.
#[derive(Debug, Default)]
struct Wakers(Mutex<BTreeMap<u64, Waker>>);

impl Wakers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let woken = std::mem::take(&mut *self.lock());
        woken.into_values().for_each(Waker::wake);
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct SharedRegistration {
    target: TargetResource,
    wakers: Arc<Wakers>,
    /// Wakes all of them.
    waker: Waker,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
struct Progress {
    registration: Registration,
    latest: Option<Response>,
    /// How many states there were.
    states: u64,
    is_over: bool,
    /// The error with which it ended.
    error: Option<Error>,
    /// Whether it is being cancelled, so that no observer can join it.
    is_closed: bool,
    observers: usize,
    /// Those of them that end at the first error.
    ending: usize,
    /// How many observers there have ever been.
    entered: u64,
}

impl Progress {
    /// The registration goes on. Whether something came of it.
    fn advance(&mut self, cx: &mut Context<'_>) -> bool {
        if self.is_over {
            return false;
        }
        match self.registration.poll_state(cx) {
            Poll::Pending => return false,
            Poll::Ready(Some(Ok(state))) => {
                self.latest = Some(state);
                self.states += 1;
            }
            Poll::Ready(Some(Err(error))) => (self.is_over, self.error) = (true, Some(error)),
            Poll::Ready(None) => self.is_over = true,
        }
        true
    }

    /// The registration outlives errors as long as one observer wants it to.
    fn count(&mut self) {
        self.registration.set_end_at_error(self.ending == self.observers);
    }
}

impl SharedRegistration {
    fn new(target: TargetResource, registration: Registration) -> Self {
        let wakers = Arc::<Wakers>::default();
        let progress = Progress {
            registration,
            latest: None,
            states: 0,
            is_over: false,
            error: None,
            is_closed: false,
            observers: 0,
            ending: 0,
            entered: 0,
        };
        let (waker, progress) = (wakers.clone().into(), Mutex::new(progress));
        Self { target, wakers, waker, progress }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server that was asked last.
    pub(super) fn peer(&self) -> SocketAddr {
        self.lock().registration.peer()
    }

    /// An observer comes; `None` if the registration has ended, or is about to.
    fn enter(&self) -> Option<Observer> {
        let mut progress = self.lock();
        if progress.is_over || progress.is_closed {
            return None;
        }
        progress.observers += 1;
        progress.entered += 1;
        progress.count();
        let is_known = progress.latest.is_some() && progress.registration.refresh();
        let observer = Observer {
            number: progress.entered,
            seen: progress.states - u64::from(is_known),
            losses: progress.registration.losses(),
            ..Observer::default()
        };
        // The registration leaves now, not when the first state is waited for.
        if progress.advance(&mut Context::from_waker(&self.waker)) {
            self.waker.wake_by_ref();
        }
        Some(observer)
    }

    /// Requests a new state.
    pub(super) fn renew(&self) {
        self.lock().registration.register_again();
        self.waker.wake_by_ref();
    }

    /// Whether the latest state is fresh.
    pub(super) fn is_fresh(&self) -> bool {
        self.lock().registration.is_fresh()
    }

    /// Until when the latest state is fresh.
    pub(super) fn fresh_until(&self) -> Option<tokio::time::Instant> {
        self.lock().registration.fresh_until()
    }

    /// This observer ends at the first error from now on.
    pub(super) fn end_at_error(&self, observer: &mut Observer) {
        if !observer.ends_at_error {
            observer.ends_at_error = true;
            let mut progress = self.lock();
            progress.ending += 1;
            progress.count();
        }
    }

    /// The next state of an observer, or the error that ends its observation.
    pub(super) fn poll_state(
        &self,
        observer: &mut Observer,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Response, Error>>> {
        if observer.is_over {
            return Poll::Ready(None);
        }
        self.wakers.lock().insert(observer.number, cx.waker().clone());
        let mut progress = self.lock();
        let mut has_advanced = false;
        let ready = loop {
            if progress.states > observer.seen {
                observer.seen = progress.states;
                break progress.latest.clone().map(Ok);
            }
            let is_lost = progress.registration.losses() > observer.losses;
            if progress.is_over || observer.ends_at_error && is_lost {
                observer.is_over = true;
                let error = match progress.error.clone() {
                    Some(error) => Some(error),
                    None if progress.is_over => None,
                    None => progress.registration.loss(),
                };
                break error.map(Err);
            }
            if !progress.advance(&mut Context::from_waker(&self.waker)) {
                let is_lost = progress.registration.losses() > observer.losses;
                if observer.ends_at_error && is_lost {
                    continue;
                }
                return Poll::Pending;
            }
            has_advanced = true;
        };
        drop(progress);
        self.wakers.lock().remove(&observer.number);
        if has_advanced {
            self.waker.wake_by_ref();
        }
        Poll::Ready(ready)
    }

    /// An observer leaves. Whether it was the last one.
    pub(super) fn leave(&self, observer: &Observer) -> bool {
        self.wakers.lock().remove(&observer.number);
        let mut progress = self.lock();
        progress.observers -= 1;
        progress.ending -= usize::from(observer.ends_at_error);
        progress.count();
        progress.is_closed = progress.observers == 0;
        let is_last = progress.is_closed;
        drop(progress);
        // The others have to drive it.
        self.waker.wake_by_ref();
        is_last
    }

    /// Begins to deregister. Returns how long the server may take to confirm it; `None` if there is nothing
    /// to wait for.
    pub(super) fn cancel(&self) -> Option<Option<Duration>> {
        let mut progress = self.lock();
        let waits = progress.registration.cancel();
        waits.then(|| progress.registration.timeout())
    }

    /// The end of a registration that was cancelled.
    pub(super) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut progress = self.lock();
        while progress.advance(cx) {}
        match progress.is_over {
            true => Poll::Ready(progress.registration.loss().map_or(Ok(()), Err)),
            false => Poll::Pending,
        }
    }
}

impl Drop for SharedRegistration {
    fn drop(&mut self) {
        let progress = self.progress.get_mut().unwrap_or_else(PoisonError::into_inner);
        progress.registration.requests().registrations.forget(&self.target);
    }
}
