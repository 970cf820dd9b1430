//! Workloads in their scenario: when clients start, and the checks of what parses but is impossible.

use super::limits::MAX_MESSAGES;
use super::units::Time;
use super::{Activity, Cloud, Offers, Reliability, Scenario};
use crate::keys::{Check, require};

impl Scenario {
    /// The start of a client, ns after the start of the run, without the random offset.
    pub(crate) fn start_of(&self, client: u32) -> u64 {
        match self.workload.activity() {
            Activity::Flow(flow) => flow.start.for_client(client).map_or(0, |start| start.0),
            Activity::Cloud(Cloud::Burst { at, .. }) if !self.is_steady(client) => at.0,
            _ => 0,
        }
    }
}

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
        let own = if key.ends_with("request_payload") { w.path.len() as u32 + 3 } else { 2 };
        let overhead = 13 + own + s.security.overhead();
        require(
            bytes.saturating_add(overhead) <= room,
            key,
            &format!(
                "must leave the packet within network.mtu: at most {} bytes",
                room.saturating_sub(overhead)
            ),
        )?;
    }
    check_flow(s)?;
    require(
        s.clients.start.is_zero() || w.flow().is_none() && !w.is_mesh(),
        "clients.start",
        "is for requests back to back or by the clock and for downloads; flows have workload.flow.start",
    )?;
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

/// Checks flows that parse but are impossible.
fn check_flow(s: &Scenario) -> Check {
    let Some(flow) = s.workload.flow() else { return Ok(()) };
    require(!flow.start.0.is_empty(), "workload.flow.start", "must be one time at least")?;
    match &flow.offers {
        Offers::Stream { interval, .. } => {
            let steps = |time: &Time| time.0 == 0 || time.0 >= 1_000_000;
            require(
                !interval.0.is_empty() && interval.0.iter().all(steps),
                "workload.flow.interval",
                "must be 1 ms at least, or 0 where there is always one more message",
            )
        }
        Offers::Transfer { bytes } => {
            let all = (0..s.clients.count).filter_map(|client| s.workload.messages(client));
            require(
                !bytes.0.is_empty() && all.map(u64::from).sum::<u64>() <= MAX_MESSAGES,
                "workload.flow.bytes",
                "takes more than 10000000 messages of workload.request_payload bytes",
            )
        }
    }
}
