//! Observation of a resource by a client (RFC 7641 section 3).

use super::endpoint::{DeviceEndpoint, DeviceExchangeId, Io};
use super::request::DeviceRequestParts;
use super::transfer::{DeviceBody, DeviceStep, DeviceTransfer, DeviceTransferError};
use crate::cc::CongestionControl;
use crate::exchange::Freshness;
use crate::params::Parameters;
use crate::time::{Instant, Micros};
use crate::wire::{Code, Message, OptionNumber};
use rand_core::Rng;

/// How long after Max-Age to wait for a notification before the registration is renewed: at random between
/// these, so that clients that received the same state do not all renew at once (RFC 7641 section 3.3.1).
const GRACE: (Micros, Micros) = (Micros::from_millis(5_000), Micros::from_millis(15_000));
/// The Max-Age of a response without one (RFC 7252 section 5.10.5).
const MAX_AGE: u32 = 60;
/// The pauses before a lost observation is registered again: doubled up to 32 s, and lengthened at
/// random by up to half.
const PAUSE: Micros = Micros::from_millis(1_000);
const DOUBLINGS: u8 = 5;

/// The next action of the program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum DeviceObservationStep {
    /// A state, or the error response that ends the observation, has arrived as a whole, with this code.
    State(Code),
    /// It waits for a datagram, or until this instant, and polls again.
    Wait(Option<Instant>),
    /// The observation has ended.
    Over(Result<(), DeviceTransferError>),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum RegistrationState {
    /// A registration is due at this instant.
    Unregistered(Instant),
    /// The registration is open.
    Registering,
    /// It is renewed at this instant.
    Registered(Instant),
    /// The server answers, but does not register the client. The response is the last.
    Ending,
    /// The deregistration is open.
    Cancelling,
    Over(Result<(), DeviceTransferError>),
}

/// The observation of a resource. It registers, renews the registration under the same token,
/// writes states in order and with whole bodies, and registers again after a pause if the
/// registration is lost. It ends if the first registration fails, and if the server answers with a
/// response that does not register the client.
///
/// The program calls [`poll`](Self::poll) until that returns a wait, after every datagram that
/// [`received`](Self::received) took, and after [`failed`](Self::failed).
#[derive(Debug)]
pub struct DeviceObservation<'r, A> {
    request: DeviceRequestParts<'r>,
    to: A,
    state: RegistrationState,
    /// The exchange in which notifications arrive.
    registration: Option<DeviceExchangeId>,
    /// The open registration, or the rest of a state.
    transfer: Option<DeviceTransfer<'r, A>>,
    /// Whether a notification arrived while an older state was being fetched.
    missed: bool,
    was_registered: bool,
    failures: u8,
    freshness: Freshness,
}

impl<'r, A: Copy + Eq> DeviceObservation<'r, A> {
    /// Creates an observation of which nothing was sent. The request has no body.
    #[must_use]
    pub fn new(request: DeviceRequestParts<'r>, to: A) -> Self {
        Self {
            request,
            to,
            state: RegistrationState::Unregistered(Instant::ZERO),
            registration: None,
            transfer: None,
            missed: false,
            was_registered: false,
            failures: 0,
            freshness: Freshness::default(),
        }
    }

    /// Sends what is to be sent, and returns what the program does next.
    pub fn poll<C: CongestionControl + Clone>(
        &mut self,
        endpoint: &mut DeviceEndpoint<'_, A, C>,
        io: &mut Io<'_, A>,
        body: &mut dyn DeviceBody,
    ) -> DeviceObservationStep {
        loop {
            if let Some(transfer) = &mut self.transfer {
                match transfer.poll(endpoint, io, body) {
                    DeviceStep::Wait => return DeviceObservationStep::Wait(None),
                    DeviceStep::Done(result) => {
                        self.transfer = None;
                        match result {
                            Ok(code) if self.state != RegistrationState::Cancelling => {
                                if core::mem::take(&mut self.missed) {
                                    self.transfer =
                                        Some(DeviceTransfer::new(self.request, self.to, 0));
                                }
                                return DeviceObservationStep::State(code);
                            }
                            Ok(_) => self.state = RegistrationState::Over(Ok(())),
                            Err(error) => self.lose(endpoint, io, error),
                        }
                    }
                }
            }
            match self.state {
                RegistrationState::Unregistered(at) | RegistrationState::Registered(at)
                    if io.now < at =>
                {
                    return DeviceObservationStep::Wait(Some(at));
                }
                RegistrationState::Unregistered(_) | RegistrationState::Registered(_) => {
                    self.state = RegistrationState::Registering;
                    self.transfer = Some(self.asking(0));
                }
                // An answer that is not a response to its transfer ends these.
                RegistrationState::Registering
                | RegistrationState::Ending
                | RegistrationState::Cancelling => {
                    self.state = RegistrationState::Over(Ok(()));
                }
                RegistrationState::Over(result) => return DeviceObservationStep::Over(result),
            }
        }
    }

