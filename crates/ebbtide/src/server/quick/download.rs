//! A response's body that leaves in blocks.

use super::part::Wanted;
use super::store::Peer;
use crate::message::Response;
use ebbtide_core::q_block::{QBlockParameters, Sender, Sending};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Block, OptionNumber};
use rand_core::Rng;

/// One body, kept for the blocks that get lost.
#[derive(Debug)]
pub(in crate::server) struct Download {
    response: Response,
    szx: u8,
    sender: Sender,
    /// The first block that never left.
    next: u32,
    /// Who asked for the body, and then for blocks of it again: answers carry their tokens (RFC 9177
    /// section 7.2).
    asked: Peer,
    asked_again: Option<Peer>,
}

/// What is due for a download.
#[derive(Debug)]
pub(super) enum Step {
    Say(Box<(Peer, Response)>),
    Wait(Option<Instant>),
}

impl Download {
    pub(super) fn begin(
        response: Response,
        szx: u8,
        peer: Peer,
        params: QBlockParameters,
        rng: &mut dyn Rng,
    ) -> Self {
        let blocks = response.payload.len().div_ceil(16 << szx).min(Block::MAX_NUM as usize + 1);
        let sender = Sender::download(blocks as u32, params, rng);
        Self { response, szx, sender, next: 0, asked: peer, asked_again: None }
    }

    pub(super) fn szx(&self) -> u8 {
        self.szx
    }

    /// Bytes held.
    pub(super) fn held(&self) -> usize {
        self.response.payload.len()
    }

    /// The client wants more of it, or some of it again.
    pub(super) fn on_wish(&mut self, wanted: &Wanted, peer: Peer) {
        match wanted {
            Wanted::From(from) => self.sender.on_continue(*from),
            Wanted::These(blocks) => {
                self.sender.on_missing(blocks.iter().copied());
                self.asked_again = Some(peer);
            }
            Wanted::Whole => {}
        }
    }

    /// What is to be done now.
    pub(super) fn proceed(&mut self, now: Instant) -> Step {
        match self.sender.poll(now) {
            Sending::Block(num) => {
                let again = num < self.next;
                self.next = self.next.max(num + 1);
                let mut response = slice(&self.response, num, self.szx);
                let peer = match &self.asked_again {
                    Some(peer) if again => {
                        // RFC 9177 section 4.5: not in what was asked for again.
                        response.options.remove(OptionNumber::OBSERVE);
                        peer
                    }
                    _ => &self.asked,
                };
                Step::Say(Box::new((peer.clone(), response)))
            }
            Sending::Wait(at) => Step::Wait(at),
            Sending::GiveUp => Step::Wait(None),
        }
    }
}

/// One block of a response, with its size: exact, and in every block (RFC 9177 section 4.6).
pub(super) fn slice(response: &Response, num: u32, szx: u8) -> Response {
    let total = response.payload.len();
    let start = ((num as usize) << (szx + 4)).min(total);
    let end = (start + (16 << szx)).min(total);
    let mut part = Response::new(response.code);
    part.options = response.options.clone();
    part.payload = response.payload.slice(start..end);
    if let Ok(block) = Block::new(num, end < total, szx) {
        part.options.push_uint(OptionNumber::Q_BLOCK2, block.to_uint());
    }
    part.options.push_uint(OptionNumber::SIZE2, u32::try_from(total).unwrap_or(u32::MAX));
    part
}
