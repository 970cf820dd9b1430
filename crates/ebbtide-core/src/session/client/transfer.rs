//! One request and its response, in any number of exchanges.

use super::download::{AssemblyError, Download, FirstResponse, NextBlock};
use super::progress::UploadProgress;
use super::q_block::{Content, ExpectedBody, QBlock, QBlockAnswer, QBlockStep};
use super::request::{Backoff, RequestParts, RequestTag, TransferSettings};
use super::step::{Loss, Outgoing, Step, TransferError};
use super::upload::{BlockPosition, Upload, Verdict};
use crate::session::{BurstMark, Options, Response};
use crate::time::{Duration, Instant};
use crate::wire::{Block, Code, OptionNumber};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use bytes::Bytes;
use rand_core::Rng;

/// The maximum number of challenges in a row within one transfer (RFC 9175 section 2.3). A server
/// that restarts challenges anew.
const ECHOES: u8 = 2;
/// How often a body is requested again because it changed during the transfer.
const RESTARTS: u8 = 3;
/// The maximum number of Non-confirmable blocks that wait for an answer. A server answers the last
/// one that it received, or continues to answer one that it has answered before.
const Q_BLOCKS: usize = 64;
/// The pause after a message that was not delivered. The longest lets a restored path be found soon.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(8) };

/// How many answers in a row may be lost without a pause: at most so often can someone on the path
/// who says so have a request made anew.
const ANSWERS_LOST: u32 = 8;

/// The purpose of a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum MessagePurpose {
    /// The request's body, or a block of it.
    Body(BlockPosition),
    /// The next block of the response's body.
    Block2,
    /// A message of RFC 9177 about this block.
    QBlock(u32),
}

#[derive(Copy, Clone, Debug)]
struct Open {
    id: u32,
    piece: MessagePurpose,
    /// The number of challenges when it left.
    echoes: u8,
    /// Whether it repeats an earlier message for its piece.
    again: bool,
}

#[derive(Debug)]
enum Stage {
    Upload(Upload),
    Download(Download),
    QBlock(Box<QBlock>),
    Over(Option<Result<Response, TransferError>>),
}

/// One request and its response: blocks in both directions (RFC 7959, RFC 9177), challenges (RFC
/// 9175), and undelivered messages, which are sent again as [`Patience`](super::Patience) allows.
///
/// [`poll`](Self::poll) returns the steps until it returns a wait. The driver starts the exchanges
/// and reports their ends. Only idempotent requests, messages that did not leave, and blocks that
/// the server merely stores are sent again as new messages.
#[derive(Debug)]
pub struct Transfer {
    request: RequestParts,
    settings: TransferSettings,
    /// The options of every message: the request's own, Request-Tag, and Echo.
    options: Options,
    stage: Stage,
    /// Whether the body has to be sent from the start, as a new one.
    begin: bool,
    open: VecDeque<Open>,
    repeat: VecDeque<Open>,
    cancel: VecDeque<u32>,
    next_id: u32,
    /// The number of the Echo option, and how many challenges have come in a row.
    echoes: u8,
    challenges: u8,
    restarts: u8,
    /// The number of messages lost since the peer was last heard, and when that was.
    lost: u32,
    heard: Option<Instant>,
    /// The number of losses after which the next pause is drawn, and the end of the pause.
    pause: Option<u32>,
    not_before: Option<Instant>,
    queued: usize,
    progress: Option<UploadProgress>,
}

impl Transfer {
    /// Creates a transfer of which nothing was sent.
    #[must_use]
    pub fn new(request: RequestParts, settings: TransferSettings) -> Self {
        let stage = match settings.q_block {
            Some(params) => {
                Stage::QBlock(Box::new(QBlock::new(&request, settings.sizes.szx, params)))
            }
            None => Stage::Upload(Upload::new(&request, settings.sizes, settings.in_flight)),
        };
        Self {
            options: request.options.clone(),
            stage,
            begin: true,
            open: VecDeque::new(),
            repeat: VecDeque::new(),
            cancel: VecDeque::new(),
            next_id: 0,
            echoes: 0,
            challenges: 0,
            restarts: 0,
            lost: 0,
            heard: None,
            pause: None,
            not_before: None,
            queued: 0,
            progress: None,
            request,
            settings,
        }
    }

