//! The way of a packet behind the serialiser.

use super::targeted_loss::{TargetedLoss, Targeting};
use super::{Delay, Fate, Loss, Schedule};
use ebbtide_core::time::Instant;
use rand_core::Rng;
use std::ops::Range;
use std::sync::Arc;

/// The way behind a link's serialiser: losses, then a delay.
#[derive(Clone, Debug)]
pub(super) struct Propagation<R> {
    delay: Delay,
    /// Whose delays hold instead of `delay`.
    schedule: Option<Arc<Schedule>>,
    loss: Loss<R>,
    targeting: Vec<Targeting>,
    /// Times in which nothing crosses, ns.
    outages: Vec<Range<u64>>,
    rng: R,
}

impl<R: Rng> Propagation<R> {
    pub(super) const fn new(delay: Delay, loss: Loss<R>, rng: R) -> Self {
        Self { delay, schedule: None, loss, targeting: Vec::new(), outages: Vec::new(), rng }
    }

    pub(super) fn follow(&mut self, schedule: Arc<Schedule>) {
        self.schedule = Some(schedule);
    }

    pub(super) fn add_losses(&mut self, targets: impl IntoIterator<Item = TargetedLoss>) {
        self.targeting.extend(targets.into_iter().map(Targeting::new));
    }

    pub(super) fn add_outages(&mut self, outages: impl IntoIterator<Item = Range<u64>>) {
        self.outages.extend(outages);
    }

    /// The fate of a packet that has left the serialiser at `left`. Calls are in the order of time.
    #[inline]
    pub(super) fn cross(&mut self, left: Instant, client: Option<u32>) -> Fate {
        let mut is_lost = self.loss.loses(left);
        for targeting in &mut self.targeting {
            is_lost |= targeting.loses(left, client);
        }
        is_lost |= self.outages.iter().any(|outage| outage.contains(&left.as_nanos()));
        if is_lost {
            return Fate::Lost { left };
        }
        let delay = match &self.schedule {
            None => self.delay,
            Some(schedule) => schedule.delay_at(left.as_nanos()),
        };
        let delay = delay.draw(&mut self.rng);
        Fate::Delivered { at: Instant::from_nanos(left.as_nanos().saturating_add(delay)) }
    }
}
