//! The counters of an endpoint as it keeps them.

use super::Counters;
use alloc::boxed::Box;

/// Counters of what happens in most exchanges are in place. Those of all else take memory only once
/// something was counted, because a program may have a million endpoints.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) retransmissions: u64,
    pub(super) probes: u64,
    pub(super) probes_answered: u64,
    pub(super) timeouts: u64,
    pub(super) gave_up: u64,
    pub(super) unknown_answers: u64,
    /// The others. Those above are zero in it.
    rare: Option<Box<Counters>>,
}

impl Tally {
    /// The counters that are not in place.
    #[cold]
    pub(super) fn rare(&mut self) -> &mut Counters {
        self.rare.get_or_insert_default()
    }

    /// All counters.
    pub(super) fn counters(&self) -> Counters {
        Counters {
            received: self.received,
            sent: self.sent,
            retransmissions: self.retransmissions,
            probes: self.probes,
            probes_answered: self.probes_answered,
            timeouts: self.timeouts,
            gave_up: self.gave_up,
            unknown_answers: self.unknown_answers,
            ..self.rare.as_deref().copied().unwrap_or_default()
        }
    }
}