    /// Creates a transfer for the rest of a response whose first message has arrived: a
    /// notification (RFC 7959 section 2.6), or the answer of a group's member (section 2.8).
    #[must_use]
    pub fn of_answer(
        now: Instant,
        request: RequestParts,
        settings: TransferSettings,
        first: Response,
    ) -> Self {
        let mut transfer = Self::new(request, settings);
        transfer.heard = Some(now);
        if !transfer.echoed(&first, 0) {
            transfer.answered(first);
        }
        transfer
    }

    /// The progress of the request's body.
    #[must_use]
    pub fn progress(&self) -> UploadProgress {
        match (&self.stage, &self.progress) {
            (Stage::Upload(upload), _) => upload.progress.clone(),
            (_, Some(progress)) => progress.clone(),
            _ => UploadProgress::new(self.settings.sizes, self.request.payload.len(), false),
        }
    }

    /// The open exchanges.
    pub fn exchanges(&self) -> impl Iterator<Item = u32> + '_ {
        self.open.iter().map(|open| open.id)
    }

    /// Whether [`queued`](Self::queued) makes a difference.
    #[must_use]
    pub fn is_windowed(&self) -> bool {
        matches!(&self.stage, Stage::Upload(upload) if upload.is_windowed())
    }

    /// Whether it uses the blocks of RFC 9177 now: one of these messages may have several answers.
    #[must_use]
    pub fn is_q_block(&self) -> bool {
        matches!(self.stage, Stage::QBlock(_))
    }

    /// Sets the number of messages for this peer that wait at the endpoint for congestion control.
    pub fn queued(&mut self, messages: usize) {
        self.queued = messages;
    }

    /// Returns the next step. `rng` supplies Request-Tags and the random parts of delays.
    pub fn poll(&mut self, now: Instant, rng: &mut dyn Rng) -> Step {
        if let Some(id) = self.cancel.pop_front() {
            return Step::Cancel(id);
        }
        if let Some(failures) = self.pause.take() {
            self.not_before = Some(now + BACKOFF.pause(failures, rng));
        }
        if let Some(at) = self.not_before.filter(|at| now < *at) {
            return Step::Wait(Some(at));
        }
        self.not_before = None;
        if core::mem::take(&mut self.begin) {
            self.start(now, rng);
        }
        if let Some(open) = self.repeat.pop_front() {
            return self.send(open);
        }
        match &mut self.stage {
            Stage::Over(result) => match result.take() {
                Some(result) => Step::Done(result),
                None => Step::Wait(None),
            },
            Stage::Upload(upload) => match upload.next(self.queued) {
                Some(place) => self.send_piece(MessagePurpose::Body(place)),
                None => Step::Wait(None),
            },
            Stage::Download(_) if self.open.is_empty() => self.send_piece(MessagePurpose::Block2),
            Stage::Download(_) => Step::Wait(None),
            Stage::QBlock(q_block) => match q_block.poll(now, &self.options) {
                QBlockStep::Send { block, wanted, content } => {
                    self.send_q_block(block, &wanted, content)
                }
                QBlockStep::Wait(at) => Step::Wait(at),
                QBlockStep::Done(response) => {
                    self.answered(response);
                    self.poll(now, rng)
                }
                QBlockStep::GiveUp => self.fail(TransferError::NoResponse),
            },
        }
    }

    /// Begins to send the body, as a new one.
    fn start(&mut self, now: Instant, rng: &mut dyn Rng) {
        self.cancel.extend(self.open.drain(..).map(|open| open.id));
        self.repeat.clear();
        let in_blocks = match &mut self.stage {
            Stage::QBlock(q_block) => {
                q_block.begin(now, &self.request, rng);
                if self.request.payload.len() > q_block.limit() {
                    let limit = q_block.limit();
                    self.stage = Stage::Over(Some(Err(TransferError::TooLarge { limit })));
                    return;
                }
                // Requests for missing blocks repeat no body, so only the tag identifies the
                // response.
                !self.request.payload.is_empty()
            }
            Stage::Upload(upload) => {
                upload.begin();
                !upload.is_whole()
            }
            Stage::Download(_) | Stage::Over(_) => {
                let sizes = self.settings.sizes;
                let mut upload = Upload::new(&self.request, sizes, self.settings.in_flight);
                upload.begin();
                let in_blocks = !upload.is_whole();
                self.stage = Stage::Upload(upload);
                in_blocks
            }
        };
        self.options.remove(OptionNumber::REQUEST_TAG);
        for tag in self.request.options.iter().filter(|opt| opt.number == OptionNumber::REQUEST_TAG)
        {
            self.options.push(tag.number, tag.value);
        }
        match self.settings.request_tag {
            RequestTag::Always => self.tag(rng),
            RequestTag::InBlocks if in_blocks => self.tag(rng),
            RequestTag::InBlocks | RequestTag::Never => {}
        }
    }

    /// A tag that distinguishes concurrent uploads to one resource, a second attempt from the
    /// first, and this program from one that had its address before (RFC 9175 section 3.3).
    fn tag(&mut self, rng: &mut dyn Rng) {
        self.options.remove(OptionNumber::REQUEST_TAG);
        self.options.push(OptionNumber::REQUEST_TAG, &rng.next_u32().to_be_bytes());
    }

    fn send_piece(&mut self, piece: MessagePurpose) -> Step {
        let id = self.next_id;
        self.next_id += 1;
        self.send(Open { id, piece, echoes: self.echoes, again: false })
    }

    /// Sends the message for a piece.
    fn send(&mut self, mut open: Open) -> Step {
        open.echoes = self.echoes;
        let mut options = self.options.clone();
        let payload = match (&self.stage, open.piece) {
            (Stage::Upload(upload), MessagePurpose::Body(place)) => {
                let (end, progress) = (upload.end(place.at), &upload.progress);
                let more = end < progress.length;
                if !upload.is_whole() {
                    let szx = progress.sizes.szx;
                    let Ok(block) = progress.sizes.at(place.at, more, szx) else {
                        let limit = (Block::MAX_NUM as usize + 1) << (szx.min(6) + 4);
                        return self.fail(TransferError::TooLarge { limit });
                    };
                    options.push_uint(OptionNumber::BLOCK1, block.to_uint());
                    if place.at > 0 {
                        // RFC 7959 section 2.10.
                        options.remove(OptionNumber::IF_NONE_MATCH);
                    } else {
                        if self.settings.size1 {
                            let size = u32::try_from(progress.length).unwrap_or(u32::MAX);
                            options.push_uint(OptionNumber::SIZE1, size);
                        }
                        if upload.is_windowed() {
                            BurstMark { burst: 0, behind: 0, sequence: 0 }.push(&mut options);
                        }
                    }
                }
                if !more {
                    if let Some((number, value)) = self.request.wanted_in_return() {
                        options.push_uint(number, value);
                    }
                    if self.settings.observe {
                        options.push_uint(OptionNumber::OBSERVE, 0);
                    }
                }
                self.request.payload.slice(place.at..end)
            }
            (Stage::Download(download), MessagePurpose::Block2) => {
                let (at, szx) = download.next();
                let Ok(block) = self.settings.sizes.at(at, false, szx) else {
                    let limit = (Block::MAX_NUM as usize + 1) << (szx.min(6) + 4);
                    return self.fail(TransferError::TooLarge { limit });
                };
                options.push_uint(OptionNumber::BLOCK2, block.to_uint());
                // A body that was sent in blocks is not sent again (RFC 7959 section 3.3); a short
                // one is part of every request for a block of the response (RFC 8132 section 2.1).
                let short = self.request.payload.len() <= self.settings.sizes.whole;
                if short { self.request.payload.clone() } else { Bytes::new() }
            }
            // It belongs to a stage that is over.
            _ => return Step::Wait(None),
        };
        self.open.push_back(open);
        Step::Send(Outgoing {
            id: open.id,
            code: self.request.code,
            options,
            payload,
            q_block: false,
        })
    }

    fn send_q_block(&mut self, block: u32, wanted: &[u32], content: Content) -> Step {
        let Stage::QBlock(q_block) = &self.stage else { return Step::Wait(None) };
        let mut options = self.options.clone();
        let body = &self.request.payload;
        let payload = match content {
            Content::Block => {
                // The options are the same in each block (RFC 9177 section 4.3).
                let (start, size) = q_block.place(block);
                let start = start.min(body.len());
                let end = (start + size).min(body.len());
                options.push_uint(OptionNumber::Q_BLOCK1, q_block.value(block, end < body.len()));
                let size = u32::try_from(body.len()).unwrap_or(u32::MAX);
                options.push_uint(OptionNumber::SIZE1, size);
                body.slice(start..end)
            }
            Content::Body => body.clone(),
            Content::Nothing => Bytes::new(),
        };
        for value in wanted {
            options.push_uint(OptionNumber::Q_BLOCK2, *value);
        }
        if self.open.len() >= Q_BLOCKS
            && let Some(oldest) = self.open.pop_front()
        {
            self.cancel.push_back(oldest.id);
        }
        let id = self.next_id;
        self.next_id += 1;
        let (piece, echoes) = (MessagePurpose::QBlock(block), self.echoes);
        self.open.push_back(Open { id, piece, echoes, again: false });
        Step::Send(Outgoing { id, code: self.request.code, options, payload, q_block: true })
    }

    fn fail(&mut self, error: TransferError) -> Step {
        self.stage = Stage::Over(None);
        Step::Done(Err(error))
    }

    fn finish(&mut self, result: Result<Response, TransferError>) {
        self.enter(Stage::Over(Some(result)));
        self.repeat.clear();
        (self.pause, self.not_before, self.begin) = (None, None, false);
    }

    /// Enters another stage. That of the upload leaves its progress.
    fn enter(&mut self, stage: Stage) {
        if let Stage::Upload(upload) = core::mem::replace(&mut self.stage, stage) {
            self.progress = Some(upload.progress);
        }
    }

    /// A response arrived in this exchange. If the exchange is one of RFC 9177, others may follow.
    pub fn handle_response(&mut self, now: Instant, id: u32, mut response: Response) {
        let Some(index) = self.open.iter().position(|open| open.id == id) else { return };
        let Some(open) = self.open.remove(index) else { return };
        (self.heard, self.lost) = (Some(now), 0);
        if self.echoed(&response, open.echoes) {
            match open.piece {
                // The server asks whether we still are who began: what is missing is requested again.
                MessagePurpose::QBlock(_) if self.receives_blocks() => self.open.push_back(open),
                // Nothing of it was accepted.
                MessagePurpose::QBlock(_) => self.begin = true,
                _ => self.repeat.push_back(Open { again: true, ..open }),
            }
            return;
        }
        self.challenges = 0;
        response.repeated |= open.again;
        if self.settings.one_block {
            return self.finish(Ok(response));
        }
        let sizes = self.settings.sizes;
        match (&mut self.stage, open.piece) {
            (Stage::Upload(upload), MessagePurpose::Body(place)) => {
                match upload.on_answer(place, response) {
                    Verdict::Going => {}
                    Verdict::Answered(response) => self.answered(response),
                    Verdict::Again => self.begin = true,
                    Verdict::Broken(what) => self.finish(Err(TransferError::Protocol(what))),
                }
            }
            (Stage::Download(download), MessagePurpose::Block2) => {
                match download.on_answer(response, &sizes) {
                    Ok(NextBlock::Part) => {}
                    // The server no longer has the body (RFC 7959 section 2.9.2).
                    Ok(NextBlock::Refused(answer))
                        if answer.code() == Code::REQUEST_ENTITY_INCOMPLETE
                            && self.request.is_idempotent() =>
                    {
                        self.changed();
                    }
                    Ok(NextBlock::Whole(response) | NextBlock::Refused(response)) => {
                        self.finish(Ok(response))
                    }
                    Ok(NextBlock::Changed) => self.changed(),
                    Err(unfit) => self.unfit(unfit),
                }
            }
            (Stage::QBlock(q_block), MessagePurpose::QBlock(block)) => {
                let expected = ExpectedBody {
                    request_is_short: q_block.is_short(&self.request),
                    limit: self.settings.max_body,
                };
                match q_block.on_answer(now, block, response, expected) {
                    Ok(QBlockAnswer::Going) => self.open.push_back(open),
                    Ok(QBlockAnswer::Restarted) => {
                        self.open.push_back(open);
                        self.restarted();
                    }
                    Ok(QBlockAnswer::Again) => {
                        self.begin = true;
                        self.restarted();
                    }
                    Ok(QBlockAnswer::Answered(response)) => self.answered(response),
                    Err(unfit) => self.unfit(unfit),
                }
            }
            // Late: it answers a stage that is over.
            _ => {}
        }
    }

    fn receives_blocks(&self) -> bool {
        matches!(&self.stage, Stage::QBlock(q_block) if q_block.is_receiving())
    }

    /// Whether a response is a challenge that the transfer answers: the message then has to be sent
    /// again with the Echo option.
    fn echoed(&mut self, response: &Response, known: u8) -> bool {
        let Some(echo) = response.echo() else { return false };
        let is_again = known == self.echoes;
        if response.code() != Code::UNAUTHORIZED || is_again && self.challenges >= ECHOES {
            return false;
        }
        // Of several messages in flight each is challenged: they are answered by one Echo.
        if is_again {
            self.echoes = self.echoes.wrapping_add(1);
            self.challenges += 1;
            self.options.remove(OptionNumber::ECHO);
            self.options.push(OptionNumber::ECHO, echo);
        }
        true
    }

    /// A response to the whole request, or its first block.
    fn answered(&mut self, response: Response) {
        self.cancel.extend(self.open.drain(..).map(|open| open.id));
        self.repeat.clear();
        self.begin = false;
        match Download::begin(response, &self.settings.sizes, self.settings.max_body) {
            Ok(FirstResponse::Whole(response)) => self.finish(Ok(response)),
            Ok(FirstResponse::Block(download)) => self.enter(Stage::Download(download)),
            Err(unfit) => self.unfit(unfit),
        }
    }

    /// The resource has changed: the transfer begins again.
    fn changed(&mut self) {
        if !self.request.is_idempotent() {
            // A request with side effects is not repeated.
            let what = "it was replaced by another while it came";
            return self.finish(Err(TransferError::Protocol(what)));
        }
        self.begin = true;
        self.restarted();
    }

    fn restarted(&mut self) {
        self.restarts += 1;
        if self.restarts > RESTARTS {
            let what = "the resource changes faster than it can be transferred";
            self.finish(Err(TransferError::Protocol(what)));
        }
    }

    fn unfit(&mut self, unfit: AssemblyError) {
        self.finish(Err(match unfit {
            AssemblyError::TooLarge => TransferError::TooLarge { limit: self.settings.max_body },
            AssemblyError::Broken(what) => TransferError::Protocol(what),
        }));
    }

    /// This exchange ended without an answer, or was not started. The driver keeps the reason, in
    /// case it ends the transfer ([`TransferError::Lost`]).
    pub fn handle_loss(&mut self, now: Instant, id: u32, loss: Loss) {
        let Some(index) = self.open.iter().position(|open| open.id == id) else { return };
        let Some(open) = self.open.remove(index) else { return };
        let retry = match (open.piece, loss, &mut self.stage) {
            // Treated as lost in the network, and requested again. This does not apply if nothing
            // has left: a POST in one message is not repeated, and would wait for an answer in
            // vain.
            (MessagePurpose::QBlock(_), Loss::NoRoom, _) if open.id > 0 => return,
            // A token that is no longer answered; others may be.
            (MessagePurpose::QBlock(_), Loss::Unanswered | Loss::AnswerLost, _) => return,
            (MessagePurpose::QBlock(_), ..) | (_, Loss::Final | Loss::NoRoom, _) => false,
            // Fragmentation is avoided (RFC 7252 section 4.6). Later blocks have fewer options.
            (MessagePurpose::Body(_), Loss::TooLong, Stage::Upload(upload)) => {
                if upload.too_long() {
                    self.begin = true;
                    return;
                }
                false
            }
            (_, Loss::TooLong, _) => false,
            (MessagePurpose::Body(place), loss, Stage::Upload(upload)) => {
                if !upload.unanswered(place) {
                    return;
                }
                let kept = !upload.is_last(place.at);
                loss == Loss::Unsent
                    || self.settings.repeat && (kept || self.request.is_idempotent())
            }
            (MessagePurpose::Block2, loss, Stage::Download(_)) => {
                loss == Loss::Unsent || self.settings.repeat
            }
            _ => return,
        };
        let longest = BACKOFF.least(self.lost) * 3 / 2;
        let is_allowed = match loss {
            // The path is there, and the copy that was refused has waited for its timeout.
            Loss::AnswerLost => self.lost < ANSWERS_LOST,
            _ => self.settings.patience.allows(now + longest, self.heard),
        };
        if retry && is_allowed {
            self.pause = (loss != Loss::AnswerLost).then_some(self.lost).or(self.pause);
            self.lost = self.lost.saturating_add(1);
            self.repeat.push_back(Open { again: loss != Loss::Unsent || open.again, ..open });
        } else {
            self.finish(Err(TransferError::Lost));
        }
    }
}
