//! Observing a resource from the client's side (RFC 7641 section 3).

use super::request::{Patience, RequestParts, TransferSettings, pause};
use super::step::{Loss, Outgoing, Step, TransferError};
use super::transfer::Transfer;
use crate::Freshness;
use crate::session::Response;
use crate::time::{Duration, Instant};
use crate::wire::{Code, OptionNumber};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use rand_core::Rng;

/// How long after Max-Age a notification is still hoped for (RFC 7641 section 3.3.1: registering
/// again is due when the last one is no longer fresh).
const GRACE: Duration = Duration::from_secs(15);
/// Max-Age where a response has none (RFC 7252 section 5.10.5).
const MAX_AGE: u32 = 60;
/// The pause before a lost observation is registered again, doubled after each attempt that fails; up to
/// half as long again is drawn at random.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, before it is drawn.
const LONGEST_PAUSE: Duration = Duration::from_secs(32);

/// How an observation goes about it.
#[derive(Clone, Debug)]
pub struct ObservationSettings {
    /// How registrations, and the blocks of states, are transferred.
    pub transfer: TransferSettings,
    /// How long each registration waits for its answer; without it the message layer decides.
    pub timeout: Option<Duration>,
    /// Whether notifications come in the order in which they were sent, as over a connection, so that their
    /// numbers do not matter (RFC 8323 section 7.1).
    pub ordered: bool,
    /// End at the first error instead of registering again.
    pub end_at_error: bool,
}

/// The next step of an observation: an action for the driver, or an event.
#[derive(Debug)]
pub enum ObservationStep {
    /// Start this exchange. With `again` it is to have the token of that older exchange, which it
    /// replaces ([`Endpoint::request_again`](crate::endpoint::Endpoint::request_again)); a driver that
    /// cannot do that starts a new one and cancels the older one.
    Send {
        /// The message.
        outgoing: Outgoing,
        /// The exchange whose token it has.
        again: Option<u32>,
    },
    /// Cancel this exchange: the observation no longer waits for its answer.
    Cancel(u32),
    /// The server may be somewhere else by now: look its name up, open a connection if one is needed, and
    /// say [`renewed`](Observation::renewed) or [`not_renewed`](Observation::not_renewed).
    Renew,
    /// Nothing before something arrives, or before this instant.
    Wait(Option<Instant>),
    /// The resource's state, or the error response that ends the observation.
    State(Response),
    /// It ends with this error.
    Failed(TransferError),
    /// It is over.
    Over,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum ObservationState {
    /// A registration is to be made, or under way.
    Registering,
    Registered,
    /// It was lost; another registration follows.
    Lost {
        again: Option<Instant>,
    },
    Renewing,
    /// A message that ends it is under way.
    Cancelling,
    Over,
}

/// A transfer whose exchanges have names of the observation's.
#[derive(Debug)]
struct Part {
    transfer: Transfer,
    /// The observation's names of its exchanges, and its own.
    names: Vec<(u32, u32)>,
    /// Until when its first answer is waited for.
    until: Option<Instant>,
}

impl Part {
    fn new(transfer: Transfer, until: Option<Instant>) -> Self {
        Self { transfer, names: Vec::new(), until }
    }

    /// It calls an exchange `own` that the observation calls `id`.
    fn name(&mut self, id: u32, own: u32) {
        let Self { transfer, names, .. } = self;
        names.retain(|(_, known)| transfer.exchanges().any(|open| open == *known));
        names.push((id, own));
    }

    fn own(&self, id: u32) -> Option<u32> {
        self.names.iter().find(|(name, _)| *name == id).map(|(_, own)| *own)
    }

