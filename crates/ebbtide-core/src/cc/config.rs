//! Names, settings and factory of the congestion controls.

use super::config_error::{ConfigError, UnknownAlgorithm};
use super::span::{Span, parse_span};
use super::{
    Cocoa, Cocoa01, CocoaCode, CocoaFullBackoff, Controller, Default, Ebb, Fasor, FullBackoff,
    InFlight, LinuxRto, Marking, PeakHopper, Rcoap, Settings,
};
use crate::params::Parameters;
use crate::time::Micros;
use core::fmt;
use core::str::FromStr;

/// Defines [`Algorithm`] with the name and a one-line description of each control, so that the
/// list exists once.
macro_rules! algorithms {
    ($($variant:ident = $name:literal, $source:literal, $about:literal;)*) => {
        /// Every built-in congestion control, under the name that the command line, scenario
        /// files, results and Python use.
        #[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Algorithm {
            $(#[doc = concat!("`", $name, "`: ", $about, " (", $source, ").")] $variant,)*
        }

        impl Algorithm {
            /// All controls, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Their names, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];

            /// The control's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The publication that the control comes from.
            #[must_use]
            pub const fn source(self) -> &'static str {
                match self { $(Self::$variant => $source,)* }
            }

            /// A short description of the control.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }
        }
    };
}

algorithms! {
    Default = "default", "RFC 7252", "random initial timeout, doubled; learns nothing";
    DefaultB = "default-b", "SOCNE14", "default with an ACK_TIMEOUT of 1 s";
    DefaultFb1 = "default-fb1", "ANRW18", "default that keeps its backoff until an exchange needs no retransmission";
    DefaultFb2 = "default-fb2", "ANRW18", "default that keeps its backoff and halves it with each good exchange";
    LinuxRto = "linux-rto", "RFC 6298, Linux", "TCP's retransmission timer over UDP, with Karn's algorithm";
    PeakHopper = "peak-hopper", "Ekstrom and Ludwig 2004", "timer that hops to round-trip peaks and decays slowly";
    Cocoa01 = "cocoa-01", "SOCNE14", "CoCoA of draft 01 with its paper's optimisations";
    CocoaPlus = "cocoa-plus", "WiMob17, RCOAP21", "CoCoA+";
    Cocoa = "cocoa", "cocoa-03", "strong and weak round-trip estimates, variable backoff";
    CocoaFb1 = "cocoa-fb1", "ANRW18", "cocoa that keeps its backoff until an exchange needs no retransmission";
    CocoaFb2 = "cocoa-fb2", "ANRW18", "cocoa that keeps its backoff and backs off once more";
    Slow = "slow", "Thesis19 7.1", "FASOR's first variant: the slow timeout backs off";
    FastSlow = "fast-slow", "Thesis19 7.1", "FASOR's second variant: one fast try, then the slow timeout backs off";
    FasorK4 = "fasor-k4", "Thesis19 8.1", "FASOR whose first sample gives three round trips";
    Fasor = "fasor", "Thesis19 7.2, fasor-02", "fast and slow timeouts and a state that orders them";
    FasorToken = "fasor-token", "Thesis19 7.3", "FASOR with the transmission's ordinal in the token";
    FasorOption = "fasor-option", "Thesis19 7.3, fasor-02", "FASOR with the transmission's ordinal in an option";
    Rcoap = "rcoap", "RCOAP21", "rate control for bursts: discovers, paces, several messages in flight";
    Ebb = "ebb", "Ebbtide", "asks with a ping while it does not know the path, and marks every copy";
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A congestion control together with its settings: the factory of [`Controller`]s.
///
/// Parses from and prints as `NAME[:KEY=VALUE]...`, for instance `cocoa-01:nstart=4` or
/// `cocoa:ageing=off:bound=60s`. Spans are in seconds (`1.5`, `60s`) or milliseconds (`200ms`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlConfig {
    /// The selected control.
    pub selection: Selection,
    /// Its settings.
    pub settings: Settings,
}

/// A selected congestion control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// A control of this crate.
    BuiltIn(Algorithm),
    /// A control from outside this crate.
    #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
    Custom(super::Custom),
}

