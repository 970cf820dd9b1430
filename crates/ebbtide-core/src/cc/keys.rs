//! The keys of settings: the one place where each has its name, its range and its meaning.

use super::span::{Span, parse_span};
use super::{Cocoa01, CocoaCode, InFlight, Marking, Rcoap, Settings};
use crate::params::Parameters;
use crate::time::Micros;
use core::fmt;

/// A setting that texts name, as in `cocoa:KEY=VALUE`. Parsing, printing, error messages and the table in
/// `docs/controls/settings.md` follow from it.
#[derive(Debug)]
pub struct SettingKey {
    pub(super) name: &'static str,
    /// The accepted values, as error messages name them.
    pub(super) takes: &'static str,
    pub(super) about: &'static str,
    pub(super) kind: SettingKind,
}

/// The values that a key accepts, and their place in the settings. Where a key has a word for "none", that word
/// stands for `None`; a key with an empty word cannot be set to it.
#[derive(Debug)]
pub(super) enum SettingKind {
    /// A time.
    Time {
        least: Micros,
        most: Micros,
        none: &'static str,
        get: fn(&Settings) -> Option<Micros>,
        set: fn(&mut Settings, Option<Micros>),
    },
    /// A whole number.
    Number {
        least: u16,
        most: u16,
        none: &'static str,
        get: fn(&Settings) -> Option<u16>,
        set: fn(&mut Settings, Option<u16>),
    },
    /// One of these words, by its place.
    Word {
        words: &'static [&'static str],
        get: fn(&Settings) -> usize,
        set: fn(&mut Settings, usize),
    },
}

const SHORTEST: Micros = Micros::new(1);
const LONGEST: Micros = Parameters::LONGEST_SPAN;
const A_TIME: &str = "a time of at most a day (86400s) such as 2s, 1.5 or 200ms";
const A_TIMEOUT: &str = "a time above zero, at most a day (86400s), such as 2s";

/// The marks, in the order of their words.
const MARKS: [Marking; 4] = [Marking::CopyToken, Marking::Token, Marking::Option, Marking::None];

/// The keys that a control from outside this crate reads, beside its own.
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
pub(super) const SHARED: &[&str] = &[
    "bound",
    "floor",
    "initial-rto",
    "ack-timeout",
    "nstart",
    "granularity",
    "ageing",
    "in-flight",
];

