//! How many messages that are not authentic are answered.

use ebbtide_core::time::Instant;
use std::sync::atomic::{AtomicU64, Ordering};

/// Answers within a second. A peer with a wrong key learns that it has one, and a flood is not answered.
const PER_SECOND: u64 = 1024;

/// The second that began last and the answers in it. Counting takes no lock, since it is done for every datagram of a flood.
#[derive(Debug, Default)]
pub(super) struct RefusalLimit(AtomicU64);

impl RefusalLimit {
    /// Counts an answer, if there may be one more now.
    pub(super) fn admits(&self, now: Instant) -> bool {
        let first = now.as_nanos() / 1_000_000_000 * (PER_SECOND + 1);
        let count = |last: u64| {
            let next = last.max(first) + 1;
            (next <= first + PER_SECOND).then_some(next)
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_answers_and_no_more() {
        let limit = RefusalLimit::default();
        for second in [0, 1, 2, 7] {
            let admitted = (0..5000).filter(|millis| {
                limit.admits(Instant::from_nanos(second * 1_000_000_000 + millis * 199_999))
            });
            assert_eq!(admitted.count(), 1024, "second {second}");
        }
        assert!(
            !limit.admits(Instant::from_nanos(6_999_999_999)),
            "a clock that another thread read before"
        );
    }
}
