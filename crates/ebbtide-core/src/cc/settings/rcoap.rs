//! The settings of `rcoap`.

use crate::time::Micros;

/// The settings of `rcoap`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RcoapSettings {
    /// IPI_min, the minimum time between two messages; the maximum rate is its inverse.
    pub ipi_min: Micros,
    /// The initial time between messages, 1/R_start; `None` to estimate it from the spacing of the first
    /// answers.
    pub start_interval: Option<Micros>,
}

impl RcoapSettings {
    pub(in crate::cc) const DEFAULT: Self =
        Self { ipi_min: Micros::from_millis(1), start_interval: None };
}
