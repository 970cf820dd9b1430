//! Bringing an endpoint's memory into the processor's cache before it is needed.

use super::Endpoint;

impl Endpoint {
    /// See [`crate::testbed::read_ahead`].
    pub(crate) fn read_ahead(&self) -> u64 {
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
        let of_endpoint = self.now.as_nanos() ^ counters ^ parts ^ self.timers.read_ahead();
        of_endpoint ^ self.peers.read_ahead() ^ self.table.read_ahead()
    }
}
