//! Message IDs, none of them used twice within EXCHANGE_LIFETIME (RFC 7252 section 4.4).

use crate::time::{Duration, Instant, divide};
use crate::wire::MessageId;

/// Allocates the message IDs for one peer.
///
/// IDs count up from a random start. The circle of 65536 IDs is guarded by quarters: a quarter is
/// entered again only when EXCHANGE_LIFETIME has passed since it was left. That costs 24 bytes a
/// peer instead of a time per ID, and allows at least 49152 messages per EXCHANGE_LIFETIME (199 a
/// second with the default parameters; the theoretical limit is 265).
#[derive(Debug)]
pub(crate) struct MessageIds {
    next: u16,
    /// Whether the last call found no free ID, and a message waits.
    waits: bool,
    /// When each quarter was left, in seconds since the epoch plus one, rounded up; zero if it
    /// never was.
    left: [u32; QUARTERS],
}

const QUARTERS: usize = 4;
const PER_QUARTER: u16 = u16::MAX / QUARTERS as u16 + 1;

impl MessageIds {
    /// Counts up from `start`.
    pub(crate) const fn new(start: u16) -> Self {
        Self { next: start, waits: false, left: [0; QUARTERS] }
    }

    /// The next ID, or the instant from which one is free again. Without a `lifetime`, IDs are
    /// reused at once: for load generators, which measure servers and not networks.
    pub(crate) fn allocate(
        &mut self,
        now: Instant,
        lifetime: Option<Duration>,
    ) -> Result<MessageId, Instant> {
        let quarter = usize::from(self.next / PER_QUARTER);
        let before = (quarter + QUARTERS - 1) % QUARTERS;
        if let Some(lifetime) = lifetime
            && self.next.is_multiple_of(PER_QUARTER)
        {
            if self.left[quarter] != 0 {
                let left = Instant::ZERO + Duration::from_secs((self.left[quarter] - 1).into());
                let free = left + lifetime;
                if now < free {
                    return Err(free);
                }
            }
            let seconds = divide(now.as_nanos().saturating_add(999_999_999), 1_000_000_000) + 1;
            self.left[before] = u32::try_from(seconds).unwrap_or(u32::MAX);
            self.left[quarter] = 0;
        }
        let id = MessageId(self.next);
        self.next = self.next.wrapping_add(1);
        self.waits = false;
        Ok(id)
    }

    /// A message waits for a free ID. Returns true if none has waited since an ID was given.
    #[cfg_attr(
        not(feature = "alloc"),
        expect(dead_code, reason = "the endpoint in fixed tables counts nothing")
    )]
    pub(crate) const fn begin_wait(&mut self) -> bool {
        !core::mem::replace(&mut self.waits, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::vec::Vec;

    const LIFETIME: Duration = Duration::from_secs(247);

    #[test]
    fn an_id_is_never_given_twice_within_the_lifetime_however_fast_one_asks() {
        let mut ids = MessageIds::new(40_000);
        let mut last: HashMap<u16, u64> = HashMap::new();
        let mut now = 0;
        let mut given = 0;
        while given < 300_000 {
            match ids.allocate(Instant::from_nanos(now), Some(LIFETIME)) {
                Ok(MessageId(id)) => {
                    if let Some(before) = last.insert(id, now) {
                        assert!(now - before >= 247_000_000_000, "{id} again after {before}");
                    }
                    given += 1;
                    now += 500_000;
                }
                Err(free) => {
                    assert!(free.as_nanos() > now);
                    now = free.as_nanos();
                }
            }
        }
    }

    #[test]
    fn at_a_modest_rate_an_id_is_always_there() {
        let mut ids = MessageIds::new(0);
        for n in 0..200_000u64 {
            // 190 a second, below the 199 that the quarters allow.
            let now = Instant::from_nanos(n * 1_000_000_000 / 190);
            assert!(ids.allocate(now, Some(LIFETIME)).is_ok(), "message {n}");
        }
    }

    #[test]
    fn without_a_lifetime_ids_go_round() {
        let mut ids = MessageIds::new(65_534);
        let given: Vec<u16> =
            (0..3).filter_map(|_| ids.allocate(Instant::ZERO, None).ok()).map(|id| id.0).collect();
        assert_eq!(given, [65_534, 65_535, 0]);
    }
}
