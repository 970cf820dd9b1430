//! The requests that a server answers: duplicates, blocks (RFC 7959) and observers (RFC 7641).

use super::answer::{DeviceAnswer, DeviceHandler};
use super::endpoint::{DeviceEndpoint, DeviceExchangeId, Io};
use super::observers::DeviceObservers;
use super::receive::{DeviceRequest, unknown_critical};
use super::request::{AddedOptions, Parts};
use crate::cc::CongestionControl;
use crate::time::{Duration, Instant};
use crate::wire::{
    Block, Code, Content, HEADER_LEN, MAX_HEADER, Message, MessageId, OptionNumber, Type,
};

/// The room for a message's header, token and options beside its payload.
const HEAD: usize = 64;
/// The longest response that is kept for duplicates: options and payload.
const STORED: usize = 24;
/// How long another body waits for the next block of the one that is arriving.
const PATIENCE: Duration = Duration::from_secs(5);

/// The body that is arriving in blocks.
#[derive(Copy, Clone, Debug)]
struct ArrivingBody<A> {
    from: A,
    /// A hash of the options that identify the request.
    key: u32,
    /// The message with the first block, of which a late copy does not begin the body again.
    first: MessageId,
    next: usize,
    advanced: Instant,
}

/// A request that must not be processed twice, with its response.
#[derive(Copy, Clone, Debug)]
struct Remembered<A> {
    from: A,
    id: MessageId,
    until: Instant,
    /// Longer responses are not kept.
    stored: Option<Stored>,
}

/// A response without header and token.
#[derive(Copy, Clone, Debug)]
struct Stored {
    code: Code,
    length: u8,
    rest: [u8; STORED],
}

