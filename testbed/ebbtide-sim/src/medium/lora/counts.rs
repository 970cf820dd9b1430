//! The fates of the frames of a LoRaWAN cell.

use super::adr::{LEAST_POWER, LinkParameters};
use super::reception::Obstacle;
use crate::medium::{Energy, RadioTime};
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Frames and packets of a LoRaWAN cell, of all devices together.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoraFrames {
    /// Frames that devices sent.
    pub uplinks: u64,
    /// Uplinks without a packet: they ask for one that the network announced (FPending), or answer a request of
    /// the adaptive data rate beside which the next packet finds no room.
    pub polls: u64,
    /// Uplinks that no gateway read, and that met another one where they were strongest.
    pub collided: u64,
    /// Uplinks that no gateway read, during which the one where they were strongest transmitted.
    pub deaf: u64,
    /// Frames that could not be read for another reason, both ways.
    pub faded: u64,
    /// Frames that were too weak, both ways.
    #[serde(default)]
    pub weak: u64,
    /// Requests of the adaptive data rate that reached their device.
    #[serde(default)]
    pub adapted: u64,
    /// Frames that gateways sent in first and in second windows.
    pub downlinks: [u64; 2],
    /// Packets that a device did not take because its queue was full, and those that the network
    /// server did not take for a device.
    pub overflows: [u64; 2],
}

impl AddAssign<&Self> for LoraFrames {
    fn add_assign(&mut self, other: &Self) {
        self.uplinks += other.uplinks;
        self.polls += other.polls;
        self.collided += other.collided;
        self.deaf += other.deaf;
        self.faded += other.faded;
        self.weak += other.weak;
        self.adapted += other.adapted;
        for index in 0..2 {
            self.downlinks[index] += other.downlinks[index];
            self.overflows[index] += other.overflows[index];
        }
    }
}

impl LoraFrames {
    /// A frame was not read.
    pub(super) fn lost(&mut self, obstacle: Obstacle) {
        *match obstacle {
            Obstacle::Weak => &mut self.weak,
            Obstacle::Collided => &mut self.collided,
            Obstacle::Deaf => &mut self.deaf,
            Obstacle::Faded => &mut self.faded,
        } += 1;
    }
}

/// The counts of a LoRaWAN cell.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoraCounts {
    /// Its frames.
    #[serde(flatten)]
    pub frames: LoraFrames,
    /// Its gateways.
    #[serde(default)]
    pub gateways: u32,
    /// The spreading factors of all uplinks, added up.
    #[serde(default)]
    pub spreading_factors: u64,
    /// How long devices transmitted with their power reduced by one step of 3 dB, by two and so on, ns.
    #[serde(default)]
    pub reduced_ns: [u64; LEAST_POWER as usize],
    /// How long gateways transmitted in first and in second windows, ns.
    pub downlink_ns: [u64; 2],
    /// How long the radios of the devices were on, all added up.
    pub radio: RadioTime,
}

/// The power of an SX1276 at 3.3 V by steps of 3 dB below 13 dBm, mW. Its data sheet (table 6) has 29 mA at 13 dBm and
/// 20 mA at 7 dBm. An assumption: the mean of both at 10 dBm, and no less than at 7 dBm below that.
const REDUCED_MW: [f64; LEAST_POWER as usize] = [80.85, 66.0, 66.0, 66.0];

impl LoraCounts {
    /// A device transmits.
    pub(super) fn transmitted(&mut self, link: LinkParameters, time: u64) {
        self.radio.transmit_ns += time;
        self.spreading_factors += u64::from(link.spreading_factor);
        if let Some(step) = link.reduction.checked_sub(1) {
            self.reduced_ns[usize::from(step)] += time;
        }
    }

    /// The energy of all radios of devices, in mJ, of which `elapsed_ns` have passed, all added up.
    pub fn millijoules(&self, elapsed_ns: u64) -> f64 {
        let full = Energy::SX1276;
        let spared = self.reduced_ns.iter().zip(REDUCED_MW);
        let spared = spared.map(|(ns, reduced)| *ns as f64 / 1e9 * (full.transmit_mw - reduced));
        full.millijoules(self.radio, elapsed_ns) - spared.sum::<f64>()
    }
}
