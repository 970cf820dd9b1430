//! Values by key, with the order in which they last advanced, their sizes in bytes, and their
//! timers.

use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::ops::RangeInclusive;

/// Values in the order in which they last advanced. Each operation takes logarithmic time.
#[derive(Debug)]
pub(super) struct RecencyMap<K, T> {
    by_key: BTreeMap<K, RecencyEntry<T>>,
    /// Every advance. Only the last one of an entry counts; earlier ones are stale.
    order: VecDeque<(u64, Instant, K)>,
    next: u64,
    /// The timers of entries.
    due: BTreeSet<(Instant, K)>,
    bytes: usize,
}

#[derive(Debug)]
struct RecencyEntry<T> {
    advance: u64,
    due: Option<Instant>,
    bytes: usize,
    value: T,
}

impl<K: Copy + Ord, T> RecencyMap<K, T> {
    pub(super) const fn new() -> Self {
        Self {
            by_key: BTreeMap::new(),
            order: VecDeque::new(),
            next: 0,
            due: BTreeSet::new(),
            bytes: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// The bytes of all entries.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn get(&self, key: &K) -> Option<&T> {
        Some(&self.by_key.get(key)?.value)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&K, &T)> {
        self.by_key.iter().map(|(key, entry)| (key, &entry.value))
    }

    /// Of the group that takes most, of those with entries that `may_go`, the one of these that has not advanced for
    /// longest. The keys of a group follow each other; `weigh` says what an entry of so many bytes counts, and `extra`
    /// what a group takes beside its entries, if it has any. `None` if no such group takes more than `above`.
    pub(super) fn oldest_of_largest<G: PartialEq>(
        &self,
        may_go: impl Fn(&T) -> bool,
        group: impl Fn(&K) -> G,
        weigh: impl Fn(usize) -> usize,
        extra: impl Fn(&G) -> usize,
        above: usize,
    ) -> Option<K> {
        let mut largest: Option<(usize, u64, K)> = None;
        let mut entries = self.by_key.iter().peekable();
        while let Some((first, _)) = entries.peek() {
            let of = group(first);
            let (mut weight, mut oldest) = (extra(&of), None::<(u64, K)>);
            while let Some((&key, entry)) = entries.next_if(|(key, _)| group(key) == of) {
                weight += weigh(entry.bytes);
                if may_go(&entry.value) {
                    let this = (entry.advance, key);
                    oldest = Some(oldest.map_or(this, |oldest| oldest.min(this)));
                }
            }
            let Some((advance, key)) = oldest else { continue };
            // Of groups alike it is the one whose entry is the oldest.
            let is_larger = largest
                .is_none_or(|(most, since, _)| weight > most || weight == most && advance < since);
            if is_larger {
                largest = Some((weight, advance, key));
            }
        }
        largest.filter(|(most, ..)| *most > above).map(|(_, _, key)| key)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut T> {
        Some(&mut self.by_key.get_mut(key)?.value)
    }

    /// The key in a range whose entry advanced last.
    pub(super) fn newest(&self, range: RangeInclusive<K>) -> Option<K> {
        let newest = self.by_key.range(range).max_by_key(|(_, entry)| entry.advance);
        newest.map(|(key, _)| *key)
    }

    /// Adds an entry, and replaces the one under this key.
    pub(super) fn insert(&mut self, now: Instant, key: K, value: T, bytes: usize) {
        self.remove(&key);
        self.by_key.insert(key, RecencyEntry { advance: self.next, due: None, bytes, value });
        self.bytes += bytes;
        self.advance(now, key);
    }

    /// Records that an entry has advanced: it is now the last to be removed.
    pub(super) fn advance(&mut self, now: Instant, key: K) {
        let Some(entry) = self.by_key.get_mut(&key) else { return };
        entry.advance = self.next;
        self.order.push_back((self.next, now, key));
        self.next += 1;
        if self.order.len() > 2 * self.by_key.len() + 64 {
            let by_key = &self.by_key;
            self.order.retain(|(advance, _, key)| {
                by_key.get(key).is_some_and(|entry| entry.advance == *advance)
            });
        }
    }

    /// Adds to the bytes of an entry.
    pub(super) fn grow(&mut self, key: &K, by: usize) {
        let Some(entry) = self.by_key.get_mut(key) else { return };
        entry.bytes += by;
        self.bytes += by;
    }

    /// Reduces the bytes of an entry, whose body has been moved elsewhere.
    pub(super) fn shrink(&mut self, key: &K, to: usize) {
        let Some(entry) = self.by_key.get_mut(key) else { return };
        self.bytes -= entry.bytes.saturating_sub(to);
        entry.bytes = entry.bytes.min(to);
    }

    /// Sets the timer of an entry, in place of an earlier one, or removes it.
    pub(super) fn wait(&mut self, key: &K, at: Option<Instant>) {
        let Some(entry) = self.by_key.get_mut(key) else { return };
        if let Some(old) = core::mem::replace(&mut entry.due, at) {
            self.due.remove(&(old, *key));
        }
        self.due.extend(at.map(|at| (at, *key)));
    }

    /// The earliest timer.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// An entry whose timer is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<K> {
        let key = self.due.first().filter(|(at, _)| *at <= now)?.1;
        self.wait(&key, None);
        Some(key)
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<T> {
        let entry = self.by_key.remove(key)?;
        if let Some(at) = entry.due {
            self.due.remove(&(at, *key));
        }
        self.bytes -= entry.bytes;
        Some(entry.value)
    }

    /// Removes the entry that has not advanced for longest, if that was at least `age` ago.
    pub(super) fn pop_oldest(&mut self, now: Instant, age: Duration) -> Option<T> {
        while let Some(&(advance, at, key)) = self.order.front() {
            let live = self.by_key.get(&key).is_some_and(|entry| entry.advance == advance);
            if live && now.saturating_since(at) < age {
                return None;
            }
            self.order.pop_front();
            if live {
                return self.remove(&key);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_advances_outlives_one_that_does_not() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let mut map = RecencyMap::new();
        map.insert(at(0), 'a', "stays", 1);
        for (n, key) in ('b'..='z').enumerate() {
            map.insert(at(n as u64), key, "goes", 1);
            map.advance(at(n as u64), 'a');
        }
        assert_eq!(map.pop_oldest(at(24), Duration::from_secs(25)), None);
        for _ in 'b'..='z' {
            assert_eq!(map.pop_oldest(at(24), Duration::ZERO), Some("goes"));
        }
        assert_eq!(map.pop_oldest(at(24), Duration::ZERO), Some("stays"));
        assert_eq!(map.len(), 0);
    }

    #[test]
    fn an_endless_entry_takes_no_more_memory_than_a_short_one() {
        let mut map = RecencyMap::new();
        map.insert(Instant::ZERO, 1, (), 0);
        for _ in 0..10_000 {
            map.advance(Instant::ZERO, 1);
        }
        assert!(map.order.len() < 100);
    }

    #[test]
    fn with_a_entry_goes_all_that_was_kept_for_it() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let mut map = RecencyMap::new();
        for key in 'a'..='d' {
            map.insert(at(0), key, (), 10);
            map.wait(&key, Some(at(1)));
        }
        map.grow(&'a', 5);
        map.shrink(&'b', 3);
        map.wait(&'b', Some(at(2)));
        assert_eq!(map.bytes(), 15 + 3 + 10 + 10);
        map.remove(&'c');
        map.insert(at(0), 'd', (), 1);
        assert_eq!(map.pop_due(at(0)), None);
        assert_eq!((map.pop_due(at(1)), map.pop_due(at(1))), (Some('a'), None));
        assert_eq!(map.due(), Some(at(2)));
        while map.pop_oldest(at(2), Duration::ZERO).is_some() {}
        assert_eq!((map.bytes(), map.due()), (0, None));
    }
}
