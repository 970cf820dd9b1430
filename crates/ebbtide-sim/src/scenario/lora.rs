//! `[network.lora]`: a LoRaWAN cell between the clients and the bottleneck. Clients are class A devices around a
//! gateway; their packets pass the cell before `network.up`, and packets to them after `network.down`.

use super::limits::{Check, range};
use super::{Network, Scenario};

impl Network {
    /// Whether there is a radio: a mesh, a Wi-Fi cell or a LoRaWAN cell.
    pub(crate) const fn has_radio(&self) -> bool {
        self.mesh.is_some() || self.wifi.is_some() || self.lora.is_some()
    }
}

pub(super) fn check(s: &Scenario) -> Check {
    let Some(lora) = &s.network.lora else { return Ok(()) };
    let key = |key: &str| format!("network.lora.{key}");
    let has_other = s.network.mesh.is_some() || s.network.wifi.is_some();
    let message = "cannot be combined with network.mesh or network.wifi: a client has one radio";
    range(!has_other, "network.lora", message)?;
    let is_factor = |factor: &u8| (7..=12).contains(factor);
    let factors = &lora.spreading_factors;
    range(
        !factors.is_empty() && factors.iter().all(is_factor),
        &key("spreading_factors"),
        "must be one spreading factor at least, each from 7 to 12",
    )?;
    let second = is_factor(&lora.second_window_spreading_factor);
    range(second, &key("second_window_spreading_factor"), "must be from 7 to 12")?;
    range((1..=80).contains(&lora.channels), &key("channels"), "must be from 1 to 80")?;
    let share = |share: f64| (1e-6..=1.0).contains(&share);
    range(share(lora.duty_cycle), &key("duty_cycle"), "must be from 0.000001 to 1")?;
    range(
        share(lora.second_window_duty_cycle),
        &key("second_window_duty_cycle"),
        "must be from 0.000001 to 1",
    )?;
    let loss = (0.0..1.0).contains(&lora.frame_loss);
    range(loss, &key("frame_loss"), "must be from 0 to below 1")?;
    range((1..=10_000).contains(&lora.queue), &key("queue"), "must be from 1 to 10000 packets")?;
    let longest = lora.longest_packet();
    range(
        s.network.mtu <= longest,
        "network.mtu",
        &format!(
            "must be at most {longest} bytes with these spreading factors of [network.lora], the one of second \
             windows included: 51 from SF10 on, 115 with SF9, 242 with SF7 and SF8"
        ),
    )?;
    range(
        s.network.background.flows == 0,
        "network.background.flows",
        "must be 0 with [network.lora], which carries UDP only",
    )
}
