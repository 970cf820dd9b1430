//! Putting fragments together again (RFC 4944 section 5.3), a bounded number at a time.

use ebbtide_core::time::{Duration, Instant};

#[derive(Copy, Clone, Debug)]
struct Partial {
    from: u32,
    /// The sender's datagram_tag.
    tag: u32,
    /// How many fragments have arrived. A sender sends them in order and a MAC drops copies, so
    /// that counting is enough.
    arrived: u32,
    since: Instant,
}

/// The incomplete datagrams of a node.
#[derive(Clone, Debug)]
pub(super) struct Reassembly {
    partials: Vec<Partial>,
    most: usize,
    timeout: Duration,
}

impl Reassembly {
    pub(super) const fn new(most: u32, timeout_ns: u64) -> Self {
        let timeout = Duration::from_nanos(timeout_ns);
        Self { partials: Vec::new(), most: most as usize, timeout }
    }

    /// A fragment of a datagram of `count` arrives. Whether the datagram is complete now; one for
    /// which there is no room never is.
    pub(super) fn arrived(&mut self, now: Instant, from: u32, tag: u32, count: u32) -> bool {
        if count == 1 {
            return true;
        }
        let timeout = self.timeout;
        self.partials.retain(|partial| now - partial.since < timeout);
        let known = self.partials.iter().position(|p| p.from == from && p.tag == tag);
        let index = match known {
            Some(index) => index,
            None if self.partials.len() < self.most => {
                self.partials.push(Partial { from, tag, arrived: 0, since: now });
                self.partials.len() - 1
            }
            None => return false,
        };
        let partial = &mut self.partials[index];
        partial.arrived += 1;
        let is_complete = partial.arrived == count;
        if is_complete {
            self.partials.swap_remove(index);
        }
        is_complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_that_does_not_fit_waits_for_the_timeout_of_the_present_ones() {
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let mut reassembly = Reassembly::new(1, 8_000_000_000);
        assert!(reassembly.arrived(at(0), 1, 7, 1));
        assert!(!reassembly.arrived(at(0), 1, 8, 2));
        // No room for another sender's, not even for all of it.
        assert!(!reassembly.arrived(at(1), 2, 1, 2));
        assert!(!reassembly.arrived(at(1), 2, 1, 2));
        assert!(reassembly.arrived(at(2), 1, 8, 2));
        assert!(!reassembly.arrived(at(3), 1, 9, 2));
        // The lost one makes room after 8 s.
        assert!(!reassembly.arrived(at(11), 2, 2, 2));
        assert!(reassembly.arrived(at(11), 2, 2, 2));
    }
}
