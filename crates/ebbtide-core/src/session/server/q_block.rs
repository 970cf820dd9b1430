//! The stages of requests in the blocks of RFC 9177.

use super::complete::{self, Observe};
use super::stages::{Arrived, Assembled, BlockScheme, Handled, Next, Outgoing};
use super::{Server, ServerState, SharedState};
use crate::session::blocks::too_large;
use crate::session::finished::{Finished, FinishedRef};
use crate::session::key::{TransferKey, transfer_key};
use crate::session::message::Response;
use crate::session::q_block::{
    BlockOutcome, BlockRequest, BodyBlock, QBlockDownload, QBlockPart, RequestedBlocks, slice,
};
use crate::session::requester::Requester;
use crate::time::Instant;
use crate::wire::{Block, Code, OptionNumber};
use alloc::vec;
use alloc::vec::Vec;

impl<S: SharedState<ServerState>> Server<S> {
    pub(super) fn assemble_q_block<'p, 'm>(
        &self,
        now: Instant,
        received: &'p mut Arrived<'m>,
        part: QBlockPart,
        max_body: usize,
    ) -> Next<'p, 'm, Assembled<'p, 'm>> {
        let key = transfer_key(received.requester.peer(), &received.message);
        match part {
            QBlockPart::Block(block) => self.take_q_block(now, received, key, block, max_body),
            QBlockPart::Request(wanted) => self.request_q_blocks(now, received, key, wanted),
        }
    }

    /// A block of a request's body.
    fn take_q_block<'p, 'm>(
        &self,
        now: Instant,
        received: &'p mut Arrived<'m>,
        key: TransferKey,
        block: BodyBlock,
        max_body: usize,
    ) -> Next<'p, 'm, Assembled<'p, 'm>> {
        let requester = received.requester.clone();
        let mut out = Vec::new();
        let taken = self.tables.with(|tables| {
            let longest = tables.q_blocks.longest(block.block, max_body);
            if block.size > longest {
                return Err(too_large(longest));
            }
            let payload = received.message.payload();
            Ok(tables.q_blocks.take(now, key, requester.clone(), block, payload, &mut out))
        });
        match taken {
            Err(answer) => return Next::Send(Outgoing::One(Finished::response(requester, answer))),
            Ok(BlockOutcome::Kept) if out.is_empty() => {
                acknowledge(&requester, &mut out);
            }
            Ok(BlockOutcome::Kept) => {}
            Ok(BlockOutcome::Known(answer)) => out.push(self.stored(now, requester, answer)),
            Ok(BlockOutcome::Whole(body)) => {
                received.scheme = BlockScheme::QBlock { wanted: None, uploaded: true };
                received.body = Some(body);
                // One of the blocks has.
                received.requester.proved = true;
                return Next::Proceed(Assembled(received));
            }
        }
        Next::Send(Outgoing::Many(out))
    }

    /// A request for blocks of a response, and possibly for a new response.
    fn request_q_blocks<'p, 'm>(
        &self,
        now: Instant,
        received: &'p mut Arrived<'m>,
        key: TransferKey,
        wanted: BlockRequest,
    ) -> Next<'p, 'm, Assembled<'p, 'm>> {
        let Arrived { requester, message, .. } = &mut *received;
        let mut requester = requester.clone();
        let mut out = Vec::new();
        if wanted.blocks != RequestedBlocks::Whole {
            let key = self.tables.with(|tables| tables.q_blocks.latest(key));
            let single =
                matches!(&wanted.blocks, RequestedBlocks::These(blocks) if blocks.len() == 1);
            let here = self.tables.with(|tables| tables.q_blocks.has(now, &key, wanted.szx));
            if here {
                let may_ask =
                    |tables: &mut ServerState| tables.q_blocks.may_ask(&key, &requester, &wanted);
                if !self.tables.with(may_ask) {
                    return Next::Send(Outgoing::One(self.challenged(now, requester)));
                }
                if !single {
                    requester = acknowledge(&requester, &mut out);
                }
                let before = out.len();
                self.tables.with(|tables| {
                    tables.q_blocks.request(now, key, requester.clone(), &wanted, &mut out)
                });
                if out.len() == before && single {
                    acknowledge(&requester, &mut out);
                }
                return Next::Send(Outgoing::Many(out));
            }
            // A request without side effects may be handled again if all of it is present.
            let asks = message.code() == Code::FETCH && !message.payload().is_empty();
            if message.code() != Code::GET && !asks {
                let answer = Response::new(Code::REQUEST_ENTITY_INCOMPLETE);
                return Next::Send(Outgoing::One(Finished::response(requester, answer)));
            }
        }
        received.scheme = BlockScheme::QBlock { wanted: Some(wanted), uploaded: false };
        Next::Proceed(Assembled(received))
    }

