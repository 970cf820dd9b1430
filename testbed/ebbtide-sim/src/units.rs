//! Quantities with units, in the notation of scenario files.

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// A span of time in nanoseconds, written `"200 ms"`, `"1.5 s"`, `"2 min"`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

/// A rate in bits per second, written `"30 kbit/s"`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(pub u64);

/// A number of bytes, written as a number or `"14.1 kB"`, or `"infinite"`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer(pub Option<u64>);

/// A span, or a range of spans from which one is drawn: `"200 ms"` or `["10 ms", "20 ms"]`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TimeRange {
    /// Drawn uniformly between the two.
    Between(Time, Time),
    /// Always the same.
    Fixed(Time),
    /// No time.
    #[default]
    Zero,
}

impl TimeRange {
    /// The two ends of the range, ns.
    pub const fn ends(self) -> (u64, u64) {
        match self {
            Self::Between(low, high) => (low.0, high.0),
            Self::Fixed(time) => (time.0, time.0),
            Self::Zero => (0, 0),
        }
    }
}

const TIME_UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];
const RATE_UNITS: &[(&str, u64)] =
    &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)];
const BYTE_UNITS: &[(&str, u64)] = &[("B", 1), ("kB", 1_000), ("MB", 1_000_000)];

/// Parses `"12.5 unit"` into the smallest unit exactly, without floating point. `None` if the text
/// is not such a quantity, is negative, or is too large.
fn parse_quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(split);
    let factor = units.iter().find(|(name, _)| *name == unit.trim()).map(|(_, factor)| *factor)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction_digits = u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 12)?;
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = digits.checked_mul(u128::from(factor))?;
    let divisor = 10u128.pow(fraction_digits);
    if scaled % divisor != 0 {
        return None;
    }
    u64::try_from(scaled / divisor).ok()
}

/// The regular expression of the texts that [`parse_quantity`] reads.
fn quantity_pattern(units: &[(&str, u64)]) -> String {
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
    format!("^\\s*[0-9]+(\\.[0-9]{{0,12}})?\\s*({})\\s*$", names.join("|"))
}

/// Prints in the largest unit that gives a whole number, so that the printed text parses back.
fn print_quantity(value: u64, units: &[(&str, u64)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let unit = units.iter().rev().find(|(_, factor)| value.is_multiple_of(*factor));
    match unit {
        Some((name, factor)) if value > 0 => write!(f, "{} {name}", value / factor),
        _ => write!(f, "{value} {}", units.first().map_or("", |(name, _)| name)),
    }
}

/// The value of a text with a unit in seconds, bits per second or bytes, with the name of that
/// unit, such as `(30000.0, "bit/s")` for `30 kbit/s`. `None` if the text is not such a quantity.
pub fn in_base_unit(text: &str) -> Option<(f64, &'static str)> {
    let of = |units| parse_quantity(text, units).map(|value| value as f64);
    of(TIME_UNITS)
        .map(|nanos| (nanos / 1e9, "s"))
        .or_else(|| of(RATE_UNITS).map(|rate| (rate, "bit/s")))
        .or_else(|| of(BYTE_UNITS).map(|bytes| (bytes, "B")))
}

impl Time {
    /// Whether the span is zero.
    pub const fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// The regular expression of its texts.
    pub(crate) fn pattern() -> String {
        quantity_pattern(TIME_UNITS)
    }

    /// Parses a text such as `200ms` or `"1.5 s"`; `None` if it is not a time.
    pub fn parse(text: &str) -> Option<Self> {
        parse_quantity(text, TIME_UNITS).map(Self)
    }
}

impl Buffer {
    /// The length with a unit, such as "14.1 kB".
    pub(crate) fn in_units(self) -> String {
        struct Bytes(u64);
        impl fmt::Display for Bytes {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                print_quantity(self.0, BYTE_UNITS, f)
            }
        }
        self.0.map_or_else(|| self.to_string(), |bytes| Bytes(bytes).to_string())
    }

    /// The regular expression of its texts, apart from `infinite`.
    pub(crate) fn pattern() -> String {
        quantity_pattern(BYTE_UNITS)
    }
}

