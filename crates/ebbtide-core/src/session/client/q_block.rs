//! A request and its response in Non-confirmable blocks (RFC 9177): when to send which message, and
//! the meaning of answers.

use super::download::{AssemblyError, etag};
use super::request::RequestParts;
use crate::q_block::{
    BlockArrival, Due, QBlockParameters, Receiver, Receiving, Retry, Sender, Sending,
};
use crate::session::{Options, Response};
use crate::time::Instant;
use crate::wire::{Block, Code, MissingBlocks, OptionNumber};
use alloc::vec;
use alloc::vec::Vec;
use rand_core::Rng;

/// Bytes of the header, the token, and the numbers of long options.
const HEADER: usize = 16;
/// Numbers begin at 0, so there is one block more than the highest number.
const MAX_BLOCKS: u32 = Block::MAX_NUM + 1;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct QBlock {
    params: QBlockParameters,
    szx: u8,
    idempotent: bool,
    stage: QBlockStage,
}

/// The stage of a request.
#[derive(Debug)]
enum QBlockStage {
    /// The request's body is sent.
    Upload(Sender),
    /// The request was sent in one message.
    Asked { retry: Retry, begun: bool },
    /// The response's body is received.
    Download(ResponseBody),
}

/// The next step of a request.
#[derive(Debug)]
pub(super) enum QBlockStep {
    /// Send a message: the block that it is about, the values of Q-Block2, and the part of the
    /// request's body that it carries.
    Send {
        block: u32,
        wanted: Vec<u32>,
        content: Content,
    },
    Wait(Option<Instant>),
    Done(Response),
    GiveUp,
}

/// The part of the request's body that a message carries.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A block of the request's body.
    Block,
    /// The request's body, which is no longer than a block.
    Body,
    Nothing,
}

/// The expected body of a response.
#[derive(Copy, Clone)]
pub(super) struct ExpectedBody {
    /// Whether the body of the request fits into one message.
    pub(super) request_is_short: bool,
    /// The maximum length, in bytes.
    pub(super) limit: usize,
}

/// The meaning of an answer.
#[derive(Debug)]
pub(super) enum QBlockAnswer {
    /// The transfer continues.
    Going,
    /// It answers the whole request.
    Answered(Response),
    /// The body is sent again in another version; the number of versions is limited.
    Restarted,
    /// The request has to be sent again from the start; the number of attempts is limited.
    Again,
}

impl QBlock {
    pub(super) fn new(request: &RequestParts, szx: u8, params: QBlockParameters) -> Self {
        let retry = Retry::new(Instant::ZERO, &params);
        let idempotent = request.is_idempotent();
        let stage = QBlockStage::Asked { retry, begun: false };
        Self { params, szx: szx.min(Block::MAX_SZX), idempotent, stage }
    }

    /// The maximum length of a body that can be sent, in bytes.
    pub(super) fn limit(&self) -> usize {
        (MAX_BLOCKS as usize) << (self.szx + 4)
    }

    /// The offset of a block of the request's body, and its maximum length.
    pub(super) fn place(&self, num: u32) -> (usize, usize) {
        ((num as usize) << (self.szx + 4), 16 << self.szx)
    }

    /// The value of an option that names a block to be sent.
    pub(super) fn value(&self, num: u32, more: bool) -> u32 {
        Block::new(num, more, self.szx).map_or(0, Block::to_uint)
    }

    /// Whether the request's body fits into one message.
    pub(super) fn is_short(&self, request: &RequestParts) -> bool {
        request.payload.len() <= 16 << self.szx
    }

    /// Whether blocks of the response have arrived.
    pub(super) fn is_receiving(&self) -> bool {
        matches!(self.stage, QBlockStage::Download(_))
    }

    /// Begins at the start.
    pub(super) fn begin(&mut self, now: Instant, request: &RequestParts, rng: &mut dyn Rng) {
        self.stage = if self.is_short(request) {
            QBlockStage::Asked { retry: Retry::new(now, &self.params), begun: false }
        } else {
            let blocks = request.payload.len().div_ceil(16 << self.szx);
            let blocks = u32::try_from(blocks).unwrap_or(MAX_BLOCKS);
            QBlockStage::Upload(Sender::upload(blocks, self.idempotent, self.params, rng))
        };
    }

