//! The registration of a client as an observer, and the states that it brings (RFC 7641 section 3).

use super::keep_alive::{KeepAlive, NextCheck};
use super::pending::Pending;
use super::running::{Arrived, News, Running};
use super::session::{Session, is_no_room, loss_of};
use super::weak_session::WeakSession;
use super::{Client, Requests};
use crate::error::Error;
use crate::message::{Request, Response};
use crate::net::clock::{Clock, SystemRandom};
use ebbtide_core::session::client::{
    self as core, ObservationSettings, ObservationStep, Outgoing, TransferError,
};
use ebbtide_core::time::Instant;
use futures_util::future::BoxFuture;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// How the session is found again after a loss.
pub(super) enum Home {
    /// By the name in the URI.
    Name(Client),
    /// It is this one, or gone.
    Session(WeakSession),
}

impl Home {
    /// The session that it is bound to.
    pub(super) const fn session(&self) -> Option<&WeakSession> {
        match self {
            Self::Name(_) => None,
            Self::Session(session) => Some(session),
        }
    }
}

/// A registration with a server, for all observers of one target resource. Each of them may
/// poll it.
pub(super) struct Registration {
    home: Home,
    request: Request,
    session: Session,
    /// All instants of the machine are this clock's.
    clock: Clock,
    machine: core::Observation,
    running: Running,
    /// A message that waits for room.
    starting: Option<(u32, BoxFuture<'static, Result<Pending, Error>>)>,
    renewing: Option<BoxFuture<'static, Result<Session, Error>>>,
    sleep: Option<(Instant, Pin<Box<Sleep>>)>,
    keep_alive: KeepAlive,
    /// The reason for which the last message was lost.
    lost: Option<Error>,
    /// How often it had to register anew because it was lost.
    losses: u64,
    /// How often the DTLS session was replaced, as far as this has been noticed.
    replaced: u64,
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration")
            .field("uri", &self.request.uri)
            .field("remote", &self.session.address)
            .finish_non_exhaustive()
    }
}

impl Registration {
    pub(super) fn new(home: Home, session: Session, request: Request) -> Self {
        let parts = request.parts();
        let settings = ObservationSettings {
            transfer: session.settings(&request, &parts),
            timeout: request.timeout,
            ordered: session.link().is_some(),
            end_at_error: false,
        };
        Self {
            clock: session.clock(),
            machine: core::Observation::new(parts, settings),
            keep_alive: KeepAlive::new(session.requests().config.observe_keep_alive),
            home,
            request,
            session,
            running: Running::default(),
            starting: None,
            renewing: None,
            sleep: None,
            lost: None,
            losses: 0,
            replaced: u64::MAX,
        }
    }

    /// The requests among which it is.
    pub(super) fn requests(&self) -> &Requests {
        self.session.requests()
    }

    /// The server that was asked last.
    pub(super) const fn peer(&self) -> SocketAddr {
        self.session.peer()
    }

    /// How long the server may take to confirm the end.
    pub(super) const fn timeout(&self) -> Option<Duration> {
        self.request.timeout
    }

    /// Whether errors end it instead of making it register again.
    pub(super) fn set_end_at_error(&mut self, ends: bool) {
        self.machine.set_end_at_error(ends);
    }

    /// Requests a new state, whether or not the last one is fresh.
    pub(super) fn register_again(&mut self) {
        self.machine.renew(self.clock.now());
    }

    /// Whether the last state is fresh.
    pub(super) fn is_fresh(&self) -> bool {
        self.machine.fresh_until().is_some_and(|at| self.clock.now() < at)
    }

    /// Until when the last state is fresh.
    pub(super) fn fresh_until(&self) -> Option<tokio::time::Instant> {
        self.machine.fresh_until().map(|at| self.clock.to_tokio(at))
    }

    /// Looks whether the path to the server still works, if nothing was heard for the keep-alive. Returns the end
    /// of the wait.
    fn poll_keep_alive(&mut self, cx: &mut Context<'_>, until: Option<Instant>) -> Option<Instant> {
        if !self.machine.is_registered() {
            return until;
        }
        let replaced = self.session.replaced(cx);
        // What it is at the first look was so before the registration.
        if std::mem::replace(&mut self.replaced, replaced) < replaced {
            let now = self.clock.now();
            self.machine.renew(now);
            return Some(now);
        }
        let Some(at) = self.keep_alive.poll(&self.session, self.clock.now(), cx) else {
            return until;
        };
        match at {
            NextCheck::At(at) => Some(until.map_or(at, |until| until.min(at))),
            NextCheck::Renew => {
                let now = self.clock.now();
                self.machine.renew(now);
                // The machine has a step at once.
                Some(now)
            }
        }
    }

    /// Whether the last state is fresh. If it is not, a new one is requested.
    pub(super) fn refresh(&mut self) -> bool {
        self.machine.refresh(self.clock.now())
    }

