//! The errors for texts that describe no control.

use super::Algorithm;
use super::span::Span;
use crate::time::Micros;
use core::fmt;

/// The error for an unknown control name. Its message lists the known names.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm;

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such congestion control; there are ")?;
        list(f, Algorithm::ALL.iter().map(|algorithm| algorithm.name()))
    }
}

impl core::error::Error for UnknownAlgorithm {}

/// The error for a text that does not describe a control.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ConfigError<'t> {
    /// No control has this name.
    Name {
        /// The unknown name.
        name: &'t str,
    },
    /// The control has no setting with this key.
    Key {
        /// The unknown key.
        key: &'t str,
        /// The name of the control.
        control: &'static str,
        /// The keys of the settings that apply to the control.
        keys: &'static [&'static str],
    },
    /// Other controls have a setting with this key, but it has no effect on this one.
    Unused {
        /// The key.
        key: &'t str,
        /// The name of the control.
        control: &'static str,
        /// The keys of the settings that apply to the control.
        keys: &'static [&'static str],
    },
    /// The value is outside the range of its key.
    Value {
        /// The setting's key.
        key: &'t str,
        /// The rejected value.
        value: &'t str,
        /// A description of the accepted values.
        expected: &'static str,
    },
    /// The bound of timeouts is below a first timeout.
    Contradiction {
        /// The key of the first timeout.
        key: &'static str,
        /// The first timeout.
        first: Micros,
        /// The bound.
        bound: Micros,
    },
}

impl<'t> ConfigError<'t> {
    /// The unknown name or key and the known ones. The list is empty if the error concerns a
    /// value, or a key that only other controls use.
    #[must_use]
    pub fn unknown(&self) -> (&'t str, &'static [&'static str]) {
        match *self {
            Self::Name { name } => (name, Algorithm::NAMES),
            Self::Key { key, keys, .. } => (key, keys),
            Self::Unused { .. } | Self::Value { .. } | Self::Contradiction { .. } => ("", &[]),
        }
    }
}

/// The setting that has the effect of this one in some other controls.
fn equivalent(key: &str) -> Option<&'static str> {
    match key {
        "initial-rto" => Some("ack-timeout"),
        "ack-timeout" => Some("initial-rto"),
        "in-flight" => Some("nstart"),
        "nstart" => Some("in-flight"),
        _ => None,
    }
}

impl fmt::Display for ConfigError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name } => {
                write!(f, "no congestion control is named '{name}'; there are ")?;
                list(f, Algorithm::ALL.iter().map(|algorithm| algorithm.name()))
            }
            Self::Key { key, control, keys: [] } => {
                write!(f, "no setting of {control} is named '{key}'")
            }
            Self::Key { key, control, keys } => {
                write!(f, "no setting of {control} is named '{key}'; there are ")?;
                list(f, keys.iter().copied())
            }
            Self::Unused { key, control, keys } => {
                write!(f, "{key} has no effect on {control}")?;
                if let Some(other) = equivalent(key).filter(|other| keys.contains(other)) {
                    write!(f, "; use {other}")?;
                }
                f.write_str(": it reads ")?;
                list(f, keys.iter().copied())
            }
            Self::Value { key, value, expected } => {
                write!(f, "'{key}' cannot be '{value}': it takes {expected}")
            }
            Self::Contradiction { key, first, bound } => {
                let (first, bound) = (Span(*first), Span(*bound));
                write!(f, "'bound' of {bound} is below '{key}' of {first}: ")?;
                write!(f, "set a bound of {first} or more, bound=none, or a shorter {key}")
            }
        }
    }
}

impl core::error::Error for ConfigError<'_> {}

fn list<'n>(f: &mut fmt::Formatter<'_>, names: impl Iterator<Item = &'n str>) -> fmt::Result {
    for (index, name) in names.enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        f.write_str(name)?;
    }
    Ok(())
}
