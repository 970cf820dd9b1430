//! Outgoing messages: accepted, admitted, transmitted and retransmitted (RFC 7252 sections 4.2, 4.7 and 4.8).

use super::marks::FirstAnswers;
use super::tables::{
    DeviceFailure, DeviceTables, FixedExchange, FixedExchangeState, Purpose, TableSlices,
};
use crate::cc::{
    Admission, Algorithm, Attempts, CongestionControl, Context, Fasor, Kind, Load, Marking,
    Outcome, OutgoingMessage, Sample, Settings, Shell, Slot, Transmission,
};
use crate::exchange::token::MAX_MARK;
use crate::params::Parameters;
use crate::time::{Duration, Instant, Micros};
use crate::wire::{
    Code, Content, EncodeError, HEADER_LEN, MAX_TOKEN_LEN, MessageId, OptionNumber, Token, Type,
};
use core::fmt;
use rand_core::Rng;

/// How much later than its end a timer that was armed for the end of a span may expire: drivers wake up late.
const LATENESS: Micros = Micros::from_millis(100);
/// Confirmable responses of which a copy is acknowledged again.
const ACKNOWLEDGED: usize = 4;

/// The time, the random numbers and the socket of a call.
pub struct Io<'i, A> {
    /// The time of the call.
    pub now: Instant,
    /// The only source of randomness: tokens, message IDs and dithering. On the open Internet it must be unpredictable
    /// (RFC 7252 section 11.4).
    pub rng: &'i mut dyn Rng,
    /// Sends a datagram, or drops it.
    pub send: &'i mut dyn FnMut(A, &[u8]),
}

/// Settings of a [`DeviceEndpoint`].
#[derive(Clone, Debug)]
pub struct DeviceConfig<C> {
    /// RFC 7252's transmission parameters.
    pub params: Parameters,
    /// The settings of the control.
    pub settings: Settings,
    /// The control of a peer of which nothing is known.
    pub control: C,
    /// Bytes of randomness in the tokens of requests, 0 to 8; 4 by default (RFC 7252 section 5.3.1: at least 32 bits).
    pub token_length: u8,
}

impl DeviceConfig<Fasor> {
    /// `fasor-token`, with RFC 7252's parameters.
    #[must_use]
    pub fn fasor_token() -> Self {
        Self {
            params: Parameters::DEFAULT,
            settings: Algorithm::FasorToken.settings(),
            control: Fasor::fast_slow_fast(Marking::Token),
            token_length: 4,
        }
    }
}

/// An exchange that was accepted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DeviceExchangeId {
    pub(super) index: u8,
    pub(super) generation: u8,
}

/// The next action of the program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum DevicePoll {
    /// It takes note that an exchange ended without its answer.
    Failed {
        /// The exchange.
        exchange: DeviceExchangeId,
        /// The reason.
        reason: DeviceFailure,
    },
    /// It waits for a datagram, or until this instant, and polls again.
    Wait(Option<Instant>),
}

/// The reason why a message was not accepted. Nothing was sent then.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceSendError {
    /// The message cannot be encoded.
    Encode(EncodeError),
    /// The message is longer than the tables allow: use blocks.
    TooLong,
    /// The code is not one of a request, or not one of a response, as required.
    WrongCode,
    /// All places for exchanges are taken. Wait until one of them ends.
    TooManyExchanges,
    /// All places for peers have open exchanges.
    TooManyPeers,
}

impl fmt::Display for DeviceSendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Encode(_) => "the message cannot be encoded",
            Self::TooLong => "the message is longer than the tables allow: use blocks",
            Self::WrongCode => "this code cannot be sent this way",
            Self::TooManyExchanges => "all places for exchanges are taken",
            Self::TooManyPeers => "all places for peers have open exchanges",
        })
    }
}

impl core::error::Error for DeviceSendError {}

/// A CoAP endpoint for a handful of peers. The [module](super) says how a program uses it, and what it leaves out.
///
/// `A` is the address of a peer, of whatever type the program's network has; `C` is the congestion control.
#[derive(Debug)]
pub struct DeviceEndpoint<'t, A, C> {
    pub(super) config: DeviceConfig<C>,
    /// EXCHANGE_LIFETIME.
    pub(super) lifetime: Duration,
    /// How long after the first transmission another one of a request that is not idempotent may
    /// leave. The peer must still remember the message when the copy arrives (RFC 7252 sections
    /// 4.4, 4.5 and 4.8.2). Others may leave until their message ID may identify another message,
    /// which is EXCHANGE_LIFETIME.
    span: Duration,
    pub(super) now: Instant,
    pub(super) memory: TableSlices<'t, A, C>,
    pub(super) first_answers: FirstAnswers,
    /// The Confirmable responses that were acknowledged, the oldest at `next_acknowledged`.
    pub(super) acknowledged: [Option<(A, MessageId, Instant)>; ACKNOWLEDGED],
    pub(super) next_acknowledged: usize,
    /// See [`FixedExchange::number`].
    pub(super) next_number: u32,
}

