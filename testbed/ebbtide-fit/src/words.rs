//! The account of a fit: figures with ranges, and what the capture cannot tell.

use super::figures::{Direction, Figure, Measured, Network, Room, given_up, has_bound};
use super::path::Path;
use super::{Fit, TakenAt};
use serde_json::{Value, json};

/// The figures in the order of a scenario, and a sentence for each thing that is not known.
pub(super) fn said(measured: &Measured<'_>, network: &Network) -> (Vec<Figure>, Vec<String>) {
    let mut figures = Vec::new();
    let traffic = measured.traffic;
    let count = |key, value: u32, how: &str| Figure {
        key,
        value: f64::from(value),
        unit: "",
        low: None,
        high: None,
        is_known: true,
        how: how.to_owned(),
    };
    figures.push(count("clients.count", traffic.devices, "addresses and ports"));
    figures.push(count("workload.exchanges", traffic.exchanges, "mean per client"));
    figures.push(count("coap.nstart", traffic.nstart, "most that were open at a client"));
    let keys = [
        ("network.up.rate", "network.up.buffer", "network.up.loss"),
        ("network.down.rate", "network.down.buffer", "network.down.loss"),
    ];
    for (direction, (rate, buffer, loss)) in [&network.up, &network.down].into_iter().zip(keys) {
        figures.push(rate_figure(rate, direction));
        let is_alone = matches!(measured.path, Path::Both(..));
        figures.push(buffer_figure(buffer, direction, is_alone));
        let (value, low, high) = direction.loss;
        figures.push(Figure {
            key: loss,
            value,
            unit: "",
            low: Some(low),
            high: Some(high),
            is_known: network.is_known && matches!(measured.path, Path::Both(..)),
            how: match measured.path {
                Path::Both(..) => {
                    "packets seen at one end only, without those that a full buffer explains"
                }
                Path::RoundTrip(_) => {
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
    (figures, unknown(measured, network))
}

fn rate_figure(key: &'static str, direction: &Direction) -> Figure {
    let (low, high) = direction.rates;
    Figure {
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
fn buffer_figure(key: &'static str, direction: &Direction, is_alone: bool) -> Figure {
    let is_assumed = !is_alone && !direction.is_rate_known;
    let (value, low, high, how) = match direction.room {
        Room::Between(low, high) => {
            let high = high.is_finite().then_some(high.max(low));
            (direction.room.bytes(), low, high, "queue at which packets are dropped")
        }
        Room::AtLeast(most) => (None, most, None, "longest queue; nothing was dropped"),
    };
    Figure {
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
fn round_trip(measured: &Measured<'_>, network: &Network) -> Figure {
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
    Figure {
        key: "round_trip",
        value,
        unit: "s",
        low: Some(sum(up.0, down.0, processing.0).min(value)),
        high: Some(sum(up.2, down.2, processing.1).max(value)),
        is_known: network.is_known,
        how: "of an idle path, transmission included; the range is that of single packets"
            .to_owned(),
    }
}

/// Answers that come sooner, without transmission, come at once, ns.
const AT_ONCE_NS: f64 = 1e6;

/// Says what the capture cannot tell.
fn unknown(measured: &Measured<'_>, network: &Network) -> Vec<String> {
    let mut list = Vec::new();
    let mut say = |text: String| list.push(text);
    let (contents, sizes) = (measured.contents, measured.sizes);
    if !measured.sides.is_place_certain {
        say(format!(
            "Where the capture was taken is a guess from the times: {}. --taken-at says it.",
            measured.taken_at.name()
        ));
    }
    if let Some(nanos) = measured.sides.clocks_differ_ns {
        say(format!(
            "The clocks of the interfaces differ by about {}; only the packets at one of them were used: {}.",
            time(nanos as f64 / 1e9),
            measured.taken_at.name()
        ));
    }
    match measured.path {
        Path::Both(legs) => {
            if !network.is_suited {
                say("The times do not suit one link with a constant rate (differing clocks, several links, \
                     LoRaWAN or Wi-Fi): the figures of the network are not known, and those of the scenario are \
                     the nearest that one link has."
                    .to_owned());
            } else if legs.iter().any(|leg| leg.delay.2 <= 0.0) {
                say("The clocks of the two places differ: only the sum of the two delays is known, and counts."
                    .to_owned());
            }
        }
        Path::RoundTrip(leg) | Path::ReturnTrip(leg) => {
            if measured.taken_at == TakenAt::Clients && leg.delay.1 < AT_ONCE_NS {
                say("Answers follow their requests at once: this capture is from next to the server \
                     (--taken-at server), or the network has hardly any delay."
                    .to_owned());
            }
            say("Delays and losses of the two directions cannot be told apart from one place; they are divided \
                 evenly, and one buffer size is assumed for both."
                .to_owned());
            say("Which direction is the bottleneck does not show where packets have one size; it is taken to be the \
                 one with the longer packets."
                .to_owned());
            say("The server's processing time is part of the delay.".to_owned());
        }
        Path::Unknown => {
            say("Nothing shows the network next to a server whose clients send by the clock: the delay is \
                 set to 0 and the rate to that of the traffic. Capture next to the clients."
                .to_owned());
        }
    }
    if matches!(measured.path, Path::ReturnTrip(_)) {
        say("Losses cannot be seen next to the server: packets that were lost on the way there were not \
             captured."
            .to_owned());
    }
    let directions = [("up", &network.up), ("down", &network.down)];
    for (name, direction) in directions.into_iter().filter(|_| network.is_suited) {
        let (low, high) = direction.rates;
        if !direction.is_rate_known && high.is_finite() {
            let (low, high) = (rate(low), rate(high));
            say(format!(
                "The rate of network.{name} is between {low} and {high}: few packets queued there."
            ));
        } else if !direction.is_rate_known && !has_bound(low) {
            say(format!("The rate of network.{name} does not show: packets did not queue there."));
        } else if !direction.is_rate_known {
            let low = rate(low);
            say(format!(
                "The rate of network.{name} is at least {low}: packets hardly queued there."
            ));
        }
        if let Room::AtLeast(most) = direction.room
            && !has_bound(most)
        {
            say(format!(
                "The buffer of network.{name} does not show: nothing queued there. The scenario has none that fills \
                 up."
            ));
        } else if let Room::AtLeast(most) = direction.room {
            say(format!(
                "The buffer of network.{name} is at least {most:.0} bytes: no queue was full. The scenario has \
                 none that fills up."
            ));
        }
    }
    let sizes_of = [
        ("requests have", sizes.payload, "bytes of payload"),
        ("responses have", sizes.response, "bytes after the token"),
    ];
    for (what, (_, least, most), unit) in sizes_of {
        if least != most {
            say(format!("Sizes vary: {what} {least} to {most} {unit}. The scenario has the mean."));
        }
    }
    if sizes.paths > 1 {
        say(format!("There are {} paths; the scenario has one of the mean length.", sizes.paths));
    }
    if measured.sides.servers > 1 {
        say(format!(
            "There are {} hosts on the server's side; the scenario has one.",
            measured.sides.servers
        ));
    }
    if measured.taken_at == TakenAt::Server && !measured.sides.is_from_server {
        say("How many exchanges a client keeps open does not show next to the server.".to_owned());
    }
    let (packets, bytes) = contents.others;
    if packets > 0 {
        say(format!(
            "{packets} packets ({bytes} bytes) hold no CoAP over UDP; if they share the link, they take a part of it \
             that the scenario does not have."
        ));
    }
    if contents.twice > 0 {
        say(format!(
            "{} packets appear twice and were counted once; capture one interface.",
            contents.twice
        ));
    }
    if contents.dtls > 0 {
        say(format!("{} packets are DTLS records, which fit cannot read.", contents.dtls));
    }
    if contents.fragments > 0 {
        say(format!("{} IP fragments were left out.", contents.fragments));
    }
    if contents.is_cut {
        say("The capture ends in the middle of a packet; what comes before was used.".to_owned());
    }
    if given_up(measured).is_none() {
        say("MAX_RETRANSMIT does not show, since no request was given up.".to_owned());
    }
    say("ACK_TIMEOUT and the clients' congestion control do not show; coap.ack_timeout is RFC 7252's default."
        .to_owned());
    list
}

/// A rate with three digits.
pub(super) fn rate(bits: f64) -> String {
    let (value, unit) = match bits {
        bits if bits >= 1e6 => (bits / 1e6, "Mbit/s"),
        bits if bits >= 1e3 => (bits / 1e3, "kbit/s"),
        _ => (bits, "bit/s"),
    };
    format!("{} {unit}", three(value))
}

/// A time with three digits.
pub(super) fn time(seconds: f64) -> String {
    let (value, unit) = match seconds.abs() {
        size if size >= 1.0 => (seconds, "s"),
        size if size >= 1e-3 => (seconds * 1e3, "ms"),
        _ => (seconds * 1e6, "us"),
    };
    format!("{} {unit}", three(value))
}

fn three(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

impl Figure {
    /// The value with its unit, such as `30.1 kbit/s`.
    #[must_use]
    pub fn value_text(&self) -> String {
        self.text(self.value)
    }

    /// The range with its unit, such as `29.8 kbit/s to 30.4 kbit/s`; empty if there is none.
    #[must_use]
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

impl Fit {
    /// The kind of the workload with its period, such as `periodic, period 20.0 s`.
    #[must_use]
    pub fn workload_text(&self) -> String {
        let workload = &self.scenario.workload;
        let name = serde_json::to_value(workload.kind()).ok();
        let name = name.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        match workload.clocked() {
            Some(clocked) => format!("{name}, period {}", time(clocked.period.0 as f64 / 1e9)),
            None => name,
        }
    }

    /// The fit as one document: `scenario` (TOML), `figures`, `unknown`, and the counts.
    #[must_use]
    pub fn document(&self) -> Value {
        let figure = |figure: &Figure| {
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
