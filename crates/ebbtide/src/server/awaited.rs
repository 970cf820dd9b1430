//! Requests whose handlers are not ready at once: a task waits for each, or the task of the socket for many.

use super::carrier::{Carrier, Sink};
use super::handler_future::HandlerFuture;
use super::later::{HandlersAtWork, at_leisure, give_up, wait};
use super::observe::Subject;
use crate::message::Response;
use crate::net::brief_task::BriefWork;
use crate::net::shared::Shared;
use ebbtide_core::session::Finished;
use ebbtide_core::session::server::PendingRequest;
use ebbtide_core::time::Instant;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tracing::Span;

/// A request whose handler is not ready at once.
pub(super) struct AwaitedRequest {
    working: HandlersAtWork,
    arrived: Instant,
    pending: PendingRequest,
    /// The subject that it observes, with the number of changes before.
    subject: Option<(Subject, u64)>,
}

/// Where an answer is given.
#[derive(Copy, Clone)]
enum AnsweredIn {
    /// In the task of the carrier, which then sends it.
    Driver(Instant),
    OtherTask,
}

impl AnsweredIn {
    /// Changes the locked state.
    fn with<C: Carrier, R>(
        self,
        carrier: &C,
        change: impl FnOnce(&mut C::State, Instant) -> R,
    ) -> R {
        match self {
            Self::Driver(now) => change(&mut carrier.lock(), now),
            Self::OtherTask => carrier.with(change),
        }
    }
}

/// The messages of an answer that find no room, and the place of its handler.
struct Unsent {
    working: HandlersAtWork,
    messages: Vec<Finished>,
}

impl Unsent {
    /// Sends them when there is room.
    async fn wait<C: Carrier>(self, carrier: &C) {
        for finished in &self.messages {
            wait(carrier, finished).await;
        }
        drop(self.working);
    }
}

impl AwaitedRequest {
    pub(super) fn new(
        working: HandlersAtWork,
        arrived: Instant,
        pending: PendingRequest,
        observed: Option<(&Subject, u64)>,
    ) -> Self {
        let subject = observed.map(|(subject, began)| (subject.clone(), began));
        Self { working, arrived, pending, subject }
    }

    /// Waits for a slow handler. After a while the request is acknowledged, so that the client stops
    /// retransmitting it (RFC 7252 section 5.2.2).
    pub(super) async fn finish<C: Carrier>(mut self, carrier: Arc<C>, future: HandlerFuture) {
        let patience = self.working.service.config().acknowledge_after;
        let mut answer = pin!(future);
        let answered = match tokio::time::timeout(patience, answer.as_mut()).await {
            Ok(answered) => answered,
            Err(_) => {
                self.acknowledge(&*carrier, AnsweredIn::OtherTask);
                answer.await
            }
        };
        let response = answered.unwrap_or_else(|caught| self.working.service.panicked(&caught));
        let unsent = self.answer(&carrier, AnsweredIn::OtherTask, response);
        unsent.wait(&*carrier).await;
    }

    fn acknowledge<C: Carrier>(&mut self, carrier: &C, by: AnsweredIn) {
        let acknowledgement = self.pending.acknowledge();
        by.with(carrier, |state, now| {
            // If there is no room for the acknowledgement, it is sent for the next copy of the request.
            let _ = state.send(now, acknowledgement.as_borrowed());
        });
    }

    fn answer<C: Carrier>(self, carrier: &Arc<C>, by: AnsweredIn, response: Response) -> Unsent {
        let Self { working, arrived, pending, subject } = self;
        let service = &working.service;
        let mut handled = pending.handled(response);
        let subject = subject.filter(|(subject, _)| handled.observes() && !subject.is_closed());
        if let Some((subject, _)) = &subject {
            subject.attach(carrier);
        }
        let q_block = handled.is_q_block();
        let mut messages = Vec::new();
        by.with(&**carrier, |state, now| {
            let subject = subject.as_ref().map(|(subject, began)| (subject, *began));
            let outgoing = service.complete(now, state, &mut handled, subject);
            service.inner.answered.record(1, arrived, now);
            service.count(&outgoing);
            for finished in outgoing.iter() {
                if finished.requester().group {
                    at_leisure(service, carrier, finished);
                } else if let Err(error) = state.send(now, finished) {
                    if error.is_for_want_of_room() {
                        messages.push(finished.to_owned());
                    } else {
                        give_up(state, now, finished, error);
                    }
                }
            }
        });
        if q_block {
            service.pace();
        }
        Unsent { working, messages }
    }
}

/// An answer that the task of the socket waits for.
pub(super) struct BriefAnswer {
    /// `None` once it is answered.
    request: Option<AwaitedRequest>,
    future: HandlerFuture,
    span: Span,
}

impl BriefAnswer {
    pub(super) const fn new(request: AwaitedRequest, future: HandlerFuture, span: Span) -> Self {
        Self { request: Some(request), future, span }
    }
}

impl BriefWork for BriefAnswer {
    fn poll(&mut self, socket: &Arc<Shared>, now: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let Self { request, future, span } = self;
        let _entered = span.enter();
        let answered = ready!(Pin::new(future).poll(cx));
        let Some(request) = request.take() else { return Poll::Ready(()) };
        let response = answered.unwrap_or_else(|caught| request.working.service.panicked(&caught));
        let unsent = request.answer(socket, AnsweredIn::Driver(now), response);
        if !unsent.messages.is_empty() {
            let socket = socket.clone();
            tokio::spawn(async move { unsent.wait(&*socket).await });
        }
        Poll::Ready(())
    }

    fn on_late(&mut self, socket: &Arc<Shared>, now: Instant) {
        if let Some(request) = &mut self.request {
            request.acknowledge(&**socket, AnsweredIn::Driver(now));
        }
    }
}