/// A message that becomes an exchange.
pub(super) struct NewMessage<'c, A> {
    pub(super) to: A,
    pub(super) content: &'c Content<'c>,
    pub(super) purpose: Purpose,
    /// `None` in a request that gets a token of its own.
    pub(super) token: Option<Token>,
}

impl<A, C, const PEERS: usize, const EXCHANGES: usize, const MESSAGE: usize>
    DeviceTables<A, C, PEERS, EXCHANGES, MESSAGE>
where
    A: Copy + Eq,
    C: CongestionControl + Clone,
{
    /// An endpoint that keeps its state here. The state of an earlier one is forgotten.
    pub fn endpoint(&mut self, config: DeviceConfig<C>) -> DeviceEndpoint<'_, A, C> {
        DeviceEndpoint::new(config, self.memory())
    }
}

impl<'t, A: Copy + Eq, C: CongestionControl + Clone> DeviceEndpoint<'t, A, C> {
    fn new(config: DeviceConfig<C>, memory: TableSlices<'t, A, C>) -> Self {
        let path = path(&config);
        Self {
            lifetime: path.exchange_lifetime(),
            span: path.copies_span(),
            config,
            now: Instant::ZERO,
            memory,
            first_answers: FirstAnswers::NONE,
            acknowledged: [None; ACKNOWLEDGED],
            next_acknowledged: 0,
            next_number: 0,
        }
    }

    /// Sends a Confirmable request, now or when congestion control admits it. The response arrives as
    /// [`DeviceReceived::Response`](super::DeviceReceived::Response), or the exchange fails. A GET with the option
    /// Observe of value 0 registers, and [`DeviceReceived::Notification`](super::DeviceReceived::Notification) follow.
    ///
    /// # Errors
    ///
    /// See [`DeviceSendError`]; nothing was sent then.
    pub fn request(
        &mut self,
        io: &mut Io<'_, A>,
        to: A,
        content: &Content<'_>,
    ) -> Result<DeviceExchangeId, DeviceSendError> {
        self.start(io, &NewMessage { to, content, purpose: purpose_of(content), token: None })
    }

    /// Replaces an exchange by a request with the same token, to renew the registration of an observation or to end it.
    ///
    /// # Errors
    ///
    /// [`DeviceSendError::TooManyExchanges`] if the exchange has ended. See [`request`](Self::request).
    pub fn request_again(
        &mut self,
        io: &mut Io<'_, A>,
        old: DeviceExchangeId,
        content: &Content<'_>,
    ) -> Result<DeviceExchangeId, DeviceSendError> {
        let index = self.find(old).ok_or(DeviceSendError::TooManyExchanges)?;
        let to = self.memory.peer_of(index).map(|peer| peer.address);
        let to = to.ok_or(DeviceSendError::TooManyExchanges)?;
        let token = self.memory.exchanges.get(index).map(|exchange| exchange.token);
        self.check_length(content)?;
        self.advance(io);
        self.end(io, index, Outcome::Cancelled, None);
        self.start(io, &NewMessage { to, content, purpose: purpose_of(content), token })
    }

    /// Sends a Confirmable notification to an observer (RFC 7641 section 4.2). It ends with
    /// [`DeviceReceived::Acknowledged`](super::DeviceReceived::Acknowledged) or with
    /// [`DeviceReceived::Reset`](super::DeviceReceived::Reset) (the observer no longer exists), or fails.
    ///
    /// # Errors
    ///
    /// See [`DeviceSendError`]; nothing was sent then.
    pub fn notify(
        &mut self,
        io: &mut Io<'_, A>,
        to: A,
        token: Token,
        content: &Content<'_>,
    ) -> Result<DeviceExchangeId, DeviceSendError> {
        let (purpose, token) = (Purpose::Notification, Some(token));
        self.start(io, &NewMessage { to, content, purpose, token })
    }

