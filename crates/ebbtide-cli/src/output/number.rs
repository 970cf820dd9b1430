//! Numbers as text.

/// A share as a percentage, never rounded to 100 % or 0 %.
pub(super) fn percent(share: f64) -> String {
    match 100.0 * share {
        v if !v.is_finite() => "-".to_owned(),
        v if v >= 100.0 => "100 %".to_owned(),
        v if v > 99.99 => ">99.99 %".to_owned(),
        v if v > 99.0 => format!("{v:.2} %"),
        v if v > 0.0 && v < 0.05 => "<0.1 %".to_owned(),
        v => format!("{v:.1} %"),
    }
}

/// At most four significant digits, without an exponent.
pub(crate) fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 10.0 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.3}"),
    }
}