    /// How often it had to register anew because it was lost.
    pub(super) const fn losses(&self) -> u64 {
        self.losses
    }

    /// The reason for which the last message was lost.
    pub(super) fn loss(&self) -> Option<Error> {
        self.lost.clone()
    }

    /// Begins to deregister. Whether there is an answer to wait for: over a connection, dropping the
    /// registration deregisters.
    pub(super) fn cancel(&mut self) -> bool {
        (self.renewing, self.starting, self.lost) = (None, None, None);
        let waits = self.session.link().is_none();
        if waits {
            self.machine.cancel();
        }
        waits
    }

    /// The next state, or the error with which it ends, then nothing.
    pub(super) fn poll_state(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Response, Error>>> {
        loop {
            self.poll_renewal(cx);
            self.poll_start(cx);
            match self.machine.poll(self.clock.now(), &mut SystemRandom) {
                ObservationStep::Send { outgoing, again } => self.send(outgoing, again),
                ObservationStep::Cancel(id) => self.running.cancel(id),
                ObservationStep::Renew => self.renew(),
                ObservationStep::State(response) => return Poll::Ready(Some(Ok(response))),
                ObservationStep::Failed(error) => return Poll::Ready(Some(Err(self.error(error)))),
                ObservationStep::Over => {
                    self.running.clear();
                    return Poll::Ready(None);
                }
                ObservationStep::Wait(until) => {
                    let until = self.poll_keep_alive(cx, until);
                    if !self.poll_answers(cx) && !self.poll_sleep(cx, until) {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    fn send(&mut self, outgoing: Outgoing, again: Option<u32>) {
        let (id, reliability) = (outgoing.id, self.request.reliability);
        let old = again.and_then(|old| self.running.take(old));
        match self.session.start(old.as_ref(), &outgoing, reliability) {
            Ok(pending) => self.running.push(id, pending),
            Err(error) if is_no_room(&error) => {
                let session = self.session.clone();
                let waiting = async move { session.start_when_room(&outgoing, reliability).await };
                self.starting = Some((id, Box::pin(waiting)));
            }
            Err(error) => self.record_loss(id, error),
        }
    }

    /// Looks for what there was no room for.
    fn poll_start(&mut self, cx: &mut Context<'_>) {
        let Some((id, starting)) = &mut self.starting else { return };
        let id = *id;
        let Poll::Ready(started) = starting.as_mut().poll(cx) else { return };
        self.starting = None;
        match started {
            Ok(pending) => self.running.push(id, pending),
            Err(error) => self.record_loss(id, error),
        }
    }

    /// The server may be somewhere else, and a connection be lost.
    fn renew(&mut self) {
        if let Some(error) = &self.lost {
            let peer = self.session.address;
            tracing::debug!(target: "ebbtide::request", %peer, %error, "observation registers again");
        }
        self.losses += 1;
        self.running.clear();
        self.renewing = Some(match &self.home {
            Home::Name(client) => {
                client.inner.found.forget(&self.request.uri);
                let (client, uri) = (client.clone(), self.request.uri.clone());
                Box::pin(async move { client.session(&uri).await })
            }
            Home::Session(session) => Box::pin(std::future::ready(session.upgrade())),
        });
    }

    fn poll_renewal(&mut self, cx: &mut Context<'_>) {
        let Some(renewing) = &mut self.renewing else { return };
        let Poll::Ready(renewed) = renewing.as_mut().poll(cx) else { return };
        self.renewing = None;
        match renewed {
            Ok(session) => {
                self.session = session;
                self.replaced = u64::MAX;
                let parts = self.request.parts();
                self.machine.renewed(self.session.settings(&self.request, &parts));
            }
            Err(error) => {
                self.lost = Some(error);
                self.end_if_gone();
                self.machine.not_renewed();
            }
        }
    }

    /// Hands on one answer, if there is one.
    fn poll_answers(&mut self, cx: &mut Context<'_>) -> bool {
        let Poll::Ready(Arrived { id, news }) = self.running.poll_next(cx) else { return false };
        let now = self.clock.now();
        match news {
            News::Response(response) => self.machine.handle_response(now, id, response, true),
            News::LastResponse(response) => self.machine.handle_response(now, id, response, false),
            News::Lost(error) => self.record_loss(id, error),
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

    /// Without its session no server is left to register with.
    fn end_if_gone(&mut self) {
        if self.home.session().is_some_and(|session| session.upgrade().is_err()) {
            self.machine.set_end_at_error(true);
        }
    }

    fn record_loss(&mut self, id: u32, error: Error) {
        let loss = loss_of(&error);
        self.lost = Some(error);
        self.end_if_gone();
        self.machine.handle_loss(self.clock.now(), id, loss);
    }

    fn error(&mut self, error: TransferError) -> Error {
        let remote = self.session.address;
        match (error, self.lost.take()) {
            (TransferError::Lost, Some(lost)) => lost,
            (error, _) => Error::for_peer(remote, error.into()),
        }
    }
}
