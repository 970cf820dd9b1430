//! One request and its response, with bodies block by block (RFC 7959), and challenges (RFC 9175).

use super::endpoint::{DeviceEndpoint, DeviceExchangeId, DeviceSendError, Io};
use super::request::{AddedOptions, DeviceRequestParts, Parts};
use crate::cc::CongestionControl;
use crate::wire::{Block, BlockError, Code, Message, OptionNumber, Token};

/// The maximum number of challenges in a row within one transfer (RFC 9175 section 2.3). A server
/// that restarts challenges anew.
const CHALLENGES: u8 = 2;
/// How often a body is requested again because it changed during the transfer.
const RESTARTS: u8 = 3;
/// How often a body of which the server misses blocks is sent.
const ATTEMPTS: u8 = 3;

/// The bodies of a transfer, which the program never holds as a whole unless it wants to.
pub trait DeviceBody {
    /// The `length` bytes of the request's body from `offset`. Not called for a request without a body.
    fn read(&mut self, offset: usize, length: usize) -> &[u8] {
        let _ = (offset, length);
        &[]
    }

    /// A response, or a block of one: its payload belongs at `offset` of the body. After a block with offset 0 the body
    /// begins anew. Returns whether there is room for it.
    fn write(&mut self, offset: usize, message: &Message<'_>) -> bool {
        let _ = (offset, message);
        true
    }
}

/// The next action of the program.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum DeviceStep {
    /// It waits for a datagram or for the endpoint's timer.
    Wait,
    /// The transfer has ended, with the code of the response.
    Done(Result<Code, DeviceTransferError>),
}

/// The reason for which a transfer ended without a response.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceTransferError {
    /// A message was not answered, or rejected.
    Lost,
    /// A message was not accepted.
    Refused(DeviceSendError),
    /// The program has no room for the response.
    TooLarge,
    /// The peer violated a rule of RFC 7959, or the resource changes faster than it can be transferred.
    Protocol,
}

/// A part of the request's body.
struct Piece {
    from: usize,
    end: usize,
    /// An option of the request that its message does not have.
    without: Option<OptionNumber>,
}

#[derive(Copy, Clone, Debug)]
enum BodyStage {
    /// The request's body is acknowledged up to here.
    Upload {
        at: usize,
    },
    /// The response's body has arrived up to here. `code` is that of its first block.
    Download {
        at: usize,
        code: Code,
    },
    Over(Result<Code, DeviceTransferError>),
}

/// One request and its response.
///
/// The program calls [`poll`](Self::poll) until that returns [`DeviceStep::Wait`], after every datagram that
/// [`received`](Self::received) took, and after [`failed`](Self::failed).
#[derive(Debug)]
pub struct DeviceTransfer<'r, A> {
    request: DeviceRequestParts<'r>,
    to: A,
    stage: BodyStage,
    open: Option<DeviceExchangeId>,
    szx: u8,
    /// Whether the request's body fits into one message.
    whole: bool,
    tag: u32,
    attempts: u8,
    restarts: u8,
    challenges: u8,
    echo: ([u8; 40], u8),
    /// The entity tag of the response, which has at most 8 bytes like a token.
    etag: Option<Token>,
    /// The value of Observe in the message that completes the request.
    pub(super) observe: Option<u32>,
    /// The exchange whose token that message has.
    pub(super) again: Option<DeviceExchangeId>,
}

impl<'r, A: Copy + Eq> DeviceTransfer<'r, A> {
    /// Creates a transfer of which nothing was sent. The Request-Tag of a body in blocks counts up from `tag`, which
    /// should be random (RFC 9175 section 3.3).
    #[must_use]
    pub fn new(request: DeviceRequestParts<'r>, to: A, tag: u32) -> Self {
        Self {
            szx: request.szx.min(Block::MAX_SZX),
            whole: fits(&request, request.szx),
            request,
            to,
            stage: BodyStage::Upload { at: 0 },
            open: None,
            tag,
            attempts: 1,
            restarts: 0,
            challenges: 0,
            echo: ([0; 40], 0),
            etag: None,
            observe: None,
            again: None,
        }
    }

    /// Creates a transfer for the rest of a response whose first message has arrived (RFC 7959 section 2.6).
    pub(super) fn of_answer(
        request: DeviceRequestParts<'r>,
        to: A,
        first: &Message<'_>,
        body: &mut dyn DeviceBody,
    ) -> Self {
        let mut transfer = Self::new(request, to, 0);
        if !transfer.echoed(first) {
            transfer.answered(first, body);
        }
        transfer
    }

