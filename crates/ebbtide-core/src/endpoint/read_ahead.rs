//! Bringing an endpoint's memory into the processor's cache before it is needed.

use super::Endpoint;

/// A part of an endpoint's memory, which pointers in the part before it lead to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MemoryPart {
    /// The endpoint itself.
    Own,
    /// Its first peer and its first exchange, with the bytes and instants of that.
    Tables,
}

impl MemoryPart {
    /// All parts in their order.
    pub const ALL: [Self; 2] = [Self::Own, Self::Tables];
}

impl Endpoint {
    /// See [`crate::testbed::read_ahead`].
    pub(crate) fn read_ahead(&self, part: MemoryPart) -> u64 {
        match part {
            MemoryPart::Own => self.read_own(),
            MemoryPart::Tables => self.peers.read_ahead() ^ self.table.read_ahead(),
        }
    }

    fn read_own(&self) -> u64 {
        // The order of fields in memory is the compiler's: each part is read for itself.
        let counters = self.counters.sent ^ self.counters.timeouts ^ self.counters.unknown_answers;
        let parts = [
            self.output.is_allocated(),
            self.epochs.is_some(),
            self.rare.is_some(),
            self.under_way.len() > 0,
            self.dedup.len() > 0,
        ];
        let parts = parts.into_iter().fold(0, |sum, part| sum << 1 | u64::from(part));
        self.now.as_nanos() ^ counters ^ parts ^ self.timers.read_ahead() ^ self.table.len() as u64
    }
}
