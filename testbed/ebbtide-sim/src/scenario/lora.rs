//! `[network.lora]`: a LoRaWAN cell between the clients and the bottleneck. Clients are class A devices around a
//! gateway; their packets pass the cell before `network.up`, and packets to them after `network.down`.

use super::Scenario;
use crate::keys::{Check, require};

pub(super) fn check(s: &Scenario) -> Check {
    let Some(lora) = s.network.lora() else { return Ok(()) };
    let key = |key: &str| format!("network.lora.{key}");
    require(
        !lora.spreading_factors.is_empty(),
        &key("spreading_factors"),
        "must be one spreading factor at least, each from 7 to 12",
    )?;
    let longest = lora.longest_packet();
    require(
        s.network.mtu <= longest,
        "network.mtu",
        &format!(
            "must be at most {longest} bytes with these spreading factors of [network.lora], the one of second \
             windows included: 51 from SF10 on, 115 with SF9, 242 with SF7 and SF8"
        ),
    )?;
    require(
        s.network.background.flows == 0,
        "network.background.flows",
        "must be 0 with [network.lora], which carries UDP only",
    )
}
