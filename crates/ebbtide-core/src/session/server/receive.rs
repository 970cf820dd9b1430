//! From a request that has arrived to one that may be processed.

use super::stages::{Admitted, Arrived, Handled, Next, Outgoing, Received, Request, Verified};
use super::{Server, Share, Tables};
use crate::session::finished::Finished;
use crate::session::key::request_key;
use crate::session::message::Response;
use crate::session::q_block::Part;
use crate::time::Instant;
use crate::wire::{Message, OptionNumber};
use alloc::vec::Vec;
use core::net::IpAddr;

impl<S: Share<Tables>> Server<S> {
    /// Takes a request past the limits on rates and on what addresses get that may be forged.
    pub fn receive<'p, 'm>(
        &self,
        now: Instant,
        received: Received<'p, 'm>,
    ) -> Next<'p, 'm, Verified<'p, 'm>> {
        let Received(received) = received;
        let from = received.requester.remote.ip();
        received.requester.forgeable &= self.config.verify.concerns(from);
        if received.requester.group && received.facts.q_block {
            // RFC 9177 section 4.8: a group's members ignore it.
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
        let from = received.requester.remote.ip();
        let admitted = self.tables.with(|tables| match &mut tables.limiter {
            Some(limiter) => limiter.admit(now, from),
            None => Ok(()),
        });
        match admitted {
            Ok(()) => Ok(Admitted(received)),
            Err(refusal) => Err(Finished::response(received.requester, refusal)),
        }
    }

    /// An address that may be forged has to echo before it makes the server keep much, before the
    /// handler of a request runs that must not run twice while there is no room to keep its answer,
    /// and before it is sent what it asked for in many datagrams.
    #[inline]
    fn verify<'p, 'm>(
        &self,
        now: Instant,
        admitted: Admitted<'p, 'm>,
    ) -> Next<'p, 'm, Verified<'p, 'm>> {
        let Admitted(received) = admitted;
        if received.facts.q_block {
            match Part::read(&received.message, &self.config.q_block) {
                Ok(read) => received.part = Some(read),
                Err(answer) => {
                    let finished = Finished::response(received.requester, answer);
                    return Next::Send(Outgoing::One(finished));
                }
            }
        }
        if received.requester.forgeable {
            self.learn(now, received);
            match self.stands_in_for(now, received) {
                Some(Stand::Challenge) => {
                    let challenge = self.challenged(now, received.requester);
                    return Next::Send(Outgoing::One(challenge));
                }
                Some(Stand::Withheld(response)) => {
                    let request = Request::Here(received);
                    return Next::Handled(Handled { request, response });
                }
                None => {}
            }
        }
        Next::Proceed(Verified(received))
    }

    fn learn(&self, now: Instant, received: &Arrived<'_>) {
        if received.facts.echo
            && let Some(echo) = received.message.option(OptionNumber::ECHO)
        {
            let from = received.requester.remote.ip();
            self.tables.with(|tables| tables.validation.learn(now, from, echo.value));
        }
    }

    /// What takes the place of processing a request, if its address may be forged.
    fn stands_in_for(&self, now: Instant, received: &Arrived<'_>) -> Option<Stand> {
        let part = received.part.as_ref();
        let from = received.requester.remote.ip();
        // One block makes us keep a body and ask several times for the others (RFC 9177 sections 3.2
        // and 11). A long answer to one message is many as well, and a handler that must not run twice
        // does not run before they may be sent.
        let is_block = matches!(part, Some(Part::Block { .. }));
        if is_block || part.is_some() && !received.message.is_idempotent() {
            let trusted = self.tables.with(|tables| tables.validation.trusts(now, from));
            if is_block || !trusted {
                return (!trusted).then_some(Stand::Challenge);
            }
        }
        if received.facts.begins_upload() {
            let pressed = self.tables.with(|tables| {
                tables.blocks.bodies.is_half_full() && !tables.validation.trusts(now, from)
            });
            return pressed.then_some(Stand::Challenge);
        }
        // What may be processed again is asked of the handler again.
        if received.message.is_idempotent() {
            return None;
        }
        let key = request_key(received.requester.remote, &received.message);
        self.tables.with(|tables| {
            if !tables.validation.trusts(now, from) {
                let room = tables.withheld.has_room_for(now, &key);
                return (!room).then_some(Stand::Challenge);
            }
            if let Some(answer) = tables.withheld.take(now, &key) {
                return Some(Stand::Withheld(answer));
            }
            let whole = received.facts.block1.is_none();
            let late = whole && !tables.withheld.may_process(now, key, received.facts.echo);
            late.then_some(Stand::Challenge)
        })
    }

    /// Whether the address of a request may be believed, be it because of this request's Echo option.
    ///
    /// While much is remembered already ([`Endpoint::remembers_much`](crate::endpoint::Endpoint)), a
    /// request that is not idempotent is better not even remembered
    /// ([`Endpoint::receive`](crate::endpoint::Endpoint::receive)) if its address may be forged, but
    /// answered with a [`Self::challenge`]. Otherwise whoever forges addresses could fill that memory,
    /// and nobody's request would be processed for EXCHANGE_LIFETIME.
    pub fn vouches_for(&self, now: Instant, from: IpAddr, message: &Message<'_>) -> bool {
        if !self.config.verify.concerns(from) {
            return true;
        }
        self.tables.with(|tables| {
            if let Some(echo) = message.option(OptionNumber::ECHO) {
                tables.validation.learn(now, from, echo.value);
            }
            let trusted = tables.validation.trusts(now, from);
            if !trusted {
                tables.withheld.challenged_without_memory(now);
            }
            trusted
        })
    }

    /// The challenge for a request that has not been remembered: its address has to show that it is
    /// there, and the request to be made again.
    pub fn challenge(&self, now: Instant, received: &Received<'_, '_>) -> Finished {
        self.challenged(now, received.0.requester)
    }
}

/// What takes the place of processing a request.
enum Stand {
    Challenge,
    /// The handler's answer of the first time.
    Withheld(Response),
}
