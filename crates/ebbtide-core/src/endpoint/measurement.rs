//! The option PM (draft-ietf-core-coap-pm): written into messages as they leave, and counted as
//! they arrive.

use super::Endpoint;
use crate::exchange::square_wave::{SquareWave, WaveReader};
use crate::peer::PeerId;
use crate::time::Instant;
use crate::wire::{MAX_OPTION_HEADER, Message, OptionNumber};

/// The square bit, in the value of the option; the others are event bits.
const SQUARE: u8 = 0x80;

/// The option PM in the messages of an endpoint (draft-ietf-core-coap-pm). It goes into each
/// request to a single peer, and into each response and notification to a peer that has sent it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measurement {
    /// Messages after which the square bit flips. Both endpoints must use the same number. Default
    /// 64, the draft's example; 0 counts as 1.
    pub block: u16,
}

impl Measurement {
    /// Blocks of this many messages.
    #[must_use]
    pub const fn new(block: u16) -> Self {
        Self { block }
    }
}

impl Default for Measurement {
    fn default() -> Self {
        Self::new(64)
    }
}

/// The losses of the messages of a peer, by the option PM in them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measured {
    /// Messages that the peer sent, copies included, in the blocks whose beginning and end were
    /// seen.
    pub sent: u64,
    /// Those of them that arrived.
    pub arrived: u64,
    /// The last event bits that were not all zero, and otherwise 0. The draft leaves their meaning
    /// to the endpoints.
    pub events: u8,
}

impl Measured {
    /// Lost messages of a million; `None` until the end of a block was seen.
    #[must_use]
    pub fn loss_ppm(&self) -> Option<u32> {
        // No more arrived of a block than were sent.
        let lost = self.sent.saturating_sub(self.arrived);
        u32::try_from(lost.checked_mul(1_000_000)?.checked_div(self.sent)?).ok()
    }
}

/// The waves between this endpoint and a peer.
#[derive(Debug, Default)]
pub(super) struct Waves {
    out: SquareWave,
    events: u8,
    reader: WaveReader,
    measured: Measured,
}

impl Endpoint {
    /// The losses of the messages from a peer's scope, by the option PM in them. `None` without
    /// [`Measurement`], and if the peer has not sent the option, or not lately.
    #[must_use]
    pub fn measured(&self, remote: PeerId) -> Option<Measured> {
        let index = self.peers.find(self.config.scope.key(remote))?;
        let waves = self.peers.get(index).waves.as_deref()?;
        waves.reader.has_begun().then_some(waves.measured)
    }

    /// Sets the seven event bits of the option PM in what is sent to a peer's scope from now on.
    /// Has no effect without [`Measurement`].
    pub fn signal_events(&mut self, now: Instant, remote: PeerId, events: u8) {
        let now = self.advance(now);
        if let Some(waves) = self.waves(now, remote) {
            waves.events = events & !SQUARE;
        }
    }

    /// The room that a message must leave for the option.
    pub(super) fn measurement_bytes(&self) -> usize {
        self.config.measurement.map_or(0, |_| MAX_OPTION_HEADER + 1)
    }

    /// A message has arrived: counts its place in the wave.
    #[inline]
    pub(super) fn read_wave(&mut self, now: Instant, from: PeerId, message: &Message<'_>) {
        if let Some(Measurement { block }) = self.config.measurement {
            self.count_in_wave(now, from, message, block);
        }
    }

    #[inline(never)]
    fn count_in_wave(&mut self, now: Instant, from: PeerId, message: &Message<'_>, block: u16) {
        let value = message.option(OptionNumber::PM).and_then(|option| option.as_uint());
        let Some(value) = value.and_then(|value| u8::try_from(value).ok()) else { return };
        // Anyone can send the option: whom this endpoint does not know takes no place that it may
        // need for its own peers.
        let is_known = self.peers.find(self.config.scope.key(from)).is_some();
        if !is_known && self.peers.len() >= self.config.limits.peers / 2 {
            return;
        }
        let Some(waves) = self.waves(now, from) else { return };
        if let Some(ended) = waves.reader.read(value & SQUARE != 0, block.max(1)) {
            waves.measured.sent += u64::from(ended.sent);
            waves.measured.arrived += u64::from(ended.arrived);
        }
        // "If these Event bits are all zero, they MUST be ignored on receipt."
        if value & !SQUARE != 0 {
            waves.measured.events = value & !SQUARE;
        }
    }

    /// The option's value in the datagram that leaves next; `None` if it leaves without. The draft
    /// recommends to insert it immediately before the transmission, so that each copy has a place
    /// of its own in the wave.
    #[inline]
    pub(super) fn next_option(&mut self) -> Option<u8> {
        let Measurement { block } = self.config.measurement?;
        self.next_in_wave(block)
    }

    #[inline(never)]
    fn next_in_wave(&mut self, block: u16) -> Option<u8> {
        let (to, code) = self.output.next_message()?;
        // An empty message has no options (RFC 7252 section 4.1), and a group is no single path.
        if code.is_empty() || to.is_multicast() {
            return None;
        }
        if !code.is_request() {
            // A peer that does not send the option does not read it either.
            let index = self.peers.find(self.config.scope.key(to))?;
            self.peers.get(index).waves.as_ref().filter(|waves| waves.reader.has_begun())?;
        }
        let waves = self.waves(self.now, to)?;
        let square = if waves.out.next(block.max(1)) { SQUARE } else { 0 };
        Some(square | waves.events)
    }

    /// The waves between this endpoint and a remote. `None` without measurement, or if there is no
    /// room for another peer.
    fn waves(&mut self, now: Instant, remote: PeerId) -> Option<&mut Waves> {
        self.config.measurement?;
        let index = self.peer(now, remote).ok()?;
        Some(self.peers.get_mut(index).waves.get_or_insert_default())
    }
}
