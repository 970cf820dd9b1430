//! `--curve KEY=FROM..TO`: one key at values of equal ratios, for figures over the load.

use super::error::ScenarioError;
use super::settings::Axis;
use crate::units::{Buffer, Rate, Time, in_base_unit};
use serde::{Deserialize, Serialize};

/// Points of a curve at most.
const MOST_POINTS: u32 = 50;

/// Points in each factor of ten, unless their number is given.
const POINTS_PER_DECADE: f64 = 3.0;

/// A key over which the goodput of each control is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadCurve {
    /// A short name of the scenario, or a dotted key.
    pub key: String,
    /// The first and the last value and the number of points, as they were written.
    pub written: String,
    /// Exchanges of all clients of a point together at most, so that the largest networks can be paid
    /// for. Each client has at least one.
    pub work: u32,
}

/// One end of the range.
#[derive(Copy, Clone, Debug, PartialEq)]
enum End {
    Whole(u64),
    Decimal(f64),
    /// In s, bit/s or B.
    Quantity(f64, &'static str),
}

impl End {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(whole) = text.parse() {
            return Some(Self::Whole(whole));
        }
        if let Some((value, unit)) = in_base_unit(text) {
            return Some(Self::Quantity(value, unit));
        }
        text.parse().ok().filter(|value: &f64| value.is_finite()).map(Self::Decimal)
    }

    const fn value(self) -> f64 {
        match self {
            Self::Whole(value) => value as f64,
            Self::Decimal(value) | Self::Quantity(value, _) => value,
        }
    }

    /// The unit that both ends have; `None` if they are not of one kind.
    fn kind(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Quantity(_, own), Self::Quantity(_, unit)) => (own == unit).then_some(self),
            (Self::Quantity(..), _) | (_, Self::Quantity(..)) => None,
            (Self::Whole(_), Self::Whole(_)) => Some(self),
            _ => Some(Self::Decimal(0.0)),
        }
    }

    /// A value of this kind as `--set` takes it.
    fn text(self, value: f64) -> String {
        match self {
            Self::Whole(_) => format!("{value:.0}"),
            Self::Decimal(_) => value.to_string(),
            Self::Quantity(_, "s") => Time((value * 1e9).round() as u64).to_string(),
            Self::Quantity(_, "bit/s") => Rate(value.round() as u64).to_string(),
            Self::Quantity(..) => Buffer(Some(value.round() as u64)).in_units(),
        }
    }
}

/// How the values of a key are written.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Scale(End);

impl Scale {
    /// The scale of two values and their numbers; `None` unless they are of one kind, above zero, and the first one is
    /// not the larger.
    pub(crate) fn of(from: &str, to: &str) -> Option<(Self, f64, f64)> {
        let (low, high) = End::parse(from).zip(End::parse(to))?;
        let kind = low.kind(high)?;
        (low.value() > 0.0 && low.value() <= high.value()).then_some((
            Self(kind),
            low.value(),
            high.value(),
        ))
    }

    /// A value as `--set` takes it: whole, or with three significant digits.
    #[expect(
        clippy::disallowed_methods,
        reason = "the result is rounded to three digits: the last bit of a logarithm does not show"
    )]
    pub(crate) fn text(self, value: f64) -> String {
        if matches!(self.0, End::Whole(_)) {
            return self.0.text(value);
        }
        let unit = 10f64.powf(value.log10().floor() - 2.0);
        let digits = (value / unit).round();
        self.0.text(if unit < 1.0 { digits / (1.0 / unit).round() } else { digits * unit })
    }

    /// The number of such a text.
    pub(crate) fn value(self, text: &str) -> Option<f64> {
        place(text)
    }
}

/// The place of a value of the key on the axis: its number, in s, bit/s or B if it has a unit.
pub(crate) fn place(value: &str) -> Option<f64> {
    End::parse(value).map(End::value)
}