impl Selection {
    /// The control's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::BuiltIn(algorithm) => algorithm.name(),
            #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
            Self::Custom(custom) => custom.name(),
        }
    }

    /// The keys of the settings that apply to this control.
    #[must_use]
    pub fn keys(&self) -> &'static [&'static str] {
        match self {
            Self::BuiltIn(algorithm) => algorithm.keys(),
            #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
            Self::Custom(custom) => custom.factory().keys(),
        }
    }
}

/// The names of the marking schemes.
const MARKS: [(&str, Marking); 4] = [
    ("copy-token", Marking::CopyToken),
    ("token", Marking::Token),
    ("option", Marking::Option),
    ("none", Marking::None),
];

impl Algorithm {
    /// The control of an endpoint that names none: the safest over the map of fleets
    /// (docs/controls/README.md, "The default").
    pub const DEFAULT: Self = Self::Ebb;
}

impl ControlConfig {
    /// The control with the settings of its publication.
    #[must_use]
    pub const fn new(algorithm: Algorithm) -> Self {
        use Algorithm as A;
        let bound = match algorithm {
            // Thesis19 sets 60 s for its FASOR variants: a property of its experiments, which the
            // scenarios set.
            A::Default | A::DefaultB | A::DefaultFb1 | A::DefaultFb2 => None,
            A::Slow | A::FastSlow | A::FasorK4 | A::Fasor | A::FasorToken | A::FasorOption => None,
            A::PeakHopper | A::Ebb => None,
            A::Cocoa | A::CocoaFb1 | A::CocoaFb2 => Some(Micros::from_millis(32_000)),
            A::LinuxRto => Some(Micros::from_millis(120_000)),
            _ => Some(Micros::from_millis(60_000)),
        };
        let ack_timeout = match algorithm {
            A::DefaultB => Some(Micros::from_millis(1_000)),
            _ => None,
        };
        Self {
            selection: Selection::BuiltIn(algorithm),
            settings: Settings {
                bound,
                floor: match algorithm {
                    A::Rcoap => Rcoap::FLOOR,
                    _ => Micros::from_millis(1_000),
                },
                initial_rto: None,
                ack_timeout,
                nstart: None,
                granularity: Micros::from_millis(1),
                ageing: true,
                small_ageing_factor: 2,
                code: CocoaCode::Paper,
                history: 1,
                mark: Marking::CopyToken,
                copies: 4,
                probe_growth: 7,
                margin_percent: 10,
                dither_percent: 10,
                ipi_min: Micros::from_millis(1),
                start_interval: None,
                in_flight: match algorithm {
                    A::Rcoap => InFlight::Rate,
                    _ => InFlight::Nstart,
                },
            },
        }
    }

    /// Builds a control without any knowledge, for a new scope.
    #[must_use]
    pub fn build(&self) -> Controller {
        use Algorithm as A;
        let algorithm = match &self.selection {
            Selection::BuiltIn(algorithm) => *algorithm,
            #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
            Selection::Custom(custom) => return Controller::Other(custom.factory().build()),
        };
        match algorithm {
            A::Default | A::DefaultB => Controller::Default(Default),
            A::DefaultFb1 => Controller::FullBackoff(FullBackoff::forgetting()),
            A::DefaultFb2 => Controller::FullBackoff(FullBackoff::halving()),
            A::LinuxRto => Controller::LinuxRto(LinuxRto::new()),
            A::PeakHopper => Controller::PeakHopper(PeakHopper::new()),
            A::Cocoa01 => Controller::Cocoa01(Cocoa01::new()),
            A::CocoaPlus => Controller::Cocoa(match self.settings.code {
                CocoaCode::Paper => Cocoa::plus(),
                CocoaCode::Contiki => Cocoa::contiki(),
            }),
            A::Cocoa => Controller::Cocoa(Cocoa::draft03()),
            A::CocoaFb1 => Controller::CocoaFullBackoff(CocoaFullBackoff::fb1()),
            A::CocoaFb2 => Controller::CocoaFullBackoff(CocoaFullBackoff::fb2()),
            A::Slow => Controller::Fasor(Fasor::slow()),
            A::FastSlow => Controller::Fasor(Fasor::fast_slow()),
            A::FasorK4 => Controller::Fasor(Fasor::k4()),
            A::Fasor => Controller::Fasor(Fasor::fast_slow_fast(Marking::None)),
            A::FasorToken => Controller::Fasor(Fasor::fast_slow_fast(Marking::Token)),
            A::FasorOption => Controller::Fasor(Fasor::fast_slow_fast(Marking::Option)),
            A::Ebb => Controller::Ebb(Ebb::new(self.settings.mark)),
            A::Rcoap => Controller::Rcoap(Rcoap::new()),
        }
    }

