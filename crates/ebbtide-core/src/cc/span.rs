//! Times in the text of a control: `2s`, `1.5s` or `200ms`.

use crate::params::Parameters;
use crate::time::Micros;
use core::fmt;

/// A span, printed in seconds with as many decimals as it needs.
pub(super) struct Span(pub(super) Micros);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut fraction) =
            (self.0.as_micros() / 1_000_000, self.0.as_micros() % 1_000_000);
        if fraction == 0 {
            return write!(f, "{whole}s");
        }
        let mut digits = 6;
        while fraction.is_multiple_of(10) {
            fraction /= 10;
            digits -= 1;
        }
        write!(f, "{whole}.{fraction:0digits$}s")
    }
}

/// Parses `2s`, `1.5s`, `1.5` (seconds) or `200ms`, without floating point.
pub(super) fn parse_span(text: &str) -> Option<Micros> {
    let (number, decimals) = match text.strip_suffix("ms") {
        Some(number) => (number, 3),
        None => (text.strip_suffix('s').unwrap_or(text), 6),
    };
    let (whole, fraction) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
    if whole.is_empty()
        || fraction.len() > decimals
        || !fraction.bytes().all(|b| b.is_ascii_digit())
    {
        return None;
    }
    let unit = 10u64.pow(decimals as u32);
    let scale = 10u64.pow((decimals - fraction.len()) as u32);
    let fraction = if fraction.is_empty() { 0 } else { fraction.parse::<u64>().ok()? * scale };
    let micros = u64::from(whole.parse::<u32>().ok()?).checked_mul(unit)?.checked_add(fraction)?;
    (micros <= Parameters::LONGEST_SPAN.as_micros()).then(|| Micros::from_u64(micros))
}
