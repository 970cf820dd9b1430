//! The observers of a server (RFC 7641 section 4), each notified by Confirmable messages.

use super::answer::DeviceHandler;
use super::endpoint::{DeviceEndpoint, DeviceExchangeId, Io};
use super::receive::DeviceRequest;
use super::request::Parts;
use crate::cc::CongestionControl;
use crate::wire::{Block, OptionNumber, Token};

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
}

/// The observers.
#[derive(Debug)]
pub(super) struct DeviceObservers<A, const OBSERVERS: usize>([Option<FixedObserver<A>>; OBSERVERS]);

impl<A: Copy + Eq, const OBSERVERS: usize> DeviceObservers<A, OBSERVERS> {
    pub(super) const fn new() -> Self {
        Self([const { None }; OBSERVERS])
    }

    pub(super) fn len(&self) -> usize {
        self.0.iter().flatten().count()
    }

    /// Registers an observer, or does so again. Returns the number of its response (section 4.4), or `None` without room.
    pub(super) fn register<C: CongestionControl + Clone>(
        &mut self,
        endpoint: &mut DeviceEndpoint<'_, A, C>,
        io: &mut Io<'_, A>,
        request: &DeviceRequest<A>,
        subject: u8,
    ) -> Option<u32> {
        let (to, token) = (request.from, request.token);
        let mut known = self.0.iter_mut().flatten();
        if let Some(observer) = known.find(|it| it.to == to && it.token == token) {
            observer.sequence = observer.sequence.wrapping_add(1) & 0xff_ffff;
            (observer.subject, observer.dirty) = (subject, false);
            // The response is a later state.
            if let Some(exchange) = observer.in_flight.take() {
                endpoint.cancel(io, exchange);
            }
            return Some(observer.sequence);
        }
        let free = self.0.iter_mut().find(|place| place.is_none())?;
        let sequence = 2;
        *free = Some(FixedObserver { to, token, subject, sequence, dirty: false, in_flight: None });
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
            observer.in_flight = None;
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
        handler: &mut dyn DeviceHandler,
        room: &mut [u8],
    ) {
        for observer in self.0.iter_mut().flatten() {
            if !observer.dirty || observer.in_flight.is_some() {
                continue;
            }
            let answer = handler.state(observer.subject, room);
            let sequence = observer.sequence.wrapping_add(1) & 0xff_ffff;
            let mut options = answer.options(0, Block::szx_of(room.len()));
            options.push_uint(OptionNumber::OBSERVE, sequence);
            let parts = Parts::added(answer.code);
            let payload = room.get(..answer.length).unwrap_or_default();
            let (to, token) = (observer.to, observer.token);
            let sent =
                options.with(parts, payload, |content| endpoint.notify(io, to, token, content));
            // Without a place for it, the state leaves when there is one.
            if let Ok(exchange) = sent {
                (observer.in_flight, observer.dirty, observer.sequence) =
                    (Some(exchange), false, sequence);
            }
        }
    }
}
