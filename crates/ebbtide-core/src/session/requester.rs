//! The sender of a request, and the facts that a request states about its transfer.

use super::message::BlockSizes;
use crate::peer::PeerId;
use crate::peer_token::PeerToken;
use crate::wire::{Block, Code, Message, OptionNumber, OptionSet};
use crate::{endpoint, stream};
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU64;

/// A request as its transport knows it.
#[derive(Clone, Debug)]
pub enum IncomingRequest {
    /// It arrived in a datagram.
    Datagram(endpoint::Incoming),
    /// It arrived over a connection with this address.
    Stream(stream::Incoming, SocketAddr),
}

/// A request that OSCORE protected (RFC 8613). Its responses have to be protected as well.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct SecuredRequest(NonZeroU64);

impl SecuredRequest {
    /// Sequence numbers have 40 bits (RFC 8613 section 7.2.1).
    const NUMBER: u32 = 40;

    /// The request with this sequence number in the context to which the driver gave this number.
    /// `None` if the sequence number has more than 40 bits, or that of the context more than 23.
    #[must_use]
    pub fn new(context: u32, number: u64) -> Option<Self> {
        let fits = number >> Self::NUMBER == 0 && context >> 23 == 0;
        let packed = u64::from(context) << Self::NUMBER | number;
        NonZeroU64::new(packed + 1).filter(|_| fits).map(Self)
    }

    /// The number of the context.
    #[must_use]
    pub const fn context(self) -> u32 {
        ((self.0.get() - 1) >> Self::NUMBER) as u32
    }

    /// The sequence number.
    #[must_use]
    pub const fn number(self) -> u64 {
        (self.0.get() - 1) & ((1 << Self::NUMBER) - 1)
    }
}

impl fmt::Debug for SecuredRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecuredRequest({} in {})", self.number(), self.context())
    }
}

/// The sender of a request, over any transport, and the way in which an answer reaches it.
#[derive(Clone, Debug)]
pub struct Requester {
    /// The driver's number of the socket or connection at which the request arrived.
    pub transport: u32,
    /// The local address to answer from, if that matters.
    pub local: Option<IpAddr>,
    /// Whether the request was sent to a multicast group (RFC 7252 section 8).
    pub group: bool,
    /// The maximum number of transmissions of a separate response.
    pub allowance: u8,
    /// The method of the request.
    pub method: Code,
    pub(super) incoming: IncomingRequest,
    /// Whether the address may be forged: a session and a connection have verified that of their peer.
    pub(super) forgeable: bool,
    /// Whether the request has proved that its sender receives at this address and port
    /// ([`address_validation`](super::address_validation)).
    pub(super) proved: bool,
    /// The length of the request in bytes.
    pub(super) request: usize,
    /// Bytes already sent in answer, with headers: those of an empty ACK.
    pub(super) sent: usize,
    /// Classes of responses that the client does not want (RFC 7967 section 2.1).
    pub(super) unwanted: u8,
    /// Whether its answers have to be protected.
    pub(super) secured: Option<SecuredRequest>,
}

// Pending requests and stored answers each have a copy.
const _: () = assert!(size_of::<Requester>() <= 128);

impl Requester {
    #[inline]
    pub(super) fn new(incoming: IncomingRequest, message: &Message<'_>) -> Self {
        Self {
            transport: 0,
            local: None,
            group: false,
            allowance: u8::MAX,
            forgeable: matches!(
                incoming,
                IncomingRequest::Datagram(endpoint::Incoming { remote: PeerId::Address(_), .. })
            ),
            proved: false,
            method: message.code(),
            incoming,
            request: message.as_bytes().len(),
            sent: 0,
            unwanted: 0,
            secured: None,
        }
    }

    /// One that does not want these classes of responses (RFC 7967 section 2.1).
    #[inline]
    pub(super) fn without(self, unwanted: u32) -> Self {
        Self { unwanted: unwanted as u8, ..self }
    }

    /// The peer.
    #[inline]
    #[must_use]
    pub const fn peer(&self) -> PeerId {
        match &self.incoming {
            IncomingRequest::Datagram(incoming) => incoming.remote,
            IncomingRequest::Stream(_, remote) => PeerId::Connection(*remote),
        }
    }

    /// The request as OSCORE protected it, if it did.
    #[inline]
    #[must_use]
    pub const fn secured(&self) -> Option<SecuredRequest> {
        self.secured
    }

    /// The token of the request.
    #[inline]
    #[must_use]
    pub const fn token(&self) -> &PeerToken {
        match &self.incoming {
            IncomingRequest::Datagram(incoming) => &incoming.token,
            IncomingRequest::Stream(incoming, _) => &incoming.token,
        }
    }

    /// Whether its response is a separate one: it was acknowledged before (RFC 7252 section 5.2.2).
    #[must_use]
    pub const fn is_answered_separately(&self) -> bool {
        matches!(&self.incoming, IncomingRequest::Datagram(incoming) if incoming.acknowledged)
    }

