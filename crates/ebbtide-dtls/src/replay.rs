//! Replay protection (RFC 6347 section 4.1.2.6).

/// The received ones among the last 64 sequence numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReplayWindow {
    /// One more than the largest sequence number received; zero before the first.
    next: u64,
    /// Bit `i` is set if `next - 1 - i` was received.
    seen: u64,
}

impl ReplayWindow {
    /// Its 16 bytes for storage.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.next) << 64 | u128::from(self.seen)).to_be_bytes()
    }

    pub(crate) const fn from_bytes(bytes: [u8; 16]) -> Self {
        let both = u128::from_be_bytes(bytes);
        Self { next: (both >> 64) as u64, seen: both as u64 }
    }

    /// A window that accepts only numbers after this one.
    pub(crate) const fn after(sequence: u64) -> Self {
        Self { next: sequence.saturating_add(1), seen: u64::MAX }
    }

    /// Whether a record may be new. Numbers before the window count as received.
    pub(crate) const fn may_accept(&self, sequence: u64) -> bool {
        if sequence >= self.next {
            return true;
        }
        let age = self.next - 1 - sequence;
        age < 64 && self.seen & (1 << age) == 0
    }

    /// Whether a record would be the newest one.
    pub(crate) const fn is_newest(&self, sequence: u64) -> bool {
        sequence >= self.next
    }

    /// Records a sequence number. This must happen only after authentication, since otherwise a
    /// forged record could move the window.
    pub(crate) const fn accept(&mut self, sequence: u64) {
        if sequence >= self.next {
            let ahead = sequence - self.next + 1;
            self.seen = if ahead < 64 { self.seen << ahead | 1 } else { 1 };
            self.next = sequence + 1;
        } else {
            let age = self.next - 1 - sequence;
            if age < 64 {
                self.seen |= 1 << age;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    #[test]
    fn a_record_that_fell_out_of_the_window_is_refused() {
        let mut window = ReplayWindow::default();
        window.accept(0);
        window.accept(64);
        assert!(!window.may_accept(0));
        assert!(window.may_accept(1));
        assert!(!window.may_accept(64));
        window.accept(1000);
        assert!(!window.may_accept(64) && !window.may_accept(936) && window.may_accept(937));
    }

    proptest! {
        #[test]
        fn it_accepts_what_a_set_of_64_accepts(
            numbers in proptest::collection::vec(0_u64..200, 1..200),
        ) {
            let mut window = ReplayWindow::default();
            let mut set = BTreeSet::new();
            for number in numbers {
                let newest = set.last().copied();
                let recent = newest.is_none_or(|newest: u64| number + 64 > newest);
                let fresh = recent && !set.contains(&number);
                prop_assert_eq!(window.may_accept(number), fresh, "{} after {:?}", number, newest);
                if fresh {
                    window.accept(number);
                    set.insert(number);
                }
            }
        }
    }
}