    /// Turns the application's answer into the first messages to send, and stores it for the later
    /// ones.
    pub(super) fn complete_q_block<'h>(
        &self,
        now: Instant,
        handled: &'h mut Handled<'h, '_>,
        observe: Option<Observe<'_>>,
    ) -> Outgoing<'h> {
        let BlockScheme::QBlock { wanted, uploaded } = handled.request.scheme().clone() else {
            return Outgoing::Many(Vec::new());
        };
        let ours = Block::szx_of(self.config.block_size);
        let szx = wanted.as_ref().map_or(ours, |wanted| wanted.szx.min(ours));
        // The handler creates blocks of RFC 7959 itself, which every client understands.
        let is_block = handled.response.options.get(OptionNumber::BLOCK2).is_some();
        if !is_block && !handled.response.is_success() {
            handled.response.payload.truncate(16 << szx);
        }
        let long = !is_block && handled.response.payload.len() > 16 << szx;
        // A client that uploads has proved its address before the handler ran.
        if long && !uploaded && handled.requester().may_be_forged() {
            return Outgoing::One(self.challenged(now, handled.requester().clone()));
        }
        if !long && wanted.is_some() && !is_block {
            // Errors carry it as well, since libcoap's client takes it for the sign of support.
            handled.response = slice(&handled.response, 0, szx);
        }
        // Stored blocks have no Observe option.
        let observes = handled.observes();
        let key = handled.request.transfer_key();
        if !long {
            // A client that uploads has proved its address.
            if !uploaded && let Err(challenge) = self.answer(now, handled, observe.as_ref()) {
                return Outgoing::One(challenge);
            }
            let Handled { request, response } = handled;
            if uploaded {
                self.tables.with(|tables| tables.q_blocks.finish(now, key, response.clone()));
            }
            let requester = request.requester();
            if observes && let Some(observe) = observe {
                let option = request.facts().observe;
                let bytes = request.bytes();
                complete::register(now, requester, option, bytes, response, observe);
            }
            return Outgoing::Answer(FinishedRef::response(requester, response));
        }
        let Handled { request, response } = handled;
        let (requester, option) = (request.requester().clone(), request.facts().observe);
        let response = core::mem::replace(response, Response::new(Code::EMPTY));
        // RFC 9177 section 4.4: it is the same in every block of a body, and differs between
        // bodies.
        let mut response = self.tables.with(|tables| tables.blocks.etags.with_etag(response));
        if uploaded {
            let answer = slice(&response, 0, szx);
            self.tables.with(|tables| tables.q_blocks.finish(now, key, answer));
        }
        if observes && let Some(observe) = observe {
            let bytes = request.bytes();
            complete::register(now, &requester, option, bytes, &mut response, observe);
        }
        self.send_blocks(now, key, requester, response, szx, wanted.map(|wanted| wanted.blocks))
    }

    fn send_blocks(
        &self,
        now: Instant,
        key: TransferKey,
        mut requester: Requester,
        response: Response,
        szx: u8,
        wanted: Option<RequestedBlocks>,
    ) -> Outgoing<'static> {
        let params = self.config.q_block;
        let set = |from| (from..params.end_of_set(from)).collect();
        let count = response.payload.len().div_ceil(16 << szx) as u32;
        let mut out = Vec::new();
        let these: Vec<u32> = match wanted {
            Some(RequestedBlocks::These(blocks)) => blocks,
            Some(RequestedBlocks::From(from)) => set(from),
            // It cannot be stored: the handler is called again for every set.
            _ if response.payload.len() > self.config.max_block_bytes => set(0),
            Some(RequestedBlocks::Whole) | None => {
                requester = acknowledge(&requester, &mut out);
                self.tables.with(|tables| {
                    let download =
                        QBlockDownload::begin(response, szx, requester, params, &mut *tables.rng);
                    tables.q_blocks.begin(now, key, download, &mut out);
                });
                return Outgoing::Many(out);
            }
        };
        let these: Vec<u32> = these.into_iter().filter(|&num| num < count).collect();
        match *these.as_slice() {
            [] => {
                let answer = Response::error(Code::BAD_REQUEST, "no such block");
                return Outgoing::Many(vec![Finished::response(requester, answer)]);
            }
            [_] => {}
            _ => requester = acknowledge(&requester, &mut out),
        }
        out.extend(
            these
                .into_iter()
                .map(|num| Finished::response(requester.clone(), slice(&response, num, szx))),
        );
        Outgoing::Many(out)
    }
}

/// Acknowledges a Confirmable request that has no answer yet, or that several responses follow:
/// either all blocks of a body are Confirmable or none (RFC 9177 section 7).
fn acknowledge(requester: &Requester, out: &mut Vec<Finished>) -> Requester {
    let (acknowledgement, after) = Finished::acknowledgement(requester);
    if requester.is_confirmable() {
        out.push(acknowledgement);
    }
    after
}
