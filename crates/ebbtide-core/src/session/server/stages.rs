//! The stages of a request. The code that produces each is in the file of its stage.

use crate::session::finished::{Finished, FinishedRef};
use crate::session::key::{TransferKey, fingerprint, transfer_key};
use crate::session::message::{BlockSizes, Response};
use crate::session::q_block::{BlockRequest, QBlockPart};
use crate::session::requester::{IncomingRequest, RequestOptions, Requester, SecuredRequest};
use crate::session::transport::Transport;
use crate::time::Instant;
use crate::wire::{Block, Code, Message};
use crate::{endpoint, stream};
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};

/// The outcome of a stage.
#[derive(Debug)]
pub enum Next<'p, 'm, T> {
    /// The request passed the stage.
    Proceed(T),
    /// The application answered this request before, when its address was not verified.
    Handled(Handled<'p, 'm>),
    /// The answers; the list is empty if there is none yet.
    Send(Outgoing<'static>),
}

/// The answers to send, in this order; the list may be empty.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is sent where it is made, and a box would cost an allocation"
)]
pub enum Outgoing<'h> {
    /// The application's answer, which stays in its [`Handled`] request.
    Answer(FinishedRef<'h>),
    /// An answer of the session.
    One(Finished),
    /// An acknowledgement and blocks, or an empty list.
    Many(Vec<Finished>),
}

impl Outgoing<'_> {
    /// The answers to send, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = FinishedRef<'_>> {
        let (first, more) = match self {
            Self::Answer(answer) => (Some(*answer), [].as_slice()),
            Self::One(finished) => (Some(finished.as_borrowed()), [].as_slice()),
            Self::Many(all) => (None, all.as_slice()),
        };
        first.into_iter().chain(more.iter().map(Finished::as_borrowed))
    }
}

/// The slot in which a request stays while it passes its stages. They borrow it, so a stage is no
/// larger than a reference, and the request is not moved.
#[derive(Debug, Default)]
pub struct RequestSlot<'m>(Option<Arrived<'m>>);

/// A request, and the results of the stages that it has passed.
#[derive(Debug)]
pub(super) struct Arrived<'m> {
    pub(super) requester: Requester,
    pub(super) message: Message<'m>,
    pub(super) facts: RequestOptions,
    /// Its part of a transfer, if it has options of RFC 9177.
    pub(super) part: Option<QBlockPart>,
    /// The maximum length of its body in bytes.
    pub(super) max_body: usize,
    /// Whether the application takes its body block by block.
    pub(super) by_block: bool,
    pub(super) scheme: BlockScheme,
    /// The body, if it arrived in several blocks.
    pub(super) body: Option<Bytes>,
}

/// A request that has arrived.
#[derive(Debug)]
pub struct Received<'p, 'm>(pub(super) &'p mut Arrived<'m>);

impl<'m> RequestSlot<'m> {
    /// Creates an empty slot.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// Receives a request that arrived in a datagram. `transport` is the driver's number of the
    /// socket, `local` the local address to answer from, if that matters, and `group` whether the
    /// request was sent to a multicast group.
    #[inline]
    pub fn datagram(
        &mut self,
        incoming: endpoint::Incoming,
        message: Message<'m>,
        sizes: BlockSizes,
        transport: u32,
        local: Option<IpAddr>,
        group: bool,
    ) -> Received<'_, 'm> {
        let received = self.take(IncomingRequest::Datagram(incoming), message, sizes);
        let Requester { transport: number, local: from, group: to_group, .. } =
            &mut received.0.requester;
        (*number, *from, *to_group) = (transport, local, group);
        received
    }

    /// Receives a request that arrived over a connection.
    #[inline]
    pub fn stream(
        &mut self,
        incoming: stream::Incoming,
        remote: SocketAddr,
        message: Message<'m>,
        sizes: BlockSizes,
    ) -> Received<'_, 'm> {
        self.take(IncomingRequest::Stream(incoming, remote), message, sizes)
    }

