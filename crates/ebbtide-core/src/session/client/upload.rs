//! The request's body in blocks (RFC 7959 section 2.5), one or several of them in flight.

use super::block_answer::{BlockAnswer, SentPiece};
use super::progress::UploadProgress;
use super::request::RequestParts;
use crate::session::{BlockSizes, BurstMark, Response};
use crate::wire::Code;

/// How often a body with an uncertain outcome is sent.
const ATTEMPTS: u8 = 3;
/// How many blocks wait in the endpoint, for a server that requires the order.
const WAITING: usize = 2;

/// How many blocks may be in flight: as many as arrive in order, on average. More would be sent in
/// vain.
#[derive(Clone, Debug)]
struct Window {
    most: usize,
    blocks: usize,
    in_a_row: usize,
}

impl Window {
    fn new(most: usize) -> Self {
        Self { most, blocks: most, in_a_row: 0 }
    }

    /// A block was answered in order.
    fn grow(&mut self) {
        self.in_a_row += 1;
        self.blocks = self.blocks.max(self.in_a_row).min(self.most);
    }

    /// A block was answered out of order.
    fn shrink(&mut self) {
        (self.blocks, self.in_a_row) = ((self.blocks + self.in_a_row).div_ceil(2), 0);
        self.blocks = self.blocks.min(self.most);
    }
}

/// The order in which blocks arrived, as far as it is known, at a server that has not declared that
/// it accepts any order.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Order {
    /// The order in which they were sent.
    Kept,
    /// One block overtook another; none was repeated.
    Overtaken,
    /// A block was repeated or is missing: copies may be in the network until all are answered.
    Lost,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The first block, which is sent alone: its answer states the block size that the server
    /// accepts, and whether it accepts blocks in any order.
    First,
    Middle,
    /// The last block, which is sent when all others are acknowledged, since the server acts on it.
    Last,
}

/// The round in which a block was sent, and its offset.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockPosition {
    pub(super) round: usize,
    pub(super) at: usize,
}

/// The meaning of an answer to a block.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The transfer continues.
    Going,
    /// The answer to the whole request, or the error that ends it.
    Answered(Response),
    /// The whole body has to be sent again, as another one.
    Again,
    /// The server violates a rule.
    Broken(&'static str),
}

/// See the [module](self). A body that fits into one message is one piece without a block option.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    pub(super) progress: UploadProgress,
    in_flight: usize,
    put: bool,
    attempts: u8,
    phase: Phase,
    /// Whether the server has declared that it accepts blocks in any order.
    any_order: bool,
    order: Order,
    round: usize,
    window: Window,
    running: usize,
    /// The offset before which the server may have completed the body a second time.
    cut: usize,
    /// The smaller block size that the server requested, to be used once nothing is in flight.
    smaller: Option<u8>,
}

impl Upload {
    pub(super) fn new(request: &RequestParts, sizes: BlockSizes, in_flight: u8) -> Self {
        let in_flight = usize::from(in_flight.max(1));
        Self {
            progress: UploadProgress::new(sizes, request.payload.len(), in_flight == 1),
            in_flight,
            put: request.code == Code::PUT,
            attempts: 0,
            phase: Phase::First,
            any_order: false,
            order: Order::Kept,
            round: 0,
            window: Window::new(in_flight),
            running: 0,
            cut: usize::MAX,
            smaller: None,
        }
    }

    /// Begins at the start.
    pub(super) fn begin(&mut self) {
        let progress = &mut self.progress;
        (progress.acknowledged, progress.doubtful) = (0, false);
        progress.ahead.clear();
        self.attempts = self.attempts.saturating_add(1);
        self.phase = Phase::First;
        self.any_order = false;
        (self.order, self.round, self.running) = (Order::Kept, 0, 0);
        self.window = Window::new(if self.progress.in_order { 1 } else { self.in_flight });
        (self.cut, self.smaller) = (usize::MAX, None);
    }

    /// Whether the body fits into one message.
    pub(super) fn is_whole(&self) -> bool {
        self.progress.length <= self.progress.sizes.whole
    }

    /// Whether several blocks may be in flight.
    pub(super) fn is_windowed(&self) -> bool {
        self.in_flight > 1
    }

