//! A limit on the requests per second that a resource handles for unverified addresses.

use ebbtide_core::time::Instant;
use std::sync::atomic::{AtomicU64, Ordering};

/// A limit on the requests in one second. Threads share it without a lock.
#[derive(Debug)]
pub(super) struct Gate {
    per_second: u32,
    /// The second in the upper half, and the number of requests admitted in it in the lower half.
    window: AtomicU64,
}

impl Gate {
    pub(super) const fn new(per_second: u32) -> Self {
        Self { per_second, window: AtomicU64::new(0) }
    }

    /// Whether no request is admitted at all.
    pub(super) const fn is_closed(&self) -> bool {
        self.per_second == 0
    }

    /// Whether one more request is admitted.
    pub(super) fn admit(&self, now: Instant) -> bool {
        // Each second begins a new window, so the number of the second may wrap around.
        let second = (now.as_nanos() / 1_000_000_000) << 32;
        let next = |window: u64| {
            let (began, passed) = (window & !u64::from(u32::MAX), window as u32);
            let passed = if began == second { passed } else { 0 };
            (passed < self.per_second).then(|| second | u64::from(passed + 1))
        };
        self.window.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn as_many_pass_in_each_second_as_may() {
        let gate = Gate::new(3);
        let passed = |from| (0..10).filter(|n: &u64| gate.admit(at(from + *n))).count();
        assert_eq!(passed(0), 3);
        assert_eq!(passed(900), 0);
        assert_eq!(passed(1000), 3);
        assert_eq!(passed(7500), 3);
        assert_eq!(passed(7600), 0);
    }

    #[test]
    fn none_pass_where_none_may() {
        assert!(!Gate::new(0).admit(at(5000)));
        assert!(Gate::new(0).is_closed() && !Gate::new(1).is_closed());
    }
}
