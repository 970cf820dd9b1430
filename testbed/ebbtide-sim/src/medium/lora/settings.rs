//! The settings of a LoRaWAN cell, which are also the keys of `[network.lora]`.

use super::airtime::{Modulation, airtime};
use crate::keys::{Check, keys, require};
use serde::{Deserialize, Serialize};

keys! {
    /// Class A devices around gateways.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Lora {
        /// The spreading factors, 7 to 12, that the devices take in turn; with `adr_margin` their first ones.
        pub spreading_factors: Vec<u8> where 7..=12,
        /// The channels among which each uplink chooses at random. All are in one band, whose duty cycle they
        /// share.
        pub channels: u8 where 1..=80,
        /// The share of the time for which a device, and a gateway in first windows, may transmit.
        pub duty_cycle: f64 where 1e-6..=1.0,
        /// The spreading factor of the second windows.
        pub second_window_spreading_factor: u8 where 7..=12,
        /// The share of the time for which a gateway may transmit in second windows, which have a band of their
        /// own.
        pub second_window_duty_cycle: f64 where 1e-6..=1.0,
        /// The share of frames that cannot be read although nothing collided, 0 to below 1.
        pub frame_loss: f64 where 0.0..1.0,
        /// Packets that may wait at a device, and for each device at the network server; further packets are dropped.
        pub queue: u32 where 1..=10_000 => "packets",
        /// The gateways. A frame is received if one of them reads it; the one that heard it best answers, if it may.
        pub gateways: u32 where 1..=100,
        /// The radius of the disc in which devices are placed at random, m. The first gateway is in its middle, further
        /// ones are placed at random. Without it every gateway hears every device at any spreading factor.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub radius: Option<f64> where 1.0..=100_000.0,
        /// The path loss at 1 km, dB. The default and that of the exponent were measured in Oulu (Petäjäjärvi et al.,
        /// ITST 2015).
        pub path_loss: f64 where 0.0..=300.0,
        /// The exponent of the path loss.
        pub path_loss_exponent: f64 where 1.0..=10.0,
        /// The standard deviation of a frame's signal at each gateway around that of its distance, dB.
        pub fading: f64 where 0.0..=20.0,
        /// The margin of the adaptive data rate, dB: 10 in Semtech's algorithm, 15 in The Things Network's. Without it
        /// spreading factors and power stay as they are.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub adr_margin: Option<f64> where 0.0..=30.0,
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
            gateways: 1,
            radius: None,
            path_loss: 128.95,
            path_loss_exponent: 2.32,
            fading: 0.0,
            adr_margin: None,
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
                 windows included: 51 from SF10 on, 115 with SF9, 242 with SF7 and SF8; 51 with adr_margin, which \
                 may raise a spreading factor"
            ),
        )?;
        let default = Self::default();
        for (name, is_default) in [
            ("adr_margin", self.adr_margin.is_none()),
            ("fading", self.fading == default.fading),
            ("path_loss", self.path_loss == default.path_loss),
            ("path_loss_exponent", self.path_loss_exponent == default.path_loss_exponent),
        ] {
            require(
                is_default || self.radius.is_some(),
                &key(name),
                "needs the signals of devices: set network.lora.radius, or leave it out",
            )?;
        }
        require(
            background_flows == 0,
            "network.background.flows",
            "must be 0 with [network.lora], which carries UDP only",
        )
    }

    /// The spreading factor of a device.
    pub fn spreading_factor(&self, device: u32) -> u8 {
        let place = device as usize % self.spreading_factors.len().max(1);
        self.spreading_factors.get(place).copied().unwrap_or(12)
    }

    /// The modulation of a transmission of a device.
    pub const fn uplink(spreading_factor: u8) -> Modulation {
        Self::modulation(spreading_factor, true)
    }

    /// The modulation in the first (0) or second (1) window after an uplink: the first has the spreading factor of the
    /// uplink (RX1DROffset 0).
    pub const fn downlink(&self, spreading_factor: u8, window: usize) -> Modulation {
        let second = self.second_window_spreading_factor;
        Self::modulation(if window == 0 { spreading_factor } else { second }, false)
    }

    const fn modulation(spreading_factor: u8, has_crc: bool) -> Modulation {
        Modulation { spreading_factor, bandwidth: BANDWIDTH, coding_rate: 1, has_crc }
    }

    /// The time on the air of a packet of so many bytes or, without one, of an empty frame, with so many bytes of
    /// options (FOpts), ns.
    pub fn frame_ns(modulation: Modulation, packet: Option<u32>, options: u32) -> u64 {
        airtime(modulation, FRAME + options + packet.map_or(0, |bytes| PORT + bytes))
    }

    /// The shortest time between the starts of two uplinks of packets of `bytes`, with the fastest modulation
    /// in use, s.
    pub fn least_interval_s(&self, bytes: f64) -> f64 {
        let factor = match self.adr_margin {
            Some(_) => 7,
            None => self.spreading_factors.iter().min().copied().unwrap_or(12),
        };
        let time = Self::frame_ns(Self::uplink(factor), Some(bytes as u32), 0);
        time as f64 / 1e9 / self.duty_cycle
    }

    /// The longest packet that every device can send and receive in both windows, bytes. With the adaptive data rate a
    /// device may come to SF12.
    pub fn longest_packet(&self) -> u32 {
        let factors = self.spreading_factors.iter().chain([&self.second_window_spreading_factor]);
        let largest = factors.max().filter(|_| self.adr_margin.is_none());
        Self::longest_in(largest.copied().unwrap_or(12))
    }

    /// The longest packet in a frame with a spreading factor, bytes (Regional Parameters 1.0.3, section 2.2.6, the
    /// column N of the table without repeaters).
    pub(super) const fn longest_in(spreading_factor: u8) -> u32 {
        match spreading_factor {
            ..=8 => 242,
            9 => 115,
            _ => 51,
        }
    }
}