    fn cancel(&self, own: u32) -> Option<ObservationStep> {
        let (id, _) = self.names.iter().find(|(_, known)| *known == own)?;
        Some(ObservationStep::Cancel(*id))
    }
}

/// The observation of a resource. It registers, renews the registration under the same token, returns
/// notifications in order and with whole bodies, and deregisters when it is cancelled.
///
/// [`poll`](Self::poll) says what to do until it says to wait. If a registration is lost because the path
/// or the server fails, the observation registers again after a pause, as often as necessary; it does the
/// same after a 5.03 (Service Unavailable). It ends if the first registration fails, if the server answers
/// with another response that does not register the client, if a body is too long, if the answer to a
/// registration breaks the protocol, or at any error if [`ObservationSettings::end_at_error`] is set.
#[derive(Debug)]
pub struct Observation {
    request: RequestParts,
    settings: ObservationSettings,
    state: ObservationState,
    /// The registration under way, and the blocks of its answer.
    registering: Option<Part>,
    /// The blocks of a notification.
    fetching: Option<Part>,
    /// The exchange to which notifications come.
    registration: Option<u32>,
    /// Whether the answer to the registration under way said that it is one.
    confirmed: bool,
    was_registered: bool,
    freshness: Freshness,
    fresh_until: Instant,
    failures: u32,
    next_id: u32,
    /// The latest notification, while an older one is being fetched.
    next: Option<Response>,
    told: VecDeque<ObservationStep>,
}

impl Observation {
    /// An observation of which nothing has left.
    #[must_use]
    pub fn new(request: RequestParts, settings: ObservationSettings) -> Self {
        Self {
            request,
            settings,
            state: ObservationState::Registering,
            registering: None,
            fetching: None,
            registration: None,
            confirmed: false,
            was_registered: false,
            freshness: Freshness::default(),
            fresh_until: Instant::ZERO,
            failures: 0,
            next_id: 0,
            next: None,
            told: VecDeque::new(),
        }
    }

    /// Whether errors end it: see [`ObservationSettings::end_at_error`].
    pub fn set_end_at_error(&mut self, ends: bool) {
        self.settings.end_at_error = ends;
    }

    /// Returns the next step: an action for the driver, or an event.
    pub fn poll(&mut self, now: Instant, rng: &mut dyn Rng) -> ObservationStep {
        loop {
            if let Some(told) = self.told.pop_front() {
                return told;
            }
            match self.state {
                ObservationState::Over => return ObservationStep::Over,
                ObservationState::Renewing => return ObservationStep::Wait(None),
                ObservationState::Lost { again: None } => {
                    let drawn = pause((PAUSE, LONGEST_PAUSE), self.failures, rng);
                    self.failures = self.failures.saturating_add(1);
                    self.state = ObservationState::Lost { again: Some(now + drawn) };
                }
                ObservationState::Lost { again: Some(at) } if now < at => {
                    return ObservationStep::Wait(Some(at));
                }
                ObservationState::Lost { again: Some(_) } => {
                    self.state = ObservationState::Renewing;
                    return ObservationStep::Renew;
                }
                ObservationState::Registering if self.registering.is_none() => self.register(now),
                ObservationState::Registered if self.registering.is_none() && now >= self.due() => {
                    self.register(now);
                }
                ObservationState::Registering
                | ObservationState::Registered
                | ObservationState::Cancelling => {
                    if let Some(watch) = self.poll_parts(now, rng) {
                        return watch;
                    }
                }
            }
        }
    }

    /// When the last state is so old that a new registration is due.
    fn due(&self) -> Instant {
        self.fresh_until + GRACE
    }

    /// Returns the next step of the transfers under way, or `None` if the state of the observation may
    /// have changed and [`poll`](Self::poll) has to look at it again.
    fn poll_parts(&mut self, now: Instant, rng: &mut dyn Rng) -> Option<ObservationStep> {
        let mut wait = (self.state == ObservationState::Registered && self.registering.is_none())
            .then(|| self.due());
        for registers in [true, false] {
            let place = if registers { &mut self.registering } else { &mut self.fetching };
            let Some(part) = place else { continue };
            if part.until.is_some_and(|until| until <= now) {
                self.lost(registers, TransferError::TimedOut);
                return None;
            }
            match part.transfer.poll(now, rng) {
                Step::Send(mut outgoing) => {
                    part.name(self.next_id, outgoing.id);
                    outgoing.id = self.next_id;
                    self.next_id += 1;
                    let observes = outgoing.options.get(OptionNumber::OBSERVE).is_some();
                    let again = self.registration.filter(|_| observes);
                    return Some(ObservationStep::Send { outgoing, again });
                }
                Step::Cancel(own) => return part.cancel(own),
                Step::Wait(at) => {
                    wait = wait.into_iter().chain(at).chain(part.until).min();
                }
                Step::Done(Ok(response)) => {
                    *place = None;
                    self.done(now, registers, response);
                    return None;
                }
                Step::Done(Err(error)) => {
                    self.lost(registers, error);
                    return None;
                }
            }
        }
        Some(ObservationStep::Wait(wait))
    }

