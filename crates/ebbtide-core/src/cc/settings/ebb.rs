//! The settings of `ebb`.

use crate::cc::Marking;

/// The settings of `ebb`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EbbSettings {
    /// How transmissions are marked.
    pub mark: Marking,
    /// How often a message is repeated after the same short timeout while there is no queue.
    pub copies: u8,
    /// The interval after a probe, over the base of the intervals while nothing is known of the path.
    pub probe_growth: u8,
    /// The minimum margin of the timeout above SRTT, in percent of SRTT.
    pub margin_percent: u8,
    /// The width over which the timeout is spread, in percent of SRTT.
    pub dither_percent: u8,
}

impl EbbSettings {
    pub(in crate::cc) const DEFAULT: Self = Self {
        mark: Marking::CopyToken,
        copies: 4,
        probe_growth: 7,
        margin_percent: 10,
        dither_percent: 10,
    };
}
