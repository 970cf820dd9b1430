//! Fair shares of the Confirmable notifications in flight: a source whose observers do not acknowledge waits for
//! itself, and not everyone for it.

use super::ObserverId;
use crate::peer::Source;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// The shortest queue of waiting observers that is searched for removed ones.
const MIN_SWEPT: usize = 64;

/// The notifications in flight by source, and the observers of sources that have their share.
#[derive(Debug, Default)]
pub(super) struct SharesInFlight {
    /// Sources with notifications in flight, and how many.
    own: BTreeMap<Source, usize>,
    waiting: BTreeMap<Source, VecDeque<ObserverId>>,
    /// Sources with waiting observers, once for each place that they have given back.
    room: Vec<Source>,
}

impl SharesInFlight {
    /// The notifications of a source in flight.
    pub(super) fn of(&self, source: Source) -> usize {
        self.own.get(&source.sharing()).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, source: Source) {
        *self.own.entry(source.sharing()).or_default() += 1;
    }

    pub(super) fn remove(&mut self, source: Source) {
        let source = source.sharing();
        if let Some(own) = self.own.get_mut(&source) {
            *own -= 1;
            if *own == 0 {
                self.own.remove(&source);
            }
        }
        if self.waiting.contains_key(&source) {
            self.room.push(source);
        }
    }

    /// An observer of a source that has its share waits until that source has given a place back.
    pub(super) fn wait(
        &mut self,
        source: Source,
        observer: ObserverId,
        is_there: impl Fn(ObserverId) -> bool,
    ) {
        push_swept(self.waiting.entry(source.sharing()).or_default(), observer, is_there);
    }

    /// The observers that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    /// Whether [`Self::pop`] may return an observer.
    pub(super) fn has_room(&self) -> bool {
        !self.room.is_empty()
    }

    /// The next observer whose source has given a place back.
    pub(super) fn pop(&mut self, is_there: impl Fn(ObserverId) -> bool) -> Option<ObserverId> {
        while let Some(source) = self.room.pop() {
            let Some(waiting) = self.waiting.get_mut(&source) else { continue };
            let next = core::iter::from_fn(|| waiting.pop_front()).find(|next| is_there(*next));
            if waiting.is_empty() {
                self.waiting.remove(&source);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}

/// Adds an observer to those that wait. Removed ones leave their identifiers behind, which are removed from time
/// to time.
pub(super) fn push_swept(
    waiting: &mut VecDeque<ObserverId>,
    observer: ObserverId,
    is_there: impl Fn(ObserverId) -> bool,
) {
    if waiting.len() >= MIN_SWEPT && waiting.len().is_power_of_two() {
        waiting.retain(|observer| is_there(*observer));
    }
    waiting.push_back(observer);
}