impl LoadCurve {
    /// Parses `KEY=FROM..TO`; also returns the key with its values.
    ///
    /// # Errors
    ///
    /// Returns an error unless both ends are numbers or quantities of one unit, above zero and in ascending
    /// order, and the number of points is from 2 to 50.
    pub fn parse(
        text: &str,
        points: Option<u32>,
        work: u32,
    ) -> Result<(Self, Axis), ScenarioError> {
        let fail = |message: &str| ScenarioError::argument("--curve", text, message);
        let example =
            "takes KEY=FROM..TO, such as clients=10..100000 or rate=\"2 kbit/s..1 Mbit/s\"";
        let (key, range) = text.split_once('=').ok_or_else(|| fail(example))?;
        let (from, to) = range.split_once("..").ok_or_else(|| fail(example))?;
        let (key, from, to) = (key.trim(), from.trim(), to.trim());
        let ends = End::parse(from).zip(End::parse(to));
        let (Some((low, high)), false) = (ends, key.is_empty()) else { return Err(fail(example)) };
        let kind = low.kind(high).ok_or_else(|| fail("has ends of different units"))?;
        if low.value() <= 0.0 {
            return Err(fail("begins at zero or below; a logarithmic axis begins above zero"));
        }
        if low.value() >= high.value() {
            return Err(fail("is empty: its first end must be the smaller one"));
        }
        if points.is_some_and(|points| !(2..=MOST_POINTS).contains(&points)) {
            let message = format!("must be from 2 to {MOST_POINTS}");
            return Err(ScenarioError::argument("--points", "", &message));
        }
        let mut values = vec![from.to_owned()];
        for value in between(low.value(), high.value(), points) {
            let text = kind.text(value);
            if !values.contains(&text) && text != to {
                values.push(text);
            }
        }
        values.push(to.to_owned());
        let points = points.map_or_else(String::new, |points| format!(" --points {points}"));
        let written = format!("{from}..{to}{points}");
        Ok((Self { key: key.to_owned(), written, work }, Axis { key: key.to_owned(), values }))
    }
}

/// The values between both ends, in equal ratios, with two significant digits.
#[expect(
    clippy::disallowed_methods,
    reason = "the result is rounded to two digits: the last bit of a logarithm does not show"
)]
fn between(low: f64, high: f64, points: Option<u32>) -> Vec<f64> {
    let decades = (high / low).log10();
    let steps = match points {
        Some(points) => points - 1,
        None => ((decades * POINTS_PER_DECADE).round() as u32).clamp(1, MOST_POINTS - 1),
    };
    let value = |step: u32| {
        let exact = low * 10f64.powf(decades * f64::from(step) / f64::from(steps));
        let unit = 10f64.powf(exact.log10().floor() - 1.0);
        let digits = (exact / unit).round();
        // Below one, multiplying by the unit would show its last bit.
        if unit < 1.0 { digits / (1.0 / unit).round() } else { digits * unit }
    };
    (1..steps).map(value).filter(|value| *value > low && *value < high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, points: Option<u32>) -> Vec<String> {
        LoadCurve::parse(text, points, 1).unwrap().1.values
    }

    #[test]
    fn points_are_equal_ratios_with_two_digits_and_exact_ends() {
        assert_eq!(
            values("clients=10..1000", None),
            ["10", "22", "46", "100", "220", "460", "1000"]
        );
        assert_eq!(values("clients=123..45678", Some(3)), ["123", "2400", "45678"]);
        // Whole numbers are not asked for twice.
        assert_eq!(values("n=1..4", Some(8)), ["1", "2", "3", "4"]);
        assert_eq!(values("loss=0.01..0.1", Some(3)), ["0.01", "0.032", "0.1"]);
    }

    #[test]
    fn quantities_keep_a_unit_that_set_takes() {
        let rates = values("rate=2 kbit/s..1 Mbit/s", Some(4));
        assert_eq!(rates, ["2 kbit/s", "16 kbit/s", "130 kbit/s", "1 Mbit/s"]);
        let delays = values("network.up.delay=100 ms..100 s", None);
        assert_eq!(delays[1..4], ["220 ms", "460 ms", "1 s"]);
        for text in rates.iter().chain(&delays) {
            assert!(place(text).unwrap() > 0.0, "{text}");
        }
    }

    #[test]
    fn a_range_without_a_logarithm_is_refused_with_the_remedy() {
        for (text, expected) in [
            ("clients", "takes KEY=FROM..TO"),
            ("clients=10", "takes KEY=FROM..TO"),
            ("=1..2", "takes KEY=FROM..TO"),
            ("errors=low..high", "takes KEY=FROM..TO"),
            ("clients=0..10", "begins at zero"),
            ("clients=-4..10", "begins at zero"),
            ("clients=10..10", "is empty"),
            ("rate=1 kbit/s..2 s", "different units"),
            ("rate=1..2 kbit/s", "different units"),
        ] {
            let error = LoadCurve::parse(text, None, 1).unwrap_err().to_string();
            assert!(error.contains("--curve") && error.contains(expected), "{text}: {error}");
        }
        let error = LoadCurve::parse("clients=1..9", Some(1), 1).unwrap_err().to_string();
        assert!(error.contains("--points") && error.contains("from 2 to 50"), "{error}");
    }
}
