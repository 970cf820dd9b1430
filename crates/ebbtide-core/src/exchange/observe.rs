//! The order of two notifications (RFC 7641 section 3.4).

use crate::time::{Duration, Instant};

/// The last accepted notification of an observation.
///
/// ```
/// use ebbtide_core::{Freshness, time::Instant};
///
/// let mut freshness = Freshness::default();
/// let now = Instant::ZERO;
/// assert!(freshness.accept(now, 7));
/// assert!(freshness.accept(now, 9));
/// assert!(!freshness.accept(now, 8), "it was overtaken on the way");
/// ```
#[derive(Copy, Clone, Debug, Default)]
pub struct Freshness {
    last: Option<(u32, Instant)>,
}

/// After this span the sequence numbers may have wrapped around.
const SPAN: Duration = Duration::from_secs(128);
const HALF: u32 = 1 << 23;
const MASK: u32 = (1 << 24) - 1;

impl Freshness {
    /// Accepts a notification that arrived at `now`, unless it is older than one accepted before.
    /// `sequence` is the value of its option Observe, of which 24 bits count. Returns whether it
    /// was accepted.
    pub fn accept(&mut self, now: Instant, sequence: u32) -> bool {
        let sequence = sequence & MASK;
        if let Some((last, at)) = self.last {
            let ahead = sequence.wrapping_sub(last) & MASK;
            let newer = (ahead != 0 && ahead < HALF) || now > at + SPAN;
            if !newer {
                return false;
            }
        }
        self.last = Some((sequence, now));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn the_number_goes_round_and_what_is_half_way_round_or_more_is_old() {
        let mut freshness = Freshness::default();
        assert!(freshness.accept(at(0), MASK));
        assert!(freshness.accept(at(0), 0), "one after the last");
        assert!(!freshness.accept(at(0), MASK), "one before");
        assert!(!freshness.accept(at(0), HALF));
        assert!(freshness.accept(at(0), HALF - 1));
        assert!(!freshness.accept(at(128), 1));
        assert!(freshness.accept(at(129), 1), "after 128 s whatever comes is newer");
    }

    #[test]
    fn a_copy_is_not_newer() {
        let mut freshness = Freshness::default();
        assert!(freshness.accept(at(0), 5));
        assert!(!freshness.accept(at(1), 5));
    }
}
