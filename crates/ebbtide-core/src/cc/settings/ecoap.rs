//! The settings of `ecoap-rpl`.

use crate::time::Micros;

/// The settings of `ecoap-rpl`, which its publication lets a controller send to the devices.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EcoapSettings {
    /// The minimum of the first timeout.
    pub min: Micros,
    /// The maximum of the first timeout; `min` where it is shorter.
    pub max: Micros,
    /// The growth of both with each try, in percent.
    pub growth_percent: u16,
}

impl EcoapSettings {
    pub(in crate::cc) const DEFAULT: Self = Self {
        min: Micros::from_millis(2000),
        max: Micros::from_millis(3000),
        growth_percent: 150,
    };
}
