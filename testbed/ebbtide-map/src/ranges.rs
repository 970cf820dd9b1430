//! The ranges of a map: for each property of a network, its possible values and ranges.

use ebbtide_sim::scenario::ScenarioError;
use ebbtide_sim::scenario::units::{Rate, Time};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};

/// A property of a network for which a value is drawn.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Property {
    /// The rate of the link from the server to the clients.
    Rate,
    /// The rate of the link from the clients to the server, as a multiple of the other one.
    Uplink,
    /// The propagation delay to the server and back.
    RoundTrip,
    /// The width of the range from which each packet's delay is drawn, in percent of the delay;
    /// large values reorder packets.
    Variation,
    /// Bytes that may wait before each link: a number, a multiple of the bandwidth-delay product,
    /// or no limit.
    Buffer,
    /// The number of clients.
    Clients,
    /// The number of exchanges of a client.
    Exchanges,
    /// The times at which requests are made.
    Workload,
    /// The profile of link errors.
    Errors,
    /// MAX_RETRANSMIT.
    MaxRetransmit,
    /// The payload, bytes.
    Payload,
    /// Whether the payload is in the responses or in the requests.
    Direction,
    /// The longest time that the server takes for a request; the shortest is zero.
    Server,
    /// The time within which all clients begin, or begin anew every period.
    Window,
    /// The time between the requests of a client where they go by the clock.
    Period,
    /// ACK_TIMEOUT: a time, or one that fits the path.
    AckTimeout,
}

/// One value, or a range from which a value with a uniformly distributed logarithm is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// From `low` to `high`, in the property's smallest unit.
    Number { low: u64, high: u64 },
    /// A range of the bandwidth-delay product, in thousandths.
    Bdp { low: u64, high: u64 },
    /// A name.
    Word(String),
}

/// The properties in the order of their coordinates, with their names and the notation of their
/// values in `--range`.
pub(super) const PROPERTIES: [(Property, &str, &str); 16] = [
    (Property::Rate, "rate", "2 kbit/s..1 Mbit/s"),
    (Property::RoundTrip, "round-trip", "20 ms..8 s"),
    (Property::Clients, "clients", "2..500"),
    (Property::Buffer, "buffer", "infinite,500..200000,0.5..16 bdp"),
    (Property::Errors, "errors", "none,low,medium,high"),
    (Property::MaxRetransmit, "max-retransmit", "4,20"),
    (Property::Workload, "workload", "continuous,random"),
    (Property::Payload, "payload", "10,60,120"),
    (Property::Exchanges, "exchanges", "10..40"),
    (Property::Variation, "variation", "2,2,2,10..100"),
    (Property::Server, "server", "0 s,0 s,0 s,20 ms..2 s"),
    (Property::Direction, "direction", "down,down,down,up"),
    (Property::Uplink, "uplink", "1..4"),
    (Property::Window, "window", "0 s"),
    (Property::Period, "period", "60 s"),
    (Property::AckTimeout, "ack-timeout", "2 s"),
];

/// The preset that is drawn in strata.
pub const FLEETS: &str = "fleets";

/// Presets: the ranges that differ from `all`.
const PRESETS: [(&str, &[(Property, &str)]); 7] = [
    ("all", &[]),
    (
        "lpwan",
        &[
            (Property::Rate, "500 bit/s..60 kbit/s"),
            (Property::RoundTrip, "300 ms..8 s"),
            (Property::Payload, "10,30,60"),
        ],
    ),
    ("cellular", &[(Property::Rate, "20 kbit/s..1 Mbit/s"), (Property::RoundTrip, "50 ms..2 s")]),
    (
        "satellite",
        &[
            (Property::Rate, "2 kbit/s..500 kbit/s"),
            (Property::RoundTrip, "500 ms..3 s"),
            (Property::Clients, "2..100"),
        ],
    ),
    (
        "wifi",
        &[
            (Property::Rate, "250 kbit/s..20 Mbit/s"),
            (Property::RoundTrip, "2 ms..100 ms"),
            (Property::Variation, "10..100"),
            (Property::MaxRetransmit, "4"),
        ],
    ),
    (
        "wired",
        &[
            (Property::Rate, "1 Mbit/s..100 Mbit/s"),
            (Property::RoundTrip, "1 ms..150 ms"),
            (Property::Errors, "none,none,none,low"),
            (Property::MaxRetransmit, "4"),
        ],
    ),
    (
        FLEETS,
        &[
            (Property::Clients, "1..100000"),
            (Property::RoundTrip, "1 ms..100 ms,100 ms..1 s,1 s..10 s,10 s..6 h"),
            (Property::Buffer, "infinite,infinite,0.5..64 bdp,2000..500000"),
            (Property::Errors, "none,none,low,medium,high"),
            (Property::MaxRetransmit, "4,4,4,2..10,20"),
            (Property::Workload, "continuous,random,synchronised,periodic,power-cut,outage,alarms"),
            (Property::Window, "0 s,100 ms..60 s"),
            (Property::Period, "10 s..4 h"),
            (Property::AckTimeout, "2 s,path"),
        ],
    ),
];

