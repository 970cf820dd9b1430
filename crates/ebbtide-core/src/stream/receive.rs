//! Processing of received messages.

use super::requests::RequestState;
use super::types::{
    Capabilities, Closed, Event, Failure, Fault, Ignored, Incoming, Received, Taken,
};
use super::{Connection, Phase};
use crate::peer_token::PeerToken;
use crate::time::Instant;
use crate::wire::{
    BASE_MAX_MESSAGE_SIZE, Code, Csm, FormatError, Frame, FrameHeader, Framing, OptionNumber,
    Release, SignalOption, critical_signal_option, signal_option,
};

impl Connection {
    /// Processes the first message of `input` once it is complete. `input` is the unprocessed part
    /// of a byte stream, or the content of one WebSocket frame. Call it again with the bytes after
    /// the message until it returns `None`: the message is incomplete, or input is not
    /// [wanted](Self::wants_input).
    #[inline]
    pub fn handle_input<'i>(&mut self, now: Instant, input: &'i [u8]) -> Option<Taken<'i>> {
        let now = self.advance(now);
        if matches!(self.phase, Phase::Closing(_) | Phase::Closed) {
            let received = Received::Ignored(Ignored::AfterEnd);
            return (!input.is_empty()).then_some(Taken { bytes: input.len(), received });
        }
        if input.is_empty() || !self.wants_input() {
            return None;
        }
        match self.next_message(input) {
            Ok(Some((bytes, message))) => {
                self.deadlines.message = None;
                self.deadlines.heard = now;
                self.expects = 0;
                self.counters.received += 1;
                Some(Taken { bytes, received: self.on_message(now, message) })
            }
            Ok(None) => {
                // The time counts from the message's first byte; single bytes that trickle in do
                // not extend it.
                self.deadlines.message.get_or_insert(now + self.config.message_timeout);
                self.deadlines.heard = now;
                None
            }
            Err(fault) => {
                self.fault(now, fault);
                Some(Taken { bytes: input.len(), received: Received::Ignored(Ignored::Violation) })
            }
        }
    }

    /// The first message of `input` and its length, if it is complete.
    #[inline]
    fn next_message<'i>(&mut self, input: &'i [u8]) -> Result<Option<(usize, Frame<'i>)>, Fault> {
        let header = FrameHeader::parse(self.framing, input).map_err(Fault::Malformed)?;
        let (header, bytes) = match (self.framing, header) {
            (Framing::Stream, None) => return Ok(None),
            (Framing::Stream, Some(header)) => (header, header.message_len()),
            (Framing::WebSocket, None) => {
                return Err(Fault::Malformed(FormatError::HeaderTruncated));
            }
            (Framing::WebSocket, Some(header)) => (header, input.len() as u64),
        };
        let limit = self.config.max_message_size;
        if bytes > u64::from(limit) {
            return Err(Fault::TooLong { bytes, limit });
        }
        if header.token_len > self.config.token_limit() {
            // RFC 8974 section 2.2.1: longer than the CSM says.
            return Err(Fault::Malformed(FormatError::TokenLength(header.token_len)));
        }
        // At most the limit.
        let bytes = bytes as usize;
        let Some(message) = input.get(..bytes) else {
            self.expects = bytes;
            return Ok(None);
        };
        let frame = Frame::parse(header, message).map_err(Fault::Malformed)?;
        Ok(Some((bytes, frame)))
    }

    #[inline]
    fn on_message<'i>(&mut self, now: Instant, message: Frame<'i>) -> Received<'i> {
        let code = message.code();
        if code.is_empty() {
            // RFC 8323 section 3.4: "Empty messages [...] can always be sent and MUST be ignored
            // by the recipient."
            self.counters.empty += 1;
            return Received::Ignored(Ignored::Empty);
        }
        // Section 5.3: "Endpoints MUST treat a missing or invalid CSM as a connection error and
        // abort the connection". An Abort in its place says more than the missing CSM would.
        if self.peer.is_none() && !matches!(code, Code::CSM | Code::ABORT) {
            return self.violation(now, Fault::CsmMissing(code));
        }
        if code.is_signaling() {
            self.on_signal(now, message)
        } else if code.is_request() {
            self.on_request(now, message)
        } else {
            self.on_response(now, message)
        }
    }

    fn on_request<'i>(&mut self, now: Instant, message: Frame<'i>) -> Received<'i> {
        self.deadlines.used = now;
        let epoch = self.custody.epoch;
        let token = PeerToken::new(message.token_bytes());
        let incoming = Incoming { token, code: message.code(), epoch };
        self.unanswered += 1;
        if let Some(number) = self.unknown_critical(&message) {
            // RFC 7252 section 5.4.1.
            self.counters.bad_options += 1;
            let diagnostic = alloc::format!("option {}", number.0);
            self.refuse(now, &incoming, Code::BAD_OPTION, diagnostic.as_bytes());
            return Received::Ignored(Ignored::UnknownCriticalOption);
        }
        self.counters.requests += 1;
        Received::Request(incoming, message)
    }

    /// The first critical option that is not understood (RFC 7252 section 5.4.1).
    fn unknown_critical(&self, message: &Frame<'_>) -> Option<OptionNumber> {
        let (code, oscore) = (message.code(), self.config.oscore);
        let forwards =
            self.config.forwards && (!code.is_request() || message.body().is_for_proxy());
        message.body().first_critical_unless(|number| {
            number.is_known_in(code)
                || oscore && matches!(number, OptionNumber::OSCORE | OptionNumber::EDHOC)
                || forwards && !number.is_unsafe_to_forward()
        })
    }

    fn on_response<'i>(&mut self, now: Instant, message: Frame<'i>) -> Received<'i> {
        let found = message.token().and_then(|token| self.requests.find(token));
        let Some((request, state)) = found else {
            self.counters.unknown_tokens += 1;
            return Received::Ignored(Ignored::UnknownToken);
        };
        self.deadlines.used = now;
        self.counters.responses += 1;
        let is_notification = message.option(OptionNumber::OBSERVE).is_some();
        match state {
            // Notifications that were on their way when the observation was cancelled.
            RequestState::Cancelled { .. } if is_notification => {
                return Received::Ignored(Ignored::Cancelled);
            }
            RequestState::Cancelled { .. } => {
                self.end_request(now, request);
                return Received::Ignored(Ignored::Cancelled);
            }
            RequestState::Open { .. } | RequestState::Observing | RequestState::Free => {}
        }
        if self.unknown_critical(&message).is_some() {
            self.counters.bad_options += 1;
            self.end_request(now, request);
            self.events.push_back(Event::Failed { request, reason: Failure::BadOption });
            return Received::Ignored(Ignored::UnknownCriticalOption);
        }
        let observes =
            matches!(state, RequestState::Observing | RequestState::Open { observe: true, .. });
        if observes && is_notification {
            self.requests.set(request, RequestState::Observing);
            return Received::Notification { request, message };
        }
        self.end_request(now, request);
        Received::Response { request, message }
    }

    fn end_request(&mut self, now: Instant, request: super::RequestId) {
        self.requests.end(request);
        self.close_if_drained(now);
    }

    fn on_signal<'i>(&mut self, now: Instant, message: Frame<'i>) -> Received<'i> {
        let signal = message.code();
        if let Some(option) = critical_signal_option(&message) {
            return self.violation(now, Fault::CriticalOption { signal, option });
        }
        match signal {
            Code::CSM => self.on_csm(&message),
            Code::PING => {
                self.counters.pings += 1;
                let custody = signal_option(&message, SignalOption::CUSTODY).is_some();
                self.answer_ping(now, PeerToken::new(message.token_bytes()), custody);
                Received::Ignored(Ignored::Ping)
            }
            Code::PONG => match self.deadlines.pinged.take() {
                Some(at) => Received::Pong {
                    round_trip: now.saturating_since(at),
                    custody: signal_option(&message, SignalOption::CUSTODY).is_some(),
                },
                None => {
                    self.counters.unknown_signals += 1;
                    Received::Ignored(Ignored::UnexpectedPong)
                }
            },
            Code::RELEASE => {
                match self.phase {
                    // Both sides released at once: the side without open requests closes.
                    Phase::Open | Phase::Releasing => {
                        // No answer ends them, so they would keep the connection open.
                        let ended = self.requests.end_observations();
                        self.fail(ended, Closed::Released);
                        self.leave(now, Closed::Released);
                    }
                    _ => {}
                }
                Received::Release(Release::new(message))
            }
            Code::ABORT => {
                self.counters.aborted_by_peer += 1;
                let option = signal_option(&message, SignalOption::BAD_CSM_OPTION);
                let option = option
                    .and_then(|opt| opt.as_uint())
                    .and_then(|number| u16::try_from(number).ok())
                    .map(OptionNumber);
                // There is no receiver for the waiting bytes any more.
                self.output.clear();
                self.close(now, Closed::AbortedByPeer(option));
                Received::Abort(message.payload())
            }
            _ => {
                self.counters.unknown_signals += 1;
                Received::Ignored(Ignored::UnknownSignal(signal))
            }
        }
    }

    /// Section 5.3: an option that is missing from a CSM leaves its value unchanged.
    fn on_csm<'i>(&mut self, message: &Frame<'i>) -> Received<'i> {
        let csm = Csm::read(message);
        let before = self.peer.unwrap_or(Capabilities {
            max_message_size: BASE_MAX_MESSAGE_SIZE,
            block_wise_transfer: false,
        });
        let now = Capabilities {
            max_message_size: csm.max_message_size.unwrap_or(before.max_message_size),
            block_wise_transfer: before.block_wise_transfer || csm.block_wise_transfer,
        };
        self.peer = Some(now);
        self.deadlines.csm = None;
        Received::Capabilities(now)
    }

    fn violation<'i>(&mut self, now: Instant, fault: Fault) -> Received<'i> {
        self.fault(now, fault);
        Received::Ignored(Ignored::Violation)
    }
}
