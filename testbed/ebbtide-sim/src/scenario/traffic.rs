//! Checks a workload in its scenario.

use super::{Activity, Reliability, Scenario, flow};
use crate::keys::{Check, require};

/// Checks a workload that parses but is impossible in this network.
pub(super) fn check(s: &Scenario) -> Check {
    let w = &s.workload;
    let [least, most] = w.keys().batch;
    require(least <= most, "workload.batch", "must be two numbers from 1 up, the smaller first")?;
    let path = (1..=255).contains(&w.path.len()) && !w.path.contains('/');
    require(path, "workload.path", "must be one path segment of 1 to 255 bytes, without '/'")?;
    let room = s.network.mtu - s.network.header;
    for (key, bytes) in [
        ("workload.response_payload", w.response_payload),
        ("workload.request_payload", w.request_payload),
    ] {
        // Header, token, path or content format, payload marker: at most 4 + 8 + 3 + 255 + 1.
        let overhead =
            13 + if key.ends_with("request_payload") { w.path.len() as u32 + 3 } else { 2 };
        require(
            bytes.saturating_add(overhead) <= room,
            key,
            &format!(
                "must leave the packet within network.mtu: at most {} bytes",
                room.saturating_sub(overhead)
            ),
        )?;
    }
    flow::check(s)?;
    require(
        w.reliability == Reliability::Confirmable || s.coap.token_length >= 4,
        "coap.token_length",
        "must be from 4 to 7 with non-confirmable requests, whose tokens alone distinguish their responses",
    )?;
    let is_plain = !w.is_from_server() && *w.activity() != Activity::Firmware;
    require(
        is_plain || s.security.is_none(),
        "security.mode",
        "must be \"none\" for traffic from the server and for the workload firmware",
    )
}