    #[inline]
    fn take(
        &mut self,
        incoming: IncomingRequest,
        message: Message<'m>,
        sizes: BlockSizes,
    ) -> Received<'_, 'm> {
        let requester = Requester::new(incoming, &message);
        let facts = RequestOptions::read(&message, sizes.beside(requester.token()));
        Received(self.0.insert(Arrived {
            requester: requester.without(facts.unwanted),
            message,
            facts,
            by_block: false,
            part: None,
            max_body: usize::MAX,
            scheme: BlockScheme::Plain,
            body: None,
        }))
    }
}

impl Received<'_, '_> {
    /// States that OSCORE protected the request (RFC 8613), which has been verified: all its
    /// answers are then protected as well. That it is authentic says nothing about its address,
    /// since an attacker that has captured it can send it first from another one.
    #[must_use]
    pub fn secured(self, request: SecuredRequest) -> Self {
        self.0.requester.secured = Some(request);
        self
    }

    /// Refuses the request with this answer; nothing is stored.
    #[must_use]
    pub fn refuse(self, response: Response) -> Finished {
        Finished::response(self.0.requester.clone(), response)
    }

    /// Whether it uses the blocks of RFC 9177.
    #[inline]
    #[must_use]
    pub fn is_q_block(&self) -> bool {
        self.0.facts.q_block
    }
}

/// A request within the rate limit of its address.
#[derive(Debug)]
pub(super) struct Admitted<'p, 'm>(pub(super) &'p mut Arrived<'m>);

/// A request whose address is verified, or need not be.
#[derive(Debug)]
pub struct Verified<'p, 'm>(pub(super) &'p mut Arrived<'m>);

impl<'p, 'm> Verified<'p, 'm> {
    /// The request; if its body arrives in blocks, this is one block.
    #[inline]
    #[must_use]
    pub fn message(&self) -> &Message<'m> {
        &self.0.message
    }

    /// The sender of the request.
    #[inline]
    #[must_use]
    pub fn requester(&self) -> &Requester {
        &self.0.requester
    }

    /// Whether it continues an upload in blocks, whose first block was permitted.
    #[inline]
    #[must_use]
    pub fn continues_upload(&self) -> bool {
        self.0.facts.block1.is_some_and(|block| block.num() > 0)
    }

    /// Whether it is the first block of an upload in several.
    #[inline]
    #[must_use]
    pub fn begins_upload(&self) -> bool {
        self.0.facts.begins_upload()
    }

    /// Whether it is a request for a proxy (RFC 7252 section 5.7.2).
    #[inline]
    #[must_use]
    pub fn is_proxy_request(&self) -> bool {
        self.0.facts.proxy
    }

    /// Whether it is conditional: If-Match or If-None-Match (RFC 7252 section 5.10.8).
    #[inline]
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        self.0.facts.if_match || self.0.facts.if_none_match
    }

    /// Refuses it with this answer; nothing is stored.
    #[inline]
    #[must_use]
    pub fn refuse(self, response: Response) -> Handled<'p, 'm> {
        if let Some(QBlockPart::Request(wanted)) = self.0.part.take() {
            self.0.scheme = BlockScheme::QBlock { wanted: Some(wanted), uploaded: false };
        }
        Handled { request: Request::Here(self.0), response }
    }

    /// Permits it, with a body of at most `max_body` bytes.
    #[inline]
    #[must_use]
    pub fn permit(self, max_body: usize) -> Permitted<'p, 'm> {
        self.0.max_body = max_body;
        Permitted(self.0)
    }

    /// Permits it, and takes its body block by block if it comes in the blocks of RFC 7959: nothing is stored
    /// of them, and [`Assembled::block`] says which one it is.
    #[inline]
    #[must_use]
    pub fn permit_blocks(self, max_body: usize) -> Permitted<'p, 'm> {
        self.0.by_block = true;
        self.permit(max_body)
    }
}

/// A request that the application permits.
#[derive(Debug)]
pub struct Permitted<'p, 'm>(pub(super) &'p mut Arrived<'m>);