    fn register(&mut self, now: Instant) {
        let mut settings = self.settings.transfer.clone();
        settings.observe = true;
        // Only the first one has to be made now or never.
        let until = self.settings.timeout.map(|span| now + span);
        settings.patience = Patience::default();
        settings.patience.until = until.filter(|_| !self.was_registered);
        let transfer = Transfer::new(self.request.clone(), settings);
        self.confirmed = false;
        self.registering = Some(Part::new(transfer, until));
    }

    /// A whole state, or the answer to a cancellation, is here.
    fn done(&mut self, now: Instant, registers: bool, response: Response) {
        match (self.state, registers) {
            (ObservationState::Cancelling, true) => self.end(),
            (ObservationState::Cancelling, false) => {}
            (_, true) if !self.confirmed => self.not_registered(now, response),
            _ => {
                self.told.push_back(ObservationStep::State(response));
                if let Some(next) = self.next.take() {
                    self.fetching = Some(self.rest_of(now, self.settings.transfer.clone(), next));
                }
            }
        }
    }

    /// The server answers, but does not register, or no longer.
    fn not_registered(&mut self, now: Instant, response: Response) {
        let retries = self.was_registered && !self.settings.end_at_error;
        if retries && response.code() == Code::SERVICE_UNAVAILABLE {
            self.registration = None;
            self.state = ObservationState::Lost { again: Some(now + lifetime(&response)) };
        } else {
            self.told.push_back(ObservationStep::State(response));
            self.end();
        }
    }

    /// A registration, or the blocks of a state, are lost.
    fn lost(&mut self, registers: bool, error: TransferError) {
        self.forget_parts();
        if let Some(id) = self.registration.take() {
            self.told.push_back(ObservationStep::Cancel(id));
        }
        let is_broken = match error {
            TransferError::TooLarge { .. } => true,
            TransferError::Protocol(_) => registers,
            _ => false,
        };
        let ends = self.settings.end_at_error || !self.was_registered || is_broken;
        if self.state == ObservationState::Cancelling && registers {
            self.end();
        } else if ends {
            self.told.push_back(ObservationStep::Failed(error));
            self.end();
        } else {
            self.state = ObservationState::Lost { again: None };
        }
    }

    fn end(&mut self) {
        self.forget_parts();
        if let Some(id) = self.registration.take() {
            self.told.push_back(ObservationStep::Cancel(id));
        }
        self.state = ObservationState::Over;
    }

    /// A response came to the exchange of this name, to which more may come or not.
    pub fn handle_response(&mut self, now: Instant, id: u32, response: Response, more: bool) {
        let is_state = self.registration == Some(id);
        if is_state && self.state != ObservationState::Cancelling {
            return self.on_notification(now, response, more);
        }
        for registers in [true, false] {
            let place = if registers { &mut self.registering } else { &mut self.fetching };
            let Some(part) = place else { continue };
            let Some(own) = part.own(id) else { continue };
            if registers && more && self.state != ObservationState::Cancelling {
                // The registration stands. What is left is to fetch the rest of the state.
                self.registration = Some(id);
                (self.confirmed, self.was_registered) = (true, true);
                (self.failures, part.until) = (0, None);
                self.state = ObservationState::Registered;
                self.next = None;
                self.freshness = Freshness::default();
                self.freshness.accept(now, number(&response));
                self.fresh_until = now + lifetime(&response);
            }
            part.transfer.handle_response(now, own, response);
            if registers
                && more
                && let Some(older) = self.fetching.take()
            {
                self.forget(&older);
            }
            return;
        }
    }

