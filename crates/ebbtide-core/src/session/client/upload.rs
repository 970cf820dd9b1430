//! The request's body in blocks (RFC 7959 section 2.5), one or several of them in flight.

use super::progress::UploadProgress;
use super::request::RequestParts;
use crate::session::{BlockSizes, BurstMark, Response};
use crate::wire::{Block, Code, OptionNumber};

/// How often a body is sent whose outcome is doubtful.
const ATTEMPTS: u8 = 3;
/// How many blocks wait in the endpoint, for a server that wants them in order.
const WAITING: usize = 2;

/// How many blocks may be under way: as many as come in order, on average. More would be sent in vain.
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

    /// A block was answered in its turn.
    fn grow(&mut self) {
        self.in_a_row += 1;
        self.blocks = self.blocks.max(self.in_a_row).min(self.most);
    }

    /// One was not.
    fn shrink(&mut self) {
        (self.blocks, self.in_a_row) = ((self.blocks + self.in_a_row).div_ceil(2), 0);
        self.blocks = self.blocks.min(self.most);
    }
}

/// The order in which blocks arrived, as far as it is known, at a server that has not said that it
/// takes them in any order.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Order {
    /// It is the one in which they were sent.
    Kept,
    /// One overtook another; none was repeated.
    Overtaken,
    /// One was repeated, or is missing: copies may be on their way until all are answered.
    Lost,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// The first block, which leaves alone: its answer says which size the server wants, and whether it
    /// takes blocks in any order.
    First,
    Middle,
    /// The last block, which leaves when all others are acknowledged, since the server acts on it.
    Last,
}

/// In which round a block was sent, and where it begins.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) round: usize,
    pub(super) at: usize,
}

/// The meaning of an answer to a block.
#[derive(Debug)]
pub(super) enum Verdict {
    /// There is more to do.
    Going,
    /// This is the answer to the whole request, or the error that ends it.
    Answered(Response),
    /// All of it has to be sent again, as another body.
    Again,
    /// The server breaks a rule.
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
    /// The server has said that it takes blocks in any order.
    any_order: bool,
    order: Order,
    round: usize,
    window: Window,
    running: usize,
    /// Before which byte the server may have ended the body once more.
    cut: usize,
    /// The smaller blocks that the server asked for, once nothing is under way.
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

    /// From the start.
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

    /// Whether the body is one message.
    pub(super) fn is_whole(&self) -> bool {
        self.progress.length <= self.progress.sizes.whole
    }

    /// Whether several blocks may be in flight.
    pub(super) fn is_windowed(&self) -> bool {
        self.in_flight > 1
    }

    /// Where the piece that begins at this byte ends.
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