    /// Returns the next step: a message to send, an instant to wait for, or the end.
    pub(super) fn poll(&mut self, now: Instant, options: &Options) -> QBlockStep {
        match &mut self.stage {
            QBlockStage::Upload(sender) => match sender.poll(now) {
                Sending::Block(num) => {
                    QBlockStep::Send { block: num, wanted: Vec::new(), content: Content::Block }
                }
                Sending::Wait(at) => QBlockStep::Wait(at),
                Sending::GiveUp => QBlockStep::GiveUp,
            },
            QBlockStage::Asked { begun: begun @ false, .. } => {
                *begun = true;
                self.ask()
            }
            QBlockStage::Asked { retry, .. } => loop {
                match retry.poll(now, &self.params) {
                    Due::Wait(at) => return QBlockStep::Wait(Some(at)),
                    Due::Ask if self.idempotent => return self.ask(),
                    Due::Ask => {}
                    Due::GiveUp => return QBlockStep::GiveUp,
                }
            },
            QBlockStage::Download(body) => match body.receiver.poll(now) {
                Receiving::Complete => self.finish(now),
                Receiving::Continue(from) => {
                    let wanted = vec![body.value(from, true)];
                    QBlockStep::Send { block: from, wanted, content: Content::Nothing }
                }
                Receiving::Missing => {
                    let missing = body.receiver.missing();
                    let wanted: Vec<u32> = missing.map(|num| body.value(num, false)).collect();
                    // An estimate of its size: an option's header is one byte here.
                    let asked = wanted.len() * 4 + HEADER;
                    let others: usize = options.iter().map(|opt| opt.value.len() + 1).sum();
                    body.receiver.sent(now, asked + others);
                    QBlockStep::Send { block: 0, wanted, content: Content::Nothing }
                }
                Receiving::Wait(at) => QBlockStep::Wait(Some(at)),
                Receiving::GiveUp => QBlockStep::GiveUp,
            },
        }
    }

    /// Requests the whole response, in blocks if it is long (RFC 9177 section 4.4).
    fn ask(&self) -> QBlockStep {
        QBlockStep::Send { block: 0, wanted: vec![self.value(0, true)], content: Content::Body }
    }

    fn finish(&mut self, now: Instant) -> QBlockStep {
        let stage = QBlockStage::Asked { retry: Retry::new(now, &self.params), begun: true };
        match core::mem::replace(&mut self.stage, stage) {
            QBlockStage::Download(body) => QBlockStep::Done(body.finish()),
            stage => {
                self.stage = stage;
                QBlockStep::Wait(None)
            }
        }
    }

    /// An answer to the request that carried this block.
    pub(super) fn on_answer(
        &mut self,
        now: Instant,
        block: u32,
        response: Response,
        expected: ExpectedBody,
    ) -> Result<QBlockAnswer, AssemblyError> {
        match (response.code(), &mut self.stage) {
            (Code::CONTINUE, QBlockStage::Upload(sender)) => {
                // It refers to whole sets only (RFC 9177 section 4.3).
                let told = block_of(&response, OptionNumber::Q_BLOCK1).map(Block::num);
                sender.on_continue(self.params.end_of_set(told.unwrap_or(block)));
                Ok(QBlockAnswer::Going)
            }
            (Code::REQUEST_ENTITY_INCOMPLETE, stage) if names_missing(&response) => {
                if let (QBlockStage::Upload(sender), Ok(missing)) =
                    (stage, MissingBlocks::parse(response.body()))
                {
                    sender.on_missing(missing.iter());
                }
                Ok(QBlockAnswer::Going)
            }
            // Late answers.
            (Code::CONTINUE, _) => Ok(QBlockAnswer::Going),
            _ => self.on_content(now, response, expected),
        }
    }

