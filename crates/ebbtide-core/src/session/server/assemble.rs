//! The path from a permitted request to one with a complete body.

use super::stages::{Arrived, Assembled, Next, Outgoing, Permitted};
use super::{Server, ServerState, SharedState};
use crate::session::blocks::{BlockOutcome, too_large};
use crate::session::finished::Finished;
use crate::session::key::transfer_key;
use crate::session::message::Response;
use crate::time::Instant;
use crate::wire::{Block, Code, OptionNumber};

impl<S: SharedState<ServerState>> Server<S> {
    /// Assembles the body of a request, or answers a request for a later block.
    pub fn assemble<'p, 'm>(
        &self,
        now: Instant,
        permitted: Permitted<'p, 'm>,
    ) -> Next<'p, 'm, Assembled<'p, 'm>> {
        let Permitted(received) = permitted;
        let max_body = received.max_body.min(self.config.max_body).min(self.config.max_block_bytes);
        if let Some(part) = received.part.take() {
            return self.assemble_q_block(now, received, part, max_body);
        }
        let facts = &received.facts;
        if !facts.is_part() {
            let message = &received.message;
            if message.code().has_payload() && message.payload().len() > received.max_body {
                let answer = too_large(received.max_body);
                return Next::Send(Outgoing::One(Finished::response(
                    received.requester.clone(),
                    answer,
                )));
            }
            return Next::Proceed(Assembled(received));
        }
        if received.by_block && facts.block1.is_some() {
            return Next::Proceed(Assembled(received));
        }
        match (facts.block1, facts.block2) {
            (Some(block), _) => self.take_block(now, received, block, max_body),
            (None, Some(wanted)) if wanted.num() > 0 => self.later_block(now, received, wanted),
            _ => Next::Proceed(Assembled(received)),
        }
    }

    fn take_block<'p, 'm>(
        &self,
        now: Instant,
        received: &'p mut Arrived<'m>,
        block: Block,
        max_body: usize,
    ) -> Next<'p, 'm, Assembled<'p, 'm>> {
        let Arrived { requester, message, facts, .. } = &*received;
        let key = transfer_key(requester.peer(), message);
        let (taken, if_none_match) = self.tables.with(|tables| {
            let taken = tables.blocks.take(now, key, message, block, facts.size1, max_body);
            (taken, tables.blocks.if_none_match(&key))
        });
        let finished = match taken {
            BlockOutcome::Whole(body) => {
                received.body = Some(body);
                received.facts.if_none_match |= if_none_match;
                return Next::Proceed(Assembled(received));
            }
            BlockOutcome::Single => return Next::Proceed(Assembled(received)),
            BlockOutcome::Known(answer) => self.stored(now, requester.clone(), answer),
            BlockOutcome::Answer(mut answer) => {
                // RFC 7959 section 2.3: the response names the block that it answers.
                answer.options.set_uint(OptionNumber::BLOCK1, block.to_uint());
                Finished::response(requester.clone(), answer)
            }
        };
        Next::Send(Outgoing::One(finished))
    }

    fn later_block<'p, 'm>(
        &self,
        now: Instant,
        received: &'p mut Arrived<'m>,
        wanted: Block,
    ) -> Next<'p, 'm, Assembled<'p, 'm>> {
        let Arrived { requester, message, facts, .. } = &*received;
        let key = transfer_key(requester.peer(), message);
        let kept =
            self.tables.with(|tables| tables.blocks.later_block(now, key, wanted, facts.sizes));
        let finished = match kept {
            Some(part) => self.stored(now, requester.clone(), part),
            // A request without side effects may be handled again if all of it is present; the body
            // of a FETCH may have arrived in blocks (RFC 8132 section 2.1).
            None if message.code() == Code::GET
                || message.code() == Code::FETCH && !message.payload().is_empty() =>
            {
                return Next::Proceed(Assembled(received));
            }
            None => Finished::response(
                requester.clone(),
                Response::new(Code::REQUEST_ENTITY_INCOMPLETE),
            ),
        };
        Next::Send(Outgoing::One(finished))
    }
}
