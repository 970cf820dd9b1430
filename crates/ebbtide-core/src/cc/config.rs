//! Names, settings and factory of the congestion controls.

use super::config_error::{ConfigError, UnknownAlgorithm};
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
use super::keys::SHARED;
use super::keys::SettingKey;
use super::{Algorithm, Controller, Settings};
use crate::params::Parameters;
use core::fmt;
use core::str::FromStr;

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

impl ControlConfig {
    /// The control with the settings of its publication.
    #[must_use]
    pub const fn new(algorithm: Algorithm) -> Self {
        Self { selection: Selection::BuiltIn(algorithm), settings: algorithm.settings() }
    }

    /// Builds a control without any knowledge, for a new scope.
    #[must_use]
    pub fn build(&self) -> Controller {
        match &self.selection {
            Selection::BuiltIn(algorithm) => algorithm.build(&self.settings),
            #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
            Selection::Custom(custom) => Controller::Other(custom.factory().build()),
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
        let (control, keys) = (self.selection.name(), self.selection.keys());
        let found = match &mut self.selection {
            #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
            Selection::Custom(custom) => match custom.factory().with(key, value) {
                Ok(changed) => {
                    *custom = changed;
                    return Ok(());
                }
                Err(super::SettingError::Value { expected }) => return Err(bad(expected)),
                Err(super::SettingError::Key) => {
                    SettingKey::find(key).filter(|_| SHARED.contains(&key))
                }
            },
            Selection::BuiltIn(_) => match SettingKey::find(key) {
                Some(_) if !keys.contains(&key) => {
                    return Err(ConfigError::Unused { key, control, keys });
                }
                found => found,
            },
        };
        let found = found.ok_or(ConfigError::Key { key, control, keys })?;
        let before = self.settings;
        found.set(&mut self.settings, value).ok_or(bad(found.takes))?;
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
        let mut changed = SettingKey::all().iter().filter(|key| !key.is_alike(s, source));
        changed.try_for_each(|key| write!(f, ":{}={}", key.name(), key.display(s)))
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|a| a.name() == name).ok_or(UnknownAlgorithm)
    }
}