impl Stored {
    fn new(code: Code, bytes: &[u8]) -> Option<Self> {
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

/// A server for `OBSERVERS` observations, which remembers `REMEMBERED` requests that are not idempotent, each for
/// EXCHANGE_LIFETIME. Its messages have `MESSAGE` bytes at most: 64, and a block.
#[derive(Debug)]
pub struct DeviceServer<A, const OBSERVERS: usize, const REMEMBERED: usize, const MESSAGE: usize> {
    observers: DeviceObservers<A, OBSERVERS>,
    remembered: [Option<Remembered<A>>; REMEMBERED],
    upload: Option<ArrivingBody<A>>,
}

impl<A: Copy + Eq, const OBSERVERS: usize, const REMEMBERED: usize, const MESSAGE: usize> Default
    for DeviceServer<A, OBSERVERS, REMEMBERED, MESSAGE>
{
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Copy + Eq, const OBSERVERS: usize, const REMEMBERED: usize, const MESSAGE: usize>
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
    pub const fn new() -> Self {
        const { assert!(MESSAGE >= HEAD + 16) };
        let observers = DeviceObservers::new();
        Self { observers, remembered: [const { None }; REMEMBERED], upload: None }
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
        self.observers.notify(endpoint, io, handler, room);
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
        let now = endpoint.now;
        let mut known = self.remembered.iter().flatten();
        let is_copy = |it: &&Remembered<A>| it.from == request.from && it.id == request.id;
        if let Some(known) = known.find(|it| now < it.until && is_copy(it)) {
            // A duplicate receives what the first copy received (RFC 7252 section 4.5).
            if let Some(stored) = known.stored {
                stored.send(io, request);
            }
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
        let is_free = |it: &Option<Remembered<A>>| it.is_none_or(|it| it.until <= now);
        let place = match message.is_idempotent() {
            true => None,
            false => match self.remembered.iter().position(is_free) {
                Some(place) => Some(place),
                None => {
                    // Processing it would mean to process its duplicates as well.
                    if request.kind == Type::Confirmable {
                        let (code, options) = (Code::SERVICE_UNAVAILABLE, AddedOptions::NONE);
                        let reply = ServerReply { code, options, payload: &[] };
                        Self::respond(endpoint, io, request, &reply);
                    }
                    return;
                }
            },
        };
        let Blocks { one, two } = Blocks::of(message);
        let at = two.map_or(0, |block| block.offset() as usize);
        let szx = two.map_or(Self::SZX, |block| block.szx().min(Self::SZX));
        let room = room.get_mut(..16 << szx).unwrap_or_default();
        let mut answer = match self.take(now, request, message, handler) {
            Ok(()) => handler.answer(message, at, room),
            Err(code) => DeviceAnswer::new(code),
        };
        if answer.is_beyond(at) {
            answer = DeviceAnswer::new(Code::BAD_REQUEST);
        }
        let mut options = answer.options(at, szx);
        if let Some(block) = one {
            options.push_uint(OptionNumber::BLOCK1, block.to_uint());
        }
        let asked = message.option(OptionNumber::OBSERVE).and_then(|it| it.as_uint());
        match asked.filter(|_| matches!(message.code(), Code::GET | Code::FETCH)) {
            Some(1) => self.observers.deregister(request.from, request.token),
            Some(0) if answer.code.class() == 2 => {
                let subject = answer.subject;
                let number =
                    subject.and_then(|it| self.observers.register(endpoint, io, request, it));
                if let Some(number) = number {
                    options.push_uint(OptionNumber::OBSERVE, number);
                }
            }
            _ => {}
        }
        let payload = room.get(..answer.length).unwrap_or_default();
        let reply = ServerReply { code: answer.code, options, payload };
        let stored = Self::respond(endpoint, io, request, &reply);
        // A copy of a block that others follow is recognized by its number.
        let place = place.filter(|_| !one.is_some_and(Block::more));
        if let Some(place) = place.and_then(|place| self.remembered.get_mut(place)) {
            let until = now + endpoint.lifetime;
            *place = Some(Remembered { from: request.from, id: request.id, until, stored });
        }
    }

    /// Takes the request's body, or a block of it. An error is the code of the response: 2.31 (Continue), or a refusal.
    fn take(
        &mut self,
        now: Instant,
        request: &DeviceRequest<A>,
        message: &Message<'_>,
        handler: &mut dyn DeviceHandler,
    ) -> Result<(), Code> {
        let block = match Blocks::check(message)? {
            Blocks { one: Some(block), .. } => block,
            // A later block of a response, whose request has been processed.
            Blocks { two: Some(block), .. } if block.num() > 0 => return Ok(()),
            Blocks { .. } => return handler.take(message, 0),
        };
        let (payload, offset) = (message.payload(), block.offset() as usize);
        if payload.len() > block.size() || block.more() && !block.is_full(payload.len()) {
            return Err(Code::BAD_REQUEST);
        }
        let (key, from) = (key(message), request.from);
        let own = |it: &ArrivingBody<A>| it.from == from && it.key == key;
        if offset == 0 && !self.upload.is_some_and(|it| own(&it) && it.first == request.id) {
            let is_busy = |it: ArrivingBody<A>| !own(&it) && now < it.advanced + PATIENCE;
            if block.more() && self.upload.is_some_and(is_busy) {
                return Err(Code::SERVICE_UNAVAILABLE);
            }
            let first = request.id;
            self.upload = Some(ArrivingBody { from, key, first, next: 0, advanced: now });
        }
        // Earlier blocks are missing (RFC 7959 section 2.9.2).
        let upload = self.upload.as_mut().filter(|it| own(it) && offset <= it.next);
        let upload = upload.ok_or(Code::REQUEST_ENTITY_INCOMPLETE)?;
        // The others are copies.
        if offset == upload.next {
            if let Err(code) = handler.take(message, offset) {
                self.upload = None;
                return Err(code);
            }
            (upload.next, upload.advanced) = (offset + payload.len(), now);
        }
        if block.more() { Err(Code::CONTINUE) } else { Ok(()) }
    }

    /// Sends a response: on the acknowledgement of a Confirmable request, and otherwise Non-confirmable (RFC 7252 sections
    /// 5.2.1 and 5.2.3). Returns what is kept of it for duplicates, if it is short enough.
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

/// The blocks that a request names.
struct Blocks {
    one: Option<Block>,
    two: Option<Block>,
}

impl Blocks {
    /// Those that are valid.
    fn of(message: &Message<'_>) -> Self {
        Self::check(message).unwrap_or(Self { one: None, two: None })
    }

    /// An error is the code of the response to a request with an invalid one (RFC 7959 section 2.2).
    fn check(message: &Message<'_>) -> Result<Self, Code> {
        let block = |number| {
            let block = message.option(number).map(|option| Block::from_option(&option));
            block.transpose().map_err(|_| Code::BAD_REQUEST)
        };
        Ok(Self { one: block(OptionNumber::BLOCK1)?, two: block(OptionNumber::BLOCK2)? })
    }
}

/// The identity of a request whose body arrives in blocks (RFC 7959 section 2.3, RFC 9175 section 3.3): a hash of its code and
/// options, without a secret, because a client that finds two requests with the same hash confuses only its own.
fn key(message: &Message<'_>) -> u32 {
    // FNV-1a.
    let add = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let mut hash = add(0x811c_9dc5, &message.code().0);
    for option in message.options() {
        let number = option.number;
        let of_block = matches!(
            number,
            OptionNumber::BLOCK1 | OptionNumber::BLOCK2 | OptionNumber::SIZE1 | OptionNumber::SIZE2
        );
        let of_first = matches!(
            number,
            OptionNumber::OBSERVE | OptionNumber::IF_NONE_MATCH | OptionNumber::ECHO
        );
        if !of_block && !of_first {
            let length = (option.value.len() as u16).to_be_bytes();
            let number = number.0.to_be_bytes();
            hash = number.iter().chain(&length).chain(option.value).fold(hash, add);
        }
    }
    hash
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
