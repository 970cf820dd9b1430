//! One connection, shared by its task, the application's calls and the handlers.

use super::calls::{Calls, ObservedCall};
use crate::error::{Cause, Error};
use crate::message::{Options, Response, Sizes};
use crate::net::clock::{Clock, distinct};
use crate::net::peer::PeerInfo;
use crate::net::pending::Answer;
use crate::oscore::OscoreContexts;
use crate::refusals::Reason;
use ebbtide_core::cc::Sample;
use ebbtide_core::session::{BlockSizes, Due, Observers};
use ebbtide_core::stream::{Closed, Connection, Event, Failure, Incoming, Received, SendError};
use ebbtide_core::time::{Instant, Micros};
use ebbtide_core::wire::{Content, Framing, Message};
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The service for the requests that arrive over connections, and the clock of its state.
#[derive(Clone, Debug)]
pub(crate) struct Answerer {
    pub(crate) service: Arc<dyn Serve>,
    pub(crate) clock: Clock,
    /// Protects the answers.
    pub(crate) oscore: Option<OscoreContexts>,
}

/// Answers the requests that arrive over a connection.
pub(crate) trait Serve: core::fmt::Debug + Send + Sync {
    /// Counts a connection that was refused.
    fn refused(&self, why: Reason, from: IpAddr);

    /// Answers a request, or begins to.
    fn serve(
        &self,
        link: &Arc<Link>,
        now: Instant,
        incoming: Incoming,
        message: Message<'_>,
        sizes: BlockSizes,
    );

    /// Creates and sends a notification, or begins to.
    fn notify(&self, link: &Arc<Link>, now: Instant, due: Due);
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) remote: SocketAddr,
    /// The peer's identity, if its transport knows one.
    pub(crate) peer: Option<PeerInfo>,
    pub(crate) clock: Clock,
    /// Answers the peer's requests; a client's connection has none.
    pub(crate) service: Option<Arc<dyn Serve>>,
    state: Mutex<LinkState>,
}

/// The mutable state.
#[derive(Debug)]
pub(crate) struct LinkState {
    pub(crate) connection: Connection,
    calls: Calls,
    pub(crate) observers: Observers,
    /// Protects the answers to protected requests.
    pub(crate) oscore: Option<OscoreContexts>,
    /// Wakes the task.
    pub(crate) task: Option<Waker>,
    /// Wakers to call once the lock is released.
    wake: Vec<Waker>,
    /// Tasks that wait for the peer's CSM.
    waiting: Vec<Waker>,
    pub(crate) over: Option<Closed>,
    /// The diagnostic payload of the peer's Abort, or the error of its transport.
    diagnostic: Option<Arc<str>>,
    /// Until when the peer wants no other connection (RFC 8323 section 5.5).
    hold_off: Option<Instant>,
}

impl Link {
    pub(crate) fn new(
        remote: SocketAddr,
        framing: Framing,
        config: ebbtide_core::stream::Config,
        answerer: Option<Answerer>,
        peer: Option<PeerInfo>,
    ) -> Arc<Self> {
        let (service, clock, oscore) = match answerer {
            Some(Answerer { service, clock, oscore }) => (Some(service), clock, oscore),
            None => (None, Clock::start(), None),
        };
        let state = LinkState {
            connection: Connection::new(clock.now(), framing, config),
            calls: Calls::default(),
            observers: Observers::new(u64::from(distinct()) << 32 | u64::from(distinct())),
            oscore,
            task: None,
            wake: Vec::new(),
            waiting: Vec::new(),
            over: None,
            diagnostic: None,
            hold_off: None,
        };
        Arc::new(Self { remote, peer, clock, service, state: Mutex::new(state) })
    }

