//! Outgoing messages: accepted, admitted, transmitted and retransmitted.

use super::peers::OptionSupport;
use super::types::{Event, Failure, Reliability, SendError, Sent};
use super::waits::Wait;
use super::{Endpoint, context};
use crate::cc::{
    Admission, Expiry, Kind, Load, Marking, Outcome, OutgoingMessage, Shell, Transmission,
    probing_instant,
};
use crate::exchange::ExchangeId;
use crate::exchange::mark::{COUNT_PROBE, OptionsEnd, with_count_option, with_marked_token};
use crate::exchange::table::{Answers, Exchange, ExchangeState, NONE, Purpose, TimerReason};
use crate::exchange::token::{MAX_MARK, random_token};
use crate::peer::PeerId;
use crate::peer_token::PeerToken;
use crate::time::{Duration, Instant, Micros};
use crate::wire::{
    Code, Content, HEADER_LEN, MAX_TOKEN_LEN, MessageId, OptionNumber, Token, Type,
    encoded_token_len,
};

/// The number of ACK_TIMEOUTs for which a Non-confirmable notification waits for the Reset of an
/// observer that no longer exists. 16 s with the default parameters, which exceeds the longest
/// round trip that they allow for.
const RESET_WAIT: u32 = 8;
/// How much later than its end a timer that was armed for the end of a span may expire: drivers wake up late.
const LATENESS: Duration = Duration::from_millis(100);

/// The change to the encoded message of an exchange when one of its transmissions leaves.
#[derive(Copy, Clone)]
enum Mark {
    /// No change.
    Encoded,
    /// This byte in front of the token.
    Token(u8),
    /// The option Rexmit-Cnt with this value.
    Option(u8),
}

/// A message that becomes an exchange.
pub(super) struct NewMessage<'c> {
    pub(super) to: PeerId,
    pub(super) content: &'c Content<'c>,
    pub(super) reliability: Reliability,
    pub(super) purpose: Purpose,
    /// Empty in a request that gets a token of its own.
    pub(super) token: &'c [u8],
}

impl Endpoint {
    /// Sends a request, now or when congestion control admits it. The response arrives as
    /// [`Received::Response`](super::Received::Response), or the exchange fails.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent then.
    pub fn request(
        &mut self,
        now: Instant,
        to: PeerId,
        content: &Content<'_>,
        reliability: Reliability,
    ) -> Result<ExchangeId, SendError> {
        if !content.code.is_request() {
            return Err(SendError::WrongCode(content.code));
        }
        let (purpose, token) = (Purpose::Request, [].as_slice());
        self.start(now, &NewMessage { to, content, reliability, purpose, token })
    }

    /// Sends a notification to an observer (RFC 7641 section 4.2), which is a response of its own
    /// with the token of the registering request. A Confirmable notification ends with
    /// [`Received::Acknowledged`](super::Received::Acknowledged) or with
    /// [`Received::Reset`](super::Received::Reset) (the observer no longer exists), or fails. A
    /// Non-confirmable one ends with a Reset or, if it was accepted, fails with
    /// [`Failure::NoResponse`] after eight ACK_TIMEOUTs.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent then.
    pub fn notify(
        &mut self,
        now: Instant,
        to: PeerId,
        token: &PeerToken,
        content: &Content<'_>,
        reliability: Reliability,
    ) -> Result<ExchangeId, SendError> {
        if !content.code.is_response() {
            return Err(SendError::WrongCode(content.code));
        }
        let (purpose, token) = (Purpose::Notification, token.as_slice());
        self.start(now, &NewMessage { to, content, reliability, purpose, token })
    }

    /// Sends a CoAP ping: an empty Confirmable message, which every endpoint answers with a Reset
    /// (RFC 7252 section 4.3).
    ///
    /// # Errors
    ///
    /// See [`SendError`]; nothing was sent then.
    pub fn ping(&mut self, now: Instant, to: PeerId) -> Result<ExchangeId, SendError> {
        let message = NewMessage {
            to,
            content: &Content { code: Code::EMPTY, options: &[], payload: &[] },
            reliability: Reliability::Confirmable,
            purpose: Purpose::Ping,
            token: &[],
        };
        self.start(now, &message)
    }

