//! Requests that must not be processed twice (RFC 7252 section 4.5).

use super::endpoint::Io;
use super::receive::DeviceRequest;
use crate::time::Instant;
use crate::wire::{Code, Content, MAX_HEADER, MessageId, Type};

/// The longest response that is kept for duplicates: options and payload.
const STORED: usize = 40;

/// A request that must not be processed twice, with its response.
#[derive(Copy, Clone, Debug)]
pub(super) struct Remembered<A> {
    pub(super) from: A,
    pub(super) id: MessageId,
    /// The message that was challenged before, if there is one: its late copies must not be processed either.
    pub(super) first: MessageId,
    pub(super) until: Instant,
    /// Longer responses are not kept.
    pub(super) stored: Option<Stored>,
}

/// The last `REMEMBERED` of them.
#[derive(Debug)]
pub(super) struct DeviceDuplicates<A, const REMEMBERED: usize>([Option<Remembered<A>>; REMEMBERED]);

impl<A: Copy + Eq, const REMEMBERED: usize> DeviceDuplicates<A, REMEMBERED> {
    pub(super) const fn new() -> Self {
        Self([const { None }; REMEMBERED])
    }

    /// A duplicate receives what the first copy received. Returns whether this is one.
    pub(super) fn answer(
        &self,
        now: Instant,
        io: &mut Io<'_, A>,
        request: &DeviceRequest<A>,
    ) -> bool {
        let is_copy = |it: &&Remembered<A>| {
            now < it.until
                && it.from == request.from
                && (it.id == request.id || it.first == request.id)
        };
        let known = self.0.iter().flatten().find(is_copy);
        if let Some(stored) = known.and_then(|known| known.stored) {
            stored.send(io, request);
        }
        known.is_some()
    }

    fn is_free(now: Instant, place: &Option<Remembered<A>>) -> bool {
        place.is_none_or(|it| it.until <= now)
    }

    /// Whether there is a place.
    pub(super) fn has_room(&self, now: Instant) -> bool {
        self.0.iter().any(|place| Self::is_free(now, place))
    }

    /// Whether half of the places are taken. The others are for those who have proved their addresses.
    pub(super) fn is_half_full(&self, now: Instant) -> bool {
        2 * self.0.iter().filter(|place| !Self::is_free(now, place)).count() >= REMEMBERED
    }

    pub(super) fn remember(&mut self, now: Instant, request: Remembered<A>) {
        if let Some(place) = self.0.iter_mut().find(|place| Self::is_free(now, place)) {
            *place = Some(request);
        }
    }
}

/// A response without header and token.
#[derive(Copy, Clone, Debug)]
pub(super) struct Stored {
    code: Code,
    length: u8,
    rest: [u8; STORED],
}

impl Stored {
    pub(super) fn new(code: Code, bytes: &[u8]) -> Option<Self> {
        let mut rest = [0; STORED];
        rest.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self { code, length: bytes.len() as u8, rest })
    }

    /// Sends it with the duplicate's own ID and token.
    fn send<A: Copy>(&self, io: &mut Io<'_, A>, request: &DeviceRequest<A>) {
        let kind = match request.kind {
            Type::Confirmable => Type::Acknowledgement,
            _ => Type::NonConfirmable,
        };
        let empty = Content { code: self.code, options: &[], payload: &[] };
        let mut datagram = [0; MAX_HEADER + STORED];
        let Ok(head) = empty.encode(&mut datagram, kind, request.id, request.token) else { return };
        let end = head.len + usize::from(self.length);
        let rest = self.rest.get(..usize::from(self.length)).unwrap_or_default();
        if let Some(room) = datagram.get_mut(head.len..end) {
            room.copy_from_slice(rest);
            (io.send)(request.from, datagram.get(..end).unwrap_or_default());
        }
    }
}