    /// Sends what is to be sent, and returns what the program does next.
    pub fn poll<C: CongestionControl + Clone>(
        &mut self,
        endpoint: &mut DeviceEndpoint<'_, A, C>,
        io: &mut Io<'_, A>,
        body: &mut dyn DeviceBody,
    ) -> DeviceStep {
        loop {
            if self.open.is_some() {
                return DeviceStep::Wait;
            }
            if let BodyStage::Over(result) = self.stage {
                return DeviceStep::Done(result);
            }
            let mut options = AddedOptions::NONE;
            let Ok(piece) = self.piece(&mut options) else {
                self.end(Err(DeviceTransferError::TooLarge));
                continue;
            };
            let Piece { from, end, without } = piece;
            let payload = if end > from { body.read(from, end - from) } else { &[] };
            let (to, again) = (self.to, self.again.take());
            let parts = Parts { code: self.request.code, options: self.request.options, without };
            let sent = options.with(parts, payload, |content| match again {
                Some(old) => endpoint.request_again(io, old, content),
                None => endpoint.request(io, to, content),
            });
            match sent {
                Ok(open) => self.open = Some(open),
                // Fragmentation is avoided (RFC 7252 section 4.6). A later block can be longer by an Echo option.
                Err(DeviceSendError::TooLong)
                    if self.szx > 0 && matches!(self.stage, BodyStage::Upload { .. }) =>
                {
                    self.szx -= 1;
                    self.begin();
                    self.attempts -= 1;
                }
                Err(error) => self.end(Err(DeviceTransferError::Refused(error))),
            }
        }
    }

    /// The part of the request's body in the next message, whose options it adds.
    fn piece(&self, options: &mut AddedOptions) -> Result<Piece, BlockError> {
        let (request, szx, whole) = (&self.request, self.szx, self.whole);
        if !whole {
            options.push(OptionNumber::REQUEST_TAG, &self.tag.to_be_bytes());
        }
        if self.echo.1 > 0 {
            let value = self.echo.0.get(..usize::from(self.echo.1)).unwrap_or_default();
            options.push(OptionNumber::ECHO, value);
        }
        match self.stage {
            BodyStage::Upload { at } => {
                let end = self.end_of(at);
                let more = end < request.length;
                if !more {
                    // Early negotiation: the largest blocks of the response.
                    options.push_uint(OptionNumber::BLOCK2, request.szx.into());
                }
                if let Some(value) = self.observe.filter(|_| !more) {
                    options.push_uint(OptionNumber::OBSERVE, value);
                }
                if !whole {
                    let block = Block::new(number(at, szx), more, szx)?;
                    options.push_uint(OptionNumber::BLOCK1, block.to_uint());
                }
                if !whole && at == 0 {
                    options.push_uint(OptionNumber::SIZE1, length(request.length));
                }
                // RFC 7959 section 2.10.
                let without = (at > 0).then_some(OptionNumber::IF_NONE_MATCH);
                Ok(Piece { from: at, end, without })
            }
            BodyStage::Download { at, .. } => {
                let block = Block::new(number(at, szx), false, szx)?;
                options.push_uint(OptionNumber::BLOCK2, block.to_uint());
                // A short body is part of every request for a block of the response (RFC 8132 section 2.1).
                let is_short = fits(request, request.szx);
                let end = if is_short { request.length } else { 0 };
                Ok(Piece { from: 0, end, without: None })
            }
            BodyStage::Over(_) => Ok(Piece { from: 0, end: 0, without: None }),
        }
    }

    /// The end of the piece of the request's body that begins at this byte.
    fn end_of(&self, at: usize) -> usize {
        let length = self.request.length;
        if self.whole { length } else { length.min(at + (16 << self.szx)) }
    }

    /// Takes a response, if it belongs to this transfer. Returns whether it does.
    pub fn received(
        &mut self,
        exchange: DeviceExchangeId,
        message: &Message<'_>,
        body: &mut dyn DeviceBody,
    ) -> bool {
        if self.open != Some(exchange) {
            return false;
        }
        self.open = None;
        if self.echoed(message) {
            return true;
        }
        self.challenges = 0;
        match self.stage {
            BodyStage::Upload { at } => self.on_upload(at, message, body),
            BodyStage::Download { at, code } => self.on_block(at, code, message, body),
            BodyStage::Over(_) => {}
        }
        true
    }

    /// Takes note that an exchange ended without a response. Returns whether it belongs to this
    /// transfer, which is then over.
    pub fn failed(&mut self, exchange: DeviceExchangeId) -> bool {
        let is_own = self.open == Some(exchange);
        if is_own {
            self.open = None;
            self.end(Err(DeviceTransferError::Lost));
        }
        is_own
    }

