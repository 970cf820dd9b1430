//! The stages of a request. What makes each is in the file of its stage.

use crate::session::finished::Finished;
use crate::session::key::{TransferKey, fingerprint, transfer_key};
use crate::session::message::{BlockSizes, Response};
use crate::session::q_block::{BlockRequest, Part};
use crate::session::requester::{Facts, Incoming, Requester};
use crate::wire::{Code, Message};
use crate::{endpoint, stream};
use alloc::vec::Vec;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};

/// What comes of a stage.
#[derive(Debug)]
pub enum Next<'m, T> {
    /// The request goes on.
    Proceed(T),
    /// The application answered this request before, when its address was not verified.
    Handled(Handled<'m>),
    /// This is the answer, or there is none yet.
    Send(Outgoing),
}

/// What is to be sent, in this order; maybe nothing.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is on its way: a box would cost an allocation")]
pub enum Outgoing {
    /// One answer.
    One(Finished),
    /// An acknowledgement and blocks, or nothing.
    Many(Vec<Finished>),
}

impl Outgoing {
    /// Calls `send` with each.
    #[inline]
    pub fn for_each(self, mut send: impl FnMut(Finished)) {
        match self {
            Self::One(finished) => send(finished),
            Self::Many(all) => all.into_iter().for_each(send),
        }
    }
}

/// A request that has arrived.
#[derive(Debug)]
pub struct Received<'m> {
    pub(super) requester: Requester,
    pub(super) message: Message<'m>,
    pub(super) facts: Facts,
}

impl<'m> Received<'m> {
    /// One that came in a datagram. `transport` is the driver's number of the socket; `local` our
    /// address that the answer must leave from, if that matters; `group` whether a group was asked.
    #[inline]
    #[must_use]
    pub fn datagram(
        incoming: endpoint::Incoming,
        message: Message<'m>,
        sizes: BlockSizes,
        transport: u32,
        local: Option<IpAddr>,
        group: bool,
    ) -> Self {
        let facts = Facts::read(&message, sizes);
        let (remote, incoming) = (incoming.remote, Incoming::Datagram(incoming));
        let requester = Requester::new(remote, incoming, &message, facts.unwanted);
        Self { requester: Requester { transport, local, group, ..requester }, message, facts }
    }

    /// One that came over a connection.
    #[inline]
    #[must_use]
    pub fn stream(
        incoming: stream::Incoming,
        remote: SocketAddr,
        message: Message<'m>,
        sizes: BlockSizes,
    ) -> Self {
        let facts = Facts::read(&message, sizes);
        let incoming = Incoming::Stream(incoming);
        let requester = Requester::new(remote, incoming, &message, facts.unwanted);
        Self { requester, message, facts }
    }

    /// Whether it travels in the blocks of RFC 9177.
    #[inline]
    #[must_use]
    pub fn is_q_block(&self) -> bool {
        self.facts.q_block
    }
}

/// A request whose address has not asked too often.
#[derive(Debug)]
pub(super) struct Admitted<'m>(pub(super) Received<'m>);

/// A request that the address may make: it has shown that it is there, or need not.
#[derive(Debug)]
pub struct Verified<'m> {
    pub(super) received: Received<'m>,
    /// Of a request with options of RFC 9177.
    pub(super) part: Option<Part>,
}

impl<'m> Verified<'m> {
    /// The request; of a body in blocks this is one block.
    #[inline]
    #[must_use]
    pub fn message(&self) -> &Message<'m> {
        &self.received.message
    }

    /// Who asks.
    #[inline]
    #[must_use]
    pub fn requester(&self) -> &Requester {
        &self.received.requester
    }

    /// Whether it continues an upload in blocks, whose first block was permitted.
    #[inline]
    #[must_use]
    pub fn continues_upload(&self) -> bool {
        self.received.facts.block1.is_some_and(|block| block.num() > 0)
    }

    /// Whether a proxy is asked to forward it (RFC 7252 section 5.7.2).
    #[inline]
    #[must_use]
    pub fn is_for_a_proxy(&self) -> bool {
        self.received.facts.proxy
    }

    /// Whether it is to be done only under conditions: If-Match or If-None-Match (RFC 7252 section
    /// 5.10.8).
    #[inline]
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        self.received.facts.if_match || self.received.facts.if_none_match
    }

    /// Does not permit it: this is the answer, and nothing is stored.
    #[inline]
    #[must_use]
    pub fn refuse(self, response: Response) -> Handled<'m> {
        let Self { received, part } = self;
        let way = match part {
            Some(Part::Request(wanted)) => Way::QBlock { wanted: Some(wanted), uploaded: false },
            Some(Part::Block { .. }) | None => Way::Plain,
        };
        let origin = Origin { requester: received.requester, facts: received.facts, way };
        Handled { origin, request: Request::Here(received.message), response }
    }

    /// Permits it, with a body of so many bytes at most.
    #[inline]
    #[must_use]
    pub fn permit(self, max_body: usize) -> Permitted<'m> {
        Permitted { verified: self, max_body }
    }
}

/// A request that the application permits.
#[derive(Debug)]
pub struct Permitted<'m> {
    pub(super) verified: Verified<'m>,
    pub(super) max_body: usize,
}

