//! The account of a fit: estimates with ranges.

use super::devices::ClientsBy;
use super::figures::{
    BufferRoom, Estimate, FittedDirection, FittedNetwork, MeasuredCapture, has_bound,
};
use super::path::FittedPath;
use super::wording::{rate, time};

/// The estimates in the order of a scenario.
pub(super) fn estimates(measured: &MeasuredCapture<'_>, network: &FittedNetwork) -> Vec<Estimate> {
    let mut figures = Vec::new();
    let traffic = measured.traffic;
    let count = |key, value: u32, how: &str| Estimate {
        key,
        value: f64::from(value),
        unit: "",
        low: None,
        high: None,
        is_known: true,
        how: how.to_owned(),
    };
    let counted = match measured.clients.by {
        ClientsBy::Address => "addresses",
        ClientsBy::Port => "addresses and ports",
    };
    figures.push(count("clients.count", traffic.devices, counted));
    figures.push(count("workload.exchanges", traffic.exchanges, "mean per client"));
    figures.push(count("coap.nstart", traffic.nstart, "most that were open at a client"));
    let keys = [
        ("network.up.rate", "network.up.buffer", "network.up.loss"),
        ("network.down.rate", "network.down.buffer", "network.down.loss"),
    ];
    for (direction, (rate, buffer, loss)) in [&network.up, &network.down].into_iter().zip(keys) {
        figures.push(rate_figure(rate, direction));
        let is_alone = matches!(measured.path, FittedPath::Both(..));
        figures.push(buffer_figure(buffer, direction, is_alone));
        let (value, low, high) = direction.loss;
        let has_range = !matches!(measured.path, FittedPath::ReturnTrip(_) | FittedPath::Unknown);
        figures.push(Estimate {
            key: loss,
            value,
            unit: "",
            low: has_range.then_some(low),
            high: has_range.then_some(high),
            is_known: network.is_known && matches!(measured.path, FittedPath::Both(..)),
            how: match measured.path {
                FittedPath::Both(..) => {
                    "packets seen at one end only, without those that a full buffer explains"
                }
                FittedPath::RoundTrip(_) => {
                    "assumed: half of the copies without an answer; the range holds all of them"
                }
                _ => "not known from here",
            }
            .to_owned(),
        });
    }
    figures.push(round_trip(measured, network));
    if !network.is_suited {
        for figure in
            figures.iter_mut().filter(|own| !own.unit.is_empty() || own.key.ends_with("loss"))
        {
            figure.is_known = false;
            (figure.low, figure.high) = (None, None);
            figure.how = "the times do not suit one link".to_owned();
        }
    }
    figures
}

fn rate_figure(key: &'static str, direction: &FittedDirection) -> Estimate {
    let (low, high) = direction.rates;
    Estimate {
        key,
        value: direction.rate,
        unit: "bit/s",
        low: has_bound(low).then_some(low),
        high: high.is_finite().then_some(high),
        is_known: direction.is_rate_known,
        how: if direction.is_rate_known { "spacing of packets that queue" } else { "no queue" }
            .to_owned(),
    }
}

/// `is_alone`: whether the direction was measured by itself, or else a buffer is known only of the bottleneck.
fn buffer_figure(key: &'static str, direction: &FittedDirection, is_alone: bool) -> Estimate {
    let is_assumed = !is_alone && !direction.is_rate_known;
    let (value, low, high, how) = match direction.room {
        BufferRoom::Between(low, high) => {
            let high = high.is_finite().then_some(high.max(low));
            (direction.room.bytes(), low, high, "queue at which packets are dropped")
        }
        BufferRoom::AtLeast(most) => (None, most, None, "longest queue; nothing was dropped"),
    };
    Estimate {
        key,
        value: value.unwrap_or(f64::INFINITY),
        unit: "B",
        low: (has_bound(low) && !is_assumed).then_some(low),
        high: high.filter(|_| !is_assumed),
        is_known: value.is_some() && !is_assumed,
        how: if is_assumed { "assumed to be that of the other direction" } else { how }.to_owned(),
    }
}

/// The round trip of the mean messages on an idle path.
fn round_trip(measured: &MeasuredCapture<'_>, network: &FittedNetwork) -> Estimate {
    let sizes = measured.sizes;
    let fixed = f64::from(sizes.header + 4 + sizes.token);
    let out = fixed + f64::from(sizes.options + sizes.payload.0 + u32::from(sizes.payload.0 > 0));
    let back = fixed + f64::from(sizes.response.0);
    let (up, down) = if measured.sides.is_from_server { (back, out) } else { (out, back) };
    let transmission = (up / network.up.rate + down / network.down.rate) * 8.0;
    let processing = network.processing.unwrap_or_default();
    let (up, down) = (network.up.delay, network.down.delay);
    // A range below zero comes from clocks that differ or from a model that does not suit.
    let sum = |up: f64, down: f64, own: f64| (up + down + own).max(0.0) / 1e9 + transmission;
    let value = sum(up.1, down.1, f64::midpoint(processing.0, processing.1));
    Estimate {
        key: "round_trip",
        value,
        unit: "s",
        low: network.is_known.then(|| sum(up.0, down.0, processing.0).min(value)),
        high: network.is_known.then(|| sum(up.2, down.2, processing.1).max(value)),
        is_known: network.is_known,
        how: "of an idle path, transmission included; the range is that of single packets"
            .to_owned(),
    }
}

impl Estimate {
    /// The value with its unit, such as `30.1 kbit/s`.
    pub fn value_text(&self) -> String {
        self.text(self.value)
    }

    /// The range with its unit, such as `29.8 kbit/s to 30.4 kbit/s`; empty if there is none.
    pub fn range_text(&self) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{} to {}", self.text(low), self.text(high)),
            (Some(low), None) => format!("at least {}", self.text(low)),
            (None, Some(high)) => format!("at most {}", self.text(high)),
            (None, None) => String::new(),
        }
    }

    fn text(&self, value: f64) -> String {
        match self.unit {
            "bit/s" => rate(value),
            "s" => time(value),
            "B" if value.is_infinite() => "no limit".to_owned(),
            "B" => format!("{value:.0} B"),
            _ if self.key.ends_with("loss") => format!("{:.2} %", value * 100.0),
            _ => format!("{value}"),
        }
    }
}