    /// Whether the client wants responses with this code (RFC 7967 section 2.1: 2 stands for 2.xx,
    /// 8 for 4.xx, 16 for 5.xx).
    #[inline]
    #[must_use]
    pub fn wants(&self, code: Code) -> bool {
        let class = 1_u8.checked_shl(u32::from(code.class()).saturating_sub(1)).unwrap_or(0);
        self.unwanted & class == 0
    }

    /// Whether its address may be that of a victim, since it can be forged and the request has not proved it.
    #[inline]
    pub(super) const fn may_be_forged(&self) -> bool {
        self.forgeable && !self.proved
    }

    /// Whether its answer is not acknowledged: it is piggybacked, or Non-confirmable.
    #[inline]
    pub(super) fn takes_value(&self) -> bool {
        self.sent == 0
    }

    /// Whether it can only be answered by a separate response now.
    #[inline]
    pub(super) fn is_confirmable(&self) -> bool {
        use crate::wire::Type;
        matches!(&self.incoming, IncomingRequest::Datagram(incoming) if incoming.kind == Type::Confirmable)
    }
}

/// The facts that the options of a request state for the session, read in one pass.
#[derive(Copy, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, read in one pass")]
pub(super) struct RequestOptions {
    pub(super) sizes: BlockSizes,
    pub(super) block1: Option<Block>,
    pub(super) block2: Option<Block>,
    /// The value of a block option is not valid (RFC 7959 section 2.2).
    pub(super) bad_block: bool,
    pub(super) q_block: bool,
    pub(super) observe: Option<u32>,
    pub(super) size1: Option<u32>,
    pub(super) echo: bool,
    pub(super) proxy: bool,
    pub(super) if_match: bool,
    pub(super) if_none_match: bool,
    pub(super) unwanted: u32,
}

impl RequestOptions {
    /// Reads the options that concern the session.
    const READ: OptionSet = OptionSet::of(&[
        OptionNumber::IF_MATCH,
        OptionNumber::IF_NONE_MATCH,
        OptionNumber::OBSERVE,
        OptionNumber::Q_BLOCK1,
        OptionNumber::BLOCK2,
        OptionNumber::BLOCK1,
        OptionNumber::Q_BLOCK2,
        OptionNumber::PROXY_URI,
        OptionNumber::PROXY_SCHEME,
        OptionNumber::SIZE1,
        OptionNumber::ECHO,
        OptionNumber::NO_RESPONSE,
    ]);

    #[inline]
    pub(super) fn read(message: &Message<'_>, sizes: BlockSizes) -> Self {
        let mut facts = Self {
            sizes,
            block1: None,
            block2: None,
            bad_block: false,
            q_block: false,
            observe: None,
            size1: None,
            echo: false,
            proxy: false,
            if_match: false,
            if_none_match: false,
            unwanted: 0,
        };
        if message.body().has_none_of(Self::READ) {
            return facts;
        }
        for opt in message.options() {
            match opt.number {
                // The most frequent options do not concern the session.
                OptionNumber::URI_PATH | OptionNumber::URI_QUERY | OptionNumber::URI_HOST => {}
                OptionNumber::BLOCK1 | OptionNumber::BLOCK2 => {
                    let block = sizes.read(&opt);
                    facts.bad_block |= block.is_err();
                    let place = match opt.number {
                        OptionNumber::BLOCK1 => &mut facts.block1,
                        _ => &mut facts.block2,
                    };
                    *place = (*place).or(block.ok());
                }
                OptionNumber::Q_BLOCK1 | OptionNumber::Q_BLOCK2 => facts.q_block = true,
                OptionNumber::OBSERVE => facts.observe = facts.observe.or(opt.as_uint()),
                OptionNumber::SIZE1 => facts.size1 = facts.size1.or(opt.as_uint()),
                OptionNumber::ECHO => facts.echo = true,
                OptionNumber::PROXY_URI | OptionNumber::PROXY_SCHEME => facts.proxy = true,
                OptionNumber::IF_MATCH => facts.if_match = true,
                OptionNumber::IF_NONE_MATCH => facts.if_none_match = true,
                OptionNumber::NO_RESPONSE => facts.unwanted = opt.as_uint().unwrap_or(0),
                _ => {}
            }
        }
        // Block1 describes the payload of a request (RFC 7959 section 2.1), and this method has none.
        facts.bad_block |= !message.code().has_payload()
            && facts.block1.is_some_and(|block| block.more() || block.num() > 0);
        facts
    }

    /// Whether the request is part of a block-wise transfer of RFC 7959.
    #[inline]
    pub(super) fn is_part(&self) -> bool {
        self.block1.is_some() || self.block2.is_some()
    }

    /// Whether it begins an upload of several blocks.
    #[inline]
    pub(super) fn begins_upload(&self) -> bool {
        self.block1.is_some_and(|block| block.num() == 0 && block.more())
    }
}
