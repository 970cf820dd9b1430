//! Datagrams that arrive (RFC 7252 sections 4.2, 4.3, 4.5 and 5.3).

use super::endpoint::{DeviceEndpoint, DeviceExchangeId, Io, path};
use super::tables::{DeviceFailure, FixedExchange, FixedExchangeState, Purpose};
use crate::cc::{Answered, CongestionControl, Marking, Outcome, Sample};
use crate::exchange::token::{ordinal_in, unmark};
use crate::time::{Instant, Micros};
use crate::wire::{
    Code, Content, HEADER_LEN, Message, MessageId, OptionNumber, ParseError, Token, Type,
};

/// The meaning of a datagram for the program.
#[derive(Debug)]
pub enum DeviceReceived<'d, A> {
    /// A request, to be answered by a server or rejected ([`DeviceEndpoint::reject`]).
    Request(DeviceRequest<A>, Message<'d>),
    /// The response to a request, whose exchange has ended.
    Response {
        /// The exchange.
        exchange: DeviceExchangeId,
        /// The response.
        message: Message<'d>,
    },
    /// A response to a registration, after which more may follow (RFC 7641).
    Notification {
        /// The exchange.
        exchange: DeviceExchangeId,
        /// The response.
        message: Message<'d>,
    },
    /// The acknowledgement of a notification, whose exchange has ended.
    Acknowledged(DeviceExchangeId),
    /// The message was rejected, and its exchange has ended.
    Reset(DeviceExchangeId),
    /// Nothing that concerns the program.
    Ignored,
}

/// A request that has arrived.
#[derive(Copy, Clone, Debug)]
pub struct DeviceRequest<A> {
    /// The sender.
    pub from: A,
    /// Its message ID.
    pub id: MessageId,
    /// Its token.
    pub token: Token,
    /// Confirmable or not.
    pub kind: Type,
}

