//! `[network.background]`: TCP flows that share the bottleneck with the clients.

use crate::keys::{Check, Fault, keys, require};
use crate::net::Direction;

use super::units::{Rate, Time};
use super::{Scenario, TCP};
use serde::{Deserialize, Serialize};

keys! {
    /// TCP flows from the clients' side to the server's or back, each with a host of its own. Their
    /// applications offer bytes at a rate. TCP sends as much as its window and the path allow, and the
    /// rest waits at the sender. The flows end with the clients. TCP's settings are those of
    /// `[control.tcp]`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct Background {
        /// The number of flows; 0 by default.
        pub flows: u32 where ..=1000,
        /// The payload rate that the application of each flow offers.
        pub rate: Rate where Rate(1)..=Rate(1_000_000_000),
        /// The number of bytes that it writes at a time.
        pub write: u32 where 1..=16_384 => "bytes",
        /// The bytes that may be under way: the send and the receive buffer of a flow. Windows of more than 65535 bytes
        /// are scaled (RFC 7323 section 2).
        #[serde(skip_serializing_if = "is_unscaled")]
        pub window: u32 where 4096..=16_777_216 => "bytes",
        /// The start of the first flow. Each further flow begins one `stagger` after the one before.
        pub start: Time where ..=MONTH,
        /// The time between the starts of two flows.
        pub stagger: Time where ..=MONTH,
        /// The time after which they offer no more; zero: when the last client is done.
        pub stop: Time where ..=MONTH,
        /// The direction of their data.
        #[serde(skip_serializing_if = "super::workload_kinds::is_default")]
        pub direction: Direction,
        /// The `[[link]]` at which their hosts on the devices' side are; the bottleneck if it is left out.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub link: Option<String>,
        /// Whether their senders are stations of the Wi-Fi cell instead of hosts wired to the access
        /// point.
        pub wireless: bool,
    }
}

impl Default for Background {
    fn default() -> Self {
        Self {
            flows: 0,
            rate: Rate(500_000),
            write: 500,
            window: UNSCALED,
            start: Time(0),
            stagger: Time(0),
            stop: Time(0),
            direction: Direction::Up,
            link: None,
            wireless: false,
        }
    }
}

impl Background {
    /// Whether all values are the defaults.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The number of flows that come from stations of a Wi-Fi cell.
    pub const fn stations(&self) -> u32 {
        if self.wireless { self.flows } else { 0 }
    }
}

/// The largest window that needs no scaling (RFC 9293 section 3.1).
const UNSCALED: u32 = 65_535;

const fn is_unscaled(window: &u32) -> bool {
    *window == UNSCALED
}

/// The windows of all flows together, bytes. A flow has a send and a receive buffer of a window at each end, so a
/// replication holds four times as much.
const MOST_WINDOWS: u64 = 256 << 20;

/// The longest times of flows, whose number multiplies them.
const MONTH: Time = Time(36 * 86_400_000_000_000);

pub(super) fn check(s: &Scenario) -> Check {
    let b = &s.network.background;
    let key = |key: &str| format!("network.background.{key}");
    if b.flows == 0 {
        return Ok(());
    }
    require(
        s.network.mesh().is_none(),
        &key("flows"),
        "must be 0 in a low-power network (network.mesh), which carries UDP only",
    )?;
    s.network.room_for_tcp().map_err(|message| Fault::new(key("flows"), message))?;
    s.parse_control(TCP).map_err(|error| Fault::new(key("flows"), error.reason()))?;
    require(
        u64::from(b.flows) * u64::from(b.window) <= MOST_WINDOWS,
        &key("window"),
        &format!(
            "must be at most {} bytes with network.background.flows = {}: windows of 256 MiB in all, as each flow has \
             four buffers of this length",
            MOST_WINDOWS / u64::from(b.flows),
            b.flows
        ),
    )?;
    let last = b.start.0 + b.stagger.0 * u64::from(b.flows - 1);
    require(
        b.stop.0 == 0 || b.stop.0 > last,
        &key("stop"),
        "must be after the last flow begins (start and stagger), or 0 for when the clients are done",
    )?;
    require(
        !b.wireless || s.network.wifi().is_some(),
        &key("wireless"),
        "needs a Wi-Fi cell: add [network.wifi], or set it to false",
    )
}