/// All keys, in the order in which they are printed.
static KEYS: [SettingKey; 21] = [
    SettingKey {
        name: "bound",
        takes: "a time above zero, at most a day (86400s), such as 60s, or none",
        about: "The maximum of backed-off timeouts. It gives way to four times the first timeout and to a longer measured \
                round trip; timeouts at the bound are spread over its last tenth.",
        kind: SettingKind::Time {
            least: SHORTEST,
            most: LONGEST,
            none: "none",
            get: |s| s.bound,
            set: |s, bound| s.bound = bound,
        },
    },
    SettingKey {
        name: "floor",
        takes: A_TIME,
        about: "The minimum RTO (RFC 6298 section 2.4).",
        kind: SettingKind::Time {
            least: Micros::ZERO,
            most: LONGEST,
            none: "",
            get: |s| Some(s.floor),
            set: |s, floor| s.floor = floor.unwrap_or(s.floor),
        },
    },
    SettingKey {
        name: "initial-rto",
        takes: A_TIMEOUT,
        about: "The RTO before the first sample. Without it ACK_TIMEOUT, of which `ebb` takes a fifth.",
        kind: SettingKind::Time {
            least: SHORTEST,
            most: LONGEST,
            none: "",
            get: |s| s.initial_rto,
            set: |s, rto| s.initial_rto = rto,
        },
    },
    SettingKey {
        name: "ack-timeout",
        takes: A_TIMEOUT,
        about: "ACK_TIMEOUT for this control. Without it that of the endpoint.",
        kind: SettingKind::Time {
            least: SHORTEST,
            most: LONGEST,
            none: "",
            get: |s| s.ack_timeout,
            set: |s, timeout| s.ack_timeout = timeout,
        },
    },
    SettingKey {
        name: "nstart",
        takes: "a whole number from 1 to 65535",
        about: "NSTART for this control. Without it that of the endpoint.",
        kind: SettingKind::Number {
            least: 1,
            most: u16::MAX,
            none: "",
            get: |s| s.nstart,
            set: |s, nstart| s.nstart = nstart,
        },
    },
    SettingKey {
        name: "granularity",
        takes: A_TIME,
        about: "The clock's granularity: the minimum margin above a smoothed round trip (RFC 6298).",
        kind: SettingKind::Time {
            least: Micros::ZERO,
            most: LONGEST,
            none: "",
            get: |s| Some(s.granularity),
            set: |s, granularity| s.granularity = granularity.unwrap_or(s.granularity),
        },
    },
    SettingKey {
        name: "ageing",
        takes: "on or off",
        about: "Whether estimates lose their weight when they receive no samples.",
        kind: SettingKind::Word {
            words: &["on", "off", "true", "false"],
            get: |s| usize::from(!s.ageing),
            set: |s, word| s.ageing = word % 2 == 0,
        },
    },
    SettingKey {
        name: "small-ageing-factor",
        takes: "a whole number from 2 to 64",
        about: "The factor by which a small estimate grows when it ages; SOCNE14 prints 16.",
        kind: SettingKind::Number {
            least: 2,
            most: 64,
            none: "",
            get: |s| Some(s.cocoa.small_ageing_factor),
            set: |s, factor| s.cocoa.small_ageing_factor = factor.unwrap_or(2),
        },
    },
    SettingKey {
        name: "code",
        takes: "paper or contiki",
        about: "The description of CoCoA+ that `cocoa-plus` follows: WiMob17's text, or its authors' code for Contiki.",
        kind: SettingKind::Word {
            words: &["paper", "contiki"],
            get: |s| s.cocoa.code as usize,
            set: |s, word| {
                s.cocoa.code = if word == 0 { CocoaCode::Paper } else { CocoaCode::Contiki };
            },
        },
    },
    SettingKey {
        name: "history",
        takes: "a whole number from 1 to 4",
        about: "The number of values over which the overall RTO is smoothed.",
        kind: SettingKind::Number {
            least: 1,
            most: Cocoa01::LONGEST_HISTORY as u16,
            none: "",
            get: |s| Some(s.cocoa.history.into()),
            set: |s, history| s.cocoa.history = history.unwrap_or(1) as u8,
        },
    },
    SettingKey {
        name: "mark",
        takes: "copy-token, token, option or none",
        about: "How transmissions are marked.",
        kind: SettingKind::Word {
            words: &["copy-token", "token", "option", "none"],
            get: |s| MARKS.iter().position(|mark| *mark == s.ebb.mark).unwrap_or(0),
            set: |s, word| s.ebb.mark = MARKS.get(word).copied().unwrap_or(s.ebb.mark),
        },
    },
    SettingKey {
        name: "copies",
        takes: "a whole number from 0 to 8",
        about: "How often a message is repeated after the same short timeout while there is no queue; at most half of \
                MAX_RETRANSMIT.",
        kind: SettingKind::Number {
            least: 0,
            most: 8,
            none: "",
            get: |s| Some(s.ebb.copies.into()),
            set: |s, copies| s.ebb.copies = copies.map_or(s.ebb.copies, |copies| copies as u8),
        },
    },
    SettingKey {
        name: "probe-growth",
        takes: "a whole number from 1 to 50",
        about: "The interval after a probe, over the base of the intervals while nothing is known of the path.",
        kind: SettingKind::Number {
            least: 1,
            most: 50,
            none: "",
            get: |s| Some(s.ebb.probe_growth.into()),
            set: |s, growth| {
                s.ebb.probe_growth = growth.map_or(s.ebb.probe_growth, |growth| growth as u8)
            },
        },
    },
    SettingKey {
        name: "margin",
        takes: "a percentage, 0 to 200",
        about: "The minimum margin of the timeout above SRTT, in percent of SRTT.",
        kind: SettingKind::Number {
            least: 0,
            most: 200,
            none: "",
            get: |s| Some(s.ebb.margin_percent.into()),
            set: |s, percent| {
                s.ebb.margin_percent = percent.map_or(s.ebb.margin_percent, |percent| percent as u8)
            },
        },
    },
    SettingKey {
        name: "dither",
        takes: "a percentage, 0 to 200",
        about: "The width over which the timeout is spread, in percent of SRTT.",
        kind: SettingKind::Number {
            least: 0,
            most: 200,
            none: "",
            get: |s| Some(s.ebb.dither_percent.into()),
            set: |s, percent| {
                s.ebb.dither_percent = percent.map_or(s.ebb.dither_percent, |percent| percent as u8)
            },
        },
    },
    SettingKey {
        name: "min",
        takes: A_TIMEOUT,
        about: "The minimum of the first timeout.",
        kind: SettingKind::Time {
            least: SHORTEST,
            most: LONGEST,
            none: "",
            get: |s| Some(s.ecoap.min),
            set: |s, min| s.ecoap.min = min.unwrap_or(s.ecoap.min),
        },
    },
    SettingKey {
        name: "max",
        takes: A_TIMEOUT,
        about: "The maximum of the first timeout; `min` where it is shorter.",
        kind: SettingKind::Time {
            least: SHORTEST,
            most: LONGEST,
            none: "",
            get: |s| Some(s.ecoap.max),
            set: |s, max| s.ecoap.max = max.unwrap_or(s.ecoap.max),
        },
    },
    SettingKey {
        name: "growth",
        takes: "a percentage, 100 to 1000",
        about: "The growth of `min` and `max` with each try, in percent.",
        kind: SettingKind::Number {
            least: 100,
            most: 1000,
            none: "",
            get: |s| Some(s.ecoap.growth_percent),
            set: |s, percent| s.ecoap.growth_percent = percent.unwrap_or(s.ecoap.growth_percent),
        },
    },
    SettingKey {
        name: "ipi-min",
        takes: "a time between messages from 0.1ms to 60s, such as 400ms",
        about: "The minimum time between two messages.",
        kind: SettingKind::Time {
            least: Rcoap::FASTEST,
            most: Rcoap::SLOWEST,
            none: "",
            get: |s| Some(s.rcoap.ipi_min),
            set: |s, interval| s.rcoap.ipi_min = interval.unwrap_or(s.rcoap.ipi_min),
        },
    },
    SettingKey {
        name: "start-interval",
        takes: "0.1ms to 60s, or auto",
        about: "The initial time between messages; `auto` estimates it from the spacing of the first answers.",
        kind: SettingKind::Time {
            least: Rcoap::FASTEST,
            most: Rcoap::SLOWEST,
            none: "auto",
            get: |s| s.rcoap.start_interval,
            set: |s, interval| s.rcoap.start_interval = interval,
        },
    },
    SettingKey {
        name: "in-flight",
        takes: "a whole number from 1 to 1024, or rate",
        about: "The limit on unacknowledged messages; `rate` stands for as many as fill the path.",
        kind: SettingKind::Number {
            least: 1,
            most: InFlight::MAX,
            none: "rate",
            get: |s| match s.in_flight {
                InFlight::Messages(most) => Some(most),
                InFlight::Rate | InFlight::Nstart => None,
            },
            set: |s, most| s.in_flight = most.map_or(InFlight::Rate, InFlight::Messages),
        },
    },
];