    /// Transmits an exchange at most so many times, because its address may be forged.
    pub(super) fn limit(&mut self, exchange: DeviceExchangeId, transmissions: u8) {
        if let Some(index) = self.find(exchange)
            && let Some(exchange) = self.memory.exchanges.get_mut(index)
        {
            exchange.max_transmissions = transmissions;
        }
    }

    /// Ends an exchange. Unknown and ended exchanges are ignored.
    pub fn cancel(&mut self, io: &mut Io<'_, A>, exchange: DeviceExchangeId) {
        self.advance(io);
        if let Some(index) = self.find(exchange) {
            self.end(io, index, Outcome::Cancelled, None);
        }
    }

    /// Does what is due, and returns what the program does next.
    pub fn poll(&mut self, io: &mut Io<'_, A>) -> DevicePoll {
        self.advance(io);
        loop {
            if let Some((index, reason)) = self.failed() {
                let exchange = self.name(index);
                self.release(index);
                return DevicePoll::Failed { exchange, reason };
            }
            let alive = self.memory.exchanges.iter().enumerate().filter(|(_, it)| it.is_alive());
            let next = alive.reduce(|a, b| if b.1.precedes(a.1) { b } else { a });
            let Some((index, exchange)) = next else { return DevicePoll::Wait(None) };
            if exchange.due > self.now {
                return DevicePoll::Wait((exchange.due < Instant::MAX).then_some(exchange.due));
            }
            let (state, peer) = (exchange.state, exchange.peer);
            match state {
                FixedExchangeState::Open => self.expire(io, index),
                FixedExchangeState::Queued => self.pump(io, peer),
                _ => self.fail(io, index, Outcome::Cancelled, None, DeviceFailure::NoResponse),
            }
        }
    }

    /// Whether an exchange has ended.
    #[must_use]
    pub fn has_ended(&self, exchange: DeviceExchangeId) -> bool {
        self.find(exchange).is_none()
    }

    fn failed(&self) -> Option<(usize, DeviceFailure)> {
        self.memory.exchanges.iter().enumerate().find_map(|(index, exchange)| {
            match exchange.state {
                FixedExchangeState::Failed(reason) => Some((index, reason)),
                _ => None,
            }
        })
    }

    fn find(&self, id: DeviceExchangeId) -> Option<usize> {
        let exchange = self.memory.exchanges.get(usize::from(id.index))?;
        let fits = exchange.generation == id.generation && exchange.is_alive();
        fits.then_some(id.index.into())
    }

    pub(super) fn name(&self, index: usize) -> DeviceExchangeId {
        let generation = self.memory.exchanges.get(index).map_or(0, |it| it.generation);
        // There are at most 255 places.
        DeviceExchangeId { index: index as u8, generation }
    }

    /// If the clock jumps back, time stands still instead.
    pub(super) fn advance(&mut self, io: &Io<'_, A>) {
        self.now = self.now.max(io.now);
    }

    fn check_length(&self, content: &Content<'_>) -> Result<(), DeviceSendError> {
        // A token is at most 8 bytes.
        let bytes = HEADER_LEN + MAX_TOKEN_LEN + content.encoded_len();
        if bytes > self.memory.message { Err(DeviceSendError::TooLong) } else { Ok(()) }
    }

    /// Accepts a message: encodes it into a new exchange, at the end of its peer's queue.
    fn start(
        &mut self,
        io: &mut Io<'_, A>,
        message: &NewMessage<'_, A>,
    ) -> Result<DeviceExchangeId, DeviceSendError> {
        let NewMessage { to, content, purpose, token } = *message;
        let is_right = match purpose {
            Purpose::Request | Purpose::Registration => content.code.is_request(),
            Purpose::Notification => content.code.is_response(),
        };
        if !is_right {
            return Err(DeviceSendError::WrongCode);
        }
        self.advance(io);
        self.check_length(content)?;
        let peer = self.peer(io, to)?;
        // A server identifies an observation by its token (RFC 7641 section 4.1). With marked tokens a repeated request
        // would register twice.
        let marking = match (purpose, token, self.config.control.marking()) {
            (Purpose::Request, None, Marking::Token) => Marking::Token,
            _ => Marking::None,
        };
        let index =
            self.memory.exchanges.iter().position(|it| it.state == FixedExchangeState::Free);
        let index = index.ok_or(DeviceSendError::TooManyExchanges)?;
        let token = token.unwrap_or_else(|| self.fresh_token(io, to, marking));
        let room = self.memory.datagram(index);
        let encoded = content.encode(room, Type::Confirmable, MessageId(0), token);
        let encoded = encoded.map_err(DeviceSendError::Encode)?;
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        let now = self.now;
        if let Some(exchange) = self.memory.exchanges.get_mut(index) {
            *exchange = FixedExchange {
                state: FixedExchangeState::Queued,
                purpose,
                marking,
                idempotent: content.is_idempotent(),
                peer,
                transmissions: 0,
                max_transmissions: u8::MAX,
                // At most MESSAGE, which fits.
                length: encoded.len as u16,
                token,
                number,
                slot: Slot::default(),
                first: now,
                due: Instant::MAX,
                ..*exchange
            };
        }
        let name = self.name(index);
        self.pump(io, peer);
        Ok(name)
    }

