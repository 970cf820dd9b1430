//! Observation of a resource by a client (RFC 7641 section 3).

use super::request::{Backoff, Patience, RequestParts, TransferSettings};
use super::step::{Loss, Outgoing, Step, TransferError};
use super::transfer::Transfer;
use crate::Freshness;
use crate::params::Parameters;
use crate::session::Response;
use crate::time::{Duration, Instant};
use crate::wire::OptionNumber;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use rand_core::Rng;

/// How long after Max-Age to wait for a notification before the registration is renewed: at random between
/// these, so that clients that received the same state do not all renew at once (RFC 7641 section
/// 3.3.1).
const GRACE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(15));
/// The Max-Age of a response without one (RFC 7252 section 5.10.5).
const MAX_AGE: u32 = 60;
/// The pause before a lost observation is registered again.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(32) };

/// Settings of an [`Observation`].
#[derive(Clone, Debug)]
pub struct ObservationSettings {
    /// The settings of the transfers of registrations and states.
    pub transfer: TransferSettings,
    /// How long each registration waits for its answer; by default the message layer decides.
    pub timeout: Option<Duration>,
    /// Whether notifications arrive in the order in which they were sent, as over a connection, so
    /// that their numbers do not matter (RFC 8323 section 7.1).
    pub ordered: bool,
    /// Whether to end at the first error instead of registering again.
    pub end_at_error: bool,
}

/// The next step of an observation: an action for the driver, or an event.
#[derive(Debug)]
pub enum ObservationStep {
    /// Start this exchange. If `again` is set, use the token of that older exchange, which the new
    /// one replaces ([`Endpoint::request_again`](crate::endpoint::Endpoint::request_again)); a
    /// driver that cannot do that starts a new exchange and cancels the older one.
    Send {
        /// The message.
        outgoing: Outgoing,
        /// The exchange whose token it has.
        again: Option<u32>,
    },
    /// Cancel this exchange: the observation no longer waits for its answer.
    Cancel(u32),
    /// The server's address may have changed: resolve its name, open a connection if one is needed,
    /// and call [`renewed`](Observation::renewed) or [`not_renewed`](Observation::not_renewed).
    Renew,
    /// Wait for an answer, or until this instant.
    Wait(Option<Instant>),
    /// The resource's state, or the error response that ends the observation.
    State(Response),
    /// The observation ends with this error.
    Failed(TransferError),
    /// The observation has ended.
    Over,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum ObservationState {
    /// A registration is due or open.
    Registering,
    Registered,
    /// The registration was lost; another one follows.
    Lost {
        again: Option<Instant>,
    },
    Renewing,
    /// The deregistration is open.
    Cancelling,
    Over,
}

/// A transfer whose exchanges have identifiers of the observation.
#[derive(Debug)]
struct ObservationTransfer {
    transfer: Transfer,
    /// The identifiers of its exchanges: the observation's and the transfer's.
    names: Vec<(u32, u32)>,
    /// The end of the wait for its first answer.
    until: Option<Instant>,
}

impl ObservationTransfer {
    fn new(transfer: Transfer, until: Option<Instant>) -> Self {
        Self { transfer, names: Vec::new(), until }
    }

