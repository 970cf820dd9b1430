//! Random access: which preambles meet. Sections are those of TS 36.321.

use super::settings::NbIot;
use crate::random::{Probability, Streams, uniform};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// The fate of a preamble.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Preamble {
    /// The network heard it alone.
    Heard,
    /// Another device has chosen the same subcarrier.
    Collided,
    /// The network did not hear it.
    Missed,
}

/// An opportunity for preambles.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Occasion {
    /// When preambles begin, ns.
    pub(super) start: u64,
    pub(super) level: usize,
}

/// The preambles of all levels.
#[derive(Debug)]
pub(super) struct RandomAccess {
    period: u64,
    subcarriers: u64,
    missed: Probability,
    /// The devices of each opportunity to come, with their subcarriers.
    chosen: BTreeMap<Occasion, Vec<(u32, u64)>>,
    choices: ChaCha8Rng,
    detection: ChaCha8Rng,
}

impl RandomAccess {
    pub(super) fn new(settings: &NbIot, streams: &Streams) -> Self {
        Self {
            period: settings.preamble_period.0,
            subcarriers: u64::from(settings.subcarriers),
            missed: Probability::new(settings.missed_preambles),
            chosen: BTreeMap::new(),
            choices: streams.stream("nb_iot/access"),
            detection: streams.stream("nb_iot/detection"),
        }
    }

    /// A device sends a preamble at the next opportunity of its level from `now` on. Returns that,
    /// and whether the device is the first one in it.
    pub(super) fn choose(&mut self, now: u64, device: u32, level: usize) -> (Occasion, bool) {
        let start = now.div_ceil(self.period).saturating_mul(self.period);
        let occasion = Occasion { start, level };
        // Each subcarrier with the same probability (section 5.1.2).
        let subcarrier = uniform(&mut self.choices, 1, self.subcarriers);
        let devices = self.chosen.entry(occasion).or_default();
        devices.push((device, subcarrier));
        (occasion, devices.len() == 1)
    }

    /// The devices of an opportunity that is over, and the fates of their preambles.
    pub(super) fn ends(&mut self, occasion: Occasion) -> Vec<(u32, Preamble)> {
        let devices = self.chosen.remove(&occasion).unwrap_or_default();
        let mut users = vec![0u32; self.subcarriers as usize + 1];
        for (_, subcarrier) in &devices {
            users[*subcarrier as usize] += 1;
        }
        let outcome = |(device, subcarrier): (u32, u64)| {
            let is_missed = self.missed.draw(&mut self.detection);
            let preamble = match users[subcarrier as usize] {
                0 | 1 if is_missed => Preamble::Missed,
                0 | 1 => Preamble::Heard,
                _ => Preamble::Collided,
            };
            (device, preamble)
        };
        devices.into_iter().map(outcome).collect()
    }

    /// The time that a device waits after a preamble that failed (section 5.1.4), ns.
    pub(super) fn backoff(&mut self, most: u64) -> u64 {
        uniform(&mut self.choices, 0, most)
    }
}