    fn on_notification(&mut self, now: Instant, response: Response, more: bool) {
        if !more {
            // RFC 7641 section 3.2: it is the last one.
            self.registration = None;
            self.forget_parts();
            let mut settings = self.settings.transfer.clone();
            // The server asks for an echo before it sends more: the request is made again with it.
            settings.observe = response.code() == Code::UNAUTHORIZED
                && response.options().get(OptionNumber::ECHO).is_some();
            let part = self.rest_of(now, settings, response);
            (self.state, self.confirmed, self.registering) =
                (ObservationState::Registering, false, Some(part));
            return;
        }
        if !self.settings.ordered && !self.freshness.accept(now, number(&response)) {
            return;
        }
        self.fresh_until = now + lifetime(&response);
        if self.fetching.is_some() || self.registering.is_some() && self.confirmed {
            // A state that is being fetched comes first, or a resource that changes often would have none.
            self.next = Some(response);
        } else {
            self.fetching = Some(self.rest_of(now, self.settings.transfer.clone(), response));
        }
    }

    /// Fetches the rest of a state of which the first block is here.
    fn rest_of(&self, now: Instant, mut settings: TransferSettings, first: Response) -> Part {
        let request = self.request.clone();
        settings.patience.until = self.settings.timeout.map(|span| now + span);
        let transfer = Transfer::of_answer(now, request, settings, first);
        Part::new(transfer, None)
    }

    /// Drops the transfers under way and the notification that waits for them, and cancels their exchanges.
    fn forget_parts(&mut self) {
        for part in [self.registering.take(), self.fetching.take()].into_iter().flatten() {
            self.forget(&part);
        }
        self.next = None;
    }

    fn forget(&mut self, part: &Part) {
        let open = part.transfer.exchanges();
        self.told.extend(open.filter_map(|own| part.cancel(own)));
    }

    /// The exchange of this name ended without an answer, or was not started.
    pub fn handle_loss(&mut self, now: Instant, id: u32, loss: Loss) {
        if self.registration == Some(id) {
            self.registration = None;
            return self.lost(false, TransferError::Lost);
        }
        for place in [&mut self.registering, &mut self.fetching] {
            if let Some(part) = place
                && let Some(own) = part.own(id)
            {
                return part.transfer.handle_loss(now, own, loss);
            }
        }
    }

    /// The server has been found again; messages are transferred like this now.
    pub fn renewed(&mut self, settings: TransferSettings) {
        if self.state == ObservationState::Renewing {
            self.settings.transfer = settings;
            self.state = ObservationState::Registering;
        }
    }

    /// The server has not been found.
    pub fn not_renewed(&mut self) {
        if self.state == ObservationState::Renewing {
            self.state = ObservationState::Lost { again: None };
        }
    }

    /// Ends the observation. If it is registered, it sends a deregistration to the server (RFC 7641
    /// section 3.6), and is over when that has been answered or has failed.
    pub fn cancel(&mut self) {
        self.told.clear();
        self.forget_parts();
        if self.state == ObservationState::Over || self.registration.is_none() {
            return self.end();
        }
        let mut request = self.request.clone();
        request.options.remove(OptionNumber::OBSERVE);
        request.options.push_uint(OptionNumber::OBSERVE, 1);
        let mut settings = self.settings.transfer.clone();
        (settings.observe, settings.patience) = (false, Patience::default());
        let transfer = Transfer::new(request, settings);
        self.registering = Some(Part::new(transfer, None));
        self.state = ObservationState::Cancelling;
    }
}

/// How long a state is fresh.
fn lifetime(response: &Response) -> Duration {
    let max_age = response.options().get_uint(OptionNumber::MAX_AGE).unwrap_or(MAX_AGE);
    Duration::from_secs(max_age.into())
}

fn number(response: &Response) -> u32 {
    response.options().get_uint(OptionNumber::OBSERVE).unwrap_or(0)
}
