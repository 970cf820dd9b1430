//! Figures and names as sentences have them.

/// A share as a percentage that is never rounded to everything or nothing.
pub(super) fn percent(share: f64) -> String {
    let value = 100.0 * share;
    match value {
        v if !v.is_finite() => "–".to_owned(),
        0.0 => "0 %".to_owned(),
        v if v >= 100.0 => "100 %".to_owned(),
        v if v > 99.99 => "more than 99.99 %".to_owned(),
        v if v >= 99.0 => format!("{v:.2} %"),
        v if v >= 10.0 => format!("{v:.0} %"),
        v if v >= 0.1 => format!("{v:.1} %"),
        v => format!("{v:.2} %"),
    }
}

/// Three significant digits.
pub(super) fn significant(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Rounded up to two digits: it is to be enough.
pub(super) fn bit_rate(bps: f64) -> String {
    let (value, unit) = match bps {
        b if b >= 1e6 => (b / 1e6, "Mbit/s"),
        b if b >= 1e3 => (b / 1e3, "kbit/s"),
        b => (b, "bit/s"),
    };
    let step = match value {
        v if v >= 100.0 => 10.0,
        v if v >= 10.0 => 1.0,
        _ => 0.1,
    };
    let value = (value / step).ceil() * step;
    if step < 1.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// Names with commas and an "and".
pub(crate) fn enumerate(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
