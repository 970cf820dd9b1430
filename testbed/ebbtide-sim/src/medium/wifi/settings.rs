//! The settings of a Wi-Fi cell, which are also the keys of `[network.wifi]`.

use super::Dcf;
use crate::keys::{ABOVE_ZERO, Check, keys, require};
use serde::{Deserialize, Serialize};

keys! {
    /// Clients that share the air with an access point. Their packets pass the cell before
    /// `network.up`, and packets to them after `network.down`; both directions contend for the same
    /// channel.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Wifi {
        /// The distance of each client from the access point, m. Clients with even numbers are on one
        /// side of it, those with odd numbers on the other.
        pub distance: f64 where ABOVE_ZERO => "m",
        /// The distance up to which a station is heard, m. If it is less than twice `distance`,
        /// clients on different sides are hidden from each other.
        pub range: f64 where ABOVE_ZERO => "m",
        /// The share of frames that cannot be read although there was no collision, 0 to below 1.
        pub frame_loss: f64 where 0.0..1.0,
        /// Packets of a client, or of the access point, that wait for the channel; further packets are
        /// dropped.
        pub queue: u32 where 1..=100_000 => "packets",
        /// The MAC and the radio.
        pub dcf: Dcf,
    }
}

impl Default for Wifi {
    fn default() -> Self {
        Self { distance: 10.0, range: 100.0, frame_loss: 0.0, queue: 100, dcf: Dcf::default() }
    }
}

/// The maximum number of stations, since the hearing range is kept for every pair.
const MAX_STATIONS: u32 = 1000;

impl Wifi {
    /// Checks what parses but is impossible with so many stations and packets of at most `mtu` bytes.
    pub(crate) fn check(&self, stations: u32, mtu: u32) -> Check {
        let key = |key: &str| format!("network.wifi.{key}");
        require(
            stations < MAX_STATIONS,
            "clients.count",
            "must be at most 999 in a Wi-Fi cell (network.wifi), whose stations hear each other; wireless \
         flows of network.background count",
        )?;
        require(
            self.range >= self.distance,
            &key("range"),
            "must be at least network.wifi.distance: else no client hears the access point",
        )?;
        let d = &self.dcf;
        let power = |window: u16| (u32::from(window) + 1).is_power_of_two() && window <= 32_767;
        for (name, window) in [("cw_min", d.cw_min), ("cw_max", d.cw_max)] {
            require(
                power(window),
                &key(&format!("dcf.{name}")),
                "must be one less than a power of two, from 0 to 32767",
            )?;
        }
        require(
            d.cw_min <= d.cw_max,
            &key("dcf.cw_min"),
            "must be at most network.wifi.dcf.cw_max",
        )?;
        // aMPDUMaxLength of a frame body (section 7.1.2).
        require(
            mtu + d.llc_header <= 2312,
            "network.mtu",
            "must leave a Wi-Fi frame's body within 2312 bytes, network.wifi.dcf.llc_header included",
        )
    }
}