    /// Sets one setting from text, as in `cocoa:KEY=VALUE`.
    ///
    /// # Errors
    ///
    /// Returns an error if the key does not exist, if a built-in control does not use it, or if the
    /// value is outside its range.
    pub fn set<'t>(&mut self, key: &'t str, value: &'t str) -> Result<(), ConfigError<'t>> {
        let bad = |expected| ConfigError::Value { key, value, expected };
        #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
        if let Selection::Custom(custom) = &mut self.selection {
            match custom.factory().with(key, value) {
                Ok(changed) => {
                    *custom = changed;
                    return Ok(());
                }
                Err(super::SettingError::Value { expected }) => return Err(bad(expected)),
                Err(super::SettingError::Key) => {}
            }
        }
        if let Selection::BuiltIn(algorithm) = &self.selection
            && !algorithm.keys().contains(&key)
        {
            let (control, keys) = (algorithm.name(), algorithm.keys());
            let is_known = Algorithm::ALL.iter().any(|other| other.keys().contains(&key));
            return Err(match is_known {
                true => ConfigError::Unused { key, control, keys },
                false => ConfigError::Key { key, control, keys },
            });
        }
        let before = self.settings;
        let s = &mut self.settings;
        let span = || {
            parse_span(value)
                .ok_or(bad("a time of at most a day (86400s) such as 2s, 1.5 or 200ms"))
        };
        match key {
            "bound" if value == "none" => s.bound = None,
            "bound" => {
                let span = parse_span(value).filter(|bound| *bound > Micros::ZERO);
                s.bound = Some(span.ok_or(bad(
                    "a time above zero, at most a day (86400s), such as 60s, or none",
                ))?);
            }
            "floor" => s.floor = span()?,
            "initial-rto" => {
                let span = parse_span(value).filter(|rto| *rto > Micros::ZERO);
                s.initial_rto =
                    Some(span.ok_or(bad("a time above zero, at most a day (86400s), such as 2s"))?);
            }
            "ack-timeout" => {
                let span = parse_span(value).filter(|rto| *rto > Micros::ZERO);
                s.ack_timeout =
                    Some(span.ok_or(bad("a time above zero, at most a day (86400s), such as 2s"))?);
            }
            "nstart" => {
                let nstart = value.parse().ok().filter(|&n| n >= 1);
                s.nstart = Some(nstart.ok_or(bad("a whole number from 1 to 65535"))?);
            }
            "granularity" => s.granularity = span()?,
            "ageing" => {
                s.ageing = match value {
                    "on" | "true" => true,
                    "off" | "false" => false,
                    _ => return Err(bad("on or off")),
                }
            }
            "small-ageing-factor" => {
                let factor = value.parse().ok().filter(|f| (2..=64).contains(f));
                s.small_ageing_factor = factor.ok_or(bad("a whole number from 2 to 64"))?;
            }
            "code" => {
                s.code = match value {
                    "paper" => CocoaCode::Paper,
                    "contiki" => CocoaCode::Contiki,
                    _ => return Err(bad("paper or contiki")),
                }
            }
            "history" => {
                let history =
                    value.parse().ok().filter(|h| (1..=Cocoa01::LONGEST_HISTORY).contains(h));
                s.history = history.ok_or(bad("a whole number from 1 to 4"))?;
            }
            "mark" => {
                s.mark = MARKS
                    .into_iter()
                    .find_map(|(name, mark)| (name == value).then_some(mark))
                    .ok_or(bad("copy-token, token, option or none"))?;
            }
            "copies" => {
                s.copies = whole(value, 0..=8).ok_or(bad("a whole number from 0 to 8"))?;
            }
            "probe-growth" => {
                s.probe_growth = whole(value, 1..=50).ok_or(bad("a whole number from 1 to 50"))?;
            }
            "margin" => {
                s.margin_percent = whole(value, 0..=200).ok_or(bad("a percentage, 0 to 200"))?;
            }
            "dither" => {
                s.dither_percent = whole(value, 0..=200).ok_or(bad("a percentage, 0 to 200"))?;
            }
            "ipi-min" => s.ipi_min = parse_interval(value).ok_or(bad(AN_INTERVAL))?,
            "start-interval" if value == "auto" => s.start_interval = None,
            "start-interval" => {
                let interval = parse_interval(value);
                s.start_interval = Some(interval.ok_or(bad("0.1ms to 60s, or auto"))?);
            }
            "in-flight" if value == "rate" => s.in_flight = InFlight::Rate,
            "in-flight" => {
                let most = value.parse().ok().filter(|n| (1..=InFlight::MAX).contains(n));
                let most = most.ok_or(bad("a whole number from 1 to 1024, or rate"))?;
                s.in_flight = InFlight::Messages(most);
            }
            _ => {
                let (control, keys) = (self.selection.name(), self.selection.keys());
                return Err(ConfigError::Key { key, control, keys });
            }
        }
        match self.contradiction(key) {
            Some(contradiction) => {
                self.settings = before;
                Err(contradiction)
            }
            None => Ok(()),
        }
    }

