//! Numbers and words as the page prints them: escaped, fixed decimals, never "NaN".

use ebbtide_sim::result::{Format, Value};

/// The text that replaces a value that does not exist.
pub(super) const NONE: &str = "–";

/// Text made safe for element content and for quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A number with so many decimals; thousands are set apart from 10 000 on.
pub(super) fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if value.abs() >= 1e15 {
        return format!("{value:.2e}");
    }
    let text = format!("{:.decimals$}", value.abs());
    let is_zero = text.bytes().all(|b| matches!(b, b'0' | b'.'));
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}", thousands(whole))
}

/// Digits in groups of three, set apart by narrow no-break spaces, from five digits on.
fn thousands(digits: &str) -> String {
    if digits.len() < 5 {
        return digits.to_owned();
    }
    let mut out = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A whole count.
pub(super) fn count(value: u64) -> String {
    thousands(&value.to_string())
}

/// A measured value with about three significant digits.
pub(super) fn brief(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        s if s >= 99.95 || s == 0.0 => 0,
        s if s >= 9.995 => 1,
        s if s >= 0.9995 => 2,
        _ => 3,
    };
    fixed(value, decimals)
}

/// A value to compare with another of its kind: about five significant digits.
pub(super) fn precise(value: f64) -> String {
    let decimals = match value.abs() {
        s if s >= 99.995 => 1,
        s if s >= 9.9995 => 2,
        _ => 3,
    };
    fixed(value, decimals)
}

/// A share of 1 as a percentage.
pub(super) fn percent(share: f64, decimals: usize) -> String {
    let text = fixed(share * 100.0, decimals);
    if text == NONE { text } else { format!("{text}\u{a0}%") }
}

/// A share of 1 as a percentage that always shows its sign.
pub(super) fn signed_percent(share: f64, decimals: usize) -> String {
    let text = percent(share, decimals);
    if share > 0.0 && text != percent(0.0, decimals) && text != NONE {
        format!("+{text}")
    } else {
        text
    }
}

/// A multiple of the physical limit.
pub(super) fn multiple(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| format!("{}\u{a0}×", fixed(value, 2)))
}

/// A confidence interval or another range.
pub(super) fn interval(interval: (f64, f64), print: fn(f64) -> String) -> String {
    let (low, high) = interval;
    if !low.is_finite() || !high.is_finite() {
        return NONE.to_owned();
    }
    format!("{} to {}", print(low), print(high))
}

/// A bit rate with its unit.
pub(super) fn bit_rate(bps: f64) -> String {
    match bps {
        b if !b.is_finite() => NONE.to_owned(),
        b if b >= 1e6 => format!("{}\u{a0}Mbit/s", brief(b / 1e6)),
        b if b >= 1e3 => format!("{}\u{a0}kbit/s", brief(b / 1e3)),
        b => format!("{}\u{a0}bit/s", brief(b)),
    }
}

/// A figure of a cell as its column shows it. A mean is followed by half of its interval.
pub(super) fn show(value: Option<Value>, format: Format) -> String {
    let one = |value: f64| match format {
        Format::Count => fixed(value, 0),
        Format::Brief | Format::Span => brief(value),
        Format::Fixed(decimals) => fixed(value, decimals),
        Format::Percent(decimals) => percent(value, decimals),
        Format::Hundredths => percent(value, 1),
        Format::BitRate | Format::Kilo => bit_rate(value),
        Format::Milliwatts(decimals) => format!("{}\u{a0}mW", fixed(value, decimals)),
    };
    match value {
        None => NONE.to_owned(),
        Some(Value::Spread(spread)) if format == Format::Span => {
            format!("{} to {}", one(spread.p10), one(spread.p90))
        }
        Some(Value::Mean(mean, half)) if half > 0.0 => format!("{} ± {}", one(mean), one(half)),
        Some(value) => one(value.number()),
    }
}

/// Names in a sentence: "a", "a and b", "a, b and c".
pub(super) fn enumerate(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A label cut to so many characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(most.saturating_sub(1)).collect();
    out.push('…');
    out
}