    /// Sends messages that wait for a peer as far as congestion control admits them.
    pub(super) fn pump(&mut self, io: &mut Io<'_, A>, peer: u8) {
        loop {
            let Some(index) = self.memory.oldest_queued(peer, self.next_number) else { return };
            let Some((exchange, peer)) = self.memory.both(index) else { return };
            let message = OutgoingMessage { confirmable: true, bytes: exchange.length };
            let cx = &mut context(self.now, &self.config, io.rng);
            let not_before = match peer.shell.admit(&message, Load::default(), cx) {
                // The end of an open exchange calls `pump` again.
                Admission::Blocked => return,
                Admission::NotBefore(at) => Err(at),
                _ => peer.ids.allocate(self.now, Some(self.lifetime)),
            };
            let id = match not_before {
                Ok(id) => id,
                Err(at) => {
                    exchange.due = at;
                    return;
                }
            };
            (exchange.id, exchange.first, exchange.state) =
                (id, self.now, FixedExchangeState::Open);
            peer.shell.open_exchange();
            if let Some(place) = self.memory.datagram(index).get_mut(2..HEADER_LEN) {
                place.copy_from_slice(&id.0.to_be_bytes());
            }
            self.transmit(io, index);
        }
    }

    /// One transmission of an open exchange leaves and its timeout is armed.
    fn transmit(&mut self, io: &mut Io<'_, A>, index: usize) {
        let now = self.now;
        let Some((exchange, peer)) = self.memory.both(index) else { return };
        let (ordinal, since_first) = (exchange.transmissions, now.micros_since(exchange.first));
        let end = exchange.first + if exchange.idempotent { self.lifetime } else { self.span };
        let remaining = end.micros_since(now);
        (exchange.last, exchange.transmissions) = (now, ordinal.saturating_add(1));
        let cx = &mut context(now, &self.config, io.rng);
        // No probe leaves in the place of a copy.
        let transmission = Transmission { remaining, ..Transmission::new(Kind::Unprobed, ordinal) };
        let timeout = peer.shell.on_transmit(transmission, &mut exchange.slot, cx);
        let left = cx.params.max_retransmit.saturating_sub(ordinal);
        // After the last transmission a peer gets at least PROCESSING_DELAY (RFC 7252 section 4.8.2).
        let least = if left == 0 { cx.params.ack_timeout } else { Micros::ZERO };
        let (timeout, left) = (timeout.max(least), left.into());
        let wait = match exchange.purpose {
            Purpose::Notification => {
                Shell::wait_of_response(timeout, left, since_first, remaining, cx)
            }
            Purpose::Request | Purpose::Registration => Shell::wait(timeout, left, since_first, cx),
        };
        exchange.arm(&mut self.next_number, now + wait);
        let (to, length) = (peer.address, usize::from(exchange.length));
        let is_marked = exchange.marking == Marking::Token;
        if let Some(sent) = exchange.sent.get_mut(usize::from(ordinal)) {
            *sent = since_first;
        }
        let datagram = self.memory.datagram(index);
        if is_marked && let Some(first) = datagram.get_mut(HEADER_LEN) {
            *first = ordinal.min(MAX_MARK);
        }
        (io.send)(to, datagram.get(..length).unwrap_or_default());
    }