    /// Accepts a message: encodes it into a new exchange at the end of its peer's queue.
    pub(super) fn start(
        &mut self,
        now: Instant,
        message: &NewMessage<'_>,
    ) -> Result<ExchangeId, SendError> {
        let now = self.advance(now);
        let length = self.check_length(message.content, message.token)?;
        let peer_index = self.peer(now, message.to)?;
        if self.peers.get(peer_index).queued >= self.config.limits.queue_per_peer {
            self.counters.rare().queue_full += 1;
            return Err(SendError::QueueFull);
        }
        let index = self.accept(now, peer_index, message, length)?;
        let peer = self.peers.get_mut(peer_index);
        peer.queued += 1;
        let tail = peer.tail;
        peer.tail = index;
        if tail == NONE {
            peer.head = index;
        } else {
            self.table.get_mut(tail).next = index;
        }
        let name = self.table.name(index);
        // Only a Confirmable message may pass the messages before it in the queue.
        if tail == NONE || message.reliability == Reliability::Confirmable {
            self.pump(now, peer_index);
        }
        Ok(name)
    }

    /// Encodes a message, whose content has this length, into a new exchange with this peer that is
    /// not in the peer's queue yet.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        peer_index: u32,
        message: &NewMessage<'_>,
        length: usize,
    ) -> Result<u32, SendError> {
        let NewMessage { to, content, reliability, purpose, token } = *message;
        let peer = self.peers.get(peer_index);
        // A server identifies an observation by its token (RFC 7641 section 4.1). With marked
        // tokens a repeated request would register twice.
        let observes = purpose == Purpose::Request
            && content
                .options
                .iter()
                .any(|opt| opt.number == OptionNumber::OBSERVE && opt.as_uint() == Some(0));
        let secured = content.options.iter().any(|opt| opt.number == OptionNumber::OSCORE);
        // RFC 7252 section 8.1: "Such requests MUST be sent in Non-confirmable messages."
        let group = to.is_multicast();
        let reliability = if group { Reliability::NonConfirmable } else { reliability };
        let marking = match purpose {
            // libcoap takes a copy with another token for another request, and OSCORE refuses that as replayed.
            Purpose::Request if observes || group || secured || !token.is_empty() => Marking::None,
            Purpose::Request => peer.shell.marking(),
            Purpose::Response | Purpose::Notification | Purpose::Ping => Marking::None,
        };
        let Some(index) = self.table.take(to, peer_index, purpose) else {
            self.counters.rare().queue_full += 1;
            return Err(SendError::TooManyExchanges);
        };
        let own = match purpose {
            Purpose::Request if token.is_empty() => self.fresh_token(to, marking),
            // By their tokens only requests are found, whose tokens are ours and not extended.
            _ => Token::new(token).unwrap_or_default(),
        };
        let token = if purpose == Purpose::Request { own.as_slice() } else { token };
        let kind = match reliability {
            Reliability::Confirmable => Type::Confirmable,
            Reliability::NonConfirmable => Type::NonConfirmable,
        };
        let exchange = self.table.get_mut(index);
        exchange.datagram.resize(HEADER_LEN + encoded_token_len(token.len()) + length, 0);
        let encoded = match content.encode(&mut exchange.datagram, kind, MessageId(0), token) {
            Ok(encoded) => encoded,
            Err(error) => {
                self.table.release(index);
                return Err(error.into());
            }
        };
        exchange.first = now;
        exchange.token = own;
        exchange.marking = marking;
        exchange.answers = if observes { Answers::Observed } else { Answers::One };
        exchange.confirmable = reliability == Reliability::Confirmable;
        exchange.idempotent = content.is_idempotent() && !secured;
        // Checked against u16::MAX above.
        exchange.options_end = encoded.options_end as u16;
        exchange.last_option = encoded.last_option;
        if purpose == Purpose::Request {
            self.table.remember_token(index);
        }
        self.peers.begin_exchange(peer_index);
        Ok(index)
    }

    /// Checks whether a message with this content can be sent at all with this token, or with one of ours.
    /// Returns the length of the encoded content.
    pub(super) fn check_length(
        &self,
        content: &Content<'_>,
        token: &[u8],
    ) -> Result<usize, SendError> {
        let limit = self.config.limits.message_bytes;
        let length = content.encoded_len();
        let token = encoded_token_len(token.len().max(MAX_TOKEN_LEN));
        let bytes = HEADER_LEN + token + self.measurement_bytes() + length;
        if bytes > limit.min(usize::from(u16::MAX)) {
            return Err(SendError::TooLong { bytes, limit });
        }
        Ok(length)
    }

    /// A token that no open request to `remote` uses.
    fn fresh_token(&mut self, remote: PeerId, marking: Marking) -> Token {
        let mut length = self.config.token_length.min(MAX_TOKEN_LEN as u8);
        for attempt in 0.. {
            let token = random_token(length, marking, &mut *self.rng);
            if self.table.by_token(remote, token).is_none() {
                return token;
            }
            // Short tokens run out. A longer one is always free, since the number of exchanges is
            // bounded.
            if attempt % 4 == 3 {
                length = (length + 1).min(MAX_TOKEN_LEN as u8);
            }
        }
        Token::EMPTY
    }

    /// Sends messages of a peer's queue as far as congestion control admits them.
    pub(super) fn pump(&mut self, now: Instant, peer_index: u32) {
        self.admit_queued(now, peer_index);
        self.follow_epoch(peer_index);
    }

    fn admit_queued(&mut self, now: Instant, peer_index: u32) {
        let mut index = self.peers.get(peer_index).head;
        // Whether a Non-confirmable message waits for its pace. Non-confirmable messages behind it
        // wait as well; Confirmable ones pass, because they have a pace of their own.
        let mut paced = false;
        while index != NONE {
            let peer = self.peers.get_mut(peer_index);
            let exchange = self.table.get(index);
            let next = exchange.next;
            if paced && !exchange.confirmable {
                index = next;
                continue;
            }
            let departure = OutgoingMessage {
                confirmable: exchange.confirmable,
                bytes: u16::try_from(exchange.datagram.len()).unwrap_or(u16::MAX),
            };
            // The shell bounds their number.
            let load = Load { probes: exchange.probes.len() as u16, ..peer.load() };
            let control = &self.controls[peer.control()];
            let cx = &mut context(now, &self.config, control, &mut *self.rng);
            let not_before = match peer.shell.admit(&departure, load, cx) {
                Admission::Send => None,
                Admission::SendAsConfirmable if exchange.remote.is_multicast() => None,
                Admission::SendAsConfirmable => {
                    // It counts towards the pace of the Non-confirmable messages.
                    peer.last_non = now.into();
                    let exchange = self.table.get_mut(index);
                    exchange.confirmable = true;
                    // The type is bits 4 and 5 of the first byte (RFC 7252 section 3); CON is 0.
                    exchange.datagram[0] &= 0xcf;
                    None
                }
                Admission::NotBefore(at) => {
                    self.waits(now, index, Wait::Pace, Some(at));
                    Some(at)
                }
                // The end of an open exchange calls `pump` again.
                Admission::Blocked => return self.waits(now, index, Wait::Places, None),
                Admission::Probe(again) => {
                    self.waits(now, index, Wait::Probe, Some(again));
                    // Without a free message ID no probe leaves before that instant.
                    match self.probe_queued(now, index) {
                        Ok(()) => Some(again),
                        Err(at) => Some(again.max(at)),
                    }
                }
                Admission::GiveUp => {
                    let patience = self.config.patience(control);
                    // None of its probes was answered; the control may look for the peer again.
                    let again = now + self.config.params.ack_timeout.max(Shell::FLOOR);
                    let waited = now.saturating_since(exchange.first);
                    // There is no later instant than the end of time.
                    if waited >= patience.to_duration() || again == now {
                        return self.give_up_queue(now, peer_index);
                    }
                    Some(again)
                }
            };
            let id = match not_before {
                None if self.table.get(index).remote.is_multicast() => {
                    self.group_id(now, peer_index)
                }
                None => self.fresh_id(now, peer_index),
                Some(at) => Err(at),
            };
            let id = match id {
                Ok(id) => id,
                Err(at) => {
                    self.timers.arm(index, at);
                    if not_before.is_none() || self.table.get(index).confirmable {
                        if not_before.is_none() {
                            self.wait_for_id(now, at, peer_index, index);
                            self.waits(now, index, Wait::MessageId, Some(at));
                        }
                        return;
                    }
                    paced = true;
                    index = next;
                    continue;
                }
            };
            self.unqueue(index);
            self.timers.disarm(index);
            self.table.get_mut(index).depart_as(now, id);
            self.table.forget_probes(index);
            self.table.remember_id(index);
            if self.table.get(index).confirmable {
                let peer = self.peers.get_mut(peer_index);
                peer.nons_since_con = 0;
                peer.shell.open_exchange();
                self.table.get_mut(index).state = ExchangeState::Open;
                self.transmit(now, index);
            } else {
                self.depart_non(now, index);
            }
            index = next;
        }
    }

    /// A message waits until a message ID is free, and all messages behind it.
    fn wait_for_id(&mut self, now: Instant, until: Instant, peer_index: u32, index: u32) {
        let remote = self.table.get(index).remote;
        if self.peers.get_mut(peer_index).ids.begin_wait() && !remote.is_multicast() {
            self.counters.rare().id_waits += 1;
            let wait = until.saturating_since(now);
            self.output.report(Event::NoMessageId { remote, wait });
        }
    }

    /// No probe was answered, so every message that waits for this peer fails.
    fn give_up_queue(&mut self, now: Instant, peer_index: u32) {
        let control = self.peers.get(peer_index).control();
        loop {
            let index = self.peers.get(peer_index).head;
            if index == NONE {
                return;
            }
            self.controls.count(control, |counters| counters.gave_up += 1);
            self.counters.gave_up += 1;
            let exchange = self.table.name(index);
            self.retire(now, index, Outcome::GaveUp, None);
            self.output.report(Event::Failed { exchange, reason: Failure::GaveUp });
        }
    }

    /// Removes an exchange from its peer's queue, wherever it is in it.
    pub(super) fn unqueue(&mut self, index: u32) {
        let peer = self.peers.get_mut(self.table.get(index).peer);
        let next = self.table.get(index).next;
        peer.queued -= 1;
        if peer.head == index {
            peer.head = next;
            if next == NONE {
                peer.tail = NONE;
            }
        } else {
            let mut before = peer.head;
            while self.table.get(before).next != index {
                before = self.table.get(before).next;
            }
            if next == NONE {
                peer.tail = before;
            }
            self.table.get_mut(before).next = next;
        }
        self.table.get_mut(index).next = NONE;
    }

    /// Transmits a Non-confirmable message, which leaves once.
    pub(super) fn depart_non(&mut self, now: Instant, index: u32) {
        let exchange = self.table.get_mut(index);
        exchange.state = ExchangeState::Waiting;
        exchange.last = now;
        exchange.transmissions = 1;
        let bytes = u32::try_from(exchange.datagram.len()).unwrap_or(u32::MAX);
        let peer = self.peers.get_mut(exchange.peer);
        // Time without an answer earns no credit; otherwise a peer that never answers would
        // receive a burst after it.
        if probing_instant(&peer.load(), &self.config.params) <= now {
            peer.unanswered_bytes = 0;
        }
        if peer.unanswered_bytes == 0 {
            peer.unanswered_since = now;
        }
        peer.unanswered_bytes = peer.unanswered_bytes.saturating_add(bytes);
        peer.last_non = now.into();
        peer.nons_since_con = peer.nons_since_con.saturating_add(1);
        let wait = match self.table.get(index).purpose {
            Purpose::Request | Purpose::Ping => self.config.params_of_path().response_wait(),
            // The only answer to a notification is a Reset, which arrives within a round trip.
            Purpose::Response | Purpose::Notification => {
                self.config.params.ack_timeout.scale(RESET_WAIT, 1).to_duration()
            }
        };
        self.timers.arm(index, now + wait);
        self.waits(now, index, Wait::Answer, Some(now + wait));
        self.emit(index, 0, Micros::ZERO, Mark::Encoded);
    }

    /// One transmission of an open exchange leaves and its timeout is armed.
    pub(super) fn transmit(&mut self, now: Instant, index: u32) {
        let remaining = self.remaining(now, self.table.get(index));
        let exchange = self.table.get_mut(index);
        let ordinal = exchange.transmissions;
        exchange.last = now;
        exchange.transmissions += 1;
        exchange.due = TimerReason::Expiry;
        let peer = self.peers.get_mut(exchange.peer);
        let cx = &mut context(now, &self.config, &self.controls[peer.control()], &mut *self.rng);
        let kind = if exchange.may_be_probed() { Kind::Message } else { Kind::Unprobed };
        let transmission = Transmission { remaining, ..Transmission::new(kind, ordinal) };
        let chosen = peer.shell.on_transmit(transmission, &mut exchange.slot, cx);
        let control = peer.control();
        let timeout = self.wait_after(now, index, chosen);
        self.controls.count(control, |counters| counters.transmitted(ordinal, timeout));
        self.timers.arm(index, now + timeout);
        let why = if timeout > chosen { Wait::Patience } else { Wait::Timeout };
        self.waits(now, index, why, Some(now + timeout));
        let exchange = self.table.get_mut(index);
        let peer = self.peers.get_mut(exchange.peer);
        if exchange.marking != Marking::None {
            exchange.sent.push(now.micros_since(exchange.first));
        }
        let ordinal_mark = ordinal.min(MAX_MARK);
        let mark = match (exchange.marking, peer.marks.option, ordinal) {
            (Marking::Token, ..) => {
                if let Some(first) = exchange.datagram.get_mut(HEADER_LEN) {
                    *first = ordinal_mark;
                }
                Mark::Encoded
            }
            (Marking::CopyToken, _, 1..) => Mark::Token(ordinal_mark),
            (Marking::Option, OptionSupport::Unknown, 0) => {
                exchange.probed = true;
                Mark::Option(COUNT_PROBE)
            }
            // Zero equals an absent option, so originals may omit it.
            (Marking::Option, OptionSupport::Unknown | OptionSupport::Confirmed, 1..) => {
                Mark::Option(ordinal_mark)
            }
            _ => Mark::Encoded,
        };
        self.emit(index, ordinal, timeout, mark);
    }

    /// Queues the bytes of one transmission for the driver.
    fn emit(&mut self, index: u32, ordinal: u8, timeout: Micros, mark: Mark) {
        let exchange = self.table.get(index);
        let what = Sent::Exchange { exchange: self.table.name(index), ordinal, timeout };
        let option = self.config.rexmit_count_option;
        let sent =
            self.output.push(self.config.limits.outbox_bytes, exchange.remote, what, |out| {
                match mark {
                    Mark::Option(count) => {
                        let end = OptionsEnd {
                            offset: exchange.options_end.into(),
                            last_option: exchange.last_option,
                        };
                        with_count_option(&exchange.datagram, end, option, count, out);
                    }
                    Mark::Token(mark) => with_marked_token(&exchange.datagram, mark, out),
                    Mark::Encoded => out.extend_from_slice(&exchange.datagram),
                }
                true
            });
        if sent {
            self.counters.sent += 1;
            self.counters.retransmissions += u64::from(ordinal > 0);
        } else {
            // The datagram counts as lost by the network, and the timeout repeats it.
            self.counters.rare().outbox_full += 1;
        }
    }

    /// How long after the first transmission another one may leave. The peer must still remember
    /// the message when the copy arrives. If the request is idempotent, copies may leave for
    /// EXCHANGE_LIFETIME, after which the message ID may identify another message (RFC 7252
    /// sections 4.4, 4.5 and 4.8.2).
    fn retransmission_span(&self, exchange: &Exchange) -> Duration {
        let latency = match exchange.idempotent {
            true => Duration::ZERO,
            false => self.config.params_of_path().latency(),
        };
        self.exchange_lifetime.saturating_sub(latency)
    }

    /// Whether a copy may still leave. A timer that was armed for the end of the span expires a little after it.
    fn may_repeat(&self, now: Instant, exchange: &Exchange) -> bool {
        let span = self.retransmission_span(exchange).saturating_add(LATENESS);
        now.saturating_since(exchange.first) <= span
    }

    /// The time within which copies of the message may still leave.
    pub(super) fn remaining(&self, now: Instant, exchange: &Exchange) -> Micros {
        let since = now.saturating_since(exchange.first);
        Micros::from_duration(self.retransmission_span(exchange).saturating_sub(since))
    }

    /// A probe was answered, and congestion control asked for a copy to be sent now.
    pub(super) fn repeat(&mut self, now: Instant, index: u32) {
        let exchange = self.table.get(index);
        match self.may_repeat(now, exchange) {
            true => self.transmit(now, index),
            false => self.expire(now, index),
        }
    }

    /// The timeout of an open exchange passed: repeat the message or give up (RFC 7252 section
    /// 4.2).
    pub(super) fn expire(&mut self, now: Instant, index: u32) {
        let exchange = self.table.get(index);
        // The limit may have come after the timeout was armed, which may be for a probe that must not leave
        // now. So few transmissions are worth the longest first timeout of RFC 7252 section 4.2, which is above
        // PROCESSING_DELAY, the time that a peer gets to answer (section 4.8.2).
        let params = &self.config.params;
        let processed = exchange.last + params.ack_timeout.scale(params.ack_random_permille, 1000);
        if exchange.is_limited() && now < processed {
            self.timers.arm(index, processed);
            return;
        }
        self.counters.timeouts += 1;
        let (effort, may_be_probed) = (exchange.effort(), exchange.may_be_probed());
        let more =
            exchange.transmissions < exchange.max_transmissions && self.may_repeat(now, exchange);
        let peer = self.peers.get_mut(exchange.peer);
        let (peer_index, control) = (exchange.peer, peer.control());
        self.controls.count(control, |counters| counters.timeouts += 1);
        let cx = &mut context(now, &self.config, &self.controls[control], &mut *self.rng);
        match peer.shell.on_expire(effort, &exchange.slot, cx) {
            Some(Expiry::Probe) if more && may_be_probed && self.probe_expired(now, index) => {}
            Some(_) if more => self.transmit(now, index),
            _ => {
                self.controls.count(control, |counters| counters.gave_up += 1);
                self.counters.gave_up += 1;
                self.fail(now, index, Outcome::GaveUp, Failure::GaveUp);
            }
        }
        self.follow_epoch(peer_index);
    }
}