/// The ranges of a map.
#[derive(Clone, Debug)]
pub struct Ranges {
    choices: Vec<(Property, Vec<Choice>)>,
    /// The ranges in their notation, in the order of the properties.
    written: Vec<(&'static str, String)>,
    /// The ranges that replace the preset's, as `KEY=VALUES`.
    changes: Vec<String>,
}

impl Ranges {
    /// The names of the presets.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(name, _)| *name)
    }

    /// A preset, with some of its ranges replaced by `KEY=VALUES`.
    ///
    /// # Errors
    ///
    /// Returns an error if the preset or key does not exist, if a value is not valid, or if a
    /// range is empty.
    pub fn new(preset: &str, changes: &[String]) -> Result<Self, ScenarioError> {
        let Some((_, own)) = PRESETS.iter().find(|(name, _)| *name == preset) else {
            let names: Vec<&str> = Self::presets().collect();
            let message = format!("no such preset; there are {}", names.join(", "));
            return Err(ScenarioError::argument("--preset", preset, &message));
        };
        let mut ranges =
            Self { choices: Vec::new(), written: Vec::new(), changes: changes.to_vec() };
        for (property, name, text) in PROPERTIES {
            let text = own.iter().find(|(own, _)| *own == property).map_or(text, |(_, text)| text);
            ranges.choices.push((property, parse(property, name, text)?));
            ranges.written.push((name, text.to_owned()));
        }
        for change in changes {
            let (key, values) = change.split_once('=').unwrap_or((change, ""));
            let key = key.trim();
            let Some(place) = PROPERTIES.iter().position(|(_, name, _)| *name == key) else {
                let names: Vec<&str> = PROPERTIES.iter().map(|(_, name, _)| *name).collect();
                let message = format!("no such range; there are {}", names.join(", "));
                return Err(ScenarioError::argument("--range", key, &message));
            };
            let (property, name, _) = PROPERTIES[place];
            ranges.choices[place].1 = parse(property, name, values)?;
            values.trim().clone_into(&mut ranges.written[place].1);
        }
        Ok(ranges)
    }

    /// Every property and its range, in their notation.
    pub fn written(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.written.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// The ranges that replace the preset's, as `KEY=VALUES`.
    pub fn changes(&self) -> &[String] {
        &self.changes
    }

    /// Whether the caller replaced the preset's range of a property.
    pub(super) fn is_changed(&self, property: Property) -> bool {
        let name = PROPERTIES.iter().find(|(own, ..)| *own == property).map(|(_, name, _)| *name);
        self.changes.iter().any(|change| change.split('=').next().map(str::trim) == name)
    }

    /// These ranges with another one of a property, in its notation.
    pub(super) fn with_range(&self, property: Property, text: &str) -> Result<Self, ScenarioError> {
        let mut ranges = self.clone();
        for ((own, name, _), (choices, written)) in
            PROPERTIES.into_iter().zip(ranges.choices.iter_mut().zip(&mut ranges.written))
        {
            if own == property {
                choices.1 = parse(property, name, text)?;
                text.clone_into(&mut written.1);
            }
        }
        Ok(ranges)
    }

    /// The smallest and the largest number that can be drawn for a property.
    pub(super) fn ends(&self, property: Property) -> (u64, u64) {
        let numbers = self.choices(property).iter().filter_map(|choice| match choice {
            Choice::Number { low, high } => Some((*low, *high)),
            Choice::Bdp { .. } | Choice::Word(_) => None,
        });
        numbers.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))).unwrap_or((0, 0))
    }

    /// The choices of a property.
    pub(super) fn choices(&self, property: Property) -> &[Choice] {
        let own = self.choices.iter().find(|(own, _)| *own == property);
        own.map_or(&[], |(_, choices)| choices.as_slice())
    }
}

