//! Observing a resource (RFC 7641 section 3).

use super::Client;
use super::pending::Pending;
use super::session::{Session, is_no_room, loss_of};
use crate::error::Error;
use crate::message::{Request, Response};
use crate::net::clock::{Clock, SystemRandom};
use crate::net::pending::Answer;
use ebbtide_core::endpoint::Failure;
use ebbtide_core::session::client::{
    self as core, ObservationSettings, ObservationStep, Outgoing, TransferError,
};
use ebbtide_core::time::Instant;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use futures_util::task::noop_waker_ref;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::Sleep;

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
/// [`Self::cancel`] ends it and notifies the server. Dropping it ends it as well: over UDP, the server
/// learns this from the Reset to its next notification; over a connection, a GET cancels it.
///
/// ```no_run
/// # async fn example() -> Result<(), ebbtide::Error> {
/// let client = ebbtide::Client::new()?;
/// let mut time = client.observe("coap://192.0.2.7/time").await?;
/// while let Some(state) = time.next().await {
///     println!("{}", state?.text());
/// }
/// # Ok(()) }
/// ```
pub struct Observation {
    client: Client,
    request: Request,
    session: Session,
    /// All instants of the machine are this clock's.
    clock: Clock,
    machine: core::Observation,
    running: Vec<(u32, Pending)>,
    /// A message that waits for room.
    starting: Option<(u32, BoxFuture<'static, Result<Pending, Error>>)>,
    renewing: Option<BoxFuture<'static, Result<Session, Error>>>,
    sleep: Option<(Instant, Pin<Box<Sleep>>)>,
    /// The reason for which the last message was lost.
    lost: Option<Error>,
    /// The result of a poll that took place before the first call of `next`.
    ready: Option<Option<Result<Response, Error>>>,
}

impl std::fmt::Debug for Observation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observation")
            .field("uri", &self.request.uri)
            .field("remote", &self.session.remote)
            .finish_non_exhaustive()
    }
}

impl Observation {
    pub(super) fn new(client: Client, session: Session, request: Request) -> Self {
        let parts = request.parts();
        let settings = ObservationSettings {
            transfer: session.settings(&request, &parts),
            timeout: request.timeout,
            ordered: session.link().is_some(),
            end_at_error: false,
        };
        let mut observation = Self {
            clock: session.clock(),
            machine: core::Observation::new(parts, settings),
            client,
            request,
            session,
            running: Vec::new(),
            starting: None,
            renewing: None,
            sleep: None,
            lost: None,
            ready: None,
        };
        // The registration leaves now, not when the first state is waited for.
        let cx = &mut Context::from_waker(noop_waker_ref());
        if let Poll::Ready(ready) = observation.poll_state(cx) {
            observation.ready = Some(ready);
        }
        observation
    }

    /// Ends it at the first error, which is then its last item, instead of registering again.
    #[must_use]
    pub fn end_at_error(mut self) -> Self {
        self.machine.set_end_at_error(true);
        self
    }