/// How the bodies of a request and its response travel.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// In one message, or the blocks of RFC 7959.
    Plain,
    /// In the blocks of RFC 9177.
    QBlock {
        /// Which blocks of the response are wanted, if the request says so.
        wanted: Option<BlockRequest>,
        /// Whether its body came in blocks.
        uploaded: bool,
    },
}

/// What the stages after the application have to know.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) requester: Requester,
    pub(super) facts: Facts,
    pub(super) way: Way,
}

/// The request's message.
#[derive(Debug)]
pub(super) enum Request<'m> {
    Here(Message<'m>),
    /// It was answered later.
    Kept {
        bytes: Bytes,
        code: Code,
        transfer: TransferKey,
        fingerprint: u32,
    },
}

impl Request<'_> {
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Here(message) => message.as_bytes(),
            Self::Kept { bytes, .. } => bytes,
        }
    }

    #[inline]
    pub(super) fn code(&self) -> Code {
        match self {
            Self::Here(message) => message.code(),
            Self::Kept { code, .. } => *code,
        }
    }

    pub(super) fn transfer_key(&self, requester: &Requester) -> TransferKey {
        match self {
            Self::Here(message) => transfer_key(requester.remote, message),
            Self::Kept { transfer, .. } => *transfer,
        }
    }

    pub(super) fn fingerprint(&self) -> u32 {
        match self {
            Self::Here(message) => fingerprint(message),
            Self::Kept { fingerprint, .. } => *fingerprint,
        }
    }
}

/// A request whose body is whole: the application answers it.
#[derive(Debug)]
pub struct Assembled<'m> {
    pub(super) origin: Origin,
    pub(super) message: Message<'m>,
    /// The body, if it came in several blocks.
    pub(super) body: Option<Bytes>,
}

impl<'m> Assembled<'m> {
    /// The request; if it came in blocks, the last of them.
    #[inline]
    #[must_use]
    pub fn message(&self) -> &Message<'m> {
        &self.message
    }

    /// The whole body.
    #[inline]
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.body.as_deref().unwrap_or(self.message.payload())
    }

    /// Who asks.
    #[inline]
    #[must_use]
    pub fn requester(&self) -> &Requester {
        &self.origin.requester
    }

    /// The application answers now.
    #[inline]
    #[must_use]
    pub fn handled(self, response: Response) -> Handled<'m> {
        Handled { origin: self.origin, request: Request::Here(self.message), response }
    }

    /// The application answers later.
    pub fn into_pending(self) -> PendingRequest {
        let remote = self.origin.requester.remote;
        PendingRequest {
            origin: self.origin,
            request: Request::Kept {
                bytes: Bytes::copy_from_slice(self.message.as_bytes()),
                code: self.message.code(),
                transfer: transfer_key(remote, &self.message),
                fingerprint: fingerprint(&self.message),
            },
        }
    }
}

/// A request that the application answers later, from anywhere. It is answered once: answering takes it.
#[derive(Debug)]
#[must_use = "a request that is dropped is never answered"]
pub struct PendingRequest {
    pub(super) origin: Origin,
    pub(super) request: Request<'static>,
}

impl PendingRequest {
    /// Who asks.
    pub fn requester(&self) -> &Requester {
        &self.origin.requester
    }

    /// It takes long: the client is told that the request has arrived, so that it stops repeating it
    /// (RFC 7252 section 5.2.2). What comes back is to be sent.
    pub fn acknowledge(&mut self) -> Finished {
        let (acknowledgement, after) = Finished::acknowledgement(self.origin.requester);
        self.origin.requester = after;
        if after.is_confirmable() {
            self.origin.requester.sent =
                crate::wire::HEADER_LEN + crate::session::address_validation::HEADERS;
        }
        acknowledgement
    }

    /// This is the answer.
    #[must_use]
    pub fn handled(self, response: Response) -> Handled<'static> {
        Handled { origin: self.origin, request: self.request, response }
    }
}

/// A request that the application has answered.
#[derive(Debug)]
pub struct Handled<'m> {
    pub(super) origin: Origin,
    pub(super) request: Request<'m>,
    pub(super) response: Response,
}

impl Handled<'_> {
    /// Who asked.
    #[inline]
    #[must_use]
    pub fn requester(&self) -> &Requester {
        &self.origin.requester
    }

    /// The application's answer.
    #[inline]
    #[must_use]
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// Whether it travels in the blocks of RFC 9177: then [`Server::poll_timeout`](super::Server) may
    /// be earlier once it is completed.
    #[inline]
    #[must_use]
    pub fn is_q_block(&self) -> bool {
        self.origin.facts.q_block
    }

    /// Whether the client registers or ends an observation with it (RFC 7641 section 2).
    #[inline]
    #[must_use]
    pub fn observes(&self) -> bool {
        let later_block = self.origin.facts.block2.is_some_and(|block| block.num() > 0);
        matches!(self.origin.facts.observe, Some(0 | 1))
            && matches!(self.request.code(), Code::GET | Code::FETCH)
            && !self.origin.requester.group
            && !later_block
    }
}

/// A request with the answer that may be sent to its address.
#[derive(Debug)]
pub(super) struct Answered<'m>(pub(super) Handled<'m>);
