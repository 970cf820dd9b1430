//! The path from the application's answer to the messages to send.

use super::stages::{Answered, BlockScheme, Handled, Outgoing};
use super::{Server, ServerState, SharedState};
use crate::exchange::amplification::{self, HEADERS, is_short};
use crate::exchange::echo::{Challenged, Name};
use crate::session::finished::{Finished, FinishedRef};
use crate::session::key::TransferKey;
use crate::session::message::Response;
use crate::session::observers::{Observers, Registration, Subject};
use crate::session::requester::{RequestOptions, Requester};
use crate::time::Instant;
use crate::wire::{Code, HEADER_LEN, OptionNumber};

/// The context in which an observer is registered.
#[derive(Debug)]
pub struct Observe<'o> {
    /// The observers of the transport at which the request arrived.
    pub observers: &'o mut Observers,
    /// The subject of the route.
    pub subject: Subject,
    /// The maximum number of observers.
    pub max: usize,
    /// Whether the subject has changed since the handler began: its response may describe the
    /// earlier state.
    pub missed_a_change: bool,
}

impl Observe<'_> {
    /// Whether half of the slots are taken.
    fn is_half_full(&self) -> bool {
        self.observers.taken() >= self.max.div_ceil(2)
    }
}

/// The maximum number of bytes of the options that the session adds: Block1, Block2, Size2, an ETag
/// and Observe.
const BLOCK1: usize = 5;
const BLOCK2: usize = 5 + 6 + 9;
pub(super) const OBSERVE: usize = 4;
/// The maximum length of an option's delta and length (RFC 7252 section 3.1).
const OPTION_HEADER: usize = 5;
/// The maximum length of a challenge: a header, a token, and an Echo option of twelve bytes.
const CHALLENGE: usize = HEADER_LEN + 8 + 14;

impl<S: SharedState<ServerState>> Server<S> {
    /// Turns the application's answer into the messages to send. The response in `handled` becomes the
    /// one that is sent, and `handled` stays borrowed for as long as its type exists, so that no request can
    /// be completed twice:
    ///
    /// ```compile_fail,E0499
    /// # use ebbtide_core::{session::server::{Handled, Server, ServerState}, time::Instant};
    /// # fn check(server: &Server<core::cell::RefCell<ServerState>>, now: Instant, handled: Handled<'_, '_>) {
    /// let mut handled = handled;
    /// let first = server.complete(now, &mut handled, None);
    /// drop(first);
    /// let second = server.complete(now, &mut handled, None);
    /// # }
    /// ```
    #[inline]
    pub fn complete<'h>(
        &self,
        now: Instant,
        handled: &'h mut Handled<'h, '_>,
        observe: Option<Observe<'_>>,
    ) -> Outgoing<'h> {
        if !handled.response.code.is_response() {
            handled.response = Response::new(Code::INTERNAL_SERVER_ERROR);
        }
        if matches!(handled.request.scheme(), BlockScheme::QBlock { .. }) {
            return self.complete_q_block(now, handled, observe);
        }
        match self.answer(now, handled, observe.as_ref()) {
            Ok(answered) => self.size(now, answered, observe),
            Err(finished) => return Outgoing::One(finished),
        }
        let Handled { request, response } = handled;
        self.carry_value(now, request.requester(), response);
        Outgoing::Answer(FinishedRef::response(request.requester(), response))
    }

    /// Checks that the answer may be sent to its address, and returns a challenge otherwise.
    /// Nothing expensive has been done for it before.
    #[expect(
        clippy::result_large_err,
        reason = "the answer is sent as it is, without an allocation"
    )]
    #[inline]
    pub(super) fn answer<'h, 'p, 'm>(
        &self,
        now: Instant,
        handled: &'h mut Handled<'p, 'm>,
        observe: Option<&Observe<'_>>,
    ) -> Result<Answered<'h, 'p, 'm>, Finished> {
        let Handled { request, response } = &mut *handled;
        if !request.requester().forgeable {
            return Ok(Answered(handled));
        }
        let (requester, facts) = (request.requester(), request.facts());
        let registers = observe.is_some() && facts.observe == Some(0) && response.is_success();
        if !registers
            && requester.sent == 0
            && is_short(requester.request, longest(requester, facts, response))
        {
            // Even the longest form of this answer may be sent once: most requests end here.
            request.requester_mut().allowance = 1;
            return Ok(Answered(handled));
        }
        let mut bound = length(requester, response);
        if let Some((offset, block)) = block_of(response, facts) {
            bound = bound - response.payload.len()
                + block.min(response.payload.len().saturating_sub(offset))
                + BLOCK2;
        }
        bound += if facts.block1.is_some() { BLOCK1 } else { 0 };
        bound += if registers { OBSERVE } else { 0 };
        // There must be room for a notification after the response to a registration, and for a
        // challenge in case the state becomes longer.
        bound = if registers { bound.max(CHALLENGE) } else { bound };
        let needed = if registers { 2 } else { 1 };
        // Half of the slots are reserved for those who have proved their addresses.
        let crowded = registers && observe.is_some_and(Observe::is_half_full);
        if !crowded || !requester.may_be_forged() {
            let allowance = allowance(requester, bound, needed);
            request.requester_mut().allowance = allowance;
            if allowance >= needed {
                return Ok(Answered(handled));
            }
        }
        let (requester, facts) = (request.requester().clone(), *request.facts());
        if is_repeatable(request.code(), &facts) {
            if facts.block1.is_some_and(|block| block.num() > 0) {
                // The client sends the last block again, with the Echo option.
                self.size(now, Answered(handled), None);
            }
            return Err(self.challenged(now, requester));
        }
        let (fingerprint, answer) = (request.fingerprint(), response.clone());
        let number = self.tables.with(|tables| tables.withheld.keep(now, answer));
        let what = Challenged::Answered(number);
        Err(self.challenge_to(now, requester, Some(Name { what, fingerprint })))
    }

    /// Divides a long answer into blocks, and registers an observer.
    #[inline]
    fn size(&self, now: Instant, answered: Answered<'_, '_, '_>, observe: Option<Observe<'_>>) {
        let Answered(handled) = answered;
        let observes = observe.is_some() && handled.observes();
        let Handled { request, response } = handled;
        let (requester, facts) = (request.requester(), request.facts());
        if block_of(response, facts).is_some() {
            let key = request.transfer_key();
            *response = in_blocks(self, now, key, facts, response.clone());
        }
        if let Some(block1) = facts.block1 {
            response.options.set_uint(OptionNumber::BLOCK1, block1.to_uint());
            if block1.num() > 0 {
                let key = request.transfer_key();
                self.tables.with(|tables| tables.blocks.finish(now, key, response));
            }
        }
        if observes && let Some(observe) = observe {
            let bytes = request.bytes();
            register(now, requester, facts.observe, bytes, response, observe);
        }
    }
}

