//! Bodies under way of one direction: how many bytes they take, in which order they last advanced, and
//! when something is due for each.

use ebbtide_core::time::{Duration, Instant};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

/// Transfers of one direction, by whose they are.
#[derive(Debug)]
pub(crate) struct Transfers<K, T> {
    by_key: HashMap<K, Transfer<T>>,
    /// Every advance. Of a transfer the last one counts; those before it are stale.
    order: VecDeque<(u64, Instant, K)>,
    next: u64,
    /// When something is due for which.
    due: BTreeSet<(Instant, K)>,
    bytes: usize,
}

#[derive(Debug)]
struct Transfer<T> {
    advance: u64,
    due: Option<Instant>,
    bytes: usize,
    body: T,
}

impl<K: Copy + Ord + Hash, T> Transfers<K, T> {
    pub(crate) fn new() -> Self {
        Self {
            by_key: HashMap::new(),
            order: VecDeque::new(),
            next: 0,
            due: BTreeSet::new(),
            bytes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Bytes that all of them take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn get(&self, key: &K) -> Option<&T> {
        Some(&self.by_key.get(key)?.body)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut T> {
        Some(&mut self.by_key.get_mut(key)?.body)
    }

    /// Begins a transfer, in place of what there was under this key.
    pub(crate) fn insert(&mut self, now: Instant, key: K, body: T, bytes: usize) {
        self.remove(&key);
        self.by_key.insert(key, Transfer { advance: self.next, due: None, bytes, body });
        self.bytes += bytes;
        self.advance(now, key);
    }

    /// A transfer has come further: it is the last to be given up now.
    pub(crate) fn advance(&mut self, now: Instant, key: K) {
        let Some(transfer) = self.by_key.get_mut(&key) else { return };
        transfer.advance = self.next;
        self.order.push_back((self.next, now, key));
        self.next += 1;
        if self.order.len() > 2 * self.by_key.len() + 64 {
            let by_key = &self.by_key;
            self.order.retain(|(advance, _, key)| {
                by_key.get(key).is_some_and(|transfer| transfer.advance == *advance)
            });
        }
    }

    /// A transfer takes so many bytes more.
    pub(crate) fn grow(&mut self, key: &K, by: usize) {
        let Some(transfer) = self.by_key.get_mut(key) else { return };
        transfer.bytes += by;
        self.bytes += by;
    }

    /// A transfer takes no more than these bytes: its body has gone elsewhere.
    pub(crate) fn shrink(&mut self, key: &K, to: usize) {
        let Some(transfer) = self.by_key.get_mut(key) else { return };
        self.bytes -= transfer.bytes.saturating_sub(to);
        transfer.bytes = transfer.bytes.min(to);
    }

    /// Something is due for a transfer then, and no longer at the time said before; or nothing is.
    pub(crate) fn wait(&mut self, key: &K, at: Option<Instant>) {
        let Some(transfer) = self.by_key.get_mut(key) else { return };
        if let Some(old) = core::mem::replace(&mut transfer.due, at) {
            self.due.remove(&(old, *key));
        }
        self.due.extend(at.map(|at| (at, *key)));
    }

    /// When something is due next.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// A transfer for which something is due by now.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<K> {
        let key = self.due.first().filter(|(at, _)| *at <= now)?.1;
        self.wait(&key, None);
        Some(key)
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<T> {
        self.wait(key, None);
        let transfer = self.by_key.remove(key)?;
        self.bytes -= transfer.bytes;
        Some(transfer.body)
    }

    /// Takes out the transfer that has not advanced for longest, if that is at least `age`.
    pub(crate) fn pop_oldest(&mut self, now: Instant, age: Duration) -> Option<T> {
        while let Some(&(advance, at, key)) = self.order.front() {
            let live = self.by_key.get(&key).is_some_and(|transfer| transfer.advance == advance);
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
    fn what_advances_outlives_what_does_not() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let mut transfers = Transfers::new();
        transfers.insert(at(0), 'a', "stays", 1);
        for (n, key) in ('b'..='z').enumerate() {
            transfers.insert(at(n as u64), key, "goes", 1);
            transfers.advance(at(n as u64), 'a');
        }
        assert_eq!(transfers.pop_oldest(at(24), Duration::from_secs(25)), None);
        for _ in 'b'..='z' {
            assert_eq!(transfers.pop_oldest(at(24), Duration::ZERO), Some("goes"));
        }
        assert_eq!(transfers.pop_oldest(at(24), Duration::ZERO), Some("stays"));
        assert_eq!(transfers.len(), 0);
    }

    #[test]
    fn an_endless_transfer_takes_no_more_memory_than_a_short_one() {
        let mut transfers = Transfers::new();
        transfers.insert(Instant::ZERO, 1, (), 0);
        for _ in 0..10_000 {
            transfers.advance(Instant::ZERO, 1);
        }
        assert!(transfers.order.len() < 100);
    }

    #[test]
    fn with_a_transfer_goes_all_that_was_kept_for_it() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let mut transfers = Transfers::new();
        for key in 'a'..='d' {
            transfers.insert(at(0), key, (), 10);
            transfers.wait(&key, Some(at(1)));
        }
        transfers.grow(&'a', 5);
        transfers.shrink(&'b', 3);
        transfers.wait(&'b', Some(at(2)));
        assert_eq!(transfers.bytes(), 15 + 3 + 10 + 10);
        transfers.remove(&'c');
        transfers.insert(at(0), 'd', (), 1);
        assert_eq!(transfers.pop_due(at(0)), None);
        assert_eq!((transfers.pop_due(at(1)), transfers.pop_due(at(1))), (Some('a'), None));
        assert_eq!(transfers.due(), Some(at(2)));
        while transfers.pop_oldest(at(2), Duration::ZERO).is_some() {}
        assert_eq!((transfers.bytes(), transfers.due()), (0, None));
    }
}