    /// A bound below a first timeout, of which `key` has just set one: the text does not tell which of
    /// the two the caller means. The bound of the control's publication gives way to a first timeout.
    fn contradiction(&self, key: &str) -> Option<ConfigError<'static>> {
        let s = &self.settings;
        let bound = s.bound?;
        if let (Selection::BuiltIn(algorithm), "initial-rto" | "ack-timeout") =
            (&self.selection, key)
            && Self::new(*algorithm).settings.bound == Some(bound)
        {
            return None;
        }
        let firsts = [("initial-rto", s.initial_rto), ("ack-timeout", s.ack_timeout)];
        firsts.into_iter().find_map(|(key, first)| {
            let first = first.filter(|first| *first > bound)?;
            Some(ConfigError::Contradiction { key, first, bound })
        })
    }

    /// Checks a bound that was set against ACK_TIMEOUT, where that is the first timeout. The bound of the control's
    /// publication gives way to it instead.
    ///
    /// # Errors
    ///
    /// Returns an error if the bound is shorter; it names `key`, by which the caller's users set ACK_TIMEOUT.
    pub fn check_bound(
        &self,
        key: &'static str,
        params: &Parameters,
    ) -> Result<(), ConfigError<'static>> {
        let (s, first) = (&self.settings, params.ack_timeout);
        let has_own_first = s.initial_rto.is_some() || s.ack_timeout.is_some();
        let is_published = matches!(&self.selection, Selection::BuiltIn(algorithm)
            if Self::new(*algorithm).settings.bound == s.bound);
        match s.bound {
            Some(bound) if bound < first && !has_own_first && !is_published => {
                Err(ConfigError::Contradiction { key, first, bound })
            }
            _ => Ok(()),
        }
    }

    /// Parses `NAME[:KEY=VALUE]...`.
    ///
    /// # Errors
    ///
    /// Returns an error if the name or a key does not exist, or if a value is outside its range.
    /// The message lists the accepted names, keys or values.
    pub fn parse(text: &str) -> Result<Self, ConfigError<'_>> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let algorithm = Algorithm::ALL
            .iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or(ConfigError::Name { name })?;
        let mut config = Self::new(*algorithm);
        if text.contains(':') {
            config.set_all(rest)?;
        }
        Ok(config)
    }

    /// Applies the settings in `KEY=VALUE[:KEY=VALUE]...`.
    pub(super) fn set_all<'t>(&mut self, settings: &'t str) -> Result<(), ConfigError<'t>> {
        for part in settings.split(':') {
            let (key, value) = part.split_once('=').ok_or(ConfigError::Value {
                key: part,
                value: "",
                expected: "KEY=VALUE",
            })?;
            self.set(key, value)?;
        }
        Ok(())
    }

    /// The settings before any of them was changed.
    fn unchanged(&self) -> Settings {
        match &self.selection {
            Selection::BuiltIn(algorithm) => Self::new(*algorithm).settings,
            #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
            Selection::Custom(custom) => custom.factory().settings(),
        }
    }
}

