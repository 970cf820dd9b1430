//! The observers of one subject, in the order of registration, so that a change visits only these.

use super::Observers;

/// A subject that clients observe.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The number that identifies it.
    pub id: u32,
    /// Whether all its notifications are Confirmable.
    pub confirmable: bool,
}

/// Stands for the absence of a neighbour.
const NONE: u32 = u32::MAX;

/// The neighbours of an observer in the list of its subject: eight bytes, since there are many.
#[derive(Copy, Clone, Debug)]
pub(super) struct Links {
    previous: u32,
    next: u32,
}

impl Default for Links {
    fn default() -> Self {
        Self { previous: NONE, next: NONE }
    }
}

impl Links {
    pub(super) fn next(self) -> Option<u32> {
        (self.next != NONE).then_some(self.next)
    }

    fn previous(self) -> Option<u32> {
        (self.previous != NONE).then_some(self.previous)
    }
}

/// The observers of a subject.
#[derive(Copy, Clone, Debug)]
pub(super) struct ListEnds {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) count: usize,
}

impl Observers {
    /// Adds an observer at the end of its subject's list.
    pub(super) fn link(&mut self, index: u32) {
        let Some(subject) = self.places.at(index).map(|observer| observer.subject) else {
            return;
        };
        let fresh = ListEnds { first: index, last: index, count: 0 };
        let ends = self.by_subject.entry(subject).or_insert(fresh);
        ends.count += 1;
        let previous = (ends.last != index).then_some(ends.last);
        ends.last = index;
        if let Some(before) = previous.and_then(|previous| self.places.at_mut(previous)) {
            before.links.next = index;
        }
        if let Some(observer) = self.places.at_mut(index) {
            observer.links = Links { previous: previous.unwrap_or(NONE), next: NONE };
        }
    }

    /// Removes an observer from its subject's list.
    pub(super) fn unlink(&mut self, index: u32) {
        let Some(observer) = self.places.at(index) else { return };
        let (subject, links) = (observer.subject, observer.links);
        let (previous, next) = (links.previous(), links.next());
        if let Some(before) = previous.and_then(|previous| self.places.at_mut(previous)) {
            before.links.next = next.unwrap_or(NONE);
        }
        if let Some(after) = next.and_then(|next| self.places.at_mut(next)) {
            after.links.previous = previous.unwrap_or(NONE);
        }
        let Some(ends) = self.by_subject.get_mut(&subject) else { return };
        ends.count -= 1;
        match (previous, next) {
            (None, None) => {
                self.by_subject.remove(&subject);
            }
            (None, Some(next)) => ends.first = next,
            (Some(previous), None) => ends.last = previous,
            (Some(_), Some(_)) => {}
        }
    }
}
