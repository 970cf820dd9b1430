//! A response's body that is sent in blocks.

use super::part::RequestedBlocks;
use crate::q_block::{QBlockParameters, Sender, Sending};
use crate::session::message::Response;
use crate::session::requester::Requester;
use crate::time::Instant;
use crate::wire::{Block, OptionNumber};
use alloc::boxed::Box;
use rand_core::Rng;

/// One body, which is stored for requests of lost blocks.
#[derive(Debug)]
pub(in crate::session) struct QBlockDownload {
    response: Response,
    szx: u8,
    sender: Sender,
    /// The first block that was not sent yet.
    next: u32,
    /// The requester of the body, and the latest request for missing blocks. Answers carry the
    /// tokens of these requests (RFC 9177 section 7.2).
    requester: Requester,
    asked_again: Option<Requester>,
    /// Blocks that may be sent again before a request for them has to prove its address.
    repeats: usize,
}

/// The next step of a download.
#[derive(Debug)]
pub(in crate::session) enum DownloadStep {
    Send(Box<(Requester, Response)>),
    Wait(Option<Instant>),
}

impl QBlockDownload {
    pub(in crate::session) fn begin(
        response: Response,
        szx: u8,
        requester: Requester,
        params: QBlockParameters,
        rng: &mut dyn Rng,
    ) -> Self {
        let blocks = response.payload.len().div_ceil(16 << szx).min(Block::MAX_NUM as usize + 1);
        let sender = Sender::download(blocks as u32, params, rng);
        Self { response, szx, sender, next: 0, requester, asked_again: None, repeats: blocks }
    }

    /// Whether these blocks may be sent again. A request that does not prove its address, as the first one has, yields
    /// each block once more at most.
    pub(in crate::session) fn may_ask(
        &mut self,
        wanted: &RequestedBlocks,
        requester: &Requester,
    ) -> bool {
        let RequestedBlocks::These(again) = wanted else { return true };
        if !requester.may_be_forged() {
            self.repeats = self.response.payload.len().div_ceil(16 << self.szx);
            return true;
        }
        let left = self.repeats.checked_sub(again.len());
        self.repeats = left.unwrap_or(self.repeats);
        left.is_some()
    }

    pub(in crate::session) fn szx(&self) -> u8 {
        self.szx
    }

    /// The number of stored bytes.
    pub(in crate::session) fn held(&self) -> usize {
        self.response.payload.len()
    }

    /// The client requests further blocks, or some of them again.
    pub(in crate::session) fn on_request(
        &mut self,
        wanted: &RequestedBlocks,
        requester: Requester,
    ) {
        match wanted {
            RequestedBlocks::From(from) => self.sender.on_continue(*from),
            RequestedBlocks::These(blocks) => {
                self.sender.on_missing(blocks.iter().copied());
                self.asked_again = Some(requester);
            }
            RequestedBlocks::Whole => {}
        }
    }

    /// Returns the next step: a block to send, or an instant to wait for.
    pub(in crate::session) fn poll(&mut self, now: Instant) -> DownloadStep {
        match self.sender.poll(now) {
            Sending::Block(num) => {
                let again = num < self.next;
                self.next = self.next.max(num + 1);
                let mut response = slice(&self.response, num, self.szx);
                let requester = match &self.asked_again {
                    Some(requester) if again => {
                        // RFC 9177 section 4.5: not in blocks that were requested again.
                        response.options.remove(OptionNumber::OBSERVE);
                        requester
                    }
                    _ => &self.requester,
                };
                DownloadStep::Send(Box::new((requester.clone(), response)))
            }
            Sending::Wait(at) => DownloadStep::Wait(at),
            Sending::GiveUp => DownloadStep::Wait(None),
        }
    }
}

/// One block of a response, with Size2, which is exact and in every block (RFC 9177 section 4.6).
pub(in crate::session) fn slice(response: &Response, num: u32, szx: u8) -> Response {
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
