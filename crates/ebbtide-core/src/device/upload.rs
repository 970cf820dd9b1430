//! Bodies of requests that arrive in blocks (RFC 7959).

use super::answer::DeviceHandler;
use super::proof::{RequestSender, Trust};
use super::receive::DeviceRequest;
use super::request_key::key;
use crate::time::{Duration, Instant};
use crate::wire::{Block, Code, Message, MessageId, OptionNumber};

/// How long another body waits for the next block of the one that is arriving.
const PATIENCE: Duration = Duration::from_secs(5);

/// The body that is arriving in blocks.
#[derive(Copy, Clone, Debug)]
pub(super) struct ArrivingBody<A> {
    from: A,
    /// A hash of the options that identify the request.
    key: u32,
    /// The message with the first block, of which a late copy does not begin the body again.
    first: MessageId,
    next: usize,
    /// Its last block has arrived. Copies of its blocks are still known, and no other body waits for it.
    is_complete: bool,
    advanced: Instant,
    trust: Trust,
}

/// The reason why a request is not processed, or not yet.
pub(super) enum BodyRefusal {
    /// It is answered with this code: 2.31 (Continue), or an error.
    Code(Code),
    /// Its address has to be proved first.
    Challenge,
}

/// Takes the request's body, or a block of it. A body that does not advance for `lifetime` is forgotten.
pub(super) fn take<A: Copy + Eq>(
    upload: &mut Option<ArrivingBody<A>>,
    now: Instant,
    lifetime: Duration,
    request: &DeviceRequest<A>,
    sender: &RequestSender,
    message: &Message<'_>,
    handler: &mut dyn DeviceHandler,
) -> Result<(), BodyRefusal> {
    let block = match Blocks::check(message).map_err(BodyRefusal::Code)? {
        Blocks { one: Some(block), .. } => block,
        // A later block of a response, whose request has been processed.
        Blocks { two: Some(block), .. } if block.num() > 0 => return Ok(()),
        Blocks { .. } if !message.code().has_payload() => return Ok(()),
        Blocks { .. } => return handler.take(message, 0).map_err(BodyRefusal::Code),
    };
    let (payload, offset) = (message.payload(), block.offset() as usize);
    if payload.len() > block.size() || block.more() && !block.is_full(payload.len()) {
        return Err(BodyRefusal::Code(Code::BAD_REQUEST));
    }
    let (key, from, trust) = (key(message), request.from, sender.trust);
    *upload = upload.filter(|it| now < it.advanced + lifetime);
    let own = |it: &ArrivingBody<A>| it.from == from && it.key == key;
    if offset == 0 && !upload.is_some_and(|it| own(&it) && it.first == request.id) {
        let is_busy =
            |it: &ArrivingBody<A>| !own(it) && !it.is_complete && now < it.advanced + PATIENCE;
        match upload.filter(|it| block.more() && is_busy(it)) {
            // A body whose address is proved replaces one whose address may be forged.
            Some(_) if trust.may_be_forged() => return Err(BodyRefusal::Challenge),
            Some(other) if !other.trust.may_be_forged() => {
                return Err(BodyRefusal::Code(Code::SERVICE_UNAVAILABLE));
            }
            _ => {}
        }
        let first = request.id;
        let (next, is_complete, advanced) = (0, false, now);
        *upload = Some(ArrivingBody { from, key, first, next, is_complete, advanced, trust });
    }
    // Earlier blocks are missing (RFC 7959 section 2.9.2).
    let arriving = upload.as_mut().filter(|it| own(it) && offset <= it.next);
    let arriving = arriving.ok_or(BodyRefusal::Code(Code::REQUEST_ENTITY_INCOMPLETE))?;
    // The others are copies.
    if offset == arriving.next {
        if let Err(code) = handler.take(message, offset) {
            *upload = None;
            return Err(BodyRefusal::Code(code));
        }
        (arriving.next, arriving.advanced) = (offset + payload.len(), now);
        arriving.is_complete = !block.more();
    }
    if block.more() { Err(BodyRefusal::Code(Code::CONTINUE)) } else { Ok(()) }
}

/// The blocks that a request names.
pub(super) struct Blocks {
    pub(super) one: Option<Block>,
    pub(super) two: Option<Block>,
}

impl Blocks {
    /// Those that are valid.
    pub(super) fn of(message: &Message<'_>) -> Self {
        Self::check(message).unwrap_or(Self { one: None, two: None })
    }

    /// An error is the code of the response to a request with an invalid one (RFC 7959 section 2.2).
    pub(super) fn check(message: &Message<'_>) -> Result<Self, Code> {
        let block = |number| {
            let block = message.option(number).map(|option| Block::from_option(&option));
            block.transpose().map_err(|_| Code::BAD_REQUEST)
        };
        Ok(Self { one: block(OptionNumber::BLOCK1)?, two: block(OptionNumber::BLOCK2)? })
    }
}
