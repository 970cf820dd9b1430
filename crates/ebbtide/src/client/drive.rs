//! Drives a transfer: starts its exchanges, waits for their answers and its instants.

use super::RequestParts;
use super::equals::EqualRequest;
use super::pending::Pending;
use super::running::{Arrived, News, Running};
use super::session::{Session, is_no_room, loss_of};
use crate::error::Error;
use crate::message::{Request, Response};
use crate::net::clock::SystemRandom;
use crate::net::pending::Answer;
use ebbtide_core::endpoint::Reliability;
use ebbtide_core::session::client::{Outgoing, Step, Transfer, TransferError, TransferSettings};
use ebbtide_core::time::Instant;
use std::task::{Context, Poll};

/// A transfer and its exchanges. Dropping it cancels them. All that it knows is in it, so that its
/// futures may be dropped and made anew at any time.
#[derive(Debug)]
pub(super) struct Drive {
    session: Session,
    reliability: Reliability,
    pub(super) transfer: Transfer,
    running: Running,
    /// The message that waits for room at the endpoint.
    blocked: Option<Outgoing>,
    /// Why the last message was lost.
    lost: Option<Error>,
    /// The time after the last wait: what happens until the next one takes no time.
    now: Instant,
    /// Marks a request that changes something as under way, so that an equal one differs from a copy of it.
    _under_way: Option<EqualRequest>,
}

/// A request that has left in one message, as [`Drive`] would have sent it.
#[derive(Debug)]
pub(super) struct SentRequest {
    pub(super) session: Session,
    pub(super) parts: RequestParts,
    pub(super) pending: Pending,
    pub(super) under_way: Option<EqualRequest>,
}

/// The state of a transfer after one of its steps.
enum DriveStep {
    /// There is another step at once.
    Advanced,
    /// The next step comes with an answer, or at this instant.
    Waits(Option<Instant>),
    /// It has ended.
    Done(Result<Response, TransferError>),
}

/// The state of a transfer of which nothing more can be done now.
pub(super) enum Polled {
    /// An answer wakes the task.
    Pending,
    /// [`Drive::run`] has to wait for something else.
    Waits,
    Done(Result<Response, Error>),
}

impl Drive {
    pub(super) fn new(session: Session, reliability: Reliability, transfer: Transfer) -> Self {
        Self {
            now: Instant::ZERO,
            session,
            reliability,
            transfer,
            running: Running::default(),
            blocked: None,
            lost: None,
            _under_way: None,
        }
    }

    /// Drives a whole request.
    pub(super) fn for_request(session: &Session, request: &Request) -> Self {
        let mut parts = request.parts();
        let mut settings = session.settings(request, &parts);
        let under_way = session.begin(&parts, &mut settings);
        session.echo(&mut parts);
        let transfer = Transfer::new(parts, settings);
        Self { _under_way: under_way, ..Self::new(session.clone(), request.reliability, transfer) }
    }

    /// Drives a Confirmable request of which nothing has left.
    pub(super) fn for_parts(
        session: Session,
        parts: RequestParts,
        settings: TransferSettings,
        under_way: Option<EqualRequest>,
    ) -> Self {
        let transfer = Transfer::new(parts, settings);
        let drive = Self::new(session, Reliability::Confirmable, transfer);
        Self { _under_way: under_way, ..drive }
    }

    /// Drives what remains of a request that has left in one message, whose exchange has this news.
    pub(super) fn for_rest(sent: SentRequest, answer: Option<Answer>) -> Self {
        let SentRequest { session, parts, pending, under_way } = sent;
        let settings = session.default_settings(&parts);
        let mut drive = Self::for_parts(session, parts, settings, under_way);
        drive.now = drive.session.now();
        if let Step::Send(outgoing) = drive.transfer.poll(drive.now, &mut SystemRandom) {
            let arrived = Arrived::new(outgoing.id, &pending, answer);
            if !arrived.ends_exchange() {
                drive.running.push(outgoing.id, pending);
            }
            drive.on_arrived(arrived);
        }
        drive
    }

    /// Drives a request for one block, which names it.
    pub(super) fn for_one_block(session: &Session, request: &Request) -> Self {
        let parts = request.parts();
        let mut settings = session.settings(request, &parts);
        settings.one_block = true;
        Self::new(session.clone(), request.reliability, Transfer::new(parts, settings))
    }

    /// Sends the request and puts its response together.
    pub(super) async fn run(&mut self) -> Result<Response, Error> {
        self.run_with_progress(|_| ()).await
    }

    /// Does the same, and shows the transfer to `progress` after each answer.
    pub(super) async fn run_with_progress(
        &mut self,
        mut progress: impl FnMut(&Transfer),
    ) -> Result<Response, Error> {
        self.now = self.session.now();
        loop {
            if let Some(outgoing) = self.blocked.take() {
                self.unblock(outgoing).await;
                self.now = self.session.now();
                continue;
            }
            match self.advance() {
                DriveStep::Done(result) => return self.ended(result),
                DriveStep::Advanced => {}
                DriveStep::Waits(until) => {
                    self.wait(until).await;
                    progress(&self.transfer);
                }
            }
        }
    }

