//! Processing of datagrams that arrive (RFC 7252 sections 4.2, 4.3, 4.5 and 5.3).

use super::Endpoint;
use super::types::{Arrival, Ignored, Incoming, Received, Remember};
use super::waits::Wait;
use crate::cc::{Marking, Outcome, Sample};
use crate::exchange::dedup::{MessageKey, RepeatedRequest, Reply};
use crate::exchange::table::{Answers, ExchangeState, Purpose};
use crate::exchange::token::{strip_mark, unmark};
use crate::peer::PeerId;
use crate::peer_token::PeerToken;
use crate::time::Instant;
use crate::wire::{
    Code, Content, FormatError, MAX_TOKEN_LEN, Message, OptionNumber, ParseError, Token, Type,
};

impl Endpoint {
    /// Processes a datagram and returns its meaning for the application. Malformed datagrams are
    /// rejected as RFC 7252 requires, and counted.
    pub fn handle_datagram<'d>(
        &mut self,
        now: Instant,
        from: PeerId,
        datagram: &'d [u8],
    ) -> Received<'d> {
        self.receive(now, from.into(), datagram, |_, _| Remember::Yes)
    }

    /// Like [`Self::handle_datagram`], for a server that serves multicast groups or unverified
    /// remotes.
    ///
    /// `remember` is called for each new request that must not be processed twice, before it takes
    /// one of [`Limits::remembered_messages`](super::Limits::remembered_messages). If it returns
    /// [`Remember::No`], the endpoint keeps nothing of the request. The application still receives the
    /// request but must not process it; it may [`respond`](Endpoint::respond), for instance with a
    /// challenge (RFC 9175 section 2.4). A copy of such a request counts as a new request until the
    /// client has made it again ([`Remember::After`]).
    pub fn receive<'d>(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &'d [u8],
        remember: impl FnOnce(&Incoming, &Message<'d>) -> Remember,
    ) -> Received<'d> {
        // Until the datagram is processed: whatever ends an exchange later was not marked.
        self.is_marked = arrival.congestion_experienced;
        let received = self.process(now, arrival, datagram, remember);
        self.is_marked = false;
        received
    }

    fn process<'d>(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &'d [u8],
        remember: impl FnOnce(&Incoming, &Message<'d>) -> Remember,
    ) -> Received<'d> {
        let now = self.advance(now);
        let Arrival { from, to_group, .. } = arrival;
        self.counters.received += 1;
        let message = match Message::parse(datagram) {
            Ok(message) if self.accepts_token(&message) => message,
            Ok(message) => return self.on_malformed(arrival, &token_error(&message)),
            Err(error) => return self.on_malformed(arrival, &error),
        };
        if !to_group {
            self.read_wave(now, from, &message);
        }
        match message.kind() {
            Type::Confirmable | Type::NonConfirmable if message.code().is_request() => {
                self.on_request(now, arrival, message, remember)
            }
            Type::Confirmable if message.code().is_empty() => {
                // A ping (section 4.3).
                self.counters.rare().pings += 1;
                if !to_group {
                    self.emit_empty(from, Type::Reset, message.message_id());
                }
                Received::Ignored(Ignored::Ping)
            }
            // An answer to a message of ours is never sent to a group.
            _ if to_group => self.unknown(),
            Type::Confirmable | Type::NonConfirmable => self.on_separate(now, from, message),
            Type::Acknowledgement if message.code().is_empty() => {
                self.on_acknowledgement(now, from, &message)
            }
            Type::Acknowledgement => self.on_piggybacked(now, from, message),
            Type::Reset => self.on_reset(now, from, &message),
        }
    }

    /// An endpoint without RFC 8974 takes a token of more than eight bytes for a format error (RFC 7252
    /// section 3).
    #[inline]
    fn accepts_token(&self, message: &Message<'_>) -> bool {
        message.token_bytes().len() <= MAX_TOKEN_LEN
            || self.config.limits.token_bytes > MAX_TOKEN_LEN
    }

    #[cold]
    fn on_malformed(&mut self, arrival: Arrival, error: &ParseError) -> Received<'static> {
        self.counters.rare().malformed += 1;
        self.rare.get_or_insert_default().malformed.count(error);
        // Section 4.2: a Confirmable message with a format error is rejected with a Reset,
        // and anything else is ignored (sections 3 and 4.3). A message to a group is not
        // even rejected, because all members would send a Reset (section 8.1).
        if let ParseError::Format { kind: Type::Confirmable, message_id, .. } = *error
            && !arrival.to_group
        {
            self.emit_empty(arrival.from, Type::Reset, message_id);
        }
        Received::Ignored(Ignored::Malformed)
    }

    fn on_request<'d>(
        &mut self,
        now: Instant,
        Arrival { from, to_group, .. }: Arrival,
        message: Message<'d>,
        remember: impl FnOnce(&Incoming, &Message<'d>) -> Remember,
    ) -> Received<'d> {
        let (kind, id, code) = (message.kind(), message.message_id(), message.code());
        let incoming = Incoming {
            remote: from,
            id,
            token: PeerToken::new(message.token_bytes()),
            kind,
            code,
            // RFC 8613: a copy of a protected request that is processed is a replay, also of one
            // that looks like a FETCH.
            idempotent: message.is_idempotent() && message.option(OptionNumber::OSCORE).is_none(),
            to_group,
            acknowledged: false,
            deferred: false,
            rexmit_count: message
                .option(self.config.rexmit_count_option)
                .and_then(|option| option.as_uint())
                .and_then(|value| u8::try_from(value).ok()),
        };
        let token = message.token_bytes().len();
        if token > MAX_TOKEN_LEN && token > self.config.limits.longest_token() {
            return self.refuse_token(now, &incoming);
        }
        if self.dedup.lookup(now, from, id).is_some() || self.under_way.contains(now, from, id) {
            return self.duplicate(now, &incoming);
        }
        if let Some(number) = self.unknown_critical(&message) {
            self.counters.rare().bad_options += 1;
            // Section 5.4.1: a Confirmable request is answered with 4.02, and a Non-confirmable
            // one is rejected.
            if kind == Type::Confirmable {
                // The diagnostic payload is so short that the answer has at most three times the bytes
                // of any request with the option.
                let diagnostic = alloc::format!("option {}", number.0);
                self.refuse(&incoming, Code::BAD_OPTION, diagnostic.as_bytes());
            }
            return Received::Ignored(Ignored::UnknownCriticalOption);
        }
        if incoming.idempotent {
            return Received::Request(incoming, message);
        }
        let (lifetime, key) = (self.exchange_lifetime, MessageKey { remote: from, id });
        let remembered = match remember(&incoming, &message) {
            Remember::No => RepeatedRequest::New,
            Remember::Yes if self.dedup.insert(now, lifetime, key, Reply::Pending) => {
                RepeatedRequest::New
            }
            Remember::Yes => RepeatedRequest::NoRoom,
            Remember::After(first) => self.dedup.insert_after(now, lifetime, key, first),
        };
        match remembered {
            RepeatedRequest::New => Received::Request(incoming, message),
            RepeatedRequest::Known => self.duplicate(now, &incoming),
            RepeatedRequest::NoRoom => {
                // Processing it would mean to process its duplicates as well.
                self.counters.rare().refused += 1;
                self.refuse(&incoming, Code::SERVICE_UNAVAILABLE, &[]);
                Received::Ignored(Ignored::NoRoom)
            }
        }
    }

    /// A copy of a request that is remembered gets what the first one got (section 4.5). A copy of one
    /// under way gets nothing yet.
    fn duplicate<'d>(&mut self, now: Instant, incoming: &Incoming) -> Received<'d> {
        self.counters.rare().duplicates += 1;
        let confirmable = incoming.kind == Type::Confirmable;
        let reply = self.dedup.lookup(now, incoming.remote, incoming.id);
        match reply.filter(|_| !incoming.to_group) {
            Some(Reply::Response(_)) => self.repeat_response(incoming),
            Some(Reply::Acknowledgement) if confirmable => {
                self.emit_empty(incoming.remote, Type::Acknowledgement, incoming.id);
            }
            Some(Reply::Acknowledgement | Reply::Pending | Reply::Superseded) | None => {}
        }
        Received::Ignored(Ignored::DuplicateRequest)
    }

    /// RFC 8974 section 2.2.2: a server that will never be able to handle a token does not reject it, which
    /// would mean that no token may be extended.
    #[cold]
    fn refuse_token(&mut self, now: Instant, incoming: &Incoming) -> Received<'static> {
        self.counters.rare().refused += 1;
        if !incoming.to_group
            && let Ok((kind, id)) = self.form_of_response(now, incoming)
        {
            // It has no more bytes than the request, however long that was. If there is no room, the peer will
            // retransmit.
            let content = Content { code: Code::BAD_REQUEST, options: &[], payload: &[] };
            let bytes = Self::response_len(incoming, &content);
            let _ = self.push_response(incoming, &content, kind, id, bytes);
        }
        Received::Ignored(Ignored::TokenTooLong)
    }

    fn refuse(&mut self, incoming: &Incoming, code: Code, payload: &[u8]) {
        if incoming.kind == Type::Confirmable && !incoming.to_group {
            let content = Content { code, options: &[], payload };
            // A full outbox has been counted; the peer will retransmit.
            let _ = self.emit_response(incoming, &content, Type::Acknowledgement, incoming.id);
        }
    }

    /// Handles a response on the acknowledgement of its request (section 5.2.1).
    fn on_piggybacked<'d>(
        &mut self,
        now: Instant,
        from: PeerId,
        message: Message<'d>,
    ) -> Received<'d> {
        let Some(index) = self.find_open(from, &message) else {
            self.compare_marks(from, &message);
            return self.unknown();
        };
        if matches!(self.table.get(index).purpose, Purpose::Response | Purpose::Notification) {
            // Section 5.2.2: it acknowledges our response, whatever else it has.
            return self.on_acknowledgement(now, from, &message);
        }
        // Section 5.3.2: message ID and token must both match.
        let token = message.token();
        let Some(ordinal) = token.and_then(|token| self.match_token(index, token)) else {
            return self.wrong_token();
        };
        if self.table.get(index).purpose != Purpose::Request {
            return self.wrong_token();
        }
        let answered = match self.table.get(index).marking {
            Marking::None => None,
            Marking::Token | Marking::CopyToken => self.believe(index, ordinal),
            Marking::Option => match self.counted(index, &message) {
                Ok(ordinal) => ordinal.and_then(|ordinal| self.believe(index, ordinal)),
                Err(()) => return self.wrong_token(),
            },
        };
        let sample = self.table.get(index).sample(now, answered);
        self.finish(now, index, Some(sample), message)
    }

    /// Handles an empty ACK (sections 4.2 and 5.2.2).
    fn on_acknowledgement(
        &mut self,
        now: Instant,
        from: PeerId,
        message: &Message<'_>,
    ) -> Received<'static> {
        let id = message.message_id();
        if let Some(index) = self.table.by_id(from, id).filter(|&index| self.is_probe(index, id)) {
            return self.on_probe_reply(now, index, id);
        }
        let Some(index) = self.find_open(from, message) else {
            return self.unknown();
        };
        let exchange = self.table.name(index);
        let sample = self.table.get(index).sample(now, None);
        self.hear(now, index);
        match self.table.get(index).purpose {
            // A ping is answered by a Reset (section 4.3), not by an ACK; the exchange ends all
            // the same.
            Purpose::Response | Purpose::Notification | Purpose::Ping => {
                self.end(now, index, Outcome::Acknowledged, Some(sample));
            }
            Purpose::Request => {
                self.close(now, index, Outcome::Acknowledged, Some(sample));
                let exchange = self.table.get_mut(index);
                exchange.state = ExchangeState::Waiting;
                let peer = exchange.peer;
                // The message ID stays known, so that a Reset can still end the exchange.
                self.table.remember_id(index);
                let until = now + self.config.params_of_path().response_wait();
                self.timers.arm(index, until);
                self.waits(now, index, Wait::Answer, Some(until));
                self.pump(now, peer);
            }
        }
        Received::Acknowledged { exchange, sample }
    }

    fn on_reset(&mut self, now: Instant, from: PeerId, message: &Message<'_>) -> Received<'static> {
        let Some(index) = self.table.by_id(from, message.message_id()) else {
            return self.unknown();
        };
        if self.is_probe(index, message.message_id()) {
            return self.on_probe_reply(now, index, message.message_id());
        }
        let exchange = self.table.name(index);
        let open = self.table.get(index).state == ExchangeState::Open;
        let sample = open.then(|| self.table.get(index).sample(now, None));
        self.hear(now, index);
        self.end(now, index, Outcome::Reset, sample);
        Received::Reset { exchange, sample }
    }

    /// Handles a response in a message of its own (sections 5.2.2 and 5.2.3).
    fn on_separate<'d>(
        &mut self,
        now: Instant,
        from: PeerId,
        message: Message<'d>,
    ) -> Received<'d> {
        let confirmable = message.kind() == Type::Confirmable;
        if confirmable {
            // A duplicate of an acknowledged response is acknowledged again and not processed
            // (section 4.5), even if its token now belongs to another request.
            let known = self.dedup.lookup(now, from, message.message_id());
            if known == Some(&Reply::Acknowledgement) {
                self.emit_empty(from, Type::Acknowledgement, message.message_id());
                return self.unknown();
            }
        }
        let found = message.token().and_then(|token| self.find_token(from, token));
        let Some((index, ordinal)) = found else {
            self.reject(from, &message);
            return self.unknown();
        };
        if self.table.get(index).state == ExchangeState::Queued {
            // The response refers to a request that has not been sent.
            self.reject(from, &message);
            return self.wrong_token();
        }
        if self.unknown_critical(&message).is_some() {
            // Section 5.4.1 requires the rejection; `finish` does the rest.
            self.reject(from, &message);
        } else if confirmable {
            self.emit_empty(from, Type::Acknowledgement, message.message_id());
            let lifetime = self.exchange_lifetime;
            let key = MessageKey { remote: from, id: message.message_id() };
            if !self.dedup.insert(now, lifetime, key, Reply::Acknowledgement) {
                self.counters.rare().unstored += 1;
            }
        }
        // A response implies the acknowledgement that was lost or is still to come (section
        // 5.2.2).
        let open = self.table.get(index).state == ExchangeState::Open;
        let answered = match self.table.get(index).marking {
            Marking::Token | Marking::CopyToken => self.believe(index, ordinal),
            Marking::None | Marking::Option => None,
        };
        let sample = open.then(|| self.table.get(index).sample(now, answered));
        self.finish(now, index, sample, message)
    }

    /// The response to a request of ours has arrived.
    fn finish<'d>(
        &mut self,
        now: Instant,
        index: u32,
        sample: Option<Sample>,
        message: Message<'d>,
    ) -> Received<'d> {
        let exchange = self.table.name(index);
        self.hear(now, index);
        if self.unknown_critical(&message).is_some() {
            // Section 5.4.1: such a response is rejected. The request ends without an answer,
            // unless other members of a group, or other blocks, answer it too.
            self.counters.rare().bad_options += 1;
            if !self.has_many_answers(index) {
                self.end(now, index, Outcome::Acknowledged, sample);
                let reason = super::Failure::BadOption;
                self.output.report(super::Event::Failed { exchange, reason });
            }
            return Received::Ignored(Ignored::UnknownCriticalOption);
        }
        if self.table.get(index).remote.is_multicast() {
            return Received::Notification { exchange, sample, message };
        }
        if self.table.get(index).answers == Answers::Many {
            self.answer_again(now, index);
            return Received::Notification { exchange, sample, message };
        }
        // RFC 7641 section 4.2: a notification has the option Observe and a code of class 2. A
        // response without them shows that the server has not registered this client, or has
        // removed it.
        let stays = self.table.get(index).answers == Answers::Observed
            && message.code().class() == 2
            && message.option(OptionNumber::OBSERVE).is_some();
        if stays {
            self.observe(now, index, sample);
            return Received::Notification { exchange, sample, message };
        }
        self.end(now, index, Outcome::Acknowledged, sample);
        Received::Response { exchange, sample, message }
    }

    /// Whether the request may have several answers, so that no single answer ends it.
    fn has_many_answers(&self, index: u32) -> bool {
        let exchange = self.table.get(index);
        exchange.remote.is_multicast() || exchange.answers == Answers::Many
    }

    /// The request is registered as an observer, or was already. From now on it waits for
    /// notifications without a time limit and holds nothing but its token.
    fn observe(&mut self, now: Instant, index: u32, sample: Option<Sample>) {
        let (state, peer) = (self.table.get(index).state, self.table.get(index).peer);
        match state {
            ExchangeState::Open => self.close(now, index, Outcome::Acknowledged, sample),
            ExchangeState::Waiting => {
                self.table.forget_id(index);
                self.note_mark(now, peer);
            }
            ExchangeState::Queued | ExchangeState::Observing | ExchangeState::Free => return,
        }
        self.timers.disarm(index);
        self.table.get_mut(index).state = ExchangeState::Observing;
        self.pump(now, peer);
    }

    /// The first critical option that is not understood, because of which a message must be rejected
    /// (section 5.4.1).
    #[inline]
    fn unknown_critical(&self, message: &Message<'_>) -> Option<OptionNumber> {
        let (count, blocks) = (self.config.rexmit_count_option, self.config.q_block);
        let oscore = self.config.oscore;
        let forwards =
            self.config.forwards && (!message.code().is_request() || message.body().is_for_proxy());
        let code = message.code();
        message.body().first_critical_unless(|number| {
            number.is_known_in(code)
                || number == count
                || blocks && number.is_q_block()
                || oscore && matches!(number, OptionNumber::OSCORE | OptionNumber::EDHOC)
                || forwards && !number.is_unsafe_to_forward()
        })
    }

    /// Rejects a response: with a Reset if it is Confirmable (section 4.2), otherwise by ignoring
    /// it.
    fn reject(&mut self, from: PeerId, message: &Message<'_>) {
        // RFC 7641 section 3.6: a notification that belongs to no observation is rejected even if
        // it is Non-confirmable, so that the server stops.
        let notification = message.option(OptionNumber::OBSERVE).is_some();
        if message.kind() == Type::Confirmable || notification {
            self.emit_empty(from, Type::Reset, message.message_id());
        }
    }

    /// The open exchange that an ACK from `from` belongs to.
    #[inline]
    fn find_open(&self, from: PeerId, message: &Message<'_>) -> Option<u32> {
        let index = self.table.by_id(from, message.message_id())?;
        let exchange = self.table.get(index);
        // An ID may also be that of a probe, which has no response.
        let named = exchange.id == message.message_id();
        (exchange.state == ExchangeState::Open && named).then_some(index)
    }

    /// The request to which a token belongs, and the ordinal in the token (0 if it is not marked).
    fn find_token(&self, from: PeerId, token: Token) -> Option<(u32, u8)> {
        let exact = self.table.by_token(from, token).map(|index| (index, 0));
        let marked = |found: Option<(Token, u8)>| {
            let index = self.table.by_token(from, found?.0)?;
            Some((index, self.match_token(index, token)?))
        };
        exact
            .or_else(|| marked(unmark(token)))
            .or_else(|| marked(strip_mark(token)))
            .or_else(|| self.table.group_by_token(token).map(|index| (index, 0)))
    }

    /// Records that the peer of an exchange has responded.
    #[inline]
    pub(super) fn hear(&mut self, now: Instant, index: u32) {
        let peer = self.table.get(index).peer;
        self.peers.touch(now, peer);
        self.peers.get_mut(peer).hear(now);
    }

    pub(super) fn unknown(&mut self) -> Received<'static> {
        self.counters.unknown_answers += 1;
        Received::Ignored(Ignored::UnknownExchange)
    }

    fn wrong_token(&mut self) -> Received<'static> {
        self.counters.rare().wrong_tokens += 1;
        Received::Ignored(Ignored::WrongToken)
    }
}

/// The error of a message whose token is longer than RFC 7252 allows.
#[cold]
fn token_error(message: &Message<'_>) -> ParseError {
    // At most 65804.
    let reason = FormatError::TokenLength(message.token_bytes().len() as u32);
    ParseError::Format { reason, kind: message.kind(), message_id: message.message_id() }
}
