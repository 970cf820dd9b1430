//! The path from a received request to one that may be processed.

use super::stages::{Admitted, Arrived, Handled, Next, Outgoing, Received, Request, Verified};
use super::withheld::WithheldAnswer;
use super::{Server, ServerState, SharedState};
use crate::endpoint::Remember;
use crate::exchange::echo::{Challenged, Echo, Name};
use crate::peer::PeerId;
use crate::session::finished::Finished;
use crate::session::key::{fingerprint, transfer_key};
use crate::session::message::Response;
use crate::session::q_block::{QBlockPart, RequestedBlocks};
use crate::session::requester::Requester;
use crate::time::Instant;
use crate::wire::{Code, Message, OptionNumber};
use alloc::vec::Vec;

impl<S: SharedState<ServerState>> Server<S> {
    /// Applies the rate limit and address validation to a request.
    pub fn receive<'p, 'm>(
        &self,
        now: Instant,
        received: Received<'p, 'm>,
    ) -> Next<'p, 'm, Verified<'p, 'm>> {
        let Received(received) = received;
        let from = received.requester.peer().source();
        received.requester.forgeable &= self.config.verify.concerns(from);
        if received.requester.group && received.facts.q_block {
            // RFC 9177 section 4.8: members of a multicast group ignore it.
            return Next::Send(Outgoing::Many(Vec::new()));
        }
        match self.admit(now, received) {
            Ok(admitted) => self.verify(now, admitted),
            Err(finished) => Next::Send(Outgoing::One(finished)),
        }
    }

