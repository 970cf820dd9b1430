//! Packets that are dropped on purpose.

use ebbtide_core::time::Instant;

/// Packets of a link that are dropped on purpose. Like all losses, these take place after the
/// queue.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetedLoss {
    /// The number of consecutive packets to drop.
    pub count: u32,
    /// Only packets of this client; `None` means all clients.
    pub client: Option<u32>,
    /// Only packets that leave the queue at this instant or later.
    pub after: Instant,
    /// The number of matching packets that pass first.
    pub skip: u32,
}

/// A [`TargetedLoss`] with the number of packets that it has seen.
#[derive(Copy, Clone, Debug)]
pub(super) struct Targeting {
    target: TargetedLoss,
    /// The number of matching packets so far.
    seen: u32,
}

impl Targeting {
    pub(super) const fn new(target: TargetedLoss) -> Self {
        Self { target, seen: 0 }
    }

    /// Whether a packet of `client` that leaves the queue at `now` is dropped. Calls must be in
    /// the order of time.
    pub(super) fn loses(&mut self, now: Instant, client: Option<u32>) -> bool {
        let TargetedLoss { count, client: whose, after, skip } = self.target;
        if now < after || (whose.is_some() && whose != client) {
            return false;
        }
        let place = self.seen;
        self.seen = self.seen.saturating_add(1);
        skip <= place && place - skip < count
    }
}