    /// The transfer's exchange `own` is the observation's exchange `id`.
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

/// The purpose of one of an observation's transfers.
#[derive(Copy, Clone, PartialEq, Eq)]
enum TransferPurpose {
    /// To register, or to deregister.
    Registration,
    /// To fetch the rest of a state.
    State,
}

/// The observation of a resource. It registers, renews the registration under the same token, returns
/// notifications in order and with whole bodies, and deregisters when it is cancelled.
///
/// [`poll`](Self::poll) returns the steps until it returns a wait. If a registration is lost
/// because the path or the server fails, the observation registers again after a pause, as often as
/// necessary; it does the same after a 5.03 (Service Unavailable). It ends if the first
/// registration fails, if the server answers with another response that does not register the
/// client, if a body is too long, if the answer to a registration violates the protocol, or at any
/// error if [`ObservationSettings::end_at_error`] is set.
#[derive(Debug)]
pub struct Observation {
    request: RequestParts,
    settings: ObservationSettings,
    state: ObservationState,
    /// The open registration, and the blocks of its answer.
    registering: Option<ObservationTransfer>,
    /// The blocks of a notification.
    fetching: Option<ObservationTransfer>,
    /// The exchange in which notifications arrive.
    registration: Option<u32>,
    /// Whether the answer to the open registration confirmed it.
    confirmed: bool,
    was_registered: bool,
    freshness: Freshness,
    fresh_until: Instant,
    /// When the registration is renewed, once that was drawn for the last state.
    renewal: Option<Instant>,
    failures: u32,
    next_id: u32,
    /// The latest notification, while an older one is being fetched.
    next: Option<Response>,
    told: VecDeque<ObservationStep>,
}

impl Observation {
    /// Creates an observation of which nothing was sent.
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
            renewal: None,
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

    /// Whether the latest state is fresh. If it is not, a registered client registers again at the next
    /// [`poll`](Self::poll), so that another observer does not wait for the renewal.
    pub fn refresh(&mut self, now: Instant) -> bool {
        let is_fresh = self.state == ObservationState::Registered && now < self.fresh_until;
        if !is_fresh {
            self.renewal = Some(now);
        }
        is_fresh
    }

    /// Registers again at the next [`poll`](Self::poll) if the client is registered, even though the latest state may
    /// be fresh: a server that knows the client by its address may have lost it.
    pub fn renew(&mut self, now: Instant) {
        self.renewal = Some(now);
    }

    /// Until when the latest state is fresh (Max-Age); `None` before the first one.
    #[must_use]
    pub fn fresh_until(&self) -> Option<Instant> {
        self.was_registered.then_some(self.fresh_until)
    }

    /// Whether the client is registered and waits for notifications.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.state == ObservationState::Registered && self.registering.is_none()
    }