    /// The timeout of an open exchange passed: repeat the message or give up (RFC 7252 section 4.2).
    fn expire(&mut self, io: &mut Io<'_, A>, index: usize) {
        let Some((exchange, peer)) = self.memory.both(index) else { return };
        let transmissions = exchange.transmissions;
        // As few transmissions as a forged address receives are worth the longest first timeout of
        // RFC 7252 section 4.2.
        let Parameters { ack_timeout, ack_random_permille, .. } = self.config.params;
        let processed = exchange.last + ack_timeout.scale(ack_random_permille, 1000);
        if exchange.max_transmissions < u8::MAX && self.now < processed {
            exchange.arm(&mut self.next_number, processed);
            return;
        }
        let effort = Attempts { transmissions, ..Attempts::default() };
        let end = exchange.first + if exchange.idempotent { self.lifetime } else { self.span };
        let more = transmissions < exchange.max_transmissions && self.now <= end + LATENESS;
        let cx = &mut context(self.now, &self.config, io.rng);
        match peer.shell.on_expire(effort, &exchange.slot, cx) {
            Some(_) if more => self.transmit(io, index),
            _ => self.fail(io, index, Outcome::GaveUp, None, DeviceFailure::GaveUp),
        }
    }

    /// Ends an exchange without its answer, of which the program will be told.
    pub(super) fn fail(
        &mut self,
        io: &mut Io<'_, A>,
        index: usize,
        outcome: Outcome,
        sample: Option<Sample>,
        reason: DeviceFailure,
    ) {
        self.close(io, index, outcome, sample);
        let Some(exchange) = self.memory.exchanges.get_mut(index) else { return };
        exchange.state = FixedExchangeState::Failed(reason);
        let peer = exchange.peer;
        self.touch(peer.into());
        self.pump(io, peer);
    }

    /// Ends an exchange. Everything that it held is free afterwards, and the next message of its
    /// peer may leave.
    pub(super) fn end(
        &mut self,
        io: &mut Io<'_, A>,
        index: usize,
        outcome: Outcome,
        sample: Option<Sample>,
    ) {
        self.close(io, index, outcome, sample);
        let Some(peer) = self.memory.exchanges.get(index).map(|it| it.peer) else { return };
        self.release(index);
        self.touch(peer.into());
        self.pump(io, peer);
    }

    /// Ends congestion control's part of an exchange and frees its NSTART place, if it holds one.
    pub(super) fn close(
        &mut self,
        io: &mut Io<'_, A>,
        index: usize,
        outcome: Outcome,
        sample: Option<Sample>,
    ) {
        let Some((exchange, peer)) = self.memory.both(index) else { return };
        if exchange.state != FixedExchangeState::Open {
            return;
        }
        let cx = &mut context(self.now, &self.config, io.rng);
        if let Some(sample) = &sample {
            peer.shell.on_feedback(&exchange.slot, sample, cx);
        }
        let retransmissions = exchange.transmissions.saturating_sub(1);
        peer.shell.close_exchange(&exchange.slot, outcome, retransmissions, cx);
    }

    /// Frees the place of an exchange.
    fn release(&mut self, index: usize) {
        if let Some(exchange) = self.memory.exchanges.get_mut(index) {
            exchange.state = FixedExchangeState::Free;
            exchange.generation = exchange.generation.wrapping_add(1);
        }
    }
}

impl FixedExchange {
    /// Sets the instant at which something is to be done with an exchange that has left the queue.
    pub(super) fn arm(&mut self, next_number: &mut u32, due: Instant) {
        (self.due, self.number) = (due, *next_number);
        *next_number = next_number.wrapping_add(1);
    }

    /// Whether it is due before another one.
    fn precedes(&self, other: &Self) -> bool {
        self.due < other.due || self.due == other.due && self.number < other.number
    }

    /// Whether a response with this token belongs to it.
    pub(super) fn has_token(&self, token: Token) -> bool {
        self.purpose != Purpose::Notification && self.token == token
    }
}

fn purpose_of(content: &Content<'_>) -> Purpose {
    let mut options = content.options.iter();
    let registers = options.any(|it| it.number == OptionNumber::OBSERVE && it.as_uint() == Some(0));
    if registers && content.code != Code::EMPTY { Purpose::Registration } else { Purpose::Request }
}

/// The parameters from which the derived times follow.
pub(super) fn path<C>(config: &DeviceConfig<C>) -> Parameters {
    config.params.under(config.settings.first_timeout(&config.params))
}

pub(super) fn context<'c, C>(
    now: Instant,
    config: &'c DeviceConfig<C>,
    rng: &'c mut dyn Rng,
) -> Context<'c> {
    Context { now, params: &config.params, settings: &config.settings, rng }
}