impl<A: Copy + Eq, C: CongestionControl + Clone> DeviceEndpoint<'_, A, C> {
    /// Processes a datagram and returns its meaning for the program. Malformed ones are rejected as RFC 7252 requires.
    pub fn receive<'d>(
        &mut self,
        io: &mut Io<'_, A>,
        from: A,
        datagram: &'d [u8],
    ) -> DeviceReceived<'d, A> {
        self.advance(io);
        let message = match Message::parse(datagram) {
            Ok(message) => message,
            Err(error) => {
                // Section 4.2: a Confirmable message with a format error is rejected with a Reset, and anything else
                // is ignored.
                if let ParseError::Format { kind: Type::Confirmable, message_id, .. } = error {
                    emit_empty(io, from, Type::Reset, message_id);
                }
                return DeviceReceived::Ignored;
            }
        };
        let (kind, id) = (message.kind(), message.message_id());
        let Some(token) = message.token() else {
            // A format error, too, without RFC 8974.
            if kind == Type::Confirmable {
                emit_empty(io, from, Type::Reset, id);
            }
            return DeviceReceived::Ignored;
        };
        match kind {
            Type::Confirmable | Type::NonConfirmable if message.code().is_request() => {
                let request = DeviceRequest { from, id, token, kind };
                DeviceReceived::Request(request, message)
            }
            Type::Confirmable if message.code().is_empty() => {
                // A ping (section 4.3).
                emit_empty(io, from, Type::Reset, id);
                DeviceReceived::Ignored
            }
            Type::Confirmable | Type::NonConfirmable => self.on_separate(io, from, token, message),
            Type::Acknowledgement => self.on_acknowledgement(io, from, token, message),
            Type::Reset => self.on_reset(io, from, id),
        }
    }

    /// Rejects a request with a Reset (RFC 7252 section 4.2): this program answers none.
    pub fn reject(&mut self, io: &mut Io<'_, A>, request: &DeviceRequest<A>) {
        if request.kind == Type::Confirmable {
            emit_empty(io, request.from, Type::Reset, request.id);
        }
    }

    /// An ACK, empty or with a response (sections 5.2.1 and 5.2.2).
    fn on_acknowledgement<'d>(
        &mut self,
        io: &mut Io<'_, A>,
        from: A,
        token: Token,
        message: Message<'d>,
    ) -> DeviceReceived<'d, A> {
        let id = message.message_id();
        let found =
            self.memory.find(from, &|it| it.id == id && it.state == FixedExchangeState::Open);
        let Some(index) = found else {
            self.compare_marks(from, &message);
            return DeviceReceived::Ignored;
        };
        let (exchange, is_notification) = (self.name(index), self.is_notification(index));
        if message.code().is_empty() || is_notification {
            // A response acknowledges a notification as well, whatever else it has.
            let sample = Some(self.sample(index, None));
            if is_notification {
                self.end(io, index, Outcome::Acknowledged, sample);
                return DeviceReceived::Acknowledged(exchange);
            }
            // The message ID stays known, so that a Reset can still end the exchange.
            let due = self.now + path(&self.config).response_wait();
            self.acknowledge(io, index, FixedExchangeState::Waiting, due, sample);
            return DeviceReceived::Ignored;
        }
        // Section 5.3.2: message ID and token must both match.
        let Some(ordinal) = self.match_token(index, token) else {
            return DeviceReceived::Ignored;
        };
        let sample = self.sample(index, Some(ordinal));
        self.finish(io, index, Some(sample), message)
    }

    fn on_reset(
        &mut self,
        io: &mut Io<'_, A>,
        from: A,
        id: MessageId,
    ) -> DeviceReceived<'static, A> {
        let sent = |it: &FixedExchange| {
            matches!(it.state, FixedExchangeState::Open | FixedExchangeState::Waiting)
        };
        let Some(index) = self.memory.find(from, &|it| it.id == id && sent(it)) else {
            return DeviceReceived::Ignored;
        };
        let (exchange, sample) = (self.name(index), self.sample(index, None));
        self.end(io, index, Outcome::Reset, Some(sample));
        DeviceReceived::Reset(exchange)
    }

    /// A response in a message of its own (sections 5.2.2 and 5.2.3).
    fn on_separate<'d>(
        &mut self,
        io: &mut Io<'_, A>,
        from: A,
        token: Token,
        message: Message<'d>,
    ) -> DeviceReceived<'d, A> {
        let (id, now) = (message.message_id(), self.now);
        let confirmable = message.kind() == Type::Confirmable;
        let is_known =
            |known: &(A, MessageId, Instant)| (known.0, known.1) == (from, id) && now < known.2;
        if confirmable && self.acknowledged.iter().flatten().any(is_known) {
            // A duplicate is acknowledged again and not processed (section 4.5).
            emit_empty(io, from, Type::Acknowledgement, id);
            return DeviceReceived::Ignored;
        }
        let found = self.memory.find(from, &|it| it.has_token(token)).or_else(|| {
            let (original, _) = unmark(token)?;
            let index = self.memory.find(from, &|it| it.has_token(original))?;
            self.match_token(index, token).map(|_| index)
        });
        let sent = found.filter(|index| self.state(*index) != FixedExchangeState::Queued);
        let Some(index) = sent else {
            reject(io, from, &message);
            return DeviceReceived::Ignored;
        };
        if has_unknown_critical(&message) {
            // Section 5.4.1 requires the rejection; `finish` does the rest.
            reject(io, from, &message);
        } else if confirmable {
            emit_empty(io, from, Type::Acknowledgement, id);
            if let Some(place) = self.acknowledged.get_mut(self.next_acknowledged) {
                *place = Some((from, id, now + self.lifetime));
            }
            self.next_acknowledged = (self.next_acknowledged + 1) % self.acknowledged.len();
        }
        // A response implies the acknowledgement that was lost or is still to come.
        let ordinal = self.match_token(index, token);
        let sample = self.sample(index, ordinal);
        self.finish(io, index, Some(sample), message)
    }

    /// The response to a request has arrived. `sample` counts if the request is unacknowledged.
    fn finish<'d>(
        &mut self,
        io: &mut Io<'_, A>,
        index: usize,
        sample: Option<Sample>,
        message: Message<'d>,
    ) -> DeviceReceived<'d, A> {
        let exchange = self.name(index);
        if has_unknown_critical(&message) {
            // Section 5.4.1: such a response is rejected, and the request ends without an answer.
            self.fail(io, index, Outcome::Acknowledged, sample, DeviceFailure::BadOption);
            return DeviceReceived::Ignored;
        }
        // RFC 7641 section 4.2: a notification has the option Observe and a code of class 2. A response without them
        // shows that the server has not registered this client, or has removed it.
        let registers =
            self.memory.exchanges.get(index).is_some_and(|it| it.purpose == Purpose::Registration);
        if registers
            && message.code().class() == 2
            && message.option(OptionNumber::OBSERVE).is_some()
        {
            // From now on it holds nothing but its token.
            self.acknowledge(io, index, FixedExchangeState::Observing, Instant::MAX, sample);
            return DeviceReceived::Notification { exchange, message };
        }
        self.end(io, index, Outcome::Acknowledged, sample);
        DeviceReceived::Response { exchange, message }
    }

    /// A request was acknowledged: it frees its NSTART place, and stays in another state.
    fn acknowledge(
        &mut self,
        io: &mut Io<'_, A>,
        index: usize,
        state: FixedExchangeState,
        due: Instant,
        sample: Option<Sample>,
    ) {
        self.close(io, index, Outcome::Acknowledged, sample);
        let Some(exchange) = self.memory.exchanges.get_mut(index) else { return };
        exchange.state = state;
        exchange.arm(&mut self.next_number, due);
        let peer = exchange.peer;
        self.pump(io, peer);
    }

    /// The ordinal in a token, if the token belongs to the exchange.
    fn match_token(&self, index: usize, token: Token) -> Option<u8> {
        let exchange = self.memory.exchanges.get(index)?;
        ordinal_in(token, exchange.token, exchange.marking, exchange.transmissions)
    }

    /// The peer of an exchange has responded: the measurements of an answer with this ordinal in
    /// its mark. The ordinal counts if the answer certainly belongs to the transmission that it
    /// names: that is the last one, or the peer is known to answer each copy with its own mark.
    fn sample(&mut self, index: usize, ordinal: Option<u8>) -> Sample {
        let now = self.now;
        let Some((exchange, peer)) = self.memory.both(index) else {
            return Sample::new(Micros::ZERO, Micros::ZERO, 1);
        };
        peer.last_used = now;
        let last = exchange.transmissions.saturating_sub(1);
        let ordinal = ordinal.filter(|_| exchange.marking != Marking::None);
        if let Some(ordinal) = ordinal.filter(|_| last > 0 && !peer.faithful) {
            self.first_answers.remember(exchange, ordinal);
        }
        let since_first = now.micros_since(exchange.first);
        let answered = ordinal.filter(|ordinal| peer.faithful || *ordinal == last);
        let answered = answered.and_then(|ordinal| {
            let sent = exchange.sent.get(usize::from(ordinal))?;
            Some(Answered { ordinal, since: since_first.saturating_sub(*sent) })
        });
        Sample::new(since_first, now.micros_since(exchange.last), exchange.transmissions)
            .with_answered(answered)
    }

    /// A peer whose answers to the copies of a request name different copies can be believed.
    fn compare_marks(&mut self, from: A, message: &Message<'_>) {
        if let Some(index) = self.memory.find_peer(from)
            && self.first_answers.contradicts(message)
            && let Some(Some(peer)) = self.memory.peers.get_mut(index)
        {
            peer.faithful = true;
        }
    }

    fn is_notification(&self, index: usize) -> bool {
        self.memory.exchanges.get(index).is_some_and(|it| it.purpose == Purpose::Notification)
    }

    fn state(&self, index: usize) -> FixedExchangeState {
        self.memory.exchanges.get(index).map_or(FixedExchangeState::Free, |it| it.state)
    }
}

