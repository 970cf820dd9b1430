//! The fates of the frames of a LoRaWAN cell.

use crate::medium::RadioTime;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Frames and packets of a LoRaWAN cell, of all devices together.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoraFrames {
    /// Frames that devices sent.
    pub uplinks: u64,
    /// Empty uplinks: the gateway had announced a further packet (FPending).
    pub polls: u64,
    /// Uplinks that met another one on their channel.
    pub collided: u64,
    /// Uplinks during which the gateway transmitted.
    pub deaf: u64,
    /// Frames that could not be read for another reason, both ways.
    pub faded: u64,
    /// Frames that the gateway sent in first and in second windows.
    pub downlinks: [u64; 2],
    /// Packets that a device did not take because its queue was full, and those that the gateway did not
    /// take for a device.
    pub overflows: [u64; 2],
}

impl AddAssign<&Self> for LoraFrames {
    fn add_assign(&mut self, other: &Self) {
        self.uplinks += other.uplinks;
        self.polls += other.polls;
        self.collided += other.collided;
        self.deaf += other.deaf;
        self.faded += other.faded;
        for index in 0..2 {
            self.downlinks[index] += other.downlinks[index];
            self.overflows[index] += other.overflows[index];
        }
    }
}

/// The counts of a LoRaWAN cell.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoraCounts {
    /// Its frames.
    #[serde(flatten)]
    pub frames: LoraFrames,
    /// How long the gateway transmitted in first and in second windows, ns.
    pub downlink_ns: [u64; 2],
    /// How long the radios of the devices were on, all added up.
    pub radio: RadioTime,
}
