//! The memory of an endpoint, in arrays whose lengths the program chooses.

use crate::cc::{Marking, Shell, Slot};
use crate::exchange::message_id::MessageIds;
use crate::time::{Instant, Micros};
use crate::wire::{MessageId, Token};

/// The transmissions that marks can tell apart: one original and 15 copies, which take minutes.
pub(super) const MARKED: usize = 16;

/// The memory of a [`DeviceEndpoint`](super::DeviceEndpoint): `PEERS` addresses, `EXCHANGES`
/// messages that wait or are not yet answered, and for each of these `MESSAGE` bytes of datagram.
#[derive(Debug)]
pub struct DeviceTables<A, C, const PEERS: usize, const EXCHANGES: usize, const MESSAGE: usize> {
    peers: [Option<FixedPeer<A, C>>; PEERS],
    exchanges: [FixedExchange; EXCHANGES],
    datagrams: [[u8; MESSAGE]; EXCHANGES],
}

/// A peer, with its congestion control.
#[derive(Debug)]
pub(super) struct FixedPeer<A, C> {
    pub(super) address: A,
    pub(super) shell: Shell<C>,
    pub(super) ids: MessageIds,
    pub(super) last_used: Instant,
    /// Whether it answers each copy with the copy's own mark.
    pub(super) faithful: bool,
}

/// The reason why an exchange ended without its answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceFailure {
    /// MAX_RETRANSMIT retransmissions went unanswered (RFC 7252 section 4.2).
    GaveUp,
    /// The response to an acknowledged request did not arrive in time.
    NoResponse,
    /// The response had a critical option that is not understood (RFC 7252 section 5.4.1).
    BadOption,
}

/// The state of an exchange, as in the endpoint of many peers.
// With a byte of its own for the reason, a state is compared in one instruction.
#[repr(u8)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum FixedExchangeState {
    Free,
    /// It waits for congestion control.
    Queued,
    /// It is unacknowledged, and holds an NSTART place.
    Open,
    /// It is acknowledged, and its response is still to come.
    Waiting,
    /// Notifications arrive under its token.
    Observing,
    /// It has ended, and the program has not been told.
    Failed(DeviceFailure),
}

/// The purpose of a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Request,
    /// A request with the option Observe, to which several responses may come.
    Registration,
    Notification,
}

#[derive(Copy, Clone, Debug)]
pub(super) struct FixedExchange {
    pub(super) state: FixedExchangeState,
    pub(super) purpose: Purpose,
    pub(super) marking: Marking,
    pub(super) idempotent: bool,
    pub(super) peer: u8,
    pub(super) generation: u8,
    pub(super) transmissions: u8,
    /// The limit of an address that may be forged, alongside MAX_RETRANSMIT.
    pub(super) max_transmissions: u8,
    /// The length of the datagram.
    pub(super) length: u16,
    pub(super) id: MessageId,
    pub(super) token: Token,
    /// The order in which queued exchanges were accepted, and in which the instants of the others
    /// were set: what is due at one instant is done in this order.
    pub(super) number: u32,
    pub(super) slot: Slot,
    pub(super) first: Instant,
    pub(super) last: Instant,
    /// When something is to be done; `MAX` if never.
    pub(super) due: Instant,
    /// When each transmission left, since the first.
    pub(super) sent: [Micros; MARKED],
}

impl FixedExchange {
    // All zero, so that no image of it is in flash.
    const FREE: Self = Self {
        state: FixedExchangeState::Free,
        purpose: Purpose::Request,
        marking: Marking::None,
        idempotent: false,
        peer: 0,
        generation: 0,
        transmissions: 0,
        max_transmissions: 0,
        length: 0,
        id: MessageId(0),
        token: Token::EMPTY,
        number: 0,
        slot: Slot { armed: Micros::ZERO, base: Micros::ZERO, tag: 0 },
        first: Instant::ZERO,
        last: Instant::ZERO,
        due: Instant::ZERO,
        sent: [Micros::ZERO; MARKED],
    };

    /// Whether it has neither ended nor failed.
    pub(super) fn is_alive(&self) -> bool {
        !matches!(self.state, FixedExchangeState::Free | FixedExchangeState::Failed(_))
    }
}