    /// Locks the state. A thread that panicked while it held the lock (a bug of ours, since no
    /// handler runs under the lock) does not affect the others.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state from outside the task, and wakes the task to send the result.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut LinkState, Instant) -> R) -> R {
        let now = self.clock.now();
        let mut state = self.lock();
        let result = change(&mut state, now);
        let task = state.task.take();
        let woken = state.take_wakers();
        drop(state);
        woken.into_iter().chain(task).for_each(Waker::wake);
        result
    }

    /// Whether requests can be sent.
    pub(crate) fn is_open(&self) -> bool {
        self.lock().connection.is_open()
    }

    /// Waits until the peer has announced its capabilities, or the connection has ended.
    pub(crate) async fn established(&self) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.connection.is_established() || state.over.is_some() {
                return Poll::Ready(());
            }
            if !state.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                state.waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// The body sizes that fit into a message with these options, and with so many bytes for its protection.
    pub(crate) fn sizes(&self, options: &Options, protection: usize) -> Sizes {
        // An option's header is at most five bytes.
        let bytes: usize = options.iter().map(|opt| opt.value.len() + 5).sum();
        Sizes::of_connection(&self.lock().connection, bytes + protection)
    }

    /// The number of open requests of ours.
    pub(crate) fn open_requests(&self) -> usize {
        self.lock().connection.open_requests()
    }

    /// Starts a call, and returns its place. `observed` is its request if it observes.
    pub(crate) fn call(
        &self,
        content: &Content<'_>,
        observed: Option<ObservedCall>,
    ) -> Result<u32, Error> {
        self.with(|state, now| {
            let request = state.connection.request(now, content);
            let request = request.map_err(|error| state.refused(self.remote, error))?;
            Ok(state.calls.add(Some(request), observed))
        })
    }

    /// Pings the peer, and returns the place of the call.
    pub(crate) fn ping(&self) -> Result<u32, Error> {
        self.with(|state, now| {
            let pinged = state.connection.ping(now, false);
            pinged.map_err(|error| state.refused(self.remote, error))?;
            Ok(state.calls.add(None, None))
        })
    }

    /// The next answer to a call; `None` once the request is over and all answers were fetched.
    pub(crate) fn poll_answer(&self, index: u32, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        let mut state = self.lock();
        let over = state.over.is_some();
        let Some(place) = state.calls.get(index) else { return Poll::Ready(None) };
        if let Some(answer) = place.call.pop() {
            return Poll::Ready(Some(answer));
        }
        if !place.is_open() || over {
            return Poll::Ready(None);
        }
        place.call.wake_later(cx.waker());
        Poll::Pending
    }

    /// Forgets a call that the application waits for no longer, and cancels what is still open of it.
    pub(crate) fn forget(&self, index: u32) {
        let mut state = self.lock();
        let Some(place) = state.calls.remove(index) else { return };
        let Some(request) = place.request else { return };
        drop(state);
        self.with(|state, now| {
            let Some(observed) = place.observation else {
                return state.connection.cancel(now, request);
            };
            // RFC 8323 section 7.4: there is no Reset that could end the observation.
            let sent = observed.end(|content| state.connection.deregister(now, request, content));
            if sent.is_err() {
                state.connection.cancel(now, request);
            }
        });
    }

    /// Until when the peer wants no other connection, if its Release has said so.
    pub(crate) fn hold_off(&self) -> Option<tokio::time::Instant> {
        let until = self.lock().hold_off.filter(|until| self.clock.now() < *until);
        until.map(|until| self.clock.to_tokio(until))
    }

    /// Whether the peer wants no other connection yet.
    pub(crate) fn holds_off(&self) -> bool {
        self.hold_off().is_some()
    }

    /// Releases the connection.
    pub(crate) fn release(&self) {
        self.with(|state, now| state.connection.release(now));
    }
}

impl LinkState {
    /// The application's error for a message that was not accepted.
    fn refused(&self, remote: SocketAddr, reason: SendError) -> Error {
        let cause = match self.over {
            // The connection ended before the application looked; the reason says more.
            Some(closed) => Cause::Connection {
                reason: Failure::Closed(closed),
                diagnostic: self.diagnostic.clone(),
            },
            None => Cause::NotSent(reason),
        };
        Error::for_peer(remote, cause)
    }

    /// Passes on the meaning of a message, except for requests.
    pub(crate) fn dispatch(&mut self, now: Instant, from: SocketAddr, received: Received<'_>) {
        match received {
            Received::Response { request, message } => {
                let response = Response::from_body(message.code(), message.body());
                self.wake.extend(self.calls.end(request, Answer::Response { from, response }));
            }
            Received::Notification { request, message } => {
                let response = Response::from_body(message.code(), message.body());
                self.wake.extend(self.calls.more(request, Answer::More { from, response }));
            }
            Received::Pong { round_trip, .. } => {
                let span = Micros::from_duration(round_trip);
                let sample = Sample::new(span, span, 1);
                let woken = self.calls.end_pings(|| Answer::Reset { sample: Some(sample) });
                self.wake.extend(woken);
            }
            Received::Abort(diagnostic) => {
                let text = String::from_utf8_lossy(diagnostic);
                tracing::debug!(target: "ebbtide::stream", peer = %from, diagnostic = ?text, "aborted by the peer");
                self.explain(&text);
            }
            Received::Release(release) => {
                if let Some(seconds) = release.hold_off() {
                    let span = Duration::from_secs(seconds.into()).min(MAX_HOLD_OFF);
                    self.hold_off = Some(now + span);
                }
                tracing::debug!(target: "ebbtide::stream", peer = %from, "released by the peer");
            }
            Received::Capabilities(_) => self.wake.append(&mut self.waiting),
            Received::Ignored(_) | Received::Request(..) => {}
        }
    }

    /// Keeps what is known of why the connection ends; the first reason counts.
    pub(crate) fn explain(&mut self, why: &str) {
        if self.diagnostic.is_none() && !why.is_empty() {
            self.diagnostic = Some(why.chars().take(MAX_DIAGNOSTIC).collect::<String>().into());
        }
    }

    /// Passes events to the calls. Returns true once the connection has ended.
    pub(crate) fn take_events(&mut self) -> bool {
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Failed { request, reason } => {
                    let answer = Answer::Ended { reason, diagnostic: self.diagnostic.clone() };
                    self.wake.extend(self.calls.end(request, answer));
                }
                Event::Closed(closed) => {
                    self.over = Some(closed);
                    self.wake.append(&mut self.waiting);
                    let diagnostic = self.diagnostic.clone();
                    let reason = Failure::Closed(closed);
                    let woken = self
                        .calls
                        .end_pings(|| Answer::Ended { reason, diagnostic: diagnostic.clone() });
                    self.wake.extend(woken);
                }
                _ => {}
            }
        }
        self.over.is_some()
    }

    /// Wakers to call once the lock is released.
    pub(crate) fn take_wakers(&mut self) -> Vec<Waker> {
        core::mem::take(&mut self.wake)
    }
}

/// The longest time for which a Hold-Off keeps requests waiting: EXCHANGE_LIFETIME (RFC 7252 section 4.8.2).
const MAX_HOLD_OFF: Duration = Duration::from_secs(247);
/// The number of characters of a diagnostic that are kept.
const MAX_DIAGNOSTIC: usize = 200;