    /// A request with this value of Observe, under the token of the registration if there is one.
    fn asking(&mut self, observe: u32) -> DeviceTransfer<'r, A> {
        let mut transfer = DeviceTransfer::new(self.request, self.to, 0);
        (transfer.observe, transfer.again) = (Some(observe), self.registration.take());
        transfer
    }

    /// Takes a response, if it belongs to this observation. `stays` says whether it came as
    /// [`DeviceReceived::Notification`](super::DeviceReceived::Notification). Returns whether it does belong.
    pub fn received(
        &mut self,
        io: &mut Io<'_, A>,
        exchange: DeviceExchangeId,
        message: &Message<'_>,
        stays: bool,
        body: &mut dyn DeviceBody,
    ) -> bool {
        let registers = self.state == RegistrationState::Registering;
        if let Some(transfer) = &mut self.transfer
            && transfer.received(exchange, message, body)
        {
            if stays && registers {
                self.freshness = Freshness::default();
                self.accept(io, message);
                (self.registration, self.was_registered, self.failures) = (Some(exchange), true, 0);
            } else if registers && !transfer.is_open() {
                self.refused(io, message);
            }
            return true;
        }
        if self.registration != Some(exchange) {
            return false;
        }
        if !stays {
            // RFC 7641 section 3.2: it is the last notification.
            self.registration = None;
            self.state = RegistrationState::Ending;
        } else if !self.accept(io, message) {
            return true;
        }
        match self.transfer {
            // The state that is being fetched comes first; otherwise a resource that changes often
            // would never deliver one.
            Some(_) => self.missed = true,
            None => {
                let (request, to) = (self.request, self.to);
                self.transfer = Some(DeviceTransfer::of_answer(request, to, message, body));
            }
        }
        true
    }

    /// Accepts a notification, unless it is older than one accepted before.
    fn accept(&mut self, io: &mut Io<'_, A>, message: &Message<'_>) -> bool {
        let number = message.option(OptionNumber::OBSERVE).and_then(|it| it.as_uint());
        let is_new = self.freshness.accept(io.now, number.unwrap_or(0));
        if is_new {
            let grace = Micros::uniform(GRACE.0, GRACE.1, io.rng);
            self.state = RegistrationState::Registered(io.now + max_age(message) + grace);
        }
        is_new
    }

    /// The server answers, but does not register the client.
    fn refused(&mut self, io: &mut Io<'_, A>, message: &Message<'_>) {
        self.state = RegistrationState::Ending;
        let is_busy = matches!(message.code(), Code::SERVICE_UNAVAILABLE | Code::TOO_MANY_REQUESTS);
        if self.was_registered && is_busy {
            self.transfer = None;
            let pause = self.pause(io.rng).saturating_add(max_age(message));
            self.state = RegistrationState::Unregistered(io.now + pause);
        }
    }

    /// Takes note that an exchange ended without a response. Returns whether it belongs to this observation.
    pub fn failed(&mut self, io: &mut Io<'_, A>, exchange: DeviceExchangeId) -> bool {
        if self.transfer.as_mut().is_some_and(|transfer| transfer.failed(exchange)) {
            return true;
        }
        let is_own = self.registration == Some(exchange);
        if is_own {
            self.registration = None;
            let pause = self.pause(io.rng);
            self.state = RegistrationState::Unregistered(io.now + pause);
        }
        is_own
    }

    /// Registers again at the next poll, because the server has forgotten its observers: for
    /// example, a DTLS session took the place of one that it had lost. Does nothing while a
    /// registration is open.
    pub fn register_again(&mut self) {
        if let RegistrationState::Registered(at) | RegistrationState::Unregistered(at) =
            &mut self.state
        {
            *at = Instant::ZERO;
        }
    }

    /// A registration, or the blocks of a state, were lost.
    fn lose<C: CongestionControl + Clone>(
        &mut self,
        endpoint: &mut DeviceEndpoint<'_, A, C>,
        io: &mut Io<'_, A>,
        error: DeviceTransferError,
    ) {
        if let Some(exchange) = self.registration.take() {
            endpoint.cancel(io, exchange);
        }
        self.state = match self.was_registered && self.state != RegistrationState::Cancelling {
            true => RegistrationState::Unregistered(io.now + self.pause(io.rng)),
            false => RegistrationState::Over(Err(error)),
        };
    }

    fn pause(&mut self, rng: &mut dyn Rng) -> Micros {
        let least = PAUSE.scale(1 << self.failures.min(DOUBLINGS), 1);
        self.failures = self.failures.saturating_add(1);
        Micros::uniform(least, least.scale(3, 2), rng)
    }

    /// Ends the observation. If the client is registered, it sends a deregistration to the server
    /// (RFC 7641 section 3.6), and ends when that was answered or has failed.
    pub fn cancel<C: CongestionControl + Clone>(
        &mut self,
        endpoint: &mut DeviceEndpoint<'_, A, C>,
        io: &mut Io<'_, A>,
    ) {
        if let Some(mut transfer) = self.transfer.take()
            && let Some(open) = transfer.cancel()
        {
            endpoint.cancel(io, open);
        }
        match self.registration {
            Some(_) => {
                self.state = RegistrationState::Cancelling;
                self.transfer = Some(self.asking(1));
            }
            None => self.state = RegistrationState::Over(Ok(())),
        }
    }
}

/// How long a state counts as fresh, and a busy server is not asked: a day at most, so that no
/// server silences a device for good.
fn max_age(message: &Message<'_>) -> Micros {
    let seconds = message.option(OptionNumber::MAX_AGE).and_then(|it| it.as_uint());
    let span = Micros::from_millis(seconds.unwrap_or(MAX_AGE).saturating_mul(1000));
    span.min(Parameters::LONGEST_SPAN)
}
