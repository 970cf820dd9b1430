//! A Wi-Fi cell: settings, radio, access point and stations with their queues, and records.
//!
//! The radio is IEEE 802.11b: the distributed coordination function (IEEE 802.11-1999, section 9.2) over
//! high-rate direct-sequence radio (IEEE 802.11b-1999, clause 18), basic access, without RTS/CTS,
//! fragments and power saving.

mod cell;
mod contention;
mod mac;
mod record;
mod settings;
mod timing;

pub(crate) use cell::WifiCell;
pub use mac::{Mac, WifiEvent, WifiStep, WifiTimers};
pub use record::{StationRecord, WifiRecord};
pub use settings::Wifi;

use crate::keys::keys;
use crate::units::{Rate, Time};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The rates of 802.11b.
const DATA_RATES: RangeInclusive<Rate> = Rate(1_000_000)..=Rate(11_000_000);
/// Times within a frame.
const SHORT: RangeInclusive<Time> = Time(1_000)..=Time(1_000_000);

keys! {
    /// The parameters of the MAC and of the radio.
    #[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Dcf {
        /// The rate of data frames: 1, 2, 5.5 or 11 Mbit/s with 802.11b's modulations.
        pub data_rate: Rate where DATA_RATES,
        /// The rate of acknowledgements, of the BSS basic rate set (section 9.6). 1 Mbit/s is the one
        /// that every station of the family has.
        pub basic_rate: Rate where DATA_RATES,
        /// Preamble and PLCP header of each frame: 192 µs long, 96 µs short (802.11b section 18.2.2).
        pub plcp: Time where SHORT,
        /// aSlotTime (802.11b section 18.3.3).
        pub slot: Time where SHORT,
        /// aSIFSTime (802.11b section 18.3.3). DIFS and EIFS follow from it.
        pub sifs: Time where SHORT,
        /// aCWmin (802.11b section 18.3.3): the first backoff is 0 to this many slots. One less than a
        /// power of two.
        pub cw_min: u16,
        /// aCWmax (802.11b section 18.3.3). One less than a power of two, from `cw_min` up.
        pub cw_max: u16,
        /// dot11ShortRetryLimit (section 9.2.5.3, annex D): how often a frame is transmitted at most.
        pub retry_limit: u8 where 1..=255 => "transmissions",
        /// Bytes of MAC header and frame check sequence: 24 + 4 with three addresses (section 7.1.2).
        pub mac_header: u32 where 0..=100 => "bytes",
        /// Bytes of LLC and SNAP header before an IP packet (RFC 1042).
        pub llc_header: u32 where 0..=100 => "bytes",
    }
}

impl Default for Dcf {
    fn default() -> Self {
        Self {
            data_rate: Rate(11_000_000),
            basic_rate: Rate(1_000_000),
            plcp: Time(192_000),
            slot: Time(20_000),
            sifs: Time(10_000),
            cw_min: 31,
            cw_max: 1023,
            retry_limit: 7,
            mac_header: 28,
            llc_header: 8,
        }
    }
}