/// Registers an observer, or removes it (RFC 7641 section 4.1).
pub(super) fn register(
    now: Instant,
    requester: &Requester,
    option: Option<u32>,
    request: &[u8],
    response: &mut Response,
    observe: Observe<'_>,
) {
    let (remote, token) = (requester.peer(), requester.token().clone());
    if option == Some(1) {
        observe.observers.deregister(remote, &token);
        return;
    }
    if !response.is_success() {
        return;
    }
    let registration = Registration {
        remote,
        token: token.clone(),
        local: requester.local,
        unverified: requester.may_be_forged(),
        subject: observe.subject,
        request,
        sent: requester.sent + length(requester, response) + OBSERVE + HEADERS,
        format: response.content_format(),
    };
    let registered = observe.observers.register(now, &registration, observe.max);
    if let Some(sequence) = registered {
        response.options.set_uint(OptionNumber::OBSERVE, sequence);
        if observe.missed_a_change {
            observe.observers.changed_for(remote, &token);
        }
    }
}

/// Whether a request may be processed again.
#[inline]
fn is_repeatable(code: Code, facts: &RequestOptions) -> bool {
    match code {
        Code::GET | Code::FETCH => true,
        code => code.is_idempotent() && !facts.if_match && !facts.if_none_match,
    }
}

/// The length of a response's datagram in bytes.
#[inline]
pub(super) fn length(requester: &Requester, response: &Response) -> usize {
    let content = response.with_content(None, |content| content.encoded_len());
    HEADER_LEN + requester.token().encoded_len() + content
}

/// The length that a response's datagram can have at most, without its exact encoding, and with the
/// options of blocks.
#[inline]
fn longest(requester: &Requester, facts: &RequestOptions, response: &Response) -> usize {
    let options: usize = response.options.iter().map(|opt| OPTION_HEADER + opt.value.len()).sum();
    let long = response.payload.len() > facts.sizes.block;
    let blocks = if long || facts.is_part() { BLOCK1 + BLOCK2 } else { 0 };
    let marker = 1;
    HEADER_LEN
        + requester.token().encoded_len()
        + options
        + marker
        + response.payload.len()
        + blocks
}

/// How often an answer of `length` bytes may be sent: `needed` times, if the bytes of the request alone allow
/// that, and otherwise as its address and port have been proved.
#[inline]
pub(super) fn allowance(requester: &Requester, length: usize, needed: u8) -> u8 {
    let Requester { request, sent, forgeable, .. } = *requester;
    if !forgeable {
        return u8::MAX;
    }
    if sent == 0 && is_short(request, usize::from(needed) * (length + HEADERS) - HEADERS) {
        return needed;
    }
    if !requester.may_be_forged() {
        u8::MAX
    } else {
        amplification::allowance(request, sent, length)
    }
}

/// The offset and the length of the block to send, if the response does not fit into one message.
#[inline]
pub(super) fn block_of(response: &Response, facts: &RequestOptions) -> Option<(usize, usize)> {
    let sizes = facts.block2.map_or(facts.sizes, |asked| facts.sizes.at_most(asked.szx()));
    // An error is sent whole, whichever block was requested.
    let later = facts.block2.is_some_and(|asked| asked.num() > 0) && response.is_success();
    // A response with the option has a handler that creates blocks itself.
    if !later && response.payload.len() <= sizes.whole
        || response.options.get(OptionNumber::BLOCK2).is_some()
    {
        return None;
    }
    let offset = facts.block2.map_or(0, |asked| asked.offset() as usize);
    Some((offset, sizes.block))
}

/// The block of a long response to send; the whole response is stored.
pub(super) fn in_blocks<S: SharedState<ServerState>>(
    server: &Server<S>,
    now: Instant,
    key: TransferKey,
    facts: &RequestOptions,
    response: Response,
) -> Response {
    let sizes = facts.block2.map_or(facts.sizes, |asked| facts.sizes.at_most(asked.szx()));
    let first = || sizes.at(0, false, sizes.szx).ok();
    let Some(wanted) = facts.block2.or_else(first) else { return response };
    server.tables.with(|tables| tables.blocks.keep(now, key, response, wanted, sizes))
}
