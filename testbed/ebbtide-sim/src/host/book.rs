//! The record of one client's exchanges: which requests reached the server, and which transmissions
//! were unnecessary. The testbed sees both ends, so it knows what the client cannot.

use ebbtide_core::time::Duration;

/// Outcomes of a client's exchanges, including those that the client gave up.
#[derive(Debug, Default)]
pub(crate) struct OutcomeBook {
    /// Transmissions after the one that was answered first, whether or not the client still waited.
    pub(crate) needless: u32,
    /// The exchanges that it gave up; `None` until it did.
    failed: Option<Box<Failed>>,
}

/// The exchanges that a client gave up.
#[derive(Debug)]
struct Failed {
    /// By number: how often each was transmitted. They stay until an answer tells which of the
    /// transmissions would have been enough.
    exchanges: Vec<(u32, u32)>,
    /// The shortest and the longest time from an original to giving up.
    after: (Duration, Duration),
}

impl OutcomeBook {
    /// An exchange was answered, and so many of its transmissions came after the one in question.
    #[inline]
    pub(crate) const fn answered(&mut self, later: u32) {
        self.needless = self.needless.saturating_add(later);
    }

    /// An exchange failed after so many transmissions, so long after the first of them.
    pub(crate) fn failed(&mut self, exchange: u32, transmissions: u32, after: Duration) {
        if transmissions == 0 {
            return;
        }
        let failed = self.failed.get_or_insert_with(|| {
            Box::new(Failed { exchanges: Vec::with_capacity(1), after: (after, after) })
        });
        let (least, most) = failed.after;
        failed.after = (least.min(after), most.max(after));
        // They fail nearly in the order of their numbers.
        let place = failed.exchanges.partition_point(|(number, _)| *number < exchange);
        failed.exchanges.insert(place, (exchange, transmissions));
    }

    /// The shortest and the longest time from an original to giving up.
    pub(crate) fn gave_up(&self) -> Option<(Duration, Duration)> {
        self.failed.as_ref().map(|failed| failed.after)
    }

    /// A response arrives that the client no longer waits for. `ordinal` is the transmission that
    /// it answers; 0 is the original.
    pub(crate) fn answered_late(&mut self, exchange: u32, ordinal: u8) {
        let Some(failed) = &mut self.failed else { return };
        let place = failed.exchanges.binary_search_by_key(&exchange, |(number, _)| *number);
        if let Ok(place) = place {
            let (_, transmissions) = failed.exchanges.remove(place);
            self.answered(transmissions.saturating_sub(1 + u32::from(ordinal)));
        }
    }
}

/// The requests of a client that reached the server. They are kept at the server, which need not touch
/// the client for each of them.
#[derive(Debug, Default)]
pub(crate) struct Arrivals(Marks);

impl Arrivals {
    /// A copy of a request arrives.
    #[inline]
    pub(crate) fn note(&mut self, exchange: u32) {
        self.0.set(exchange);
    }

    /// Reads what [`Self::note`] changes.
    #[inline]
    pub(crate) const fn read_ahead(&self) -> u64 {
        self.0.first
    }

    /// The number of requests, each counted once.
    pub(crate) fn count(&self) -> u32 {
        self.0.count()
    }
}

/// A set of numbers from 0; those below 64 take no memory of their own.
#[derive(Debug, Default)]
struct Marks {
    first: u64,
    /// Those from 64 on; `None` until there is one.
    #[expect(clippy::box_collection, reason = "most clients never have one and keep a pointer")]
    rest: Option<Box<Vec<u64>>>,
}

impl Marks {
    /// Adds a number.
    #[inline]
    fn set(&mut self, number: u32) {
        let bit = 1 << (number % 64);
        let word = match (number / 64) as usize {
            0 => &mut self.first,
            place => {
                let rest = self.rest.get_or_insert_default();
                if rest.len() < place {
                    rest.resize(place, 0);
                }
                &mut rest[place - 1]
            }
        };
        *word |= bit;
    }

    /// The number of different numbers.
    fn count(&self) -> u32 {
        let rest = self.rest.iter().flat_map(|rest| rest.iter());
        self.first.count_ones() + rest.map(|word| word.count_ones()).sum::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::{Marks, OutcomeBook};
    use ebbtide_core::time::Duration;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn each_number_counts_once(numbers in prop::collection::vec(0u32..300, 0..200)) {
            let (mut marks, mut model) = (Marks::default(), BTreeSet::new());
            for number in numbers {
                marks.set(number);
                model.insert(number);
                prop_assert_eq!(marks.count() as usize, model.len());
            }
        }
    }

    #[test]
    fn a_failed_exchange_whose_original_is_answered_late_counts_all_its_copies_once() {
        let mut book = OutcomeBook::default();
        book.failed(7, 5, Duration::from_secs(93));
        book.failed(3, 5, Duration::from_secs(62));
        for ordinal in [0, 1, 2, 3, 4] {
            book.answered_late(7, ordinal);
        }
        assert_eq!(book.needless, 4);
        // The answers to the first two were lost: they were needed.
        book.answered_late(3, 2);
        assert_eq!(book.needless, 6);
        assert_eq!(book.gave_up(), Some((Duration::from_secs(62), Duration::from_secs(93))));
    }

    #[test]
    fn a_request_that_never_left_gave_nothing_up() {
        let mut book = OutcomeBook::default();
        book.failed(0, 0, Duration::ZERO);
        book.answered_late(0, 0);
        assert_eq!((book.needless, book.gave_up()), (0, None));
    }
}
