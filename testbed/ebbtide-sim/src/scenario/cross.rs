//! `[[cross]]`: UDP traffic of others on one link.

use crate::keys::{Check, FASTEST, LONGEST, keys, names, require, texts};
use crate::net::Direction;

use super::limits::BOTTLENECK;
use super::units::{Rate, Time};
use super::{Scenario, class};
use serde::{Deserialize, Serialize};

keys! {
    /// Packets that enter at a link and leave behind it, at a constant rate or in bursts. Nothing reacts
    /// to their fates. They end with the clients.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct Cross name {
        /// Its name, in results.
        pub name: String,
        /// The link: a `[[link]]`, or the bottleneck if it is left out.
        #[serde(default = "bottleneck")]
        pub link: String,
        /// The direction on the link.
        #[serde(default)]
        pub direction: Direction,
        /// The rate while it sends, headers included.
        pub rate: Rate where ..=FASTEST,
        /// The length of a packet, headers included, bytes.
        #[serde(default = "packet")]
        pub packet: u32,
        /// The instant of its first packet, or of its first pause.
        #[serde(default, skip_serializing_if = "Time::is_zero")]
        pub start: Time where ..=LONGEST,
        /// The instant after which it sends no more; 0: when the clients are done.
        #[serde(default, skip_serializing_if = "Time::is_zero")]
        pub stop: Time where ..=LONGEST,
        /// The mean time for which it sends, and then pauses, both exponential; 0: it never pauses.
        #[serde(default, skip_serializing_if = "Time::is_zero")]
        pub on: Time where ..=LONGEST,
        /// The mean length of a pause.
        #[serde(default, skip_serializing_if = "Time::is_zero")]
        pub off: Time where ..=LONGEST,
    }
}

fn bottleneck() -> String {
    BOTTLENECK.into()
}

const fn packet() -> u32 {
    500
}

pub(super) fn check(s: &Scenario) -> Check {
    if s.cross.is_empty() {
        return Ok(());
    }
    require(s.network.mesh().is_none(), "cross", "is for networks without [network.mesh]")?;
    require(s.cross.len() <= 1000, "cross", "must be at most 1000")?;
    for (index, cross) in s.cross.iter().enumerate() {
        class::name("cross.name", &cross.name)?;
        let key = |key: &str| format!("cross.{}.{key}", cross.name);
        let is_new = s.cross[..index].iter().all(|other| other.name != cross.name);
        require(is_new, &key("name"), "is the name of earlier cross traffic")?;
        s.check_place(&key("link"), Some(&cross.link))?;
        require(
            cross.packet > s.network.header && cross.packet <= s.network.mtu,
            &key("packet"),
            &format!(
                "must be from {} to {} bytes: above network.header and at most network.mtu",
                s.network.header + 1,
                s.network.mtu
            ),
        )?;
        let stops = cross.stop.0 == 0 || cross.stop > cross.start;
        require(stops, &key("stop"), "must be after start, or 0 for when the clients are done")?;
        require(
            (cross.on.0 == 0) == (cross.off.0 == 0),
            &key(if cross.on.0 == 0 { "on" } else { "off" }),
            "must be above 0 if the other one is: give both on and off",
        )?;
    }
    Ok(())
}

texts! {
    Direction => names::<Self>(),
}