    /// The end of the piece that begins at this byte.
    pub(super) fn end(&self, at: usize) -> usize {
        if self.is_whole() {
            self.progress.length
        } else {
            (at + self.progress.sizes.block).min(self.progress.length)
        }
    }

    /// Whether the server acts on the piece that begins at this byte.
    pub(super) fn is_last(&self, at: usize) -> bool {
        self.end(at) == self.progress.length
    }

    /// The next block to send, if one may leave now. `queued` is the number of messages for this
    /// server that wait for congestion control.
    pub(super) fn next(&mut self, queued: usize) -> Option<BlockPosition> {
        let idle = self.running == 0;
        if self.phase == Phase::Middle {
            if idle && self.order != Order::Kept {
                (self.order, self.round) = (Order::Kept, self.round + 1);
                self.go_back();
                self.progress.acknowledged = self.progress.acknowledged.min(self.cut);
                self.cut = usize::MAX;
            }
            if idle && let Some(szx) = self.smaller.take() {
                self.progress.sizes = self.progress.sizes.at_most(szx);
            }
            if self.has_room(idle, queued) {
                let at = self.next_byte();
                self.progress.ahead.push_back(false);
                self.running += 1;
                return Some(BlockPosition { round: self.round, at });
            }
            if idle {
                self.phase = Phase::Last;
            }
        }
        if self.phase == Phase::Middle || !idle {
            return None;
        }
        self.running = 1;
        Some(BlockPosition { round: self.round, at: self.progress.acknowledged })
    }

    /// The first byte that was not sent.
    fn next_byte(&self) -> usize {
        self.progress.acknowledged + self.progress.ahead.len() * self.progress.sizes.block
    }

    /// Whether another block may be queued. A server that requires the order receives some blocks
    /// again, so only a few wait in the endpoint, where they could not be recalled.
    fn has_room(&self, idle: bool, queued: usize) -> bool {
        let block = self.progress.sizes.block;
        let last = self.progress.length.saturating_sub(1) / block * block;
        let hurry = self.any_order || idle || queued < WAITING;
        let in_step = self.order == Order::Kept && self.smaller.is_none();
        in_step
            && hurry
            && self.next_byte() < last
            && self.progress.ahead.len() < self.window.blocks
    }

    /// Returns to the first unacknowledged byte, so that all blocks from there on are sent again.
    fn go_back(&mut self) {
        self.progress.resent += self.progress.ahead.len();
        self.window.shrink();
        self.progress.ahead.clear();
    }

    /// The network, or the peer of a connection that has lowered its Max-Message-Size, does not take messages of this
    /// length. Returns whether smaller ones can be tried, from the beginning.
    pub(super) fn too_long(&mut self) -> bool {
        let sizes = self.progress.sizes;
        let can = sizes.szx > 0;
        if can {
            self.running = 0;
            self.attempts = self.attempts.saturating_sub(1);
            self.progress.sizes = sizes.at_most(sizes.szx - 1);
        }
        can
    }

    /// Whether an unanswered block is to be sent again. A block of an earlier round is not, since
    /// others have replaced it.
    pub(super) fn unanswered(&mut self, place: BlockPosition) -> bool {
        let current = place.round == self.round;
        if !current {
            self.running -= 1;
        }
        current
    }

    /// Evaluates the server's answer to this block.
    pub(super) fn on_answer(&mut self, place: BlockPosition, answer: Response) -> Verdict {
        self.running = self.running.saturating_sub(1);
        let meaning = match self.piece(place.at).evaluate(&self.progress.sizes, &answer) {
            Ok(meaning) => meaning,
            Err(what) => return Verdict::Broken(what),
        };
        match (self.phase, meaning) {
            (Phase::First, BlockAnswer::Smaller { szx }) => {
                self.progress.sizes = self.progress.sizes.at_most(szx);
                Verdict::Going
            }
            _ if self.is_last(place.at) => self.on_last(answer),
            (Phase::First, BlockAnswer::Taken { smaller }) => self.on_first(&answer, smaller),
            (Phase::First, BlockAnswer::Ended) => Verdict::Answered(answer),
            (Phase::Middle | Phase::Last, BlockAnswer::Taken { smaller }) => {
                self.on_middle(place, answer, smaller)
            }
            (Phase::Middle | Phase::Last, _) => self.on_middle(place, answer, None),
        }
    }