    #[expect(
        clippy::result_large_err,
        reason = "the answer is sent as it is, without an allocation"
    )]
    #[inline]
    fn admit<'p, 'm>(
        &self,
        now: Instant,
        received: &'p mut Arrived<'m>,
    ) -> Result<Admitted<'p, 'm>, Finished> {
        if self.config.max_rate.is_none() {
            return Ok(Admitted(received));
        }
        let from = received.requester.peer().source();
        let admitted = self.tables.with(|tables| match &mut tables.limiter {
            Some(limiter) => limiter.admit(now, from),
            None => Ok(()),
        });
        match admitted {
            Ok(()) => Ok(Admitted(received)),
            Err(refusal) => Err(Finished::response(received.requester.clone(), refusal)),
        }
    }

    /// A client has to echo before the server keeps much on its behalf, before the handler of a
    /// non-idempotent request runs while there is no room to keep its answer, and before it receives a
    /// response of many datagrams.
    #[inline]
    fn verify<'p, 'm>(
        &self,
        now: Instant,
        admitted: Admitted<'p, 'm>,
    ) -> Next<'p, 'm, Verified<'p, 'm>> {
        let Admitted(received) = admitted;
        if received.facts.bad_block {
            // RFC 7959 section 2.2, of every resource and of paths without one.
            let answer = Response::new(Code::BAD_REQUEST);
            return Next::Send(Outgoing::One(Finished::response(
                received.requester.clone(),
                answer,
            )));
        }
        if received.facts.q_block {
            match QBlockPart::read(&received.message, &self.config.q_block) {
                Ok(read) => received.part = Some(read),
                Err(answer) => {
                    let finished = Finished::response(received.requester.clone(), answer);
                    return Next::Send(Outgoing::One(finished));
                }
            }
        }
        if received.requester.forgeable {
            let echo = self.read_echo(now, received);
            received.requester.proved = echo.is_some_and(|echo| echo.fresh);
            match self.stands_in_for(now, received, echo) {
                Some(Substitute::Challenge(name)) => {
                    let challenge = self.challenge_to(now, received.requester.clone(), name);
                    return Next::Send(Outgoing::One(challenge));
                }
                Some(Substitute::Answer(response)) => {
                    let request = Request::Here(received);
                    return Next::Handled(Handled { request, response });
                }
                None => {}
            }
        }
        Next::Proceed(Verified(received))
    }

    fn read_echo(&self, now: Instant, received: &Arrived<'_>) -> Option<Echo> {
        if !received.facts.echo {
            return None;
        }
        let option = received.message.option(OptionNumber::ECHO)?;
        let from = received.requester.peer();
        self.tables.with(|tables| tables.validation.read(now, from, option.value))
    }

    /// Returns the answer that replaces the processing of a request that may be forged, or `None` if the
    /// request may be processed.
    fn stands_in_for(
        &self,
        now: Instant,
        received: &Arrived<'_>,
        echo: Option<Echo>,
    ) -> Option<Substitute> {
        let part = received.part.as_ref();
        let idempotent = received.message.is_idempotent();
        if !idempotent
            && received.facts.echo
            && let Some(stand) = self.tables.with(|tables| known(tables, now, received, echo))
        {
            return Some(stand);
        }
        // One block makes the server keep a body and request the others several times (RFC 9177
        // sections 3.2 and 11); one that proves its address does so for the others. A long answer consists
        // of many messages as well, and a handler that must not run twice does not run before they may be sent.
        let is_block = matches!(part, Some(QBlockPart::Block(_)));
        let wants_whole = match part {
            Some(QBlockPart::Request(wanted)) => wanted.blocks == RequestedBlocks::Whole,
            _ => false,
        };
        if is_block || wants_whole && !idempotent {
            let key = transfer_key(received.requester.peer(), &received.message);
            let (proved, forgotten) = self.tables.with(|tables| {
                let begun = is_block && tables.q_blocks.is_proved(&key);
                (begun || !received.requester.may_be_forged(), tables.validation.has_forgotten(now))
            });
            // After a challenge the client sends the body again as a different one, whose blocks do
            // not show that they are the same. While blocks that were not remembered may still
            // arrive late, only those with an Echo are accepted: either it was fresh on their first
            // arrival, or they were not accepted then.
            let late = is_block && !idempotent && forgotten && !echo.is_some_and(|echo| echo.fresh);
            if is_block || !proved {
                return (!proved || late).then_some(Substitute::Challenge(None));
            }
        }
        if received.facts.begins_upload() {
            let pressed = self
                .tables
                .with(|tables| tables.blocks.is_half_full() && received.requester.may_be_forged());
            return pressed.then_some(Substitute::Challenge(None));
        }
        // An idempotent request is handled again.
        if idempotent {
            return None;
        }
        self.tables.with(|tables| {
            let may_run = !received.requester.may_be_forged() || tables.withheld.has_room(now);
            (!may_run).then_some(Substitute::Challenge(None))
        })
    }

    /// Returns how a non-idempotent request is remembered, so that copies of it are recognised
    /// ([`Endpoint::receive`](crate::endpoint::Endpoint::receive)). `much` is whether the memory
    /// for this is half full ([`Endpoint::is_dedup_half_full`](crate::endpoint::Endpoint)).
    ///
    /// In that case, a request from an unverified address is not remembered but answered with a
    /// [`Self::challenge`]. Otherwise an attacker with forged addresses could fill that memory, and
    /// no client's request would be processed for EXCHANGE_LIFETIME. The Echo option of the
    /// repeated request names the challenged message, whose late copies are duplicates from then
    /// on.
    pub fn remember(
        &self,
        now: Instant,
        from: PeerId,
        message: &Message<'_>,
        much: bool,
    ) -> Remember {
        let option = message.option(OptionNumber::ECHO);
        if !much && option.is_none() || !self.config.verify.concerns(from.source()) {
            return Remember::Yes;
        }
        self.tables.with(|tables| {
            let validation = &mut tables.validation;
            let echo = option.and_then(|option| validation.read(now, from, option.value));
            if much && !validation.trusts(now, from.source()) {
                return Remember::No;
            }
            // The request is unknown after the lifetime of its copies.
            match echo
                .filter(|echo| echo.fresh)
                .and_then(|echo| echo.answers(|| fingerprint(message)))
            {
                Some(Challenged::Forgotten(id)) => Remember::After(id),
                Some(Challenged::Answered(_)) | None => Remember::Yes,
            }
        })
    }

    /// The answer to a request that has not been remembered: a challenge, so that the client
    /// verifies its address and repeats the request.
    pub fn challenge(&self, now: Instant, received: &Received<'_, '_>) -> Finished {
        let received = &*received.0;
        let Arrived { requester, message, .. } = received;
        let from = requester.peer();
        let echo = self.read_echo(now, received);
        let response = self.tables.with(|tables| {
            let name = match known(tables, now, received, echo) {
                Some(Substitute::Answer(response)) => return response,
                Some(Substitute::Challenge(name @ Some(_))) => name,
                Some(Substitute::Challenge(None)) | None => {
                    tables.validation.forgets(now);
                    let what = Challenged::Forgotten(message.message_id());
                    Some(Name { what, fingerprint: fingerprint(message) })
                }
            };
            tables.validation.challenge_to(now, from, name)
        });
        Finished::response(requester.clone(), response)
    }

    /// Whether a request was made after this server has started: it echoes a value that the server
    /// has made, and that is recent. This is how a server that has lost the replay window of an
    /// OSCORE context knows that a request is not a copy of an earlier one (RFC 8613 appendix
    /// B.1.2). Otherwise it answers with [`Self::challenge_received`].
    pub fn is_fresh(&self, now: Instant, received: &Received<'_, '_>) -> bool {
        self.read_echo(now, received.0).is_some_and(|echo| echo.fresh)
    }

    /// A challenge for a request of which nothing else is known.
    pub fn challenge_received(&self, now: Instant, received: &Received<'_, '_>) -> Finished {
        self.challenged(now, received.0.requester.clone())
    }

    /// A challenge for a request whose handling is too expensive for an unverified address. Nothing
    /// of it has been stored.
    pub fn challenge_first(&self, now: Instant, requester: &Requester) -> Finished {
        self.challenged(now, requester.clone())
    }
}