impl<A: Copy + Eq, C, const PEERS: usize, const EXCHANGES: usize, const MESSAGE: usize>
    DeviceTables<A, C, PEERS, EXCHANGES, MESSAGE>
{
    /// Empty tables.
    ///
    /// # Panics
    ///
    /// At compile time, if there are more than 255 peers or exchanges, or messages of more than 65535 bytes.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(PEERS <= 255 && EXCHANGES <= 255 && MESSAGE <= 65_535) };
        Self {
            peers: [const { None }; PEERS],
            exchanges: [FixedExchange::FREE; EXCHANGES],
            datagrams: [[0; MESSAGE]; EXCHANGES],
        }
    }

    /// The tables without their lengths, empty.
    pub(super) fn memory(&mut self) -> TableSlices<'_, A, C> {
        self.peers.fill_with(|| None);
        self.exchanges.iter_mut().for_each(|exchange| exchange.state = FixedExchangeState::Free);
        TableSlices {
            peers: &mut self.peers,
            exchanges: &mut self.exchanges,
            datagrams: self.datagrams.as_flattened_mut(),
            message: MESSAGE,
        }
    }
}

impl<A: Copy + Eq, C, const PEERS: usize, const EXCHANGES: usize, const MESSAGE: usize> Default
    for DeviceTables<A, C, PEERS, EXCHANGES, MESSAGE>
{
    fn default() -> Self {
        Self::new()
    }
}

/// The tables without their lengths, so that the code exists once for all of them.
#[derive(Debug)]
pub(super) struct TableSlices<'t, A, C> {
    pub(super) peers: &'t mut [Option<FixedPeer<A, C>>],
    pub(super) exchanges: &'t mut [FixedExchange],
    datagrams: &'t mut [u8],
    /// The room of a message in bytes.
    pub(super) message: usize,
}

impl<A: Copy + Eq, C> TableSlices<'_, A, C> {
    /// The room of an exchange's datagram.
    pub(super) fn datagram(&mut self, index: usize) -> &mut [u8] {
        let start = index * self.message;
        self.datagrams.get_mut(start..start + self.message).unwrap_or_default()
    }

    /// The peer of an exchange.
    pub(super) fn peer_of(&self, index: usize) -> Option<&FixedPeer<A, C>> {
        let peer = self.exchanges.get(index)?.peer;
        self.peers.get(usize::from(peer))?.as_ref()
    }

    /// An exchange with its peer.
    pub(super) fn both(
        &mut self,
        index: usize,
    ) -> Option<(&mut FixedExchange, &mut FixedPeer<A, C>)> {
        let exchange = self.exchanges.get_mut(index)?;
        let peer = self.peers.get_mut(usize::from(exchange.peer))?.as_mut()?;
        Some((exchange, peer))
    }

    /// The index of the peer with this address.
    pub(super) fn find_peer(&self, address: A) -> Option<usize> {
        self.peers.iter().position(|peer| peer.as_ref().is_some_and(|peer| peer.address == address))
    }

    /// The exchange with this address for which something holds.
    pub(super) fn find(&self, address: A, fits: &dyn Fn(&FixedExchange) -> bool) -> Option<usize> {
        let peer = self.find_peer(address)?;
        self.exchanges
            .iter()
            .position(|it| usize::from(it.peer) == peer && it.is_alive() && fits(it))
    }

    /// The exchange that waits for a peer and was accepted first; `next` is the number of the next one.
    pub(super) fn oldest_queued(&self, peer: u8, next: u32) -> Option<usize> {
        let mut oldest = None;
        let mut longest = 0;
        for (index, it) in self.exchanges.iter().enumerate() {
            let age = next.wrapping_sub(it.number);
            if it.peer == peer && it.state == FixedExchangeState::Queued && age >= longest {
                (oldest, longest) = (Some(index), age);
            }
        }
        oldest
    }

    /// Whether no exchange refers to a peer.
    pub(super) fn is_idle(&self, peer: usize) -> bool {
        !self.exchanges.iter().any(|it| usize::from(it.peer) == peer && it.is_alive())
    }
}
