//! The scenario file.

use super::exchanges::CapturedExchange;
use super::figures::{
    BufferRoom, Estimate, FittedDirection, FittedNetwork, MeasuredCapture, given_up, has_bound,
};
use ebbtide_sim::scenario::units::{Rate, Time};
use std::fmt::Write;

/// Microseconds: finer than the clocks of captures.
const MICRO: f64 = 1e3;

/// The scenario as TOML, with the origin of its figures in comments.
pub(super) fn scenario(
    name: &str,
    measured: &MeasuredCapture<'_>,
    network: &FittedNetwork,
    figures: &[Estimate],
    unknown: &[String],
) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_all(&mut text, name, measured, network, figures, unknown);
    text
}

fn write_all(
    out: &mut String,
    name: &str,
    measured: &MeasuredCapture<'_>,
    network: &FittedNetwork,
    figures: &[Estimate],
    unknown: &[String],
) -> std::fmt::Result {
    let (traffic, sizes) = (measured.traffic, measured.sizes);
    let name = toml_text(name);
    writeln!(out, "# Fitted to a capture taken at: {}.", measured.taken_at.name())?;
    writeln!(out, "#")?;
    writeln!(out, "# Estimates, with ranges of 95 % where there are such:")?;
    for figure in figures {
        let known = if figure.is_known { "" } else { " NOT KNOWN" };
        let parts = [figure.value_text(), figure.range_text(), figure.how.clone()];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let text = format!("{}{known}: {}.", figure.key, parts.join("; "));
        wrapped(out, ["#  ", "#    "], &text)?;
    }
    writeln!(out, "#")?;
    writeln!(out, "# What the capture cannot tell:")?;
    for sentence in unknown {
        wrapped(out, ["# *", "#  "], sentence)?;
    }
    writeln!(out, "\nname = {name}")?;
    writeln!(out, "title = {name}")?;
    writeln!(out, "source = \"ebbtide fit\"\n")?;
    writeln!(out, "[keys]")?;
    for (key, targets) in [
        ("clients", "\"clients.count\""),
        ("buffer", "\"network.up.buffer\", \"network.down.buffer\""),
        ("errors", "\"network.errors\""),
        ("exchanges", "\"workload.exchanges\""),
        ("workload", "\"workload.kind\""),
    ] {
        writeln!(out, "{key} = [{targets}]")?;
    }
    let loss = f64::midpoint(network.up.loss.0, network.down.loss.0);
    let has_loss = network.is_known && loss >= 5e-5;
    writeln!(out, "\n[network]\nheader = {}", sizes.header)?;
    writeln!(out, "mtu = {}", sizes.longest.max(1280))?;
    writeln!(out, "errors = \"{}\"", if has_loss { "measured" } else { "none" })?;
    for (key, direction) in [("up", &network.up), ("down", &network.down)] {
        link(out, key, direction)?;
    }
    writeln!(out, "\n[clients]\ncount = {}", traffic.devices)?;
    writeln!(out, "start_window = \"{}\"", time(traffic.start_window_ns as f64))?;
    writeln!(out, "processing = {}", range(traffic.pause_ns.0 as f64, traffic.pause_ns.1 as f64))?;
    let (low, high) = network.processing.unwrap_or_default();
    writeln!(out, "\n[server]\nprocessing = {}", range(low, high))?;
    workload(out, measured)?;
    writeln!(out, "\n[coap]\nmax_retransmit = {}", max_retransmit(measured))?;
    writeln!(out, "nstart = {}", traffic.nstart.clamp(1, 65_535))?;
    let least = if traffic.is_confirmable { 0 } else { 4 };
    writeln!(out, "token_length = {}", sizes.token.max(least))?;
    if has_loss {
        writeln!(out, "\n[errors.measured]")?;
        match network.bursts {
            Some(bursts) if bursts.bad > loss => {
                writeln!(
                    out,
                    "kind = \"per-packet\"\ngood = 0.0\nbad = {:.3}",
                    bursts.bad.min(1.0)
                )?;
                writeln!(out, "average = {loss:.4}\nmean_bad_packets = {:.2}", bursts.packets)?;
            }
            _ => writeln!(out, "kind = \"independent\"\naverage = {loss:.4}")?,
        }
    }
    Ok(())
}

fn link(out: &mut String, key: &str, direction: &FittedDirection) -> std::fmt::Result {
    let FittedDirection { rate, rates, is_rate_known, delay, room, .. } = direction;
    writeln!(out, "\n[network.{key}]")?;
    if !is_rate_known {
        match has_bound(rates.0) {
            true => writeln!(out, "# Not known: at least {}.", Rate(rates.0 as u64))?,
            false => writeln!(out, "# Not known.")?,
        }
    }
    let value = rate.clamp(1.0, 1e12);
    let (near, unit) = significant(value);
    // Rounding must not take it below its own bound.
    let is_below = !is_rate_known && near < rates.0 as u64;
    writeln!(out, "rate = \"{}\"", Rate(near + if is_below { unit } else { 0 }))?;
    writeln!(out, "delay = {}", delays(delay.0, delay.1, delay.2))?;
    match room.bytes() {
        // The range of a scenario begins with the smallest packet.
        Some(bytes) => writeln!(out, "buffer = {}", bytes.max(64.0))?,
        None => {
            if let BufferRoom::AtLeast(most) = room
                && has_bound(*most)
            {
                writeln!(out, "# Not known: at least {most:.0} bytes.")?;
            }
            writeln!(out, "buffer = \"infinite\"")?;
        }
    }
    Ok(())
}