    /// Returns the next step: an action for the driver, or an event.
    pub fn poll(&mut self, now: Instant, rng: &mut dyn Rng) -> ObservationStep {
        loop {
            if let Some(told) = self.told.pop_front() {
                return told;
            }
            let watches = self.state == ObservationState::Registered && self.registering.is_none();
            let is_due = watches && now >= self.due(rng);
            match self.state {
                ObservationState::Over => return ObservationStep::Over,
                ObservationState::Renewing => return ObservationStep::Wait(None),
                ObservationState::Lost { again: None } => {
                    let drawn = BACKOFF.pause(self.failures, rng);
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
                ObservationState::Registered if is_due => self.register(now),
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

    /// When the last state is old enough for a new registration.
    fn due(&mut self, rng: &mut dyn Rng) -> Instant {
        let (shortest, longest) = GRACE;
        *self.renewal.get_or_insert_with(|| {
            let span = (longest - shortest).as_micros() as u64;
            let drawn = (span * u64::from(rng.next_u32())) >> 32;
            self.fresh_until + shortest + Duration::from_micros(drawn)
        })
    }

    /// Returns the next step of the open transfers, or `None` if the state of the observation may
    /// have changed and [`poll`](Self::poll) has to check it again.
    fn poll_parts(&mut self, now: Instant, rng: &mut dyn Rng) -> Option<ObservationStep> {
        let mut wait = (self.state == ObservationState::Registered && self.registering.is_none())
            .then(|| self.due(rng));
        for purpose in [TransferPurpose::Registration, TransferPurpose::State] {
            let place = match purpose {
                TransferPurpose::Registration => &mut self.registering,
                TransferPurpose::State => &mut self.fetching,
            };
            let Some(part) = place else { continue };
            if part.until.is_some_and(|until| until <= now) {
                self.lost(purpose, TransferError::TimedOut);
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
                    self.done(now, purpose, response, rng);
                    return None;
                }
                Step::Done(Err(error)) => {
                    self.lost(purpose, error);
                    return None;
                }
            }
        }
        Some(ObservationStep::Wait(wait))
    }

    fn register(&mut self, now: Instant) {
        let mut settings = self.settings.transfer.clone();
        settings.observe = true;
        // Only the first registration fails at once.
        let until = self.settings.timeout.map(|span| now + span);
        settings.patience = Patience::default();
        settings.patience.until = until.filter(|_| !self.was_registered);
        let transfer = Transfer::new(self.request.clone(), settings);
        self.confirmed = false;
        self.registering = Some(ObservationTransfer::new(transfer, until));
    }

    /// A whole state, or the answer to a cancellation, has arrived.
    fn done(
        &mut self,
        now: Instant,
        purpose: TransferPurpose,
        response: Response,
        rng: &mut dyn Rng,
    ) {
        match (self.state, purpose) {
            (ObservationState::Cancelling, TransferPurpose::Registration) => self.end(),
            (ObservationState::Cancelling, TransferPurpose::State) => {}
            (_, TransferPurpose::Registration) if !self.confirmed => {
                self.not_registered(now, response, rng)
            }
            _ => {
                self.told.push_back(ObservationStep::State(response));
                if let Some(next) = self.next.take() {
                    self.fetching = Some(self.rest_of(now, self.settings.transfer.clone(), next));
                }
            }
        }
    }

    /// The server answers, but does not register the client, or no longer.
    fn not_registered(&mut self, now: Instant, response: Response, rng: &mut dyn Rng) {
        let retries = self.was_registered && !self.settings.end_at_error;
        if let Some(wait) = response.retry_after().filter(|_| retries) {
            self.registration = None;
            // A server may allow another attempt at once, and refuse that one as well. Clients that it refused at one
            // time do not all come back at one time.
            let pause = BACKOFF.pause(self.failures, rng);
            self.failures = self.failures.saturating_add(1);
            self.state = ObservationState::Lost { again: Some(now + wait + pause) };
        } else {
            self.told.push_back(ObservationStep::State(response));
            self.end();
        }
    }

    /// A registration, or the blocks of a state, were lost.
    fn lost(&mut self, purpose: TransferPurpose, error: TransferError) {
        self.forget_parts();
        if let Some(id) = self.registration.take() {
            self.told.push_back(ObservationStep::Cancel(id));
        }
        let is_broken = match error {
            TransferError::TooLarge { .. } => true,
            TransferError::Protocol(_) => purpose == TransferPurpose::Registration,
            _ => false,
        };
        let ends = self.settings.end_at_error || !self.was_registered || is_broken;
        if self.state == ObservationState::Cancelling && purpose == TransferPurpose::Registration {
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

    /// A response arrived in this exchange, in which more may follow.
    pub fn handle_response(&mut self, now: Instant, id: u32, response: Response, more: bool) {
        let is_state = self.registration == Some(id);
        if is_state && self.state != ObservationState::Cancelling {
            return self.on_notification(now, response, more);
        }
        for purpose in [TransferPurpose::Registration, TransferPurpose::State] {
            let place = match purpose {
                TransferPurpose::Registration => &mut self.registering,
                TransferPurpose::State => &mut self.fetching,
            };
            let Some(part) = place else { continue };
            let Some(own) = part.own(id) else { continue };
            let registered = purpose == TransferPurpose::Registration && more;
            if registered && self.state != ObservationState::Cancelling {
                // The client is registered. Only the rest of the state is missing.
                self.registration = Some(id);
                (self.confirmed, self.was_registered) = (true, true);
                (self.failures, part.until) = (0, None);
                self.state = ObservationState::Registered;
                self.next = None;
                self.freshness = Freshness::default();
                self.freshness.accept(now, number(&response));
                (self.fresh_until, self.renewal) = (now + lifetime(&response), None);
            }
            part.transfer.handle_response(now, own, response);
            if registered {
                Self::forget(&mut self.told, &mut self.fetching);
            }
            return;
        }
    }

    fn on_notification(&mut self, now: Instant, response: Response, more: bool) {
        if !more {
            // RFC 7641 section 3.2: it is the last notification.
            self.registration = None;
            self.forget_parts();
            let mut settings = self.settings.transfer.clone();
            // The server requires an Echo before it sends more, so the request is repeated with it.
            settings.observe = response.is_challenge();
            let part = self.rest_of(now, settings, response);
            (self.state, self.confirmed, self.registering) =
                (ObservationState::Registering, false, Some(part));
            return;
        }
        if !self.settings.ordered && !self.freshness.accept(now, number(&response)) {
            return;
        }
        (self.fresh_until, self.renewal) = (now + lifetime(&response), None);
        if self.fetching.is_some() || self.registering.is_some() && self.confirmed {
            // A state that is being fetched comes first; otherwise a resource that changes often
            // would never deliver one.
            self.next = Some(response);
        } else {
            self.fetching = Some(self.rest_of(now, self.settings.transfer.clone(), response));
        }
    }

    /// Fetches the rest of a state whose first block has arrived.
    fn rest_of(
        &self,
        now: Instant,
        mut settings: TransferSettings,
        first: Response,
    ) -> ObservationTransfer {
        let request = self.request.clone();
        settings.patience.until = self.settings.timeout.map(|span| now + span);
        let transfer = Transfer::of_answer(now, request, settings, first);
        ObservationTransfer::new(transfer, None)
    }

    /// Drops the open transfers and the notification that waits for them, and cancels their
    /// exchanges.
    fn forget_parts(&mut self) {
        // In place: a part is large, and moving it would need kilobytes of stack.
        Self::forget(&mut self.told, &mut self.registering);
        Self::forget(&mut self.told, &mut self.fetching);
        self.next = None;
    }

    fn forget(told: &mut VecDeque<ObservationStep>, part: &mut Option<ObservationTransfer>) {
        if let Some(part) = part {
            let open = part.transfer.exchanges();
            told.extend(open.filter_map(|own| part.cancel(own)));
        }
        *part = None;
    }

    /// This exchange ended without an answer, or was not started.
    pub fn handle_loss(&mut self, now: Instant, id: u32, loss: Loss) {
        if self.registration == Some(id) {
            self.registration = None;
            return self.lost(TransferPurpose::State, TransferError::Lost);
        }
        for place in [&mut self.registering, &mut self.fetching] {
            if let Some(part) = place
                && let Some(own) = part.own(id)
            {
                return part.transfer.handle_loss(now, own, loss);
            }
        }
    }

    /// The server was found again; these are the settings for its messages from now on.
    pub fn renewed(&mut self, settings: TransferSettings) {
        if self.state == ObservationState::Renewing {
            self.settings.transfer = settings;
            self.state = ObservationState::Registering;
        }
    }

    /// The server was not found: another attempt follows, unless errors end the observation.
    pub fn not_renewed(&mut self) {
        if self.state == ObservationState::Renewing && self.settings.end_at_error {
            self.told.push_back(ObservationStep::Failed(TransferError::Lost));
            self.end();
        } else if self.state == ObservationState::Renewing {
            self.state = ObservationState::Lost { again: None };
        }
    }

    /// Ends the observation. If the client is registered, it sends a deregistration to the server
    /// (RFC 7641 section 3.6), and ends when that was answered or has failed.
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
        self.registering = Some(ObservationTransfer::new(transfer, None));
        self.state = ObservationState::Cancelling;
    }
}

/// How long a state counts as fresh. A client may register again at any time (RFC 7641 section
/// 3.3.1), and does not leave it to the server whether it ever will.
fn lifetime(response: &Response) -> Duration {
    let max_age = response.options().get_uint(OptionNumber::MAX_AGE).unwrap_or(MAX_AGE);
    Duration::from_secs(max_age.into()).min(Parameters::LONGEST_SPAN.to_duration())
}

fn number(response: &Response) -> u32 {
    response.options().get_uint(OptionNumber::OBSERVE).unwrap_or(0)
}
