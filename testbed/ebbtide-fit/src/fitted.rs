//! The result of a fit, and its document.

use super::figures::Estimate;
use super::taken_at::TakenAt;
use super::wording::time;
use ebbtide_sim::scenario::Scenario;
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::SocketAddr;

/// A scenario that was fitted to a capture.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The scenario file, with the origin of each figure in comments.
    pub toml: String,
    /// The scenario of `toml`.
    pub scenario: Scenario,
    /// The estimates, with ranges.
    pub figures: Vec<Estimate>,
    /// A sentence for each thing that the capture cannot tell.
    pub unknown: Vec<String>,
    /// Where the capture was taken.
    pub taken_at: TakenAt,
    /// Whether that was given or named in the file, rather than guessed from the times.
    pub is_place_certain: bool,
    /// CoAP messages in the capture.
    pub messages: usize,
    /// Exchanges among them.
    pub exchanges: usize,
    /// The time from the first message to the last one, s.
    pub duration_s: f64,
    /// The requests in the order of time: nanoseconds since the first one, and the device.
    pub(super) requests: Vec<(u64, SocketAddr)>,
}

impl Fit {
    /// The kind of the workload with its period, such as `periodic, period 20.0 s`.
    pub fn workload_text(&self) -> String {
        let workload = &self.scenario.workload;
        let name = serde_json::to_value(workload.kind()).ok();
        let name = name.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        match workload.clocked() {
            Some(clocked) => format!("{name}, period {}", time(clocked.period.0 as f64 / 1e9)),
            None => name,
        }
    }

    /// The requests as lines of `seconds,device`, for the workload `log`.
    pub fn request_log(&self) -> String {
        let mut text = String::from("seconds,device\n");
        for (at, device) in &self.requests {
            let (seconds, nanos) = (at / 1_000_000_000, at % 1_000_000_000);
            let device: &dyn std::fmt::Display = match device.port() {
                // All ports of an address are one device.
                0 => &device.ip(),
                _ => device,
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{seconds}.{nanos:09},{device}");
        }
        text
    }

    /// The fit as one document: `scenario` (TOML), `figures`, `unknown`, and the counts.
    pub fn document(&self) -> Value {
        let figure = |figure: &Estimate| {
            // JSON has no infinity.
            let finite = |value: f64| value.is_finite().then_some(value);
            json!({
                "key": figure.key, "value": finite(figure.value), "unit": figure.unit,
                "low": figure.low.and_then(finite), "high": figure.high.and_then(finite),
                "known": figure.is_known, "how": figure.how,
            })
        };
        json!({
            "taken_at": self.taken_at.name(),
            "place_certain": self.is_place_certain,
            "messages": self.messages,
            "exchanges": self.exchanges,
            "duration_s": self.duration_s,
            "figures": self.figures.iter().map(figure).collect::<Vec<_>>(),
            "unknown": self.unknown,
            "scenario": self.toml,
        })
    }
}
