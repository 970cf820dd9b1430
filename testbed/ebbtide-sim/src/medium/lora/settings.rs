//! The settings of a LoRaWAN cell, which are also the keys of `[network.lora]`.

use super::airtime::{Modulation, airtime};
use crate::keys::{Check, keys, require};
use serde::{Deserialize, Serialize};

keys! {
    /// Class A devices around one gateway.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Lora {
        /// The spreading factors, 7 to 12, that the devices take in turn.
        pub spreading_factors: Vec<u8> where 7..=12,
        /// The channels among which each uplink chooses at random. All are in one band, whose duty cycle they
        /// share.
        pub channels: u8 where 1..=80,
        /// The share of the time for which a device, and the gateway in first windows, may transmit.
        pub duty_cycle: f64 where 1e-6..=1.0,
        /// The spreading factor of the second windows.
        pub second_window_spreading_factor: u8 where 7..=12,
        /// The share of the time for which the gateway may transmit in second windows, which have a band of their
        /// own.
        pub second_window_duty_cycle: f64 where 1e-6..=1.0,
        /// The share of frames that cannot be read although nothing collided, 0 to below 1.
        pub frame_loss: f64 where 0.0..1.0,
        /// Packets that may wait at a device, and for each device at the gateway; further packets are dropped.
        pub queue: u32 where 1..=10_000 => "packets",
    }
}

impl Default for Lora {
    fn default() -> Self {
        Self {
            spreading_factors: vec![9],
            channels: 3,
            duty_cycle: 0.01,
            second_window_spreading_factor: 12,
            second_window_duty_cycle: 0.1,
            frame_loss: 0.0,
            queue: 4,
        }
    }
}

/// The bandwidth of all channels, Hz (LoRaWAN Regional Parameters 1.0.3, section 2.2.3, DR0 to DR5).
const BANDWIDTH: u32 = 125_000;
/// Bytes of a frame without a packet: MHDR 1, DevAddr 4, FCtrl 1, FCnt 2, MIC 4 (LoRaWAN 1.0.3, section 4).
const FRAME: u32 = 12;
/// FPort, which precedes a packet.
const PORT: u32 = 1;

impl Lora {
    /// Checks what parses but is impossible with packets of at most `mtu` bytes and so many flows of TCP in the
    /// background.
    pub(crate) fn check(&self, mtu: u32, background_flows: u32) -> Check {
        let key = |key: &str| format!("network.lora.{key}");
        require(
            !self.spreading_factors.is_empty(),
            &key("spreading_factors"),
            "must be one spreading factor at least, each from 7 to 12",
        )?;
        let longest = self.longest_packet();
        require(
            mtu <= longest,
            "network.mtu",
            &format!(
                "must be at most {longest} bytes with these spreading factors of [network.lora], the one of second \
                 windows included: 51 from SF10 on, 115 with SF9, 242 with SF7 and SF8"
            ),
        )?;
        require(
            background_flows == 0,
            "network.background.flows",
            "must be 0 with [network.lora], which carries UDP only",
        )
    }

    /// The spreading factor of a device.
    #[must_use]
    pub fn spreading_factor(&self, device: u32) -> u8 {
        let place = device as usize % self.spreading_factors.len().max(1);
        self.spreading_factors.get(place).copied().unwrap_or(12)
    }

    /// The modulation of a device's transmissions.
    #[must_use]
    pub fn uplink(&self, device: u32) -> Modulation {
        Self::modulation(self.spreading_factor(device), true)
    }

    /// The modulation in a device's first (0) or second (1) window: the first has the spreading factor of its
    /// uplink (RX1DROffset 0).
    #[must_use]
    pub fn downlink(&self, device: u32, window: usize) -> Modulation {
        let own = self.spreading_factor(device);
        let factor = if window == 0 { own } else { self.second_window_spreading_factor };
        Self::modulation(factor, false)
    }

    const fn modulation(spreading_factor: u8, has_crc: bool) -> Modulation {
        Modulation { spreading_factor, bandwidth: BANDWIDTH, coding_rate: 1, has_crc }
    }

    /// The time on the air of a packet of so many bytes or, without one, of an empty frame, ns.
    #[must_use]
    pub fn frame_ns(modulation: Modulation, packet: Option<u32>) -> u64 {
        airtime(modulation, packet.map_or(FRAME, |bytes| FRAME + PORT + bytes))
    }

    /// The shortest time between the starts of two uplinks of packets of `bytes`, with the fastest modulation
    /// in use, s.
    #[must_use]
    pub fn least_interval_s(&self, bytes: f64) -> f64 {
        let factor = self.spreading_factors.iter().min().copied().unwrap_or(12);
        let time = Self::frame_ns(Self::modulation(factor, true), Some(bytes as u32));
        time as f64 / 1e9 / self.duty_cycle
    }

    /// The longest packet that every device can send and receive in both windows, bytes (Regional Parameters
    /// 1.0.3, section 2.2.6, the column N of the table without repeaters).
    #[must_use]
    pub fn longest_packet(&self) -> u32 {
        let factors = self.spreading_factors.iter().chain([&self.second_window_spreading_factor]);
        match factors.max() {
            Some(..=8) => 242,
            Some(9) => 115,
            _ => 51,
        }
    }
}