/// Parses alternatives that are separated by commas.
fn parse(property: Property, name: &str, text: &str) -> Result<Vec<Choice>, ScenarioError> {
    let one = |part: &str| {
        let fail = |message: &str| {
            ScenarioError::argument("--range", &format!("{name}={}", part.trim()), message)
        };
        if is_word(property) {
            return match part.trim() {
                "" => Err(fail("a name is missing")),
                word => Ok(Choice::Word(word.to_owned())),
            };
        }
        let part = part.trim();
        if WORDS.contains(&(property, part)) {
            return Ok(Choice::Word(part.to_owned()));
        }
        let bdp = (property == Property::Buffer).then(|| part.strip_suffix("bdp")).flatten();
        let (low, high) = match bdp.unwrap_or(part).split_once("..") {
            Some((low, high)) => (low.trim(), high.trim()),
            None => (bdp.unwrap_or(part).trim(), bdp.unwrap_or(part).trim()),
        };
        let read =
            |text: &str| if bdp.is_some() { thousandths(text) } else { number(property, text) };
        let (Some(least), Some(most)) = (read(low), read(high)) else {
            return Err(fail(&format!("cannot be read; write it as in {}", example(property))));
        };
        if least > most {
            return Err(fail("is an empty range: its first end is the larger"));
        }
        let may_be_zero = matches!(
            property,
            Property::Server
                | Property::Variation
                | Property::MaxRetransmit
                | Property::Payload
                | Property::Window
        );
        if least == 0 && (most > 0 || !may_be_zero) {
            return Err(fail(
                "cannot begin at 0, since logarithms are drawn; where 0 is possible, write it as a \
                 value of its own, as in 0,1..10",
            ));
        }
        if property == Property::MaxRetransmit && most > 254 {
            return Err(fail("is not a valid MAX_RETRANSMIT: it is at most 254"));
        }
        if property == Property::Variation && most > 200 {
            return Err(fail(
                "is not a valid variation: 200 percent already reach from no delay to twice the delay",
            ));
        }
        Ok(match bdp {
            Some(_) => Choice::Bdp { low: least, high: most },
            None => Choice::Number { low: least, high: most },
        })
    };
    text.split(',').map(one).collect()
}

/// Names among the values of properties that are numbers otherwise.
const WORDS: [(Property, &str); 2] = [(Property::Buffer, "infinite"), (Property::AckTimeout, PATH)];

/// An ACK_TIMEOUT that fits the path.
pub(super) const PATH: &str = "path";

/// Whether the property's values are names.
const fn is_word(property: Property) -> bool {
    matches!(property, Property::Workload | Property::Errors | Property::Direction)
}

/// An example of the property's notation.
fn example(property: Property) -> &'static str {
    PROPERTIES.iter().find(|(own, ..)| *own == property).map_or("", |(_, _, text)| text)
}

/// A number in the property's smallest unit.
fn number(property: Property, text: &str) -> Option<u64> {
    let from_text: StrDeserializer<'_, ValueError> = text.into_deserializer();
    match property {
        Property::Rate => Rate::deserialize(from_text).ok().map(|rate| rate.0),
        Property::RoundTrip
        | Property::Server
        | Property::Window
        | Property::Period
        | Property::AckTimeout => Time::deserialize(from_text).ok().map(|time| time.0),
        Property::Uplink => thousandths(text),
        _ => text.parse().ok(),
    }
}

/// A decimal number with up to three decimals, in thousandths.
fn thousandths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: &str) -> String {
        Ranges::new("all", &[change.to_owned()]).unwrap_err().to_string()
    }

    #[test]
    fn every_preset_can_be_read() {
        for preset in Ranges::presets() {
            assert_eq!(Ranges::new(preset, &[]).unwrap().written().count(), PROPERTIES.len());
        }
    }

    #[test]
    fn invalid_ranges_are_refused_by_name() {
        for (change, expected) in [
            ("rate=1 Mbit/s..2 kbit/s", "rate=1 Mbit/s..2 kbit/s: is an empty range"),
            ("clients=0..10", "clients=0..10: cannot begin at 0"),
            ("clients=0", "clients=0: cannot begin at 0"),
            ("buffer=4..2 bdp", "buffer=4..2 bdp: is an empty range"),
            ("max-retransmit=300", "max-retransmit=300: is not a valid MAX_RETRANSMIT"),
            ("variation=300", "variation=300: is not a valid variation"),
            ("rate=fast", "rate=fast: cannot be read; write it as in 2 kbit/s..1 Mbit/s"),
            ("errors=", "errors=: a name is missing"),
            ("speed=1", "speed: no such range; there are rate, round-trip"),
        ] {
            assert!(refusal(change).contains(expected), "{}", refusal(change));
        }
        let preset = Ranges::new("mars", &[]).unwrap_err().to_string();
        assert!(preset.contains("mars: no such preset; there are all, lpwan"), "{preset}");
    }

    #[test]
    fn a_change_replaces_the_range_of_the_preset() {
        let ranges = Ranges::new("lpwan", &["buffer=0.5..2 bdp,infinite".to_owned()]).unwrap();
        let expected = [Choice::Bdp { low: 500, high: 2000 }, Choice::Word("infinite".to_owned())];
        assert_eq!(ranges.choices(Property::Buffer), expected);
        assert_eq!(ranges.choices(Property::Rate), [Choice::Number { low: 500, high: 60_000 }]);
    }
}