impl SettingKey {
    /// All keys, in the order in which they are printed.
    #[must_use]
    pub const fn all() -> &'static [Self] {
        &KEYS
    }

    /// The key with this name.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The accepted values, as error messages name them.
    #[must_use]
    pub const fn takes(&self) -> &'static str {
        self.takes
    }

    /// Its meaning.
    #[must_use]
    pub const fn about(&self) -> &'static str {
        self.about
    }

    /// Sets the value that `text` names. `None` if it names none in the range of the key.
    pub(super) fn set(&self, settings: &mut Settings, text: &str) -> Option<()> {
        match self.kind {
            SettingKind::Time { none, set, .. } if text == none && !none.is_empty() => {
                set(settings, None);
            }
            SettingKind::Time { least, most, set, .. } => {
                let time = parse_span(text).filter(|time| (least..=most).contains(time))?;
                set(settings, Some(time));
            }
            SettingKind::Number { none, set, .. } if text == none && !none.is_empty() => {
                set(settings, None);
            }
            SettingKind::Number { least, most, set, .. } => {
                let number = text.parse().ok().filter(|number| (least..=most).contains(number))?;
                set(settings, Some(number));
            }
            SettingKind::Word { words, set, .. } => {
                set(settings, words.iter().position(|word| *word == text)?);
            }
        }
        Some(())
    }

    /// The value in these settings as text; empty for none if the key has no word for that.
    #[must_use]
    pub const fn display<'k>(&'k self, settings: &'k Settings) -> impl fmt::Display + 'k {
        ShownValue { key: self, settings }
    }

    /// Whether the values of these settings are alike.
    pub(super) fn is_alike(&self, one: &Settings, other: &Settings) -> bool {
        match self.kind {
            SettingKind::Time { get, .. } => get(one) == get(other),
            SettingKind::Number { get, .. } => get(one) == get(other),
            SettingKind::Word { get, .. } => get(one) == get(other),
        }
    }
}

/// The value of a key in some settings.
struct ShownValue<'k> {
    key: &'k SettingKey,
    settings: &'k Settings,
}

impl fmt::Display for ShownValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.kind {
            SettingKind::Time { get, none, .. } => match get(self.settings) {
                Some(time) => Span(time).fmt(f),
                None => f.write_str(none),
            },
            SettingKind::Number { get, none, .. } => match get(self.settings) {
                Some(number) => number.fmt(f),
                None => f.write_str(none),
            },
            SettingKind::Word { words, get, .. } => {
                f.write_str(words.get(get(self.settings)).unwrap_or(&""))
            }
        }
    }
}
