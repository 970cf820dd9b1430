//! From a permitted request to one whose body is whole.

use super::stages::{Assembled, Next, Origin, Outgoing, Permitted, Received, Verified, Way};
use super::{Server, Share, Tables};
use crate::session::blocks::{Taken, too_large};
use crate::session::finished::Finished;
use crate::session::key::transfer_key;
use crate::session::message::Response;
use crate::time::Instant;
use crate::wire::{Block, Code, OptionNumber};

impl<S: Share<Tables>> Server<S> {
    /// Puts the body of a request together, or answers a request for a later block.
    pub fn assemble<'m>(&self, now: Instant, permitted: Permitted<'m>) -> Next<'m, Assembled<'m>> {
        let max_body =
            permitted.max_body.min(self.config.max_body).min(self.config.max_block_bytes);
        let Verified { received, part } = permitted.verified;
        if let Some(part) = part {
            return self.assemble_q_block(now, received, part, max_body);
        }
        let facts = &received.facts;
        if !facts.is_part() {
            if received.message.payload().len() > permitted.max_body {
                let answer = too_large(permitted.max_body);
                return Next::Send(Outgoing::One(Finished::response(received.requester, answer)));
            }
            return Next::Proceed(whole(received, None));
        }
        if facts.bad_block {
            let answer = Response::new(Code::BAD_REQUEST);
            return Next::Send(Outgoing::One(Finished::response(received.requester, answer)));
        }
        match (facts.block1, facts.block2) {
            (Some(block), _) => self.take_block(now, received, block, max_body),
            (None, Some(wanted)) if wanted.num() > 0 => self.later_block(now, received, wanted),
            _ => Next::Proceed(whole(received, None)),
        }
    }

    fn take_block<'m>(
        &self,
        now: Instant,
        received: Received<'m>,
        block: Block,
        max_body: usize,
    ) -> Next<'m, Assembled<'m>> {
        let Received { requester, message, facts } = &received;
        let key = transfer_key(requester.remote, message);
        let taken = self
            .tables
            .with(|tables| tables.blocks.take(now, key, message, block, facts.size1, max_body));
        let finished = match taken {
            Taken::Whole(body) => return Next::Proceed(whole(received, Some(body))),
            Taken::Single => return Next::Proceed(whole(received, None)),
            Taken::Known(answer) => self.stored(now, *requester, answer),
            Taken::Answer(mut answer) => {
                // RFC 7959 section 2.3: which block is answered.
                answer.options.set_uint(OptionNumber::BLOCK1, block.to_uint());
                Finished::response(*requester, answer)
            }
        };
        Next::Send(Outgoing::One(finished))
    }

    fn later_block<'m>(
        &self,
        now: Instant,
        received: Received<'m>,
        wanted: Block,
    ) -> Next<'m, Assembled<'m>> {
        let Received { requester, message, facts } = &received;
        let key = transfer_key(requester.remote, message);
        let kept =
            self.tables.with(|tables| tables.blocks.later_block(now, key, wanted, facts.sizes));
        let finished = match kept {
            Some(part) => self.stored(now, *requester, part),
            // What changes nothing may be asked for again, if all that is asked for is here: the body of
            // a FETCH may have come in blocks (RFC 8132 section 2.1).
            None if message.code() == Code::GET
                || message.code() == Code::FETCH && !message.payload().is_empty() =>
            {
                return Next::Proceed(whole(received, None));
            }
            None => Finished::response(*requester, Response::new(Code::REQUEST_ENTITY_INCOMPLETE)),
        };
        Next::Send(Outgoing::One(finished))
    }
}

fn whole(received: Received<'_>, body: Option<bytes::Bytes>) -> Assembled<'_> {
    let Received { requester, message, facts } = received;
    Assembled { origin: Origin { requester, facts, way: Way::Plain }, message, body }
}
