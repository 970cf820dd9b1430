//! When a replication ends: at a fixed time, or when no client has anything left to do.

use crate::run::roster::Roster;
use ebbtide_core::time::Instant;

/// The end of a replication, and which clients are done.
pub(super) struct RunEnd {
    /// When the run ends, whatever is under way then.
    pub(super) until: Option<Instant>,
    /// Whether it has ended: clients do nothing any more.
    pub(super) is_over: bool,
    /// From when on packets count for the fairness of streams.
    pub(super) fair_from: Option<Instant>,
    /// The clients that are not done.
    pub(super) undone: u32,
    /// The clients of each class that are not done, and when the last one of those that are was.
    undone_by_class: Vec<(u32, Instant)>,
    /// When the last client was done.
    pub(super) done_at: Instant,
}

impl RunEnd {
    pub(super) fn new(roster: &Roster) -> Self {
        let ends = roster.classes.iter().filter_map(|class| {
            Some((class.scenario.workload.ends()?, class.scenario.workload.fair_from()))
        });
        let ends = ends.reduce(|(end, fair), one| (end.max(one.0), fair.max(one.1)));
        let counts = roster.classes.iter().map(|class| class.scenario.clients.count);
        Self {
            until: ends.map(|(end, _)| Instant::from_nanos(end.0)),
            is_over: false,
            fair_from: ends.map(|(_, from)| Instant::from_nanos(from.0)),
            undone: counts.clone().sum(),
            undone_by_class: counts.map(|count| (count, Instant::ZERO)).collect(),
            done_at: Instant::ZERO,
        }
    }

    /// A client of this class has nothing left to do.
    pub(super) fn note_done(&mut self, now: Instant, class: usize) {
        let (undone, done_at) = &mut self.undone_by_class[class];
        *undone -= 1;
        *done_at = now;
        self.undone -= 1;
        if self.undone == 0 {
            self.done_at = now;
        }
    }

    /// A client of this class that was done has something to do again.
    pub(super) fn note_undone(&mut self, class: usize) {
        self.undone += 1;
        self.undone_by_class[class].0 += 1;
    }

    /// When the last client of a class was done, or the run ended.
    pub(super) fn of_class(&self, class: usize) -> Instant {
        self.until.unwrap_or(self.undone_by_class[class].1)
    }
}
