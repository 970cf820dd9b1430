//! Bodies under way, by whose they are, in the order in which they last advanced.

use ebbtide_core::time::{Duration, Instant};
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Transfers of one direction.
#[derive(Debug)]
pub(crate) struct Transfers<K, T> {
    by_key: HashMap<K, Transfer<T>>,
    /// Every advance. Of a transfer the last one counts; those before it are stale.
    order: VecDeque<(u64, Instant, K)>,
    next: u64,
}

#[derive(Debug)]
struct Transfer<T> {
    advance: u64,
    body: T,
}

impl<K: Copy + Eq + Hash, T> Transfers<K, T> {
    pub(crate) fn new() -> Self {
        Self { by_key: HashMap::new(), order: VecDeque::new(), next: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&T> {
        Some(&self.by_key.get(key)?.body)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut T> {
        Some(&mut self.by_key.get_mut(key)?.body)
    }

    /// Begins a transfer; what there was under this key must have been removed.
    pub(crate) fn insert(&mut self, now: Instant, key: K, body: T) {
        self.by_key.insert(key, Transfer { advance: self.next, body });
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

    pub(crate) fn remove(&mut self, key: &K) -> Option<T> {
        Some(self.by_key.remove(key)?.body)
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
        transfers.insert(at(0), 'a', "stays");
        for (n, key) in ('b'..='z').enumerate() {
            transfers.insert(at(n as u64), key, "goes");
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
        transfers.insert(Instant::ZERO, 1, ());
        for _ in 0..10_000 {
            transfers.advance(Instant::ZERO, 1);
        }
        assert!(transfers.order.len() < 100);
    }
}