/// The transfer of the bodies of a request and its response.
#[derive(Clone, Debug)]
pub(super) enum BlockScheme {
    /// In one message, or the blocks of RFC 7959.
    Plain,
    /// In the blocks of RFC 9177.
    QBlock {
        /// The requested blocks of the response, if the request names any.
        wanted: Option<BlockRequest>,
        /// Whether its body arrived in blocks.
        uploaded: bool,
    },
}

/// A handled request: answered at once, or later from the stored parts.
#[derive(Debug)]
pub(super) enum Request<'p, 'm> {
    Here(&'p mut Arrived<'m>),
    Kept(Box<StoredRequest>),
}

/// The stored parts of a request that is answered later.
#[derive(Debug)]
pub(super) struct StoredRequest {
    requester: Requester,
    facts: RequestOptions,
    scheme: BlockScheme,
    bytes: Bytes,
    code: Code,
}

impl StoredRequest {
    /// The request, from which keys are taken that few answers need.
    fn message(&self) -> Message<'_> {
        // The bytes were a valid message on arrival.
        Message::parse(&self.bytes).unwrap_or(Message::EMPTY)
    }
}

impl Request<'_, '_> {
    #[inline]
    pub(super) fn requester(&self) -> &Requester {
        match self {
            Self::Here(arrived) => &arrived.requester,
            Self::Kept(kept) => &kept.requester,
        }
    }

    #[inline]
    pub(super) fn requester_mut(&mut self) -> &mut Requester {
        match self {
            Self::Here(arrived) => &mut arrived.requester,
            Self::Kept(kept) => &mut kept.requester,
        }
    }

    #[inline]
    pub(super) fn facts(&self) -> &RequestOptions {
        match self {
            Self::Here(arrived) => &arrived.facts,
            Self::Kept(kept) => &kept.facts,
        }
    }

    #[inline]
    pub(super) fn scheme(&self) -> &BlockScheme {
        match self {
            Self::Here(arrived) => &arrived.scheme,
            Self::Kept(kept) => &kept.scheme,
        }
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Here(arrived) => arrived.message.as_bytes(),
            Self::Kept(kept) => &kept.bytes,
        }
    }

    #[inline]
    pub(super) fn code(&self) -> Code {
        match self {
            Self::Here(arrived) => arrived.message.code(),
            Self::Kept(kept) => kept.code,
        }
    }

    pub(super) fn transfer_key(&self) -> TransferKey {
        match self {
            Self::Here(arrived) => transfer_key(arrived.requester.peer(), &arrived.message),
            Self::Kept(kept) => transfer_key(kept.requester.peer(), &kept.message()),
        }
    }

    pub(super) fn fingerprint(&self) -> u32 {
        match self {
            Self::Here(arrived) => fingerprint(&arrived.message),
            Self::Kept(kept) => fingerprint(&kept.message()),
        }
    }
}

/// A block of a request's body.
#[derive(Copy, Clone, Debug)]
pub struct BodyBlock {
    /// Where it stands in the body, and whether others follow.
    pub block: Block,
    /// The length of the whole body, if the client has announced it (Size1).
    pub announced: Option<u32>,
    /// Identifies the body among all others.
    pub transfer: TransferKey,
}

/// A request with a complete body, which the application answers.
#[derive(Debug)]
pub struct Assembled<'p, 'm>(pub(super) &'p mut Arrived<'m>);

