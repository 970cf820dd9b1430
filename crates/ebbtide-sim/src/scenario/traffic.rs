//! Kinds of traffic: who sends messages, when, and whether they are confirmed.

use super::limits::{Check, LONGEST, range};
use super::units::Time;
use super::{Scenario, Workload, WorkloadKind};
use serde::{Deserialize, Serialize};

/// Whether messages are acknowledged and retransmitted (RFC 7252 section 2.1).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliability {
    /// They are retransmitted until they are acknowledged.
    #[default]
    Confirmable,
    /// They are sent once.
    NonConfirmable,
}

/// The side that sends the requests.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Requester {
    /// The devices.
    #[default]
    Client,
    /// The server: commands to the devices, which respond to them.
    Server,
}

/// The default of `workload.burst`.
pub(super) const BURST: u32 = 5;

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(super) const fn is_burst(value: &u32) -> bool {
    *value == BURST
}

impl WorkloadKind {
    /// Whether each device makes its requests by the clock, whatever the fates of those before.
    #[must_use]
    pub const fn is_clocked(self) -> bool {
        matches!(
            self,
            Self::Periodic
                | Self::Poisson
                | Self::Bursts
                | Self::Synchronised
                | Self::Notifications
        )
    }
}

impl Workload {
    /// Requests that a device makes at once where they go by the clock.
    #[must_use]
    pub fn at_once(&self) -> u32 {
        if self.kind == WorkloadKind::Bursts { self.burst } else { 1 }
    }

    /// Whether the exchanges begin at the server.
    #[must_use]
    pub fn is_from_server(&self) -> bool {
        self.requester == Requester::Server || self.kind == WorkloadKind::Notifications
    }

    /// The mean time between two requests of a device, ns, where they go by the clock.
    #[must_use]
    pub fn interval_ns(&self) -> Option<u64> {
        self.kind.is_clocked().then(|| self.period.0 / u64::from(self.at_once().max(1)))
    }

    /// The reason why only congestion controls over UDP can carry it, if that is so.
    pub(super) fn only_over_udp(&self) -> Option<&'static str> {
        if self.kind == WorkloadKind::Firmware {
            return Some("the workload firmware");
        }
        if self.is_from_server() {
            return Some("traffic from the server to the devices");
        }
        (self.reliability == Reliability::NonConfirmable).then_some("non-confirmable messages")
    }
}

/// Checks what every workload has, whichever its kind.
pub(super) fn workload(s: &Scenario) -> Check {
    let w = &s.workload;
    let exchanges = (1..=10_000_000).contains(&w.exchanges);
    range(exchanges, "workload.exchanges", "must be from 1 to 10000000")?;
    let [least, most] = w.batch;
    range(
        1 <= least && least <= most,
        "workload.batch",
        "must be two numbers from 1 up, the smaller first",
    )?;
    let period = (1_000_000..=LONGEST.0).contains(&w.period.0);
    range(period, "workload.period", "must be from 1 ms to 36525 days")?;
    range(w.deadline <= LONGEST, "workload.deadline", "must be at most 36525 days")?;
    let path = (1..=255).contains(&w.path.len()) && !w.path.contains('/');
    range(path, "workload.path", "must be one path segment of 1 to 255 bytes, without '/'")?;
    let room = s.network.mtu - s.network.header;
    for (key, bytes) in [
        ("workload.response_payload", w.response_payload),
        ("workload.request_payload", w.request_payload),
    ] {
        // Header, token, path or content format, payload marker: at most 4 + 8 + 3 + 255 + 1.
        let overhead =
            13 + if key.ends_with("request_payload") { w.path.len() as u32 + 3 } else { 2 };
        range(
            bytes.saturating_add(overhead) <= room,
            key,
            &format!(
                "must leave the packet within network.mtu: at most {} bytes",
                room.saturating_sub(overhead)
            ),
        )?;
    }
    Ok(())
}

/// Checks traffic that parses but is impossible.
pub(super) fn check(s: &Scenario) -> Check {
    let w = &s.workload;
    let kind = w.kind;
    range(
        w.jitter == Time(0) || kind == WorkloadKind::Periodic,
        "workload.jitter",
        "is for the workload periodic",
    )?;
    range(w.jitter <= LONGEST, "workload.jitter", "must be at most 36525 days")?;
    range(
        w.spread == Time(0) || kind == WorkloadKind::Synchronised,
        "workload.spread",
        "is for the workload synchronised",
    )?;
    range(
        w.spread <= w.period,
        "workload.spread",
        "contradicts workload.period: the first requests come before the second ones, so it must be at \
         most the period",
    )?;
    range((1..=64).contains(&w.burst), "workload.burst", "must be from 1 to 64 requests")?;
    let repeats = kind != WorkloadKind::Transfer && kind != WorkloadKind::Firmware;
    range(
        w.reliability == Reliability::Confirmable || (repeats && !kind.is_mesh()),
        "workload.reliability",
        "must be confirmable for transfers, firmware and low-power networks",
    )?;
    range(
        w.reliability == Reliability::Confirmable || s.coap.token_length >= 4,
        "coap.token_length",
        "must be from 4 to 7 with non-confirmable requests, whose tokens alone distinguish their responses",
    )?;
    let may_be_server = !kind.is_flow() && !kind.is_mesh() && kind != WorkloadKind::Firmware;
    range(
        w.requester == Requester::Client || may_be_server,
        "workload.requester",
        "must be client for stream, transfer, firmware and low-power networks",
    )?;
    let message = "must be \"none\" for traffic from the server and for the workload firmware";
    let is_plain = !w.is_from_server() && kind != WorkloadKind::Firmware;
    range(is_plain || s.security.is_none(), "security.mode", message)?;
    if kind == WorkloadKind::Firmware {
        // RFC 7959 section 2.2: 2^4 to 2^10 bytes.
        let is_size =
            w.response_payload.is_power_of_two() && (16..=1024).contains(&w.response_payload);
        range(
            is_size,
            "workload.response_payload",
            "is the size of a block of the workload firmware: 16, 32, 64, 128, 256, 512 or 1024 bytes",
        )?;
        range(
            w.request_payload == 0,
            "workload.request_payload",
            "must be 0 for the workload firmware, which downloads",
        )?;
        range(
            w.exchanges <= 1 << 20,
            "workload.exchanges",
            "must be at most 1048576 blocks for the workload firmware (RFC 7959 section 2.2)",
        )?;
    }
    Ok(())
}