impl Rate {
    /// The regular expression of its texts.
    pub(crate) fn pattern() -> String {
        quantity_pattern(RATE_UNITS)
    }

    /// Parses a text such as `30 kbit/s`; returns `None` if it is not a rate.
    pub(super) fn parse(text: &str) -> Option<Self> {
        parse_quantity(text, RATE_UNITS).map(Self)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { f.write_str("0 s") } else { print_quantity(self.0, TIME_UNITS, f) }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_quantity(self.0, RATE_UNITS, f)
    }
}

impl fmt::Display for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(bytes) => write!(f, "{bytes}"),
            None => f.write_str("infinite"),
        }
    }
}

macro_rules! text_serialize {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}
text_serialize!(Time, Rate);

impl Serialize for Buffer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(bytes) => serializer.serialize_u64(bytes),
            None => serializer.serialize_str("infinite"),
        }
    }
}

/// Reads a quantity: a text with its unit and, of some quantities, a number.
struct Quantity<T> {
    expected: &'static str,
    text: fn(&str) -> Option<T>,
    number: Option<fn(i64) -> Option<T>>,
}

impl<T> Visitor<'_> for Quantity<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.text)(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        let unexpected = de::Unexpected::Signed(number);
        let Some(read) = self.number else { return Err(E::invalid_type(unexpected, &self)) };
        read(number).ok_or_else(|| E::invalid_value(unexpected, &self))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity {
            expected: "a time such as \"200 ms\" or \"1.5 s\", at least 1 ns apart from zero",
            text: Self::parse,
            number: Some(|number| (number == 0).then_some(Self(0))),
        })
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity {
            expected: "a rate such as \"30 kbit/s\" or \"1 Mbit/s\", at least 1 bit/s",
            text: |text| Self::parse(text).filter(|rate| rate.0 > 0),
            number: None,
        })
    }
}

impl<'de> Deserialize<'de> for Buffer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Quantity {
            expected: "a number of bytes such as 14100 or \"14.1 kB\", or \"infinite\"",
            text: |text| match text.trim() {
                "infinite" => Some(Self(None)),
                _ => parse_quantity(text, BYTE_UNITS).map(|bytes| Self(Some(bytes))),
            },
            number: Some(|number| u64::try_from(number).ok().map(|bytes| Self(Some(bytes)))),
        })
    }
}

impl<'de> Deserialize<'de> for TimeRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = TimeRange;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a time such as \"200 ms\", or two that bound it, [\"10 ms\", \"20 ms\"]",
                )
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<TimeRange, E> {
                let unexpected = || E::invalid_value(de::Unexpected::Str(text), &self);
                let time = parse_quantity(text, TIME_UNITS).ok_or_else(unexpected)?;
                Ok(TimeRange::Fixed(Time(time)))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<TimeRange, A::Error> {
                let (low, high): (Option<Time>, Option<Time>) =
                    (seq.next_element()?, seq.next_element()?);
                match (low, high, seq.next_element::<Time>()?) {
                    (Some(low), Some(high), None) if low <= high => {
                        Ok(TimeRange::Between(low, high))
                    }
                    _ => Err(de::Error::custom("takes two times, the shorter first")),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact_and_print_as_they_parse() {
        for (text, value) in
            [("200 ms", 200_000_000), ("1.5 s", 1_500_000_000), ("2min", 120_000_000_000)]
        {
            assert_eq!(parse_quantity(text, TIME_UNITS), Some(value));
            let printed = Time(value).to_string();
            assert_eq!(parse_quantity(&printed, TIME_UNITS), Some(value), "{printed}");
        }
        assert_eq!(parse_quantity("14.1 kB", BYTE_UNITS), Some(14_100));
        assert_eq!(parse_quantity("30 kbit/s", RATE_UNITS), Some(30_000));
    }

    #[test]
    fn an_invalid_quantity_is_refused() {
        for text in
            ["", "5", "-1 s", "1 parsec", "1.0000000001 ns", "s", "99999999999999 d", "1..2 s"]
        {
            assert_eq!(parse_quantity(text, TIME_UNITS), None, "{text}");
        }
    }
}
