//! Counts of a cell of NB-IoT, and the energy of its devices.

use serde::{Deserialize, Serialize};

/// The counts of a cell of NB-IoT, of all devices together.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NbIotCounts {
    /// Random accesses that began.
    pub accesses: u64,
    /// Those that the network had asked for by paging.
    pub paged: u64,
    /// Preambles.
    pub preambles: u64,
    /// Preambles that met another one on their subcarrier.
    pub collided: u64,
    /// Preambles that the network missed although nothing collided.
    pub missed: u64,
    /// Random accesses that went to the next coverage level.
    pub raised: u64,
    /// Random accesses that were given up, with all packets that waited for them.
    pub given_up: u64,
    /// From the beginning of random accesses to their connections, summed, ns.
    pub access_ns: u64,
    /// Connections.
    pub connections: u64,
    /// Packets for which the queue of a device, and that in the network, was full.
    pub overflows: [u64; 2],
    /// Where the devices' time went.
    pub times: NbIotTimes,
}

/// How long devices were in each state, all added up, ns. They slept (PSM) for the rest of the time.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NbIotTimes {
    /// Transmitting: preambles, signalling and packets.
    pub transmit_ns: u64,
    /// Receiving or listening: in a random access or with a connection, and not transmitting.
    pub listen_ns: u64,
    /// Without a connection, listening in its paging occasions.
    pub idle_ns: u64,
}

/// The power of a device in each state, mW.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct NbIotPower {
    /// Transmitting.
    pub transmit_mw: f64,
    /// Receiving or listening.
    pub listen_mw: f64,
    /// Without a connection, between and within its paging occasions.
    pub idle_mw: f64,
    /// In the power saving mode.
    pub sleep_mw: f64,
}

impl NbIotPower {
    /// The powers of transmission and sleep of 3GPP's study of battery lives (TR 45.820, by the method of section 5.4),
    /// as M. Sauter quotes them in "From GSM to LTE-Advanced Pro and 5G" (p. 318). Those of listening and idle are
    /// assumptions: models of devices in that report take 80 to 100 mW, and 3 to 10 mW.
    pub const TR_45_820: Self =
        Self { transmit_mw: 500.0, listen_mw: 80.0, idle_mw: 3.0, sleep_mw: 0.015 };

    /// The energy, in mJ, of `times` within `elapsed_ns`.
    pub fn millijoules(&self, times: NbIotTimes, elapsed_ns: u64) -> f64 {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let awake = times.transmit_ns + times.listen_ns + times.idle_ns;
        seconds(times.transmit_ns) * self.transmit_mw
            + seconds(times.listen_ns) * self.listen_mw
            + seconds(times.idle_ns) * self.idle_mw
            + seconds(elapsed_ns.saturating_sub(awake)) * self.sleep_mw
    }
}
