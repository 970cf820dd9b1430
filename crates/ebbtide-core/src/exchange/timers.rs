//! The timers of all exchanges: a heap that knows the position of each exchange's entry.
//!
//! Every exchange has at most one timer, so the heap is never larger than the table of exchanges,
//! and arming, re-arming and disarming cost O(log n) without leaving anything behind.

use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Children of a node. Four children fit into one cache line.
const ARITY: usize = 4;
const ABSENT: u32 = u32::MAX;

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ArmedTimer {
    at: Instant,
    /// Breaks ties in the order of arming, so that equal instants fire in a fixed order.
    sequence: u64,
    owner: u32,
}

/// A set of (instant, owner), at most one per owner, ordered by instant and then by arming.
#[derive(Debug)]
pub(crate) struct Timers {
    entries: Entries,
    sequence: u64,
}

#[derive(Debug)]
enum Entries {
    /// All that a device with one exchange needs, without memory elsewhere.
    One(Option<ArmedTimer>),
    /// From the second timer on.
    Many(Box<Heap>),
}

#[derive(Debug, Default)]
struct Heap {
    heap: Vec<ArmedTimer>,
    /// The position of each owner's entry.
    position: Vec<u32>,
}

impl Default for Timers {
    fn default() -> Self {
        Self { entries: Entries::One(None), sequence: 0 }
    }
}

impl Timers {
    /// The earliest instant.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        self.first().map(|entry| entry.at)
    }

    /// Reads what [`Self::arm`] changes.
    #[inline]
    pub(crate) fn read_ahead(&self) -> u64 {
        self.sequence ^ self.next().map_or(0, Instant::as_nanos)
    }

    #[inline]
    fn first(&self) -> Option<&ArmedTimer> {
        match &self.entries {
            Entries::One(entry) => entry.as_ref(),
            Entries::Many(many) => many.heap.first(),
        }
    }

    /// Sets or moves the timer of `owner`.
    #[inline]
    pub(crate) fn arm(&mut self, owner: u32, at: Instant) {
        self.sequence += 1;
        let entry = ArmedTimer { at, sequence: self.sequence, owner };
        match &mut self.entries {
            Entries::One(one) if one.is_none_or(|one| one.owner == owner) => *one = Some(entry),
            Entries::One(one) => {
                let mut many = Box::<Heap>::default();
                one.iter().for_each(|first| many.arm(*first));
                many.arm(entry);
                self.entries = Entries::Many(many);
            }
            Entries::Many(many) => many.arm(entry),
        }
    }

    /// Removes the timer of `owner`, if it has one.
    #[inline]
    pub(crate) fn disarm(&mut self, owner: u32) {
        match &mut self.entries {
            Entries::One(one) => *one = one.filter(|one| one.owner != owner),
            Entries::Many(many) => many.disarm(owner),
        }
    }

    /// Removes the earliest timer if it is due at `now`, and returns its owner.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let first = self.first().filter(|entry| entry.at <= now)?;
        let owner = first.owner;
        self.disarm(owner);
        Some(owner)
    }

    /// The number of armed timers.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        match &self.entries {
            Entries::One(one) => one.iter().count(),
            Entries::Many(many) => many.heap.len(),
        }
    }
}

impl Heap {
    fn arm(&mut self, entry: ArmedTimer) {
        let index = entry.owner as usize;
        if index >= self.position.len() {
            self.position.resize(index + 1, ABSENT);
        }
        let at = match self.position[index] {
            ABSENT => {
                if self.heap.len() == self.heap.capacity() {
                    // One by one at first: most devices have few timers.
                    self.heap.reserve_exact(self.heap.len() / 2 + 1);
                }
                self.heap.push(entry);
                self.heap.len() - 1
            }
            at => {
                self.heap[at as usize] = entry;
                at as usize
            }
        };
        self.settle(at);
    }

    fn disarm(&mut self, owner: u32) {
        let Some(position) = self.position.get_mut(owner as usize) else { return };
        if *position == ABSENT {
            return;
        }
        let at = *position as usize;
        *position = ABSENT;
        let Some(last) = self.heap.pop() else { return };
        if at < self.heap.len() {
            self.heap[at] = last;
            self.settle(at);
        }
    }

    /// Moves the entry at `at` to its place, up or down, and records all positions on the way.
    fn settle(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(at, self.heap[parent]);
            at = parent;
        }
        loop {
            let first = at * ARITY + 1;
            let children = first..(first + ARITY).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child]) else { break };
            if self.heap[least] >= entry {
                break;
            }
            self.put(at, self.heap[least]);
            at = least;
        }
        self.put(at, entry);
    }

    #[inline]
    fn put(&mut self, at: usize, entry: ArmedTimer) {
        self.heap[at] = entry;
        // The table of exchanges is indexed by u32 and bounded far below.
        self.position[entry.owner as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn timers_fire_in_the_order_of_a_sorted_map(
            steps in prop::collection::vec((0u32..40, 0u64..50, 0u8..4), 0..400),
        ) {
            let mut timers = Timers::default();
            let mut model: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
            for (sequence, (owner, at, action)) in steps.into_iter().enumerate() {
                match action {
                    0 | 1 => {
                        timers.arm(owner, Instant::from_nanos(at));
                        model.insert(owner, (at, sequence as u64));
                    }
                    2 => {
                        timers.disarm(owner);
                        model.remove(&owner);
                    }
                    _ => {
                        let due = model
                            .iter()
                            .filter(|(_, (when, _))| *when <= at)
                            .min_by_key(|(_, key)| **key)
                            .map(|(owner, _)| *owner);
                        prop_assert_eq!(timers.pop_due(Instant::from_nanos(at)), due);
                        if let Some(owner) = due {
                            model.remove(&owner);
                        }
                    }
                }
                prop_assert_eq!(timers.len(), model.len());
                let first = model.values().map(|(at, _)| *at).min();
                prop_assert_eq!(timers.next(), first.map(Instant::from_nanos));
            }
        }
    }
}
