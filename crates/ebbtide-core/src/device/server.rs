//! The requests that a server answers: duplicates, blocks (RFC 7959) and observers (RFC 7641).

use super::answer::{DeviceAnswer, DeviceHandler};
use super::duplicates::{DeviceDuplicates, Remembered, Stored};
use super::endpoint::{DeviceEndpoint, DeviceExchangeId, Io};
use super::observers::{DeviceObservers, DeviceRegistration, Standing};
use super::proof::{CHALLENGE, CHALLENGE_LENGTH, DeviceVerify, RequestSender, Trust};
use super::receive::{DeviceRequest, unknown_critical};
use super::request::{AddedOptions, Parts};
use super::upload::{ArrivingBody, Blocks, BodyRefusal, take};
use crate::cc::CongestionControl;
use crate::exchange::amplification::{HEADERS, allowance, is_short, longest};
use crate::wire::{Block, Code, HEADER_LEN, Message, OptionNumber, Type};
use core::hash::Hash;

/// The room for a message's header, token and options beside its payload.
const HEAD: usize = 64;
/// The longest option Observe.
const OBSERVE: usize = 4;

/// A server for `OBSERVERS` observations, which remembers `REMEMBERED` requests that are not idempotent, each for
/// EXCHANGE_LIFETIME. Its messages have `MESSAGE` bytes at most: 64, and a block.
///
/// Half of the observations and of these requests are for clients that have proved their addresses.
#[derive(Debug)]
pub struct DeviceServer<A, const OBSERVERS: usize, const REMEMBERED: usize, const MESSAGE: usize> {
    verify: DeviceVerify,
    observers: DeviceObservers<A, OBSERVERS>,
    remembered: DeviceDuplicates<A, REMEMBERED>,
    upload: Option<ArrivingBody<A>>,
}