    /// A response to the whole request: complete, or a block.
    fn on_content(
        &mut self,
        now: Instant,
        mut response: Response,
        expected: ExpectedBody,
    ) -> Result<QBlockAnswer, AssemblyError> {
        let Some(block) = block_of(&response, OptionNumber::Q_BLOCK2) else {
            return Ok(QBlockAnswer::Answered(response));
        };
        if !response.is_success() || block.num() == 0 && !block.more() {
            response.options.remove(OptionNumber::Q_BLOCK2);
            response.options.remove(OptionNumber::SIZE2);
            return Ok(QBlockAnswer::Answered(response));
        }
        let is_sized = response.options().get(OptionNumber::SIZE2).is_some();
        let begun = matches!(self.stage, QBlockStage::Download(_));
        if !is_sized && expected.request_is_short && begun {
            // libcoap's server answers a client that lacks block 0 with that block alone, and
            // without the ETag of its version. The whole response is therefore requested again.
            return Ok(QBlockAnswer::Again);
        }
        let other = match &self.stage {
            QBlockStage::Download(body) => body.is_other(&response),
            _ => true,
        };
        if other {
            let body = ResponseBody::begin(now, &response, block, expected.limit, self.params)?;
            self.stage = QBlockStage::Download(body);
        }
        if let QBlockStage::Download(body) = &mut self.stage {
            body.take(now, &response, block)?;
        }
        Ok(if other && begun { QBlockAnswer::Restarted } else { QBlockAnswer::Going })
    }
}

/// One version of a response's body, whose blocks arrive in any order.
#[derive(Debug)]
struct ResponseBody {
    receiver: Receiver,
    /// Its options, without those of a block.
    response: Response,
    etag: Option<Vec<u8>>,
    szx: u8,
    bytes: Vec<u8>,
}

impl ResponseBody {
    /// Begins the body to which a block belongs; the block itself is not added yet.
    fn begin(
        now: Instant,
        first: &Response,
        block: Block,
        limit: usize,
        params: QBlockParameters,
    ) -> Result<Self, AssemblyError> {
        // RFC 9177 section 4.6: Size2 is exact, and in every block.
        let size = first.options().get_uint(OptionNumber::SIZE2);
        let size =
            size.ok_or(AssemblyError::Broken("a block does not say how long the body is"))?;
        let size = usize::try_from(size).ok().filter(|size| *size <= limit);
        let size = size.ok_or(AssemblyError::TooLarge)?;
        let blocks =
            u32::try_from(size.div_ceil(block.size())).map_err(|_| AssemblyError::TooLarge)?;
        let mut response = Response::new(first.code());
        for opt in first.options().iter() {
            if !matches!(opt.number, OptionNumber::Q_BLOCK2 | OptionNumber::SIZE2) {
                response.options.push(opt.number, opt.value);
            }
        }
        Ok(Self {
            receiver: Receiver::new(now, blocks, params),
            etag: etag(first),
            szx: block.szx(),
            bytes: vec![0; size],
            response,
        })
    }

    /// Whether a block belongs to another version of the resource (RFC 9177 section 4.4).
    fn is_other(&self, response: &Response) -> bool {
        etag(response) != self.etag
    }

    /// Adds a block.
    fn take(
        &mut self,
        now: Instant,
        response: &Response,
        block: Block,
    ) -> Result<(), AssemblyError> {
        if block.szx() != self.szx {
            return Err(AssemblyError::Broken("its blocks have several sizes"));
        }
        let (start, size) = (block.offset() as usize, self.bytes.len());
        let end = (start + block.size()).min(size);
        let room = self.bytes.get_mut(start..end);
        let room = room.filter(|room| room.len() == response.body().len());
        let Some(room) = room.filter(|_| block.more() == (end < size)) else {
            return Err(AssemblyError::Broken("a block is not as long as it says"));
        };
        if self.receiver.on_block(now, block.num()) == BlockArrival::New {
            room.copy_from_slice(response.body());
        }
        Ok(())
    }

    /// The block from which the server may continue, or that is requested.
    fn value(&self, num: u32, more: bool) -> u32 {
        // Every block of the body has a valid number, otherwise the body would not exist.
        Block::new(num, more, self.szx).map_or(0, Block::to_uint)
    }

    /// The whole response.
    fn finish(self) -> Response {
        self.response.payload(self.bytes)
    }
}

fn names_missing(response: &Response) -> bool {
    let format = response.content_format();
    format.is_some_and(|format| format.0 == MissingBlocks::CONTENT_FORMAT)
}

fn block_of(response: &Response, number: OptionNumber) -> Option<Block> {
    Block::from_option(&response.options().get(number)?).ok()
}