impl<'p, 'm> Assembled<'p, 'm> {
    /// The request; if it arrived in blocks, the last of them.
    #[inline]
    #[must_use]
    pub fn message(&self) -> &Message<'m> {
        &self.0.message
    }

    /// The whole body; empty if the method has none (RFC 7252 section 5.5).
    #[inline]
    #[must_use]
    pub fn body(&self) -> &[u8] {
        if !self.0.message.code().has_payload() {
            return &[];
        }
        self.0.body.as_deref().unwrap_or(self.0.message.payload())
    }

    /// Whether it is conditional on the nonexistence of the resource: If-None-Match (RFC 7252 section
    /// 5.10.8.2). Of a body in blocks only the first one has the option, which [`Self::message`] is not
    /// (RFC 7959 section 2.10).
    #[inline]
    #[must_use]
    pub fn if_none_match(&self) -> bool {
        self.0.facts.if_none_match
    }

    /// Which block of a longer body this is, if the application takes it
    /// [block by block](Verified::permit_blocks): the body is this block alone then.
    #[must_use]
    pub fn block(&self) -> Option<BodyBlock> {
        let Arrived { facts, message, requester, by_block, .. } = &*self.0;
        let block = facts.block1.filter(|block| *by_block && (block.more() || block.num() > 0))?;
        let transfer = transfer_key(requester.peer(), message);
        Some(BodyBlock { block, announced: facts.size1, transfer })
    }

    /// The sender of the request.
    #[inline]
    #[must_use]
    pub fn requester(&self) -> &Requester {
        &self.0.requester
    }

    /// Answers the request now.
    #[inline]
    #[must_use]
    pub fn handled(self, response: Response) -> Handled<'p, 'm> {
        Handled { request: Request::Here(self.0), response }
    }

    /// Defers the answer. Until it is given, `transport`, at which the request arrived, recognizes
    /// copies of the request.
    pub fn into_pending(self, now: Instant, transport: &mut impl Transport) -> PendingRequest {
        transport.defer(now, &mut self.0.requester.incoming);
        let Arrived { requester, message, facts, scheme, .. } = self.0;
        PendingRequest(Box::new(StoredRequest {
            requester: requester.clone(),
            facts: *facts,
            scheme: scheme.clone(),
            bytes: Bytes::copy_from_slice(message.as_bytes()),
            code: message.code(),
        }))
    }
}

/// A request that the application answers later, from any task. Answering consumes it, so it is
/// answered once.
#[derive(Debug)]
#[must_use = "a request that is dropped is never answered"]
pub struct PendingRequest(Box<StoredRequest>);

impl PendingRequest {
    /// The sender of the request.
    pub fn requester(&self) -> &Requester {
        &self.0.requester
    }

    /// Acknowledges a request whose answer takes long, so that the client stops retransmitting it
    /// (RFC 7252 section 5.2.2). The caller sends the acknowledgement that this returns.
    pub fn acknowledge(&mut self) -> Finished {
        let (acknowledgement, after) = Finished::acknowledgement(&self.0.requester);
        self.0.requester = after;
        if self.0.requester.is_confirmable() {
            self.0.requester.sent =
                crate::wire::HEADER_LEN + crate::exchange::amplification::HEADERS;
        }
        acknowledgement
    }

    /// Answers the request.
    #[must_use]
    pub fn handled(self, response: Response) -> Handled<'static, 'static> {
        Handled { request: Request::Kept(self.0), response }
    }
}

/// A request that the application has answered.
#[derive(Debug)]
pub struct Handled<'p, 'm> {
    pub(super) request: Request<'p, 'm>,
    pub(super) response: Response,
}

impl Handled<'_, '_> {
    /// The sender of the request.
    #[inline]
    #[must_use]
    pub fn requester(&self) -> &Requester {
        self.request.requester()
    }

    /// The application's answer.
    #[inline]
    #[must_use]
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// Whether it uses the blocks of RFC 9177. If so, completing it may move
    /// [`Server::poll_timeout`](super::Server) to an earlier instant.
    #[inline]
    #[must_use]
    pub fn is_q_block(&self) -> bool {
        self.request.facts().q_block
    }

    /// Whether the client registers or ends an observation with it (RFC 7641 section 2).
    #[inline]
    #[must_use]
    pub fn observes(&self) -> bool {
        let facts = self.request.facts();
        let later_block = facts.block2.is_some_and(|block| block.num() > 0);
        matches!(facts.observe, Some(0 | 1))
            && matches!(self.request.code(), Code::GET | Code::FETCH)
            && !self.request.requester().group
            && !later_block
    }
}

/// A request with the answer that may be sent to its address.
#[derive(Debug)]
pub(super) struct Answered<'h, 'p, 'm>(pub(super) &'h mut Handled<'p, 'm>);
