//! Rates and times with three digits.

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
