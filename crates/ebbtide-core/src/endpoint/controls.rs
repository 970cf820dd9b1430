//! The controls of an endpoint's peers, and what was counted under each.

use super::{ControlCounters, SharedConfig};
use crate::cc::ControlConfig;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Index;

/// The controls that peers refer to by number: 0 is the default, the others were chosen for a scope.
pub(super) struct Controls {
    config: SharedConfig,
    /// `None` until another control is chosen or something is to be counted, because a device may
    /// never need it.
    more: Option<Box<FurtherControls>>,
}

#[derive(Default)]
struct FurtherControls {
    others: Vec<ControlConfig>,
    /// The counters of each; empty if nothing is to be counted.
    counters: Vec<ControlCounters>,
}

impl Controls {
    pub(super) fn new(config: SharedConfig) -> Self {
        let more = config.count_per_control.then(|| {
            Box::new(FurtherControls {
                others: Vec::new(),
                counters: alloc::vec![ControlCounters::default()],
            })
        });
        Self { config, more }
    }

    /// The number of a control, given to it now if it has none; `None` if 256 different ones are in
    /// use.
    pub(super) fn number_of(&mut self, control: ControlConfig) -> Option<u8> {
        if control == self.config.control {
            return Some(0);
        }
        let more = self.more.get_or_insert_default();
        let place = match more.others.iter().position(|other| *other == control) {
            Some(place) => place,
            None if more.others.len() < usize::from(u8::MAX) => {
                more.others.push(control);
                if self.config.count_per_control {
                    more.counters.push(ControlCounters::default());
                }
                more.others.len() - 1
            }
            None => return None,
        };
        u8::try_from(place + 1).ok()
    }

    /// Counts something under the control of this number, if that is wanted.
    #[inline]
    pub(super) fn count(&mut self, number: usize, what: impl FnOnce(&mut ControlCounters)) {
        if let Some(counters) = self.more.as_mut().and_then(|more| more.counters.get_mut(number)) {
            what(counters);
        }
    }

    /// Each control with what was counted under it; none if nothing was to be counted.
    pub(super) fn counted(&self) -> impl Iterator<Item = (&ControlConfig, &ControlCounters)> {
        let (others, counters) = match &self.more {
            Some(more) => (more.others.as_slice(), more.counters.as_slice()),
            None => (&[][..], &[][..]),
        };
        core::iter::once(&self.config.control).chain(others).zip(counters)
    }
}

impl Index<usize> for Controls {
    type Output = ControlConfig;

    #[inline]
    fn index(&self, number: usize) -> &ControlConfig {
        // A number above 0 was given to a control of `others`.
        match number.checked_sub(1).zip(self.more.as_ref()) {
            None => &self.config.control,
            Some((place, more)) => &more.others[place],
        }
    }
}
