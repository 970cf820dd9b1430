//! Outgoing messages.

use super::requests::{RequestId, RequestState};
use super::types::Closed;
use super::types::{Fault, Incoming, SendError};
use super::{Connection, Phase};
use crate::peer_token::PeerToken;
use crate::time::Instant;
use crate::wire::{Code, Content, MAX_TOKEN_LEN, Opt, OptionNumber, SignalOption, encode_uint};
use alloc::string::ToString;
use alloc::vec::Vec;

impl Connection {
    /// Sends a request. A request with the option Observe of value 0 stays open for notifications
    /// if the response has that option (RFC 7641 section 3.1).
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn request(&mut self, now: Instant, content: &Content<'_>) -> Result<RequestId, SendError> {
        let now = self.advance(now);
        match self.phase {
            Phase::Open => {}
            Phase::Releasing | Phase::Leaving(_) => return Err(SendError::Releasing),
            Phase::Closing(_) | Phase::Closed => return Err(SendError::Closed),
        }
        if !content.code.is_request() {
            return Err(SendError::WrongCode(content.code));
        }
        let observe = |opt: &&Opt<'_>| opt.number == OptionNumber::OBSERVE;
        let observe = content.options.iter().find(observe).and_then(Opt::as_uint) == Some(0);
        let deadline = now + self.config.response_timeout;
        let Some(request) = self.requests.open_one(observe, deadline) else {
            self.counters.refused += 1;
            return Err(SendError::TooManyRequests);
        };
        if let Err(error) = self.send(now, content, request.token().as_slice()) {
            self.requests.end(request);
            return Err(error);
        }
        self.deadlines.used = now;
        Ok(request)
    }

    /// Cancels a request, whose response is ignored if it arrives. The request counts as open
    /// until then, or until its deadline, because the peer is still processing it.
    pub fn cancel(&mut self, now: Instant, request: RequestId) {
        let now = self.advance(now);
        let deadline = match self.requests.state(request) {
            Some(RequestState::Open { deadline, .. }) => deadline,
            Some(RequestState::Observing) => now + self.config.response_timeout,
            Some(RequestState::Cancelled { .. } | RequestState::Free) | None => return,
        };
        self.requests.set(request, RequestState::Cancelled { deadline });
    }

    /// Ends an observation by sending `content` with the observation's token. `content` must be
    /// the registering request with the option Observe set to 1. Over reliable transports there is
    /// no other way: "a client that is no longer interested [...] MUST explicitly deregister" (RFC
    /// 8323 section 7.4). Later notifications are ignored.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; the observation then continues.
    pub fn deregister(
        &mut self,
        now: Instant,
        request: RequestId,
        content: &Content<'_>,
    ) -> Result<(), SendError> {
        let now = self.advance(now);
        if !matches!(
            self.requests.state(request),
            Some(RequestState::Open { .. } | RequestState::Observing)
        ) {
            return Err(SendError::NoSuchRequest);
        }
        self.send(now, content, request.token().as_slice())?;
        let deadline = now + self.config.response_timeout;
        self.requests.set(request, RequestState::Cancelled { deadline });
        Ok(())
    }

    /// Responds to a request of the peer.
    ///
    /// # Errors
    ///
    /// See [`SendError`]; the request then remains unanswered.
    pub fn respond(
        &mut self,
        now: Instant,
        incoming: &Incoming,
        content: &Content<'_>,
    ) -> Result<(), SendError> {
        self.notify(now, &incoming.token, content)?;
        self.answered(incoming);
        Ok(())
    }

    /// Leaves a request of the peer without a response, because it does not want one (RFC 7967
    /// section 2).
    pub fn dismiss(&mut self, now: Instant, incoming: &Incoming) {
        self.advance(now);
        self.answered(incoming);
    }

    /// Sends a notification to the observer that registered with this token (RFC 7641 section 4.2).
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    pub fn notify(
        &mut self,
        now: Instant,
        token: &PeerToken,
        content: &Content<'_>,
    ) -> Result<(), SendError> {
        let now = self.advance(now);
        if !content.code.is_response() {
            return Err(SendError::WrongCode(content.code));
        }
        self.send(now, content, token.as_slice())?;
        self.deadlines.used = now;
        Ok(())
    }

    /// Sends a Ping (RFC 8323 section 5.4). The result is [`Received::Pong`], or [`Fault::Silent`]
    /// if no Pong arrives. With `custody`, the peer processes all earlier messages first (section
    /// 5.4.1). At most one Ping is open at a time; a second call has no effect.
    ///
    /// # Errors
    ///
    /// See [`SendError`].
    ///
    /// [`Received::Pong`]: super::Received::Pong
    pub fn ping(&mut self, now: Instant, custody: bool) -> Result<(), SendError> {
        let now = self.advance(now);
        if self.deadlines.pinged.is_some() {
            return Ok(());
        }
        let option = [Opt { number: SignalOption::CUSTODY, value: &[] }];
        let options = if custody { option.as_slice() } else { &[] };
        self.send(now, &Content { code: Code::PING, options, payload: &[] }, &[])?;
        self.deadlines.pinged = Some(now);
        Ok(())
    }

    /// Ends the connection cleanly (RFC 8323 section 5.5): no more requests of ours are accepted,
    /// and the peer answers the open ones and closes, at the latest after
    /// [`Config::release_timeout`](super::Config::release_timeout).
    pub fn release(&mut self, now: Instant) {
        let now = self.advance(now);
        if self.phase != Phase::Open {
            return;
        }
        self.signal(now, Code::RELEASE, &[], &[]);
        self.phase = Phase::Releasing;
        self.deadlines.end = Some(now + self.config.release_timeout);
    }

