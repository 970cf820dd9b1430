//! The replay window of a server (RFC 8613 section 7.4), and its recovery (appendix B.1.2).

/// How many numbers, from the greatest one downwards, are distinguished. RFC 8613 section 3.2.2 has 32 as its default.
const SIZE: u64 = 64;

/// The state of a request's number.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Novelty {
    /// It was not accepted before.
    New,
    /// It may have been accepted before the server lost its window.
    Unknown,
    /// It was accepted before, or is too old to tell.
    Replayed,
}

/// Which of the latest numbers were accepted.
#[derive(Copy, Clone, Debug)]
pub(super) struct RequestWindow {
    /// One more than the greatest number accepted; zero before the first.
    next: u64,
    /// Bit `i` is set if `next - 1 - i` was accepted.
    seen: u64,
    /// Bit `i` is set if the nonce of request `next - 1 - i` may still protect a response.
    unanswered: u64,
    /// Requests from this number on were made since the window is kept.
    known_from: u64,
}

impl RequestWindow {
    /// The window of a context that was never used.
    pub(super) const FRESH: Self = Self { next: 0, seen: 0, unanswered: 0, known_from: 0 };
    /// The window of a context that was used before, when it was not kept.
    pub(super) const LOST: Self = Self { next: 0, seen: 0, unanswered: 0, known_from: u64::MAX };

    pub(super) const fn novelty(&self, number: u64) -> Novelty {
        if number < self.next {
            let age = self.next - 1 - number;
            if age >= SIZE || self.seen & (1 << age) != 0 {
                return Novelty::Replayed;
            }
        }
        if number < self.known_from { Novelty::Unknown } else { Novelty::New }
    }

    /// Records a number, of a request that is authentic, and that is [new](Novelty::New) or was shown to be.
    ///
    /// All later numbers of the client are those of later requests, so that they are known then as well.
    pub(super) const fn accept(&mut self, number: u64) {
        if number >= self.next {
            let ahead = number - self.next + 1;
            let (seen, unanswered) =
                if ahead < SIZE { (self.seen << ahead, self.unanswered << ahead) } else { (0, 0) };
            (self.next, self.seen, self.unanswered) = (number + 1, seen | 1, unanswered | 1);
        } else if self.next - 1 - number < SIZE {
            let bit = 1 << (self.next - 1 - number);
            self.seen |= bit;
            self.unanswered |= bit;
        }
        if number < self.known_from {
            self.known_from = number;
        }
    }

    /// Whether the nonce of an accepted request may protect a response, which it may once.
    pub(super) const fn take_nonce(&mut self, number: u64) -> bool {
        if number >= self.next || self.next - 1 - number >= SIZE {
            return false;
        }
        let bit = 1 << (self.next - 1 - number);
        let unanswered = self.unanswered & bit != 0;
        self.unanswered &= !bit;
        unanswered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_accepts_what_a_set_of_64_accepts(numbers in proptest::collection::vec(0_u64..200, 1..200)) {
            let mut window = RequestWindow::FRESH;
            let mut accepted = BTreeSet::new();
            for number in numbers {
                let greatest = accepted.last().copied();
                let recent = greatest.is_none_or(|greatest: u64| number + SIZE > greatest);
                let new = recent && !accepted.contains(&number);
                prop_assert_eq!(window.novelty(number) == Novelty::New, new);
                if new {
                    window.accept(number);
                    accepted.insert(number);
                    prop_assert!(window.take_nonce(number));
                }
                prop_assert!(!window.take_nonce(number), "a nonce protects one response");
            }
        }
    }

    #[test]
    fn a_lost_window_accepts_nothing_that_was_not_shown_to_be_fresh() {
        let mut window = RequestWindow::LOST;
        assert_eq!(window.novelty(70), Novelty::Unknown);
        window.accept(70);
        assert_eq!(window.novelty(70), Novelty::Replayed);
        assert_eq!(window.novelty(71), Novelty::New, "made after one that is fresh");
        assert_eq!(window.novelty(69), Novelty::Unknown);
        assert_eq!(window.novelty(6), Novelty::Replayed, "too old to tell");
        window.accept(69);
        assert_eq!(window.novelty(69), Novelty::Replayed);
        assert_eq!(window.novelty(68), Novelty::Unknown);
    }
}
