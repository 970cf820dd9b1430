//! Loss on the link, after the queue.

use crate::random::{Probability, exponential};
use ebbtide_core::time::Instant;
use rand_core::Rng;

/// How packets are lost.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LossModel {
    /// None is.
    None,
    /// Each with the same probability, independently.
    Independent(Probability),
    /// A good and a bad state that change from packet to packet. Bursts are counted in packets, so
    /// that a busy link passes through them faster.
    PerPacket {
        /// Loss in the good state.
        good: Probability,
        /// Loss in the bad state.
        bad: Probability,
        /// From good to bad, per packet.
        worsen: Probability,
        /// From bad to good, per packet.
        recover: Probability,
    },
    /// A good and a bad state that change with time, whether there are packets or not: the only
    /// kind that gives compared controls the same luck.
    TimeDriven {
        /// Loss in the good state.
        good: Probability,
        /// Loss in the bad state.
        bad: Probability,
        /// Mean stay in the good state, ns.
        mean_good_ns: u64,
        /// Mean stay in the bad state, ns.
        mean_bad_ns: u64,
        /// Share of time in the bad state, for the start.
        bad_share: Probability,
    },
}

/// A [`LossModel`] at work.
#[derive(Clone, Debug)]
pub struct Loss<R> {
    model: LossModel,
    /// The current state; `None` before the first packet.
    is_bad: Option<bool>,
    /// When the current state ends, for the time-driven kind.
    until: u64,
    /// The fate of each packet, and the states that change from packet to packet.
    packets: R,
    /// The states that change with time: a stream of their own, so that they do not depend on how
    /// many packets there were.
    states: R,
}

impl<R: Rng> Loss<R> {
    /// `packets` draws what happens to packets, `states` the stays of the time-driven kind.
    pub const fn new(model: LossModel, packets: R, states: R) -> Self {
        Self { model, is_bad: None, until: 0, packets, states }
    }

    /// Whether a packet that leaves the queue at `now` is lost. Calls are in the order of time.
    #[inline]
    pub fn loses(&mut self, now: Instant) -> bool {
        match self.model {
            LossModel::None => false,
            LossModel::Independent(probability) => probability.draw(&mut self.packets),
            LossModel::PerPacket { good, bad, worsen, recover } => {
                // The chain starts good: the first packets of a run are no different from those
                // after any quiet spell.
                let was_bad = self.is_bad.unwrap_or(false);
                let leaves = if was_bad { recover } else { worsen }.draw(&mut self.packets);
                let is_bad = was_bad ^ leaves;
                self.is_bad = Some(is_bad);
                if is_bad { bad } else { good }.draw(&mut self.packets)
            }
            LossModel::TimeDriven { good, bad, .. } => {
                let is_bad = self.state_at(now.as_nanos());
                if is_bad { bad } else { good }.draw(&mut self.packets)
            }
        }
    }

    /// The state of the time-driven chain.
    fn state_at(&mut self, now: u64) -> bool {
        let LossModel::TimeDriven { mean_good_ns, mean_bad_ns, bad_share, .. } = self.model else {
            return false;
        };
        let mut is_bad = match self.is_bad {
            Some(is_bad) => is_bad,
            // The stay that covers time zero: memoryless, so a whole one from there.
            None => !bad_share.draw(&mut self.states),
        };
        while self.is_bad.is_none() || self.until <= now {
            is_bad = !is_bad;
            let mean = if is_bad { mean_bad_ns } else { mean_good_ns };
            let stay = exponential(&mut self.states, mean).max(1);
            self.until = self.until.saturating_add(stay);
            self.is_bad = Some(is_bad);
        }
        is_bad
    }
}