impl fmt::Display for ControlConfig {
    /// Writes the name and the settings that differ from the defaults, in the form that
    /// [`ControlConfig::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (s, source) = (&self.settings, &self.unchanged());
        match &self.selection {
            Selection::BuiltIn(algorithm) => f.write_str(algorithm.name())?,
            #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
            Selection::Custom(custom) => write!(f, "{custom}")?,
        }
        if s.bound != source.bound {
            match s.bound {
                Some(bound) => write!(f, ":bound={}", Span(bound))?,
                None => f.write_str(":bound=none")?,
            }
        }
        if s.floor != source.floor {
            write!(f, ":floor={}", Span(s.floor))?;
        }
        if let Some(rto) = s.initial_rto {
            write!(f, ":initial-rto={}", Span(rto))?;
        }
        if let Some(timeout) = s.ack_timeout.filter(|_| s.ack_timeout != source.ack_timeout) {
            write!(f, ":ack-timeout={}", Span(timeout))?;
        }
        if let Some(nstart) = s.nstart {
            write!(f, ":nstart={nstart}")?;
        }
        if s.granularity != source.granularity {
            write!(f, ":granularity={}", Span(s.granularity))?;
        }
        if s.ageing != source.ageing {
            write!(f, ":ageing={}", if s.ageing { "on" } else { "off" })?;
        }
        if s.small_ageing_factor != source.small_ageing_factor {
            write!(f, ":small-ageing-factor={}", s.small_ageing_factor)?;
        }
        if s.code != source.code {
            f.write_str(match s.code {
                CocoaCode::Paper => ":code=paper",
                CocoaCode::Contiki => ":code=contiki",
            })?;
        }
        if s.history != source.history {
            write!(f, ":history={}", s.history)?;
        }
        if let Some((name, _)) = MARKS.into_iter().find(|(_, mark)| *mark == s.mark)
            && s.mark != source.mark
        {
            write!(f, ":mark={name}")?;
        }
        for (key, value, default) in [
            ("copies", s.copies, source.copies),
            ("probe-growth", s.probe_growth, source.probe_growth),
            ("margin", s.margin_percent, source.margin_percent),
            ("dither", s.dither_percent, source.dither_percent),
        ] {
            if value != default {
                write!(f, ":{key}={value}")?;
            }
        }
        if s.ipi_min != source.ipi_min {
            write!(f, ":ipi-min={}", Span(s.ipi_min))?;
        }
        if let Some(interval) = s.start_interval {
            write!(f, ":start-interval={}", Span(interval))?;
        }
        match s.in_flight {
            same if same == source.in_flight => Ok(()),
            InFlight::Messages(most) => write!(f, ":in-flight={most}"),
            InFlight::Rate => f.write_str(":in-flight=rate"),
            InFlight::Nstart => Ok(()),
        }
    }
}

/// The accepted intervals between messages.
const AN_INTERVAL: &str = "a time between messages from 0.1ms to 60s, such as 400ms";

/// Parses an interval between messages. Accepts neither zero nor a rate that no network interface
/// reaches.
fn parse_interval(text: &str) -> Option<Micros> {
    parse_span(text).filter(|span| (Rcoap::FASTEST..=Rcoap::SLOWEST).contains(span))
}

/// A whole number in a range.
fn whole(text: &str, range: core::ops::RangeInclusive<u8>) -> Option<u8> {
    text.parse().ok().filter(|value| range.contains(value))
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|a| a.name() == name).ok_or(UnknownAlgorithm)
    }
}