    /// Aborts the connection with a human-readable diagnostic (RFC 8323 section 5.6).
    pub fn abort(&mut self, now: Instant, diagnostic: &str) {
        let now = self.advance(now);
        self.abort_with(now, Fault::Application, diagnostic);
    }

    /// Aborts the connection because of a fault of the peer.
    pub(super) fn fault(&mut self, now: Instant, fault: Fault) {
        self.abort_with(now, fault, &fault.to_string());
    }

    fn abort_with(&mut self, now: Instant, fault: Fault, diagnostic: &str) {
        if matches!(self.phase, Phase::Closing(_) | Phase::Closed) {
            return;
        }
        self.counters.aborted += 1;
        let mut number = [0; 4];
        let bad_csm_option = match fault {
            Fault::CriticalOption { signal: Code::CSM, option } => Some(Opt {
                number: SignalOption::BAD_CSM_OPTION,
                value: encode_uint(option.0.into(), &mut number),
            }),
            _ => None,
        };
        self.signal(now, Code::ABORT, bad_csm_option.as_slice(), diagnostic.as_bytes());
        self.close(now, Closed::Aborted(fault));
    }

    /// Our CSM (RFC 8323 section 5.3).
    pub(super) fn send_csm(&mut self) {
        let (mut size, mut token) = ([0; 4], [0; 4]);
        let limit = self.config.token_limit();
        // Its base value is 8 (RFC 8974 section 2.2.1).
        let extended = (limit > MAX_TOKEN_LEN as u32).then(|| Opt {
            number: SignalOption::EXTENDED_TOKEN_LENGTH,
            value: encode_uint(limit, &mut token),
        });
        let base = [
            Opt {
                number: SignalOption::MAX_MESSAGE_SIZE,
                value: encode_uint(self.config.max_message_size, &mut size),
            },
            Opt { number: SignalOption::BLOCK_WISE_TRANSFER, value: &[] },
        ];
        let options: Vec<Opt<'_>> = base.into_iter().chain(extended).collect();
        self.signal(self.now, Code::CSM, &options, &[]);
    }

    pub(super) fn answer_ping(&mut self, now: Instant, token: PeerToken, custody: bool) {
        // Section 5.4.1: such a Pong waits until everything before it is processed. Only one Pong
        // waits at a time; the option is elective, so another Ping may be answered without it.
        if custody && self.unanswered > 0 && self.custody.held.is_none() {
            self.custody.held = Some((token, self.unanswered));
            self.custody.epoch = self.custody.epoch.wrapping_add(1);
            return;
        }
        self.pong(now, &token, custody && self.unanswered == 0);
    }

    fn pong(&mut self, now: Instant, token: &PeerToken, custody: bool) {
        let option = [Opt { number: SignalOption::CUSTODY, value: &[] }];
        let options = if custody { option.as_slice() } else { &[] };
        self.enqueue(now, &Content { code: Code::PONG, options, payload: &[] }, token.as_slice());
    }

    /// Answers a request with a code only.
    pub(super) fn refuse(&mut self, now: Instant, incoming: &Incoming, code: Code, payload: &[u8]) {
        self.enqueue(now, &Content { code, options: &[], payload }, incoming.token.as_slice());
        self.answered(incoming);
    }

    fn answered(&mut self, incoming: &Incoming) {
        // A connection that has ended no longer counts unanswered requests.
        self.unanswered = self.unanswered.saturating_sub(1);
        if let Some((_, earlier)) = &mut self.custody.held
            && incoming.epoch != self.custody.epoch
        {
            *earlier = earlier.saturating_sub(1);
        }
        if let Some((token, _)) = self.custody.held.take_if(|(_, earlier)| *earlier == 0) {
            self.pong(self.now, &token, true);
        }
        self.close_if_drained(self.now);
    }

    fn signal(&mut self, now: Instant, code: Code, options: &[Opt<'_>], diagnostic: &[u8]) {
        self.enqueue(now, &Content { code, options, payload: diagnostic }, &[]);
    }

    /// Queues a short message of the protocol, or an answer to a processed one. It always fits,
    /// because input stops well before the output is full.
    fn enqueue(&mut self, now: Instant, content: &Content<'_>, token: &[u8]) {
        let len = content.framed_len(self.framing, token);
        if self.output.push(content, self.framing, token, len).is_ok() {
            self.counters.sent += 1;
            self.deadlines.write.get_or_insert(now + self.config.write_timeout);
        }
    }

    /// Queues a message of the application.
    fn send(&mut self, now: Instant, content: &Content<'_>, token: &[u8]) -> Result<(), SendError> {
        if matches!(self.phase, Phase::Closing(_) | Phase::Closed) {
            return Err(SendError::Closed);
        }
        let (bytes, limit) = (content.framed_len(self.framing, token), self.message_limit());
        if bytes > limit {
            self.counters.refused += 1;
            return Err(SendError::TooLong { bytes, limit });
        }
        if self.output.len() >= self.config.max_output {
            self.counters.refused += 1;
            return Err(SendError::OutputFull);
        }
        self.output.push(content, self.framing, token, bytes)?;
        self.counters.sent += 1;
        self.deadlines.write.get_or_insert(now + self.config.write_timeout);
        Ok(())
    }
}
