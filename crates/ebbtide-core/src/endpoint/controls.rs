//! The controls of an endpoint's peers, and what was counted under each.

use super::{ControlCounters, SharedConfig};
use crate::cc::ControlConfig;
use alloc::vec::Vec;
use core::ops::Index;

/// The controls that peers refer to by number: 0 is the default, the others were chosen for a scope.
pub(super) struct Controls {
    config: SharedConfig,
    others: Vec<ControlConfig>,
    /// The counters of each; empty if nothing is to be counted.
    counters: Vec<ControlCounters>,
}

impl Controls {
    pub(super) fn new(config: SharedConfig) -> Self {
        let counters = match config.count_per_control {
            true => alloc::vec![ControlCounters::default()],
            false => Vec::new(),
        };
        Self { config, others: Vec::new(), counters }
    }

    /// The number of a control, given to it now if it has none; `None` if 256 different ones are in
    /// use.
    pub(super) fn number_of(&mut self, control: ControlConfig) -> Option<u8> {
        if control == self.config.control {
            return Some(0);
        }
        let place = match self.others.iter().position(|other| *other == control) {
            Some(place) => place,
            None if self.others.len() < usize::from(u8::MAX) => {
                self.others.push(control);
                if self.config.count_per_control {
                    self.counters.push(ControlCounters::default());
                }
                self.others.len() - 1
            }
            None => return None,
        };
        u8::try_from(place + 1).ok()
    }

    /// Counts something under the control of this number, if that is wanted.
    #[inline]
    pub(super) fn count(&mut self, number: usize, what: impl FnOnce(&mut ControlCounters)) {
        if let Some(counters) = self.counters.get_mut(number) {
            what(counters);
        }
    }

    /// Each control with what was counted under it; none if nothing was to be counted.
    pub(super) fn counted(&self) -> impl Iterator<Item = (&ControlConfig, &ControlCounters)> {
        core::iter::once(&self.config.control).chain(&self.others).zip(&self.counters)
    }
}

impl Index<usize> for Controls {
    type Output = ControlConfig;

    #[inline]
    fn index(&self, number: usize) -> &ControlConfig {
        match number {
            0 => &self.config.control,
            _ => &self.others[number - 1],
        }
    }
}