    /// Does what [`Self::run`] does, as far as answers alone lead to further steps.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Polled {
        self.now = self.session.now();
        loop {
            if self.blocked.is_some() {
                return Polled::Waits;
            }
            match self.advance() {
                DriveStep::Done(result) => return Polled::Done(self.ended(result)),
                DriveStep::Advanced => {}
                DriveStep::Waits(Some(_)) => return Polled::Waits,
                DriveStep::Waits(None) => match self.running.poll_next(cx) {
                    Poll::Ready(arrived) => self.on_arrived(arrived),
                    Poll::Pending => return Polled::Pending,
                },
            }
        }
    }

    /// Starts the first exchange if there is room for it now.
    ///
    /// # Errors
    ///
    /// Why it was not accepted for sending.
    pub(super) fn start_now(&mut self) -> Result<(), Error> {
        self.now = self.session.now();
        let _ = self.advance();
        match (self.blocked.take(), self.lost.take()) {
            (Some(outgoing), _) => {
                let started = self.session.start(None, &outgoing, self.reliability)?;
                self.running.push(outgoing.id, started);
                Ok(())
            }
            (None, Some(error)) => Err(error),
            (None, None) => Ok(()),
        }
    }

    /// Takes one step of the transfer.
    fn advance(&mut self) -> DriveStep {
        let now = self.now;
        if self.transfer.is_windowed() {
            self.transfer.queued(self.session.waiting());
        }
        match self.transfer.poll(now, &mut SystemRandom) {
            Step::Send(outgoing) => self.send(outgoing),
            Step::Cancel(id) => self.running.cancel(id),
            Step::Wait(until) => return DriveStep::Waits(until),
            Step::Done(result) => return DriveStep::Done(result),
        }
        DriveStep::Advanced
    }

    fn send(&mut self, outgoing: Outgoing) {
        if !outgoing.q_block && self.session.is_crowded() {
            self.blocked = Some(outgoing);
            return;
        }
        let id = outgoing.id;
        match self.session.start(None, &outgoing, self.reliability) {
            Ok(pending) => self.running.push(id, pending),
            Err(error) if is_no_room(&error) && !outgoing.q_block => {
                self.lost = Some(error);
                self.blocked = Some(outgoing);
            }
            Err(error) => self.record_loss(id, error),
        }
    }

    /// Sends what there was no room for.
    async fn unblock(&mut self, outgoing: Outgoing) {
        let id = outgoing.id;
        self.blocked = Some(outgoing);
        // The endpoint has enough for this peer: something has to end first, most likely of our own.
        if !self.running.is_empty() {
            self.wait(None).await;
        }
        let Some(outgoing) = &self.blocked else { return };
        let started = if self.running.is_empty() {
            self.session.start_when_room(outgoing, self.reliability).await
        } else {
            self.session.start(None, outgoing, self.reliability)
        };
        match started {
            Ok(pending) => {
                self.blocked = None;
                self.running.push(id, pending);
            }
            Err(error) if is_no_room(&error) => {}
            Err(error) => {
                self.blocked = None;
                self.record_loss(id, error);
            }
        }
    }

    fn record_loss(&mut self, id: u32, error: Error) {
        let loss = loss_of(&error);
        self.lost = Some(error);
        self.transfer.handle_loss(self.now, id, loss);
    }

    /// Waits for an answer, or until then.
    async fn wait(&mut self, until: Option<Instant>) {
        let answer = self.running.next();
        let answered = match until {
            None => Some(answer.await),
            Some(until) => {
                let until = self.session.clock().to_tokio(until);
                tokio::time::timeout_at(until, answer).await.ok()
            }
        };
        self.now = self.session.now();
        if let Some(arrived) = answered {
            self.on_arrived(arrived);
        }
    }

    fn on_arrived(&mut self, Arrived { id, news }: Arrived) {
        match news {
            News::Response(response) => {
                if !self.transfer.is_q_block() {
                    self.running.cancel(id);
                }
                self.transfer.handle_response(self.now, id, response);
            }
            News::LastResponse(response) => self.transfer.handle_response(self.now, id, response),
            News::Lost(error) => self.record_loss(id, error),
        }
    }

    fn ended(&mut self, result: Result<Response, TransferError>) -> Result<Response, Error> {
        self.running.clear();
        if let Ok(response) = &result {
            self.session.keep_echo(response);
        }
        result.map_err(|error| {
            let lost = self.lost.take().filter(|_| error == TransferError::Lost);
            lost.unwrap_or_else(|| Error::for_peer(self.session.address, error.into()))
        })
    }
}
