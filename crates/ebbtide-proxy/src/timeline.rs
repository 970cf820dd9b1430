//! The latest exchanges with devices, for an explorer.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The number of exchanges that are kept.
const KEPT: usize = 128;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    is_watched: AtomicBool,
    kept: Mutex<VecDeque<TimelineEntry>>,
}

/// An exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimelineEntry {
    /// The method and the URI.
    pub(crate) request: String,
    /// The code of the answer, or why there is none.
    pub(crate) answer: String,
    pub(crate) began: Instant,
    /// How long it waited at the gateway.
    pub(crate) waited: Duration,
    /// How long it took from then on.
    pub(crate) took: Duration,
}

impl Timeline {
    fn lock(&self) -> MutexGuard<'_, VecDeque<TimelineEntry>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps exchanges from now on: without an explorer they cost nothing.
    pub(crate) fn watch(&self) {
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// Whether exchanges are kept.
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// Keeps an exchange that has ended.
    pub(crate) fn add(&self, entry: TimelineEntry) {
        let mut kept = self.lock();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back(entry);
    }

    /// The exchanges, the oldest first.
    pub(crate) fn latest(&self) -> Vec<TimelineEntry> {
        self.lock().iter().cloned().collect()
    }
}
