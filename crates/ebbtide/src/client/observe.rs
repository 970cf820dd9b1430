//! Observing a resource (RFC 7641 section 3): each observer's view of a registration.

use super::registration::{Home, Registration};
use super::session::Session;
use super::shared_registration::{Observer, SharedRegistration, TargetResource};
use crate::error::{Cause, Error};
use crate::message::{Request, Response};
use futures_util::Stream;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// An observation of a resource: a [`Stream`] of its states.
///
/// [`Self::next`] returns the present state and each later one. A state that arrives after a newer one
/// is dropped (RFC 7641 section 3.4). Without notifications, it registers again with the same token
/// when the last state is no longer fresh.
///
/// Once registered, it survives errors: if the server or the path fails, it resolves the name and
/// registers again after 1, 2, 4 and up to 32 s, for as long as it is polled. With
/// [`Self::end_at_error`] it ends instead. The first registration fails like any request, and within
/// [`Request::timeout`].
///
/// A client that hears nothing cannot tell whether nothing has changed or the path is gone. [`Self::is_fresh`] and
/// [`Self::next_or_stale`] report that a state has outlived its Max-Age, [`Self::refresh`] asks for a new one, and
/// [`ClientConfig::observe_keep_alive`](crate::ClientConfig::observe_keep_alive) checks the path by itself.
///
/// A client registers once for each target resource (RFC 7641 section 3.1): with the same method, URI,
/// options of the Cache-Key and payload, a later observation shares the registration of the first,
/// with its block size, reliability and timeout. It begins with the latest state. One that is
/// polled less often than the others misses states between the one that it returned and the latest.
///
/// [`Self::cancel`] ends it and notifies the server. Dropping it ends it as well: over UDP, the server
/// learns this from the Reset to its next notification; over a connection, a GET cancels it. While
/// others share the registration, the server is not notified.
///
/// ```no_run
/// # async fn example() -> Result<(), ebbtide::Error> {
/// let client = ebbtide::Client::new();
/// let mut time = client.observe("coap://192.0.2.7/time").await?;
/// while let Some(state) = time.next().await {
///     println!("{}", state?.text());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Observation {
    registration: Arc<SharedRegistration>,
    observer: Observer,
    /// Whether it has left the registration.
    has_left: bool,
    /// The end of freshness that was reported.
    reported: Option<tokio::time::Instant>,
}

/// An event of an observation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Observed {
    /// A state.
    State(Response),
    /// The last state is no longer fresh, and the server may not have been heard since.
    Stale,
}

impl Observation {
    pub(super) fn new(home: Home, session: Session, request: Request) -> Self {
        let target = TargetResource::for_request(&request, home.session());
        let requests = session.requests().clone();
        let register = || Registration::new(home, session, request);
        let (registration, observer) = requests.registrations.observe(target, register);
        Self { registration, observer, has_left: false, reported: None }
    }

    /// Ends it at the first error, which is then its last item, instead of registering again.
    #[must_use]
    pub fn end_at_error(mut self) -> Self {
        self.registration.end_at_error(&mut self.observer);
        self
    }

    /// The server that was asked last.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.registration.peer()
    }

    /// The next state, or the error that ends the observation. `None` when it is over: the server has ended
    /// it, or never began it, and the state before was the last.
    ///
    /// Cancel safe: what has arrived, blocks of a long state included, is kept in the observation, so that
    /// it can be used in `tokio::select!`.
    pub async fn next(&mut self) -> Option<Result<Response, Error>> {
        poll_fn(|cx| self.registration.poll_state(&mut self.observer, cx)).await
    }

    /// Like [`Self::next`], and reports once for each state that it is no longer fresh: its Max-Age has passed, and no
    /// newer one has come (RFC 7641 section 3.3.1). The client registers again 5 to 15 s later by itself;
    /// [`Self::refresh`] makes it do so at once. Cancel safe.
    pub async fn next_or_stale(&mut self) -> Option<Result<Observed, Error>> {
        loop {
            let until = self.registration.fresh_until().filter(|at| self.reported != Some(*at));
            let Some(until) = until else {
                return self.next().await.map(|next| next.map(Observed::State));
            };
            if let Ok(next) = tokio::time::timeout_at(until, self.next()).await {
                return next.map(|next| next.map(Observed::State));
            }
            if self.registration.fresh_until() == Some(until) {
                self.reported = Some(until);
                return Some(Ok(Observed::Stale));
            }
        }
    }

    /// Whether the latest state is fresh: its Max-Age has not passed.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.registration.is_fresh()
    }

    /// Registers again under the same token, and so requests the present state, which [`Self::next`] returns. After a
    /// change of the network's address translation, a server of plain CoAP learns the new address by this.
    pub fn refresh(&self) {
        self.registration.renew();
    }

    /// Ends the observation. Over UDP this waits until the server has confirmed the end; over a
    /// connection the deregistration is sent without waiting for an answer. While others share the
    /// registration, nothing is sent.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not answer. The Reset to its next notification then ends
    /// the observation.
    pub async fn cancel(mut self) -> Result<(), Error> {
        self.has_left = true;
        if !self.registration.leave(&self.observer) {
            return Ok(());
        }
        let Some(limit) = self.registration.cancel() else { return Ok(()) };
        let ended = poll_fn(|cx| self.registration.poll_end(cx));
        match limit {
            None => ended.await,
            Some(limit) => {
                let late = |_| Error::for_peer(self.remote(), Cause::TimedOut);
                tokio::time::timeout(limit, ended).await.map_err(late)?
            }
        }
    }
}

impl Drop for Observation {
    fn drop(&mut self) {
        if !self.has_left {
            self.registration.leave(&self.observer);
        }
    }
}

impl Stream for Observation {
    type Item = Result<Response, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { registration, observer, .. } = &mut *self;
        registration.poll_state(observer, cx)
    }
}