/// Whether a message has a critical option that is not understood (section 5.4.1).
pub(super) fn has_unknown_critical(message: &Message<'_>) -> bool {
    unknown_critical(message).is_some()
}

/// The first critical option that is not understood (section 5.4.1).
pub(super) fn unknown_critical(message: &Message<'_>) -> Option<OptionNumber> {
    let code = message.code();
    message.body().first_critical_unless(|number| number.is_known_in(code))
}

/// Rejects a response: with a Reset if it is Confirmable (section 4.2), otherwise by ignoring it.
fn reject<A>(io: &mut Io<'_, A>, from: A, message: &Message<'_>) {
    // RFC 7641 section 3.6: a notification that belongs to no observation is rejected even if it is Non-confirmable, so
    // that the server stops.
    if message.kind() == Type::Confirmable || message.option(OptionNumber::OBSERVE).is_some() {
        emit_empty(io, from, Type::Reset, message.message_id());
    }
}

/// Sends an empty message.
pub(super) fn emit_empty<A>(io: &mut Io<'_, A>, to: A, kind: Type, id: MessageId) {
    let mut bytes = [0; HEADER_LEN];
    let empty = Content { code: Code::EMPTY, options: &[], payload: &[] };
    if empty.encode(&mut bytes, kind, id, Token::EMPTY).is_ok() {
        (io.send)(to, &bytes);
    }
}
