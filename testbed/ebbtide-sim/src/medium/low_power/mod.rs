//! Multi-hop low-power networks: settings, radio, nodes that forward datagrams for each other, and records.
//!
//! The radio is IEEE 802.15.4 at 2.4 GHz, 250 kbit/s, without beacons: unslotted CSMA/CA (IEEE 802.15.4-2006,
//! section 7.5.1.4), with or without radio duty cycling.
//!
//! Datagrams are compressed and fragmented as 6LoWPAN does, queue, cross the air frame by frame along the
//! routes that RPL converges to, and are put together again at each hop. Like a MAC, the network has a driver,
//! which calls `send` and `handle` and fetches the fates of datagrams with `poll`.

mod bytes;
mod duty_cycle;
mod graph;
mod lowpan;
mod mac;
mod network;
mod phase;
mod reassembly;
mod record;
mod routes;
mod settings;
mod timing;

pub use duty_cycle::DutyCycle;
pub use graph::MeshGraph;
pub use lowpan::Addresses;
pub(crate) use lowpan::{ElidedAddresses, LARGEST_DATAGRAM, compressed_header, fragments};
pub use mac::{LowPowerEvent, LowPowerStep, LowPowerTimers, Mac};
pub(crate) use network::{Cause, EndedDatagram, MeshDatagram, MeshNetwork};
pub use phase::PhaseLock;
pub use record::{Causes, MeshRecord, Messages, NodeRecord};
pub use routes::Routes;
pub use settings::{Curve, DutyCycling, Lowpan, Mesh, Radio, Topology};
pub use timing::{
    ACK_BYTES, ACK_WAIT, ASSESSMENT, BACKOFF_UNIT, LARGEST_FRAME, PHY_BYTES, SYMBOL, TURNAROUND,
    airtime, interframe_spacing,
};

use crate::keys::{MINUTE, keys};
use crate::units::Time;
use serde::{Deserialize, Serialize};

keys! {
    /// The MAC's parameters (IEEE 802.15.4-2006, table 86).
    #[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Csma {
        /// macMinBE: the first backoff is 0 to 2^this - 1 units, 0 to 8.
        pub min_be: u8,
        /// macMaxBE, from `min_be` to 8.
        pub max_be: u8 where 0..=8,
        /// macMaxCSMABackoffs: how often the channel may be found busy before a frame is given up.
        pub max_backoffs: u8 where 0..=5,
        /// macMaxFrameRetries: how often a frame is retransmitted if no acknowledgement arrives.
        pub max_retries: u8 where 0..=7,
        /// The wait before a retransmission. Zero, as in the standard, means no wait, and a frame is
        /// given up when the channel is found busy too often. A value above zero reproduces Contiki's
        /// `csma.c` until 2016 without duty cycling (its interval is 125 ms): after n transmissions
        /// without an acknowledgement the wait is from one to n + 2 times this value, at most 4 times.
        /// A busy channel is waited for in the same way without a limit, and does not count as a
        /// retransmission. The station accepts frames for other neighbours meanwhile.
        pub retry_interval: Time where ..=MINUTE,
        /// The wait between two frames for the same neighbour: one that is queued when another is finished
        /// waits so long. Zero, as in the standard, means no wait. Contiki's `csma.c` has one of 125 ms
        /// in its releases 2.6, 2.7 and 3.0; with duty cycling they send queued frames in one burst
        /// instead, and so does this model.
        #[serde(skip_serializing_if = "Time::is_zero")]
        pub spacing: Time where ..=MINUTE,
        /// Whether frames request an acknowledgement and are retransmitted without one. With duty
        /// cycling they always do, because the acknowledgement ends the strobes.
        pub acknowledged: bool,
    }
}

impl Default for Csma {
    fn default() -> Self {
        Self {
            min_be: 3,
            max_be: 5,
            max_backoffs: 4,
            max_retries: 3,
            retry_interval: Time(0),
            spacing: Time(0),
            acknowledged: true,
        }
    }
}
