//! Loss on the link, after the queue.

use crate::random::{Probability, exponential};
use ebbtide_core::time::Instant;
use rand_core::Rng;

/// A model of packet losses.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LossModel {
    /// No packet is lost.
    None,
    /// Each packet is lost with the same probability, independently.
    Independent(Probability),
    /// A good and a bad state that change from packet to packet. Bursts are counted in packets, so
    /// a busy link passes through them faster.
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
    /// A good and a bad state that change with time, independently of the packets. Only this model
    /// gives compared controls the same losses.
    TimeDriven {
        /// Loss in the good state.
        good: Probability,
        /// Loss in the bad state.
        bad: Probability,
        /// Mean duration of the good state, ns.
        mean_good_ns: u64,
        /// Mean duration of the bad state, ns.
        mean_bad_ns: u64,
        /// Share of time in the bad state, which determines the start.
        bad_share: Probability,
    },
}

impl LossModel {
    /// This share of the packets, each independently of the others.
    pub fn of_share(share: f64) -> Self {
        if share > 0.0 { Self::Independent(Probability::new(share)) } else { Self::None }
    }
}

/// A [`LossModel`] with its present state.
#[derive(Clone, Debug)]
pub struct Loss<R> {
    model: LossModel,
    /// The current state; `None` before the first packet.
    is_bad: Option<bool>,
    /// When the current state ends, for the time-driven model.
    until: u64,
    /// Draws the fate of each packet, and the states that change from packet to packet.
    packets: R,
    /// Draws the states that change with time. It is a separate stream, so that they do not depend
    /// on the number of packets.
    states: R,
}

impl<R: Rng> Loss<R> {
    /// `packets` draws the fates of packets, `states` the durations of the time-driven model.
    pub const fn new(model: LossModel, packets: R, states: R) -> Self {
        Self { model, is_bad: None, until: 0, packets, states }
    }

    /// Whether a packet that leaves the queue at `now` is lost. Calls must be in the order of
    /// time.
    #[inline]
    pub fn loses(&mut self, now: Instant) -> bool {
        match self.model {
            LossModel::None => false,
            LossModel::Independent(probability) => probability.draw(&mut self.packets),
            LossModel::PerPacket { good, bad, worsen, recover } => {
                // The chain starts in the good state: the first packets of a run do not differ
                // from those after an idle period.
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
            // The duration of the state at time zero. It is memoryless, so a whole duration counts
            // from there.
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