    /// The piece that begins at this byte.
    fn piece(&self, at: usize) -> SentPiece {
        match self.is_last(at) {
            _ if self.is_whole() => SentPiece::Whole,
            true => SentPiece::Last(at),
            false => SentPiece::Block(at),
        }
    }

    fn on_first(&mut self, answer: &Response, smaller: Option<u8>) -> Verdict {
        self.any_order = answer.options().get(BurstMark::OPTION).is_some();
        self.progress.acknowledged = self.end(0);
        if let Some(szx) = smaller {
            // Sections 2.5 and 3.2: the whole block was accepted, and the rest is sent in smaller
            // ones.
            self.progress.sizes = self.progress.sizes.at_most(szx);
        }
        self.phase = Phase::Middle;
        Verdict::Going
    }

    /// Only a server that declared it is trusted to assemble blocks that arrive in another order.
    /// For others, blocks that were sent after a possibly late one are sent again in order: however
    /// the server writes them, the last one written is right.
    fn on_middle(
        &mut self,
        place: BlockPosition,
        answer: Response,
        smaller: Option<u8>,
    ) -> Verdict {
        let progress = &mut self.progress;
        let block = progress.sizes.block;
        // Of an earlier round: it has been sent again.
        let stale = place.round != self.round;
        let ordinal = place.at.saturating_sub(progress.acknowledged) / block;
        let overtook = !stale && ordinal > 0;
        let in_doubt = stale || overtook || self.order == Order::Lost;
        let alone = self.any_order || !in_doubt && progress.ahead.len() <= 1;
        match answer.code() {
            // Earlier blocks are missing (RFC 7959 section 2.9.2) and follow.
            Code::REQUEST_ENTITY_INCOMPLETE if !alone && in_doubt => {
                self.order = Order::Lost;
                return Verdict::Going;
            }
            Code::REQUEST_ENTITY_INCOMPLETE => return self.incomplete(answer),
            _ if !answer.is_success() => return Verdict::Answered(answer),
            _ if alone => {}
            _ if answer.repeated => self.order = Order::Lost,
            _ if overtook && self.order == Order::Kept => self.order = Order::Overtaken,
            _ => {}
        }
        if stale {
            let end = place.at + block;
            if end < progress.acknowledged {
                // It arrived after blocks that replaced it and later ones.
                (self.order, self.cut) = (Order::Lost, self.cut.min(end));
            }
            return Verdict::Going;
        }
        self.smaller = self.smaller.into_iter().chain(smaller).min();
        if let Some(done) = progress.ahead.get_mut(ordinal) {
            *done = true;
        }
        let whole = progress.ahead.iter().take_while(|done| **done).count();
        match self.order {
            Order::Kept => {
                progress.ahead.drain(..whole);
                progress.acknowledged += whole * block;
                self.window.grow();
            }
            // The late blocks have arrived, and there are no copies of them: the following ones are
            // sent again at once.
            Order::Overtaken if !progress.ahead.range(whole..).any(|done| *done) => {
                (self.order, self.round) = (Order::Kept, self.round + 1);
                self.go_back();
                self.progress.acknowledged += block;
            }
            Order::Overtaken | Order::Lost => {}
        }
        Verdict::Going
    }

    fn on_last(&mut self, answer: Response) -> Verdict {
        match answer.code() {
            Code::REQUEST_ENTITY_INCOMPLETE if !self.is_whole() => self.incomplete(answer),
            _ if answer.is_success() => {
                let unsure = !self.any_order && self.is_windowed() && !self.is_whole();
                self.progress.doubtful = answer.repeated && unsure;
                self.progress.acknowledged = self.progress.length;
                self.progress.ahead.clear();
                if self.progress.doubtful && self.put && self.attempts < ATTEMPTS {
                    Verdict::Again
                } else {
                    Verdict::Answered(answer)
                }
            }
            _ => Verdict::Answered(answer),
        }
    }

    /// Blocks are missing at the server, which has not acted then (section 2.9.2): a late copy of
    /// the first block may have begun the body again.
    fn incomplete(&mut self, answer: Response) -> Verdict {
        if !self.progress.in_order || self.attempts < ATTEMPTS {
            self.progress.in_order = true;
            Verdict::Again
        } else {
            Verdict::Answered(answer)
        }
    }
}
