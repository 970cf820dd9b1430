//! The part of a replication that is of interest to an observer.

use ebbtide_core::time::Instant;

/// Limits of a trace: one client, a time span, or both.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFilter {
    /// One client; `None`: all.
    pub client: Option<u32>,
    /// From this instant on; `None`: from the start.
    pub from: Option<Instant>,
    /// Before this instant; `None`: to the end.
    pub until: Option<Instant>,
}

impl TraceFilter {
    pub(super) fn takes(self, now: Instant, client: Option<u32>) -> bool {
        let is_theirs = self.client.is_none_or(|own| client.is_none_or(|client| client == own));
        let is_then = self.from.is_none_or(|from| now >= from);
        is_theirs && is_then && self.until.is_none_or(|until| now < until)
    }

    /// Whether something of this client that lasts from one instant to another is of interest.
    pub(super) fn overlaps(self, client: u32, from: Instant, to: Instant) -> bool {
        let is_theirs = self.client.is_none_or(|own| own == client);
        is_theirs
            && self.from.is_none_or(|own| to >= own)
            && self.until.is_none_or(|until| from < until)
    }
}