    /// The server that was asked last.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.session.peer()
    }

    /// The next state, or the error that ends the observation. `None` when it is over: the server has ended
    /// it, or never began it, and the state before was the last.
    ///
    /// Cancel safe: what has arrived, blocks of a long state included, is kept in the observation, so that
    /// it can be used in `tokio::select!`.
    pub async fn next(&mut self) -> Option<Result<Response, Error>> {
        poll_fn(|cx| self.poll_state(cx)).await
    }

    /// Ends the observation. Over UDP this waits until the server has confirmed the end; over a
    /// connection the deregistration is sent without waiting for an answer.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not answer. The Reset to its next notification then ends
    /// the observation.
    pub async fn cancel(mut self) -> Result<(), Error> {
        self.ready = None;
        (self.renewing, self.starting, self.lost) = (None, None, None);
        if self.session.link().is_some() {
            return Ok(());
        }
        self.machine.cancel();
        let (limit, remote) = (self.request.timeout, self.session.address);
        let ended = poll_fn(|cx| {
            loop {
                match self.poll_state(cx) {
                    Poll::Ready(Some(_)) => {}
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        match limit {
            None => ended.await,
            Some(limit) => {
                let late = |_| Error::TimedOut { remote };
                tokio::time::timeout(limit, ended).await.map_err(late)?;
            }
        }
        self.lost.take().map_or(Ok(()), Err)
    }

    fn poll_state(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Response, Error>>> {
        if let Some(ready) = self.ready.take() {
            return Poll::Ready(ready);
        }
        loop {
            self.poll_renewal(cx);
            self.poll_start(cx);
            match self.machine.poll(self.clock.now(), &mut SystemRandom) {
                ObservationStep::Send { outgoing, again } => self.send(outgoing, again),
                ObservationStep::Cancel(id) => self.running.retain(|(running, _)| *running != id),
                ObservationStep::Renew => self.renew(),
                ObservationStep::State(response) => return Poll::Ready(Some(Ok(response))),
                ObservationStep::Failed(error) => return Poll::Ready(Some(Err(self.error(error)))),
                ObservationStep::Over => {
                    self.running.clear();
                    return Poll::Ready(None);
                }
                ObservationStep::Wait(until) => {
                    if !self.poll_answers(cx) && !self.poll_sleep(cx, until) {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    fn send(&mut self, outgoing: Outgoing, again: Option<u32>) {
        let (id, reliability) = (outgoing.id, self.request.reliability);
        let old = again.and_then(|old| self.running.iter().position(|(id, _)| *id == old));
        let old = old.map(|index| self.running.remove(index).1);
        let started = match &old {
            Some(old) => self.session.start_again(old, &outgoing, reliability),
            None => self.session.start(&outgoing, reliability),
        };
        match started {
            Ok(pending) => self.running.push((id, pending)),
            Err(error) if is_no_room(&error) => {
                let session = self.session.clone();
                let waiting = async move { session.start_when_room(&outgoing, reliability).await };
                self.starting = Some((id, Box::pin(waiting)));
            }
            Err(error) => self.lose(id, error),
        }
    }

    /// Looks for what there was no room for.
    fn poll_start(&mut self, cx: &mut Context<'_>) {
        let Some((id, starting)) = &mut self.starting else { return };
        let id = *id;
        let Poll::Ready(started) = starting.as_mut().poll(cx) else { return };
        self.starting = None;
        match started {
            Ok(pending) => self.running.push((id, pending)),
            Err(error) => self.lose(id, error),
        }
    }

    /// The server may be somewhere else, and a connection be lost.
    fn renew(&mut self) {
        if let Some(error) = &self.lost {
            let peer = self.session.remote;
            tracing::debug!(target: "ebbtide::request", %peer, %error, "observation registers again");
        }
        self.running.clear();
        self.client.inner.found.forget(&self.request.uri);
        let (client, uri) = (self.client.clone(), self.request.uri.clone());
        self.renewing = Some(Box::pin(async move { client.session(&uri).await }));
    }

    fn poll_renewal(&mut self, cx: &mut Context<'_>) {
        let Some(renewing) = &mut self.renewing else { return };
        let Poll::Ready(renewed) = renewing.as_mut().poll(cx) else { return };
        self.renewing = None;
        match renewed {
            Ok(session) => {
                self.session = session;
                let parts = self.request.parts();
                self.machine.renewed(self.session.settings(&self.request, &parts));
            }
            Err(error) => {
                self.lost = Some(error);
                self.machine.not_renewed();
            }
        }
    }

    /// Hands on one answer, if there is one.
    fn poll_answers(&mut self, cx: &mut Context<'_>) -> bool {
        let ready = self.running.iter().enumerate().find_map(|(index, (_, pending))| match pending
            .poll_answer(cx)
        {
            Poll::Ready(answer) => Some((index, answer)),
            Poll::Pending => None,
        });
        let Some((index, answer)) = ready else { return false };
        let now = self.clock.now();
        if let Some(Answer::More { response, .. }) = answer {
            if let Some((id, _)) = self.running.get(index) {
                self.machine.handle_response(now, *id, response, true);
            }
            return true;
        }
        let (id, pending) = self.running.remove(index);
        match answer {
            Some(Answer::Response { response, .. }) => {
                self.machine.handle_response(now, id, response, false);
            }
            Some(other) => {
                let error = pending.error(other);
                self.lose(id, error);
            }
            None => self.lose(id, Error::Closed),
        }
        true
    }

    /// Whether the instant has come.
    fn poll_sleep(&mut self, cx: &mut Context<'_>, until: Option<Instant>) -> bool {
        let Some(until) = until else { return false };
        if self.sleep.as_ref().is_none_or(|(at, _)| *at != until) {
            let at = self.clock.to_tokio(until);
            self.sleep = Some((until, Box::pin(tokio::time::sleep_until(at))));
        }
        let Some((_, sleep)) = &mut self.sleep else { return false };
        let is_over = sleep.as_mut().poll(cx).is_ready();
        if is_over {
            self.sleep = None;
        }
        is_over
    }

    fn lose(&mut self, id: u32, error: Error) {
        let loss = loss_of(&error);
        self.lost = Some(error);
        self.machine.handle_loss(self.clock.now(), id, loss);
    }

    fn error(&mut self, error: TransferError) -> Error {
        let remote = self.session.address;
        match error {
            TransferError::Lost => self.lost.take().unwrap_or(Error::Closed).of(remote),
            TransferError::TooLarge { limit } => Error::TooLarge { limit },
            TransferError::Protocol(what) => Error::Protocol { remote, what },
            TransferError::TimedOut => Error::TimedOut { remote },
            _ => Error::Failed { remote, reason: Failure::NoResponse },
        }
    }
}

impl Stream for Observation {
    type Item = Result<Response, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_state(cx)
    }
}
