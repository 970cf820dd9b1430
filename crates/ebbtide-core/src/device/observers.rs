//! The observers of a server (RFC 7641 section 4), each notified by Confirmable messages.

use super::answer::DeviceHandler;
use super::endpoint::{DeviceEndpoint, DeviceExchangeId, Io};
use super::proof::{CHALLENGE, DeviceVerify};
use super::receive::DeviceRequest;
use super::request::{AddedOptions, Parts};
use crate::cc::CongestionControl;
use crate::exchange::amplification::HEADERS;
use crate::wire::{Block, HEADER_LEN, OptionNumber, Token};
use core::hash::Hash;

/// A client that observes a subject.
#[derive(Copy, Clone, Debug)]
pub(super) struct FixedObserver<A> {
    to: A,
    token: Token,
    subject: u8,
    sequence: u32,
    /// Whether the subject has changed since the last notification left.
    dirty: bool,
    in_flight: Option<DeviceExchangeId>,
    standing: Standing,
    room: usize,
}

/// Whether the address of an observer may be forged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Unproved,
    /// It had echoed a challenge when it registered, or need not.
    Proved,
    /// It has acknowledged a notification.
    Acknowledged,
}

/// The facts of an observer's registration.
#[derive(Copy, Clone, Debug)]
pub(super) struct DeviceRegistration {
    pub(super) subject: u8,
    pub(super) standing: Standing,
    /// The bytes that a forged one may still yield, headers included.
    pub(super) room: usize,
}

/// The observers.
#[derive(Debug)]
pub(super) struct DeviceObservers<A, const OBSERVERS: usize>([Option<FixedObserver<A>>; OBSERVERS]);

impl<A: Copy + Eq + Hash, const OBSERVERS: usize> DeviceObservers<A, OBSERVERS> {
    pub(super) const fn new() -> Self {
        Self([const { None }; OBSERVERS])
    }

    /// Whether half of the places are taken.
    pub(super) fn is_half_full(&self) -> bool {
        2 * self.len() >= OBSERVERS
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().flatten().count()
    }

    /// Registers an observer, or does so again. Returns the number of its response (section 4.4),
    /// or `None` without room.
    pub(super) fn register<C: CongestionControl + Clone>(
        &mut self,
        endpoint: &mut DeviceEndpoint<'_, A, C>,
        io: &mut Io<'_, A>,
        request: &DeviceRequest<A>,
        registration: DeviceRegistration,
    ) -> Option<u32> {
        let DeviceRegistration { subject, standing, room } = registration;
        let (to, token) = (request.from, request.token);
        let mut known = self.0.iter_mut().flatten();
        if let Some(observer) = known.find(|it| it.to == to && it.token == token) {
            observer.sequence = observer.sequence.wrapping_add(1) & 0xff_ffff;
            (observer.subject, observer.room) = (subject, room);
            // The response is a later state than the notification under way. That of an observer
            // that may be forged stays, so that registering again and again yields no more of them.
            if observer.standing == Standing::Acknowledged || standing == Standing::Proved {
                observer.dirty = false;
                if let Some(exchange) = observer.in_flight.take() {
                    endpoint.cancel(io, exchange);
                }
            }
            return Some(observer.sequence);
        }
        let free = self.0.iter_mut().find(|place| place.is_none())?;
        let sequence = 2;
        let (dirty, in_flight) = (false, None);
        *free =
            Some(FixedObserver { to, token, subject, sequence, dirty, in_flight, standing, room });
        Some(sequence)
    }

    pub(super) fn deregister(&mut self, to: A, token: Token) {
        self.remove(|it| it.to == to && it.token == token);
    }

    pub(super) fn changed(&mut self, subject: u8) {
        let concerned = self.0.iter_mut().flatten().filter(|it| it.subject == subject);
        concerned.for_each(|it| it.dirty = true);
    }

    /// A notification was acknowledged.
    pub(super) fn acknowledged(&mut self, exchange: DeviceExchangeId) {
        let mut all = self.0.iter_mut().flatten();
        if let Some(observer) = all.find(|it| it.in_flight == Some(exchange)) {
            (observer.in_flight, observer.standing) = (None, Standing::Acknowledged);
        }
    }

    /// A notification was rejected, or not answered: the observer no longer exists (section 4.5).
    pub(super) fn lost(&mut self, exchange: DeviceExchangeId) {
        self.remove(|it| it.in_flight == Some(exchange));
    }

    fn remove(&mut self, goes: impl Fn(&FixedObserver<A>) -> bool) {
        for place in &mut self.0 {
            if place.as_ref().is_some_and(&goes) {
                *place = None;
            }
        }
    }

    /// Notifies those whose subject has changed and whose last notification is acknowledged.
    pub(super) fn notify<C: CongestionControl + Clone>(
        &mut self,
        endpoint: &mut DeviceEndpoint<'_, A, C>,
        io: &mut Io<'_, A>,
        verify: &DeviceVerify,
        handler: &mut dyn DeviceHandler,
        room: &mut [u8],
    ) {
        for place in &mut self.0 {
            let Some(observer) = place else { continue };
            if !observer.dirty || observer.in_flight.is_some() {
                continue;
            }
            let answer = handler.state(observer.subject, room);
            let (to, token) = (observer.to, observer.token);
            let mut payload = room.get(..answer.length).unwrap_or_default();
            let mut options = answer.options(0, Block::szx_of(room.len()));
            let mut code = answer.code;
            let sequence = observer.sequence.wrapping_add(1) & 0xff_ffff;
            // RFC 7641 section 4.2: an error ends the observation, and has no number.
            if code.class() == 2 {
                options.push_uint(OptionNumber::OBSERVE, sequence);
            }
            let mut times = u8::MAX;
            if observer.standing == Standing::Unproved {
                let length = options.with(Parts::added(code), payload, |it| it.encoded_len());
                let length = HEADER_LEN + token.len() + length + HEADERS;
                times = u8::try_from(observer.room / length).unwrap_or(u8::MAX);
                if times == 0 {
                    (code, options, payload, times) = (CHALLENGE, AddedOptions::NONE, &[], 1);
                    verify.add_value(endpoint.now, endpoint.lifetime, to, &mut options);
                }
            }
            let parts = Parts::added(code);
            let sent =
                options.with(parts, payload, |content| endpoint.notify(io, to, token, content));
            // Without a place for it, the state leaves when there is one.
            let Ok(exchange) = sent else { continue };
            endpoint.limit(exchange, times);
            match code.class() {
                2 => {
                    (observer.in_flight, observer.dirty, observer.sequence) =
                        (Some(exchange), false, sequence);
                }
                _ => *place = None,
            }
        }
    }
}