fn workload(out: &mut String, measured: &MeasuredCapture<'_>) -> std::fmt::Result {
    let (traffic, sizes) = (measured.traffic, measured.sizes);
    writeln!(out, "\n[workload]\nkind = \"{}\"", traffic.kind)?;
    writeln!(out, "exchanges = {}", traffic.exchanges)?;
    if traffic.period_ns > 0 {
        writeln!(out, "period = \"{}\"", time((traffic.period_ns as f64).max(1e6)))?;
    }
    if traffic.jitter_ns > 0 {
        writeln!(out, "jitter = \"{}\"", time(traffic.jitter_ns as f64))?;
    }
    if traffic.kind == "bursts" {
        writeln!(out, "burst = {}", traffic.burst.clamp(1, 64))?;
    }
    if !traffic.is_confirmable && traffic.kind != "notifications" {
        writeln!(out, "reliability = \"non-confirmable\"")?;
    }
    if measured.sides.is_from_server && !measured.sides.are_notifications {
        writeln!(out, "requester = \"server\"")?;
    }
    let (payload, answer) = match measured.sides.are_notifications {
        // A notification is what opens the exchange; its acknowledgement is empty.
        true => (0, sizes.payload.0),
        // Behind the token there are an option of one byte and a marker.
        false => (sizes.payload.0, sizes.response.0.saturating_sub(2)),
    };
    writeln!(out, "path = {}", toml_text(&path(&sizes.path, sizes.options)))?;
    writeln!(out, "request_payload = {payload}")?;
    writeln!(out, "response_payload = {answer}")
}

/// A path of one segment whose option has this many bytes, as like the real one as possible.
fn path(real: &str, option_bytes: u32) -> String {
    // RFC 7252 section 3.1: one byte before up to 12 bytes of value, two before up to 268.
    let length = match option_bytes {
        0..=2 => 1,
        3..=13 => option_bytes - 1,
        _ => (option_bytes - 2).min(255),
    };
    let plain =
        real.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' });
    let padded = plain.chain(std::iter::repeat('-'));
    let text: String = padded.take(length as usize).collect();
    text
}

/// The most copies after the first that a host sends.
fn max_retransmit(measured: &MeasuredCapture<'_>) -> usize {
    let copies = |own: &CapturedExchange| own.copies.len() - 1;
    match given_up(measured) {
        Some(copies) => copies.min(254),
        None => match measured.exchanges.iter().map(copies).max().unwrap_or(0) {
            // RFC 7252's default.
            0..=4 => 4,
            // Nothing was given up so far.
            most => most.clamp(20, 254),
        },
    }
}

/// A delay, or the range of delays if they differ by more than the noise of clocks.
fn delays(low: f64, mean: f64, high: f64) -> String {
    let (low, mean, high) = (low.max(0.0), mean.max(0.0), high.max(0.0));
    if high - low > (0.01 * mean).max(200.0 * MICRO) {
        format!("[\"{}\", \"{}\"]", time(low), time(high))
    } else {
        format!("\"{}\"", time(mean))
    }
}

/// A range of times from zero, or none.
fn range(low: f64, high: f64) -> String {
    if high < 50.0 * MICRO {
        return "\"0 s\"".to_owned();
    }
    delays(low, f64::midpoint(low, high), high)
}

/// A time in whole microseconds, and in whole milliseconds from a minute on.
fn time(nanos: f64) -> Time {
    let unit = if nanos >= 6e10 { 1e6 } else { MICRO };
    Time(((nanos / unit).round() * unit) as u64)
}

/// Four digits, and the unit of the last one.
fn significant(value: f64) -> (u64, u64) {
    let mut unit = 1.0;
    while value / unit >= 10_000.0 {
        unit *= 10.0;
    }
    (((value / unit).round() * unit) as u64, unit as u64)
}

/// A text as TOML has it.
fn toml_text(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A comment of lines of at most 80 characters, of which the first and the others begin like this.
fn wrapped(out: &mut String, leads: [&str; 2], sentence: &str) -> std::fmt::Result {
    let mut line = leads[0].to_owned();
    for word in sentence.split_whitespace() {
        if line.len() + 1 + word.len() > 80 {
            writeln!(out, "{line}")?;
            leads[1].clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    writeln!(out, "{line}")
}