impl<A: Copy + Eq + Hash, const OBSERVERS: usize, const REMEMBERED: usize, const MESSAGE: usize>
    DeviceServer<A, OBSERVERS, REMEMBERED, MESSAGE>
{
    /// The size exponent of its blocks.
    const SZX: u8 = Block::szx_of(MESSAGE.saturating_sub(HEAD));

    /// A server without observers.
    ///
    /// # Panics
    ///
    /// At compile time, if a message has no room for a block of 16 bytes.
    #[must_use]
    pub const fn new(verify: DeviceVerify) -> Self {
        const { assert!(MESSAGE >= HEAD + 16) };
        let (observers, remembered) = (DeviceObservers::new(), DeviceDuplicates::new());
        Self { verify, observers, remembered, upload: None }
    }

    /// The number of observers.
    #[must_use]
    pub fn observers(&self) -> usize {
        self.observers.len()
    }

    /// A subject has changed. [`notify`](Self::notify) sends its state.
    pub fn changed(&mut self, subject: u8) {
        self.observers.changed(subject);
    }

    /// Sends the states that are due. To be called after [`changed`](Self::changed), and when an exchange has ended.
    pub fn notify<C: CongestionControl + Clone>(
        &mut self,
        endpoint: &mut DeviceEndpoint<'_, A, C>,
        io: &mut Io<'_, A>,
        handler: &mut dyn DeviceHandler,
    ) {
        let mut buffer = [0; MESSAGE];
        let room = buffer.get_mut(..16 << Self::SZX).unwrap_or_default();
        self.observers.notify(endpoint, io, &self.verify, handler, room);
    }

    /// A notification was [acknowledged](super::DeviceReceived::Acknowledged).
    pub fn acknowledged(&mut self, exchange: DeviceExchangeId) {
        self.observers.acknowledged(exchange);
    }

    /// A notification was rejected or has failed: the observer is removed.
    pub fn lost(&mut self, exchange: DeviceExchangeId) {
        self.observers.lost(exchange);
    }

    /// Answers a request.
    pub fn receive<C: CongestionControl + Clone>(
        &mut self,
        endpoint: &mut DeviceEndpoint<'_, A, C>,
        io: &mut Io<'_, A>,
        request: &DeviceRequest<A>,
        message: &Message<'_>,
        handler: &mut dyn DeviceHandler,
    ) {
        let (now, lifetime) = (endpoint.now, endpoint.lifetime);
        if self.remembered.answer(now, io, request) {
            return;
        }
        let mut room = [0; MESSAGE];
        if let Some(number) = unknown_critical(message) {
            // Section 5.4.1: a Non-confirmable request is ignored.
            if request.kind == Type::Confirmable {
                let code = Code::BAD_OPTION;
                let payload = diagnostic(number, &mut room);
                let reply = ServerReply { code, options: AddedOptions::NONE, payload };
                Self::respond(endpoint, io, request, &reply);
            }
            return;
        }
        if message.body().is_for_proxy() {
            // Section 5.7.2.
            let (code, options) = (Code::PROXYING_NOT_SUPPORTED, AddedOptions::NONE);
            Self::respond(endpoint, io, request, &ServerReply { code, options, payload: &[] });
            return;
        }
        let sender = self.verify.read(now, lifetime, request.from, message);
        let unproved = sender.trust.may_be_forged();
        let idempotent = message.is_idempotent();
        if !idempotent {
            // RFC 9175 section 2.3: a request with another server's Echo option is not processed.
            let is_doubtful = sender.trust == Trust::Doubtful;
            if is_doubtful || unproved && self.remembered.is_half_full(now) {
                return self.challenge(endpoint, io, request, message);
            }
            if !self.remembered.has_room(now) {
                // Processing it would mean to process its duplicates as well.
                if request.kind == Type::Confirmable {
                    let (code, options) = (Code::SERVICE_UNAVAILABLE, AddedOptions::NONE);
                    Self::respond(
                        endpoint,
                        io,
                        request,
                        &ServerReply { code, options, payload: &[] },
                    );
                }
                return;
            }
        }
        let Blocks { one, two } = Blocks::of(message);
        let at = two.map_or(0, |block| block.offset() as usize);
        let mut szx = two.map_or(Self::SZX, |block| block.szx().min(Self::SZX));
        if unproved && !idempotent {
            szx = szx.min(sender.largest_block(request.token));
        }
        let room = room.get_mut(..16 << szx).unwrap_or_default();
        let taken = take(&mut self.upload, now, lifetime, request, &sender, message, handler);
        let mut answer = match taken {
            Ok(()) => handler.answer(message, at, room),
            Err(BodyRefusal::Code(code)) => DeviceAnswer::new(code),
            Err(BodyRefusal::Challenge) => return self.challenge(endpoint, io, request, message),
        };
        if answer.is_beyond(at) {
            answer = DeviceAnswer::new(Code::BAD_REQUEST);
        }
        let mut options = answer.options(at, szx);
        if let Some(block) = one {
            options.push_uint(OptionNumber::BLOCK1, block.to_uint());
        }
        let payload = room.get(..answer.length).unwrap_or_default();
        let asked = message.option(OptionNumber::OBSERVE).and_then(|it| it.as_uint());
        let asked = asked.filter(|_| matches!(message.code(), Code::GET | Code::FETCH));
        let subject = answer.subject.filter(|_| asked == Some(0) && answer.code.class() == 2);
        let length = HEADER_LEN
            + request.token.len()
            + options.with(Parts::added(answer.code), payload, |content| content.encoded_len());
        if unproved && idempotent && !self.may_answer(&sender, length, subject.is_some()) {
            return self.challenge(endpoint, io, request, message);
        }
        if asked == Some(1) {
            self.observers.deregister(request.from, request.token);
        } else if let Some(subject) = subject {
            let sent = length + OBSERVE + HEADERS;
            let room = (longest(sender.request) + HEADERS).saturating_sub(sent);
            let standing = if unproved { Standing::Unproved } else { Standing::Proved };
            let registration = DeviceRegistration { subject, standing, room };
            if let Some(number) = self.observers.register(endpoint, io, request, registration) {
                options.push_uint(OptionNumber::OBSERVE, number);
            }
        }
        if sender.trust == Trust::Proved
            && answer.code.class() == 2
            && answer.code != Code::CONTINUE
        {
            self.verify.add_value(now, lifetime, request.from, &mut options);
        }
        let reply = ServerReply { code: answer.code, options, payload };
        let stored = Self::respond(endpoint, io, request, &reply);
        // A copy of a block that others follow is recognized by its number.
        if !idempotent && !one.is_some_and(Block::more) {
            let (from, id, until) = (request.from, request.id, now + lifetime);
            let first = sender.first.unwrap_or(id);
            self.remembered.remember(now, Remembered { from, id, first, until, stored });
        }
    }

    /// Whether a request that is not proved may have an answer of this length. A registration
    /// leaves room for a notification, and for a challenge if the state becomes longer.
    fn may_answer(&self, sender: &RequestSender, length: usize, registers: bool) -> bool {
        match registers {
            true if self.observers.is_half_full() => false,
            true => allowance(sender.request, 0, (length + OBSERVE).max(CHALLENGE_LENGTH)) >= 2,
            false => is_short(sender.request, length),
        }
    }

    /// Asks the client to repeat its request with an Echo option (RFC 9175 section 2.3).
    fn challenge<C: CongestionControl + Clone>(
        &self,
        endpoint: &mut DeviceEndpoint<'_, A, C>,
        io: &mut Io<'_, A>,
        request: &DeviceRequest<A>,
        message: &Message<'_>,
    ) {
        let (now, lifetime) = (endpoint.now, endpoint.lifetime);
        let options = self.verify.challenge(now, lifetime, request.from, message);
        let reply = ServerReply { code: CHALLENGE, options, payload: &[] };
        Self::respond(endpoint, io, request, &reply);
    }

    /// Sends a response: on the acknowledgement of a Confirmable request, and otherwise
    /// Non-confirmable (RFC 7252 sections 5.2.1 and 5.2.3). Returns what is kept of it for
    /// duplicates, if it is short enough.
    fn respond<C: CongestionControl + Clone>(
        endpoint: &mut DeviceEndpoint<'_, A, C>,
        io: &mut Io<'_, A>,
        request: &DeviceRequest<A>,
        reply: &ServerReply<'_>,
    ) -> Option<Stored> {
        let (kind, id) = match request.kind {
            Type::Confirmable => (Type::Acknowledgement, request.id),
            _ => (Type::NonConfirmable, endpoint.id_of_response(io, request.from, request.id)),
        };
        let mut datagram = [0; MESSAGE];
        let encoded = reply.options.with(Parts::added(reply.code), reply.payload, |content| {
            content.encode(&mut datagram, kind, id, request.token)
        });
        let datagram = datagram.get(..encoded.ok()?.len)?;
        (io.send)(request.from, datagram);
        Stored::new(reply.code, datagram.get(HEADER_LEN + request.token.len()..)?)
    }
}

/// A response to be sent.
struct ServerReply<'p> {
    code: Code,
    options: AddedOptions,
    payload: &'p [u8],
}

/// The text that names an option that is not understood.
fn diagnostic(number: OptionNumber, room: &mut [u8]) -> &[u8] {
    const DIGITS: [u16; 5] = [10_000, 1_000, 100, 10, 1];
    let digits = DIGITS.iter().filter(|unit| number.0 >= **unit);
    let digits = digits.map(|unit| b'0' + (number.0 / unit % 10) as u8);
    let mut length = 0;
    for (place, byte) in room.iter_mut().zip(b"option ".iter().copied().chain(digits)) {
        *place = byte;
        length += 1;
    }
    room.get(..length).unwrap_or_default()
}