/// The answer that replaces the processing of a request whose Echo option names a message that was
/// challenged before. A withheld answer is sent only to a client that has proved its address.
fn known(
    tables: &mut ServerState,
    now: Instant,
    received: &Arrived<'_>,
    echo: Option<Echo>,
) -> Option<Substitute> {
    let Arrived { message, facts, .. } = received;
    if !facts.echo {
        return None;
    }
    let Some(echo) = echo else {
        // RFC 9175 section 2.3: a request with an Echo option of another server is not processed.
        return Some(Substitute::Challenge(None));
    };
    let fingerprint = fingerprint(message);
    let what = echo.answers(|| fingerprint)?;
    // It is no longer known whether the handler has run.
    let unsure = || Some(Substitute::Answer(Response::new(Code::SERVICE_UNAVAILABLE)));
    match what {
        // The endpoint recognises its copies.
        Challenged::Forgotten(_) if echo.fresh => None,
        Challenged::Forgotten(_) => unsure(),
        Challenged::Answered(number) => {
            if !echo.fresh && tables.withheld.renew(now, number) {
                return Some(Substitute::Challenge(Some(Name { what, fingerprint })));
            }
            match tables.withheld.take(now, number) {
                WithheldAnswer::Answer(answer) => Some(Substitute::Answer(answer)),
                WithheldAnswer::Lost => unsure(),
                // It was echoed before, in another request, or this is a copy from another port.
                WithheldAnswer::Unknown if echo.fresh => Some(Substitute::Challenge(None)),
                WithheldAnswer::Unknown => unsure(),
            }
        }
    }
}

/// A substitute for processing a request.
enum Substitute {
    /// A challenge, possibly for a request that was challenged before.
    Challenge(Option<Name>),
    /// The handler's first answer, or the fact that it was dropped.
    Answer(Response),
}