    /// The next block to send, if one may leave now; `queued` messages for this server wait for
    /// congestion control.
    pub(super) fn next(&mut self, queued: usize) -> Option<Place> {
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
                return Some(Place { round: self.round, at });
            }
            if idle {
                self.phase = Phase::Last;
            }
        }
        if self.phase == Phase::Middle || !idle {
            return None;
        }
        self.running = 1;
        Some(Place { round: self.round, at: self.progress.acknowledged })
    }

    /// The first byte that is not under way.
    fn next_byte(&self) -> usize {
        self.progress.acknowledged + self.progress.ahead.len() * self.progress.sizes.block
    }

    /// Whether another block may be handed over. A server that wants them in order gets some of them
    /// again, so that few wait in the endpoint, where they could not be called back.
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

    /// Goes back to the first byte that is not acknowledged, so that all blocks from there on are sent
    /// again.
    fn go_back(&mut self) {
        self.progress.resent += self.progress.ahead.len();
        self.window.shrink();
        self.progress.ahead.clear();
    }

    /// The network does not carry messages as long as these. Whether smaller ones can be tried.
    pub(super) fn too_long(&mut self) -> bool {
        let sizes = self.progress.sizes;
        let can = self.phase == Phase::First && sizes.szx > 0 && sizes.szx <= Block::MAX_SZX;
        if can {
            self.running = 0;
            self.attempts = self.attempts.saturating_sub(1);
            self.progress.sizes = sizes.at_most(sizes.szx - 1);
        }
        can
    }

    /// Whether a block that was not answered is to be sent once more. One of an earlier round is not:
    /// others have taken its place.
    pub(super) fn unanswered(&mut self, place: Place) -> bool {
        let current = place.round == self.round;
        if !current {
            self.running -= 1;
        }
        current
    }

    /// Evaluates the server's answer to the block of this place.
    pub(super) fn on_answer(&mut self, place: Place, answer: Response) -> Verdict {
        self.running = self.running.saturating_sub(1);
        let smaller = match self.acknowledged_block(place.at, &answer) {
            Ok(block) => block.filter(|block| block.szx() < self.progress.sizes.szx),
            Err(what) => return Verdict::Broken(what),
        };
        let smaller = smaller.map(Block::szx);
        match self.phase {
            _ if self.is_last(place.at) => self.on_last(answer),
            Phase::First => self.on_first(answer, smaller),
            Phase::Middle | Phase::Last => self.on_middle(place, answer, smaller),
        }
    }

    /// The block that an answer is to, if it says so. An error may stand for all of them.
    fn acknowledged_block(
        &self,
        at: usize,
        answer: &Response,
    ) -> Result<Option<Block>, &'static str> {
        let sizes = &self.progress.sizes;
        let Some(option) = answer.options().get(OptionNumber::BLOCK1) else { return Ok(None) };
        let Ok(block) = sizes.read(&option) else {
            return Err("its answer has an invalid Block1 option");
        };
        if self.is_whole() || !answer.is_success() {
            return Ok(Some(block));
        }
        // RFC 7959 section 2.3: it says which block is acknowledged. In blocks of its own size the same
        // bytes have another number.
        let named = sizes.at(at, true, sizes.szx).is_ok_and(|sent| sent.num() == block.num());
        let scaled = block.szx() < sizes.szx && block.offset() as usize == at;
        if named || scaled {
            Ok(Some(block))
        } else {
            Err("it acknowledges a block that was not sent")
        }
    }

    fn on_first(&mut self, answer: Response, smaller: Option<u8>) -> Verdict {
        if !answer.is_success() {
            // A hint to begin again with smaller blocks (section 2.9.3).
            return match smaller.filter(|_| answer.code() == Code::REQUEST_ENTITY_TOO_LARGE) {
                Some(szx) => {
                    self.progress.sizes = self.progress.sizes.at_most(szx);
                    Verdict::Going
                }
                None => Verdict::Answered(answer),
            };
        }
        self.any_order = answer.options().get(BurstMark::OPTION).is_some();
        self.progress.acknowledged = self.end(0);
        if let Some(szx) = smaller {
            // Sections 2.5 and 3.2: all of the block was taken, and the rest comes in smaller ones.
            self.progress.sizes = self.progress.sizes.at_most(szx);
        }
        self.phase = Phase::Middle;
        Verdict::Going
    }

    /// Only a server that said so is trusted to put blocks together that come in another order. For
    /// others, what was sent after a block that may have been late is sent once more, in order:
    /// whichever way they write them, the last one that they wrote is right.
    fn on_middle(&mut self, place: Place, answer: Response, smaller: Option<u8>) -> Verdict {
        let progress = &mut self.progress;
        let block = progress.sizes.block;
        // Of an earlier round: it has been sent again.
        let stale = place.round != self.round;
        let ordinal = place.at.saturating_sub(progress.acknowledged) / block;
        let overtook = !stale && ordinal > 0;
        let in_doubt = stale || overtook || self.order == Order::Lost;
        let alone = self.any_order || !in_doubt && progress.ahead.len() <= 1;
        match answer.code() {
            // Others are missing that came before it (RFC 7959 section 2.9.2): they follow.
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
                // It came after blocks that replaced it and those behind it.
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
            // The late ones have come, and no copy of them: what followed them is sent again at once.
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
            Code::CONTINUE => Verdict::Broken("it asks for more after the last block"),
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

    /// Blocks are missing at the server, which has done nothing then (section 2.9.2): a late copy of the
    /// first block may have begun the body anew.
    fn incomplete(&mut self, answer: Response) -> Verdict {
        if !self.progress.in_order || self.attempts < ATTEMPTS {
            self.progress.in_order = true;
            Verdict::Again
        } else {
            Verdict::Answered(answer)
        }
    }
}