    /// Whether it waits for a response, or has something to send.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.stage, BodyStage::Over(_))
    }

    /// Ends it. The exchange that is open, if there is one, is to be cancelled.
    pub fn cancel(&mut self) -> Option<DeviceExchangeId> {
        self.end(Err(DeviceTransferError::Lost));
        self.open.take()
    }

    fn end(&mut self, result: Result<Code, DeviceTransferError>) {
        self.stage = BodyStage::Over(result);
    }

    fn broken(&mut self) {
        self.end(Err(DeviceTransferError::Protocol));
    }

    /// Whether a response is a challenge that the transfer answers: the message is then sent again
    /// with the Echo option.
    fn echoed(&mut self, message: &Message<'_>) -> bool {
        let Some(echo) = message.option(OptionNumber::ECHO) else { return false };
        if message.code() != Code::UNAUTHORIZED || self.challenges >= CHALLENGES {
            return false;
        }
        let Some(room) = self.echo.0.get_mut(..echo.value.len()) else { return false };
        room.copy_from_slice(echo.value);
        self.echo.1 = echo.value.len() as u8;
        self.challenges += 1;
        true
    }

    /// The answer to a piece of the request's body that began at `at`.
    fn on_upload(&mut self, at: usize, message: &Message<'_>, body: &mut dyn DeviceBody) {
        let (code, szx, length) = (message.code(), self.szx, self.request.length);
        let is_success = code.class() == 2;
        let whole = self.whole;
        let end = self.end_of(at);
        let mut smaller = szx;
        if let Some(option) = message.option(OptionNumber::BLOCK1) {
            let Ok(block) = Block::from_option(&option) else { return self.broken() };
            // RFC 7959 section 2.3: the response names the acknowledged block. In the server's own block size the same
            // bytes have another number.
            let named = block.num() == number(at, szx);
            let scaled = block.szx() < szx && block.offset() as usize == at;
            if !(whole || !is_success || named || scaled) {
                return self.broken();
            }
            smaller = szx.min(block.szx());
        }
        let incomplete = code == Code::REQUEST_ENTITY_INCOMPLETE && !whole;
        match code {
            // A late copy of the first block may have begun the body again (section 2.9.2).
            _ if incomplete && (at > 0 || end == length) => match self.attempts < ATTEMPTS {
                true => self.begin(),
                false => self.answered(message, body),
            },
            Code::CONTINUE if end == length => self.broken(),
            _ if end == length => self.answered(message, body),
            // A hint to begin again with smaller blocks (section 2.9.3).
            Code::REQUEST_ENTITY_TOO_LARGE if at == 0 && smaller < szx => self.szx = smaller,
            _ if !is_success => self.answered(message, body),
            // The whole block was accepted, and the rest is sent in smaller ones (sections 2.5 and 3.2).
            _ => (self.stage, self.szx) = (BodyStage::Upload { at: end }, smaller),
        }
    }

    /// A response to the whole request, or its first block.
    fn answered(&mut self, message: &Message<'_>, body: &mut dyn DeviceBody) {
        let block = message.option(OptionNumber::BLOCK2);
        let block = block.and_then(|option| Block::from_option(&option).ok());
        let length = message.payload().len();
        let code = message.code();
        match block.filter(|block| block.more()) {
            Some(block) if block.num() != 0 || !block.is_full(length) => self.broken(),
            _ if !body.write(0, message) => self.end(Err(DeviceTransferError::TooLarge)),
            Some(block) => {
                (self.stage, self.szx) = (BodyStage::Download { at: length, code }, block.szx());
                self.etag = etag(message);
            }
            None => self.end(Ok(code)),
        }
    }

    /// The answer to the request for the block at `at`.
    fn on_block(
        &mut self,
        at: usize,
        first: Code,
        message: &Message<'_>,
        body: &mut dyn DeviceBody,
    ) {
        let (code, length) = (message.code(), message.payload().len());
        let block = message.option(OptionNumber::BLOCK2);
        let Some(block) = block.and_then(|option| Block::from_option(&option).ok()) else {
            return match code {
                // The server no longer has the body (section 2.9.2).
                Code::REQUEST_ENTITY_INCOMPLETE if self.request.is_idempotent() => self.changed(),
                _ if code.class() == 2 => self.broken(),
                _ if body.write(0, message) => self.end(Ok(code)),
                _ => self.end(Err(DeviceTransferError::TooLarge)),
            };
        };
        if etag(message) != self.etag {
            return self.changed();
        }
        if block.offset() as usize != at || block.more() && !block.is_full(length) {
            return self.broken();
        }
        if !body.write(at, message) {
            return self.end(Err(DeviceTransferError::TooLarge));
        }
        self.szx = self.szx.min(block.szx());
        match block.more() {
            true => self.stage = BodyStage::Download { at: at + length, code: first },
            false => self.end(Ok(first)),
        }
    }

    /// The resource has changed: the transfer begins again, unless the request has side effects.
    fn changed(&mut self) {
        self.restarts += 1;
        if self.restarts > RESTARTS || !self.request.is_idempotent() {
            return self.broken();
        }
        self.attempts = 0;
        // A download has changed the size.
        self.szx = self.request.szx.min(Block::MAX_SZX);
        self.begin();
    }

    /// Sends the body from the start, as a new one.
    fn begin(&mut self) {
        self.stage = BodyStage::Upload { at: 0 };
        self.tag = self.tag.wrapping_add(u32::from(!self.whole));
        self.whole = fits(&self.request, self.szx);
        self.attempts = self.attempts.saturating_add(1);
    }
}

/// Whether the request's body fits into one message.
fn fits(request: &DeviceRequestParts<'_>, szx: u8) -> bool {
    request.length <= 16 << szx.min(Block::MAX_SZX)
}

/// The number of the block that begins at this byte.
fn number(at: usize, szx: u8) -> u32 {
    length(at >> (szx + 4))
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn etag(message: &Message<'_>) -> Option<Token> {
    message.option(OptionNumber::ETAG).and_then(|option| Token::new(option.value))
}
