//! The energy that a radio consumes.

use serde::{Deserialize, Serialize};

/// How long a radio was in each state, ns. It slept for the rest of the time.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RadioTime {
    /// Transmitting.
    pub transmit_ns: u64,
    /// Listening or receiving.
    pub listen_ns: u64,
}

/// The power of a radio in each state, mW.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Energy {
    /// Transmitting.
    pub transmit_mw: f64,
    /// Listening or receiving.
    pub listen_mw: f64,
    /// Asleep.
    pub sleep_mw: f64,
}

impl Energy {
    /// The radio of the motes of both studies at 3 V: 17.4 mA at 0 dBm, 18.8 mA receiving, 20 µA
    /// in power-down (CC2420 data sheet, table 5).
    pub const CC2420: Self = Self { transmit_mw: 52.2, listen_mw: 56.4, sleep_mw: 0.06 };

    /// A LoRa radio at 3.3 V: 29 mA at 13 dBm, 11.5 mA receiving, 0.2 µA asleep (SX1276/77/78/79 data sheet,
    /// table 6).
    pub const SX1276: Self = Self { transmit_mw: 95.7, listen_mw: 37.95, sleep_mw: 0.000_66 };

    /// The energy, in mJ, of `time` within `elapsed_ns`.
    pub fn millijoules(&self, time: RadioTime, elapsed_ns: u64) -> f64 {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let asleep = elapsed_ns.saturating_sub(time.transmit_ns + time.listen_ns);
        seconds(time.transmit_ns) * self.transmit_mw
            + seconds(time.listen_ns) * self.listen_mw
            + seconds(asleep) * self.sleep_mw
    }
}
