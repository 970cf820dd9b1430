//! Controls from outside that are selected by name.

use super::{Algorithm, ConfigError, ControlConfig, Custom, Selection};
use alloc::vec::Vec;
use core::fmt;

/// The controls from outside that a program can select by name in addition to the built-in ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry(Vec<Custom>);

impl Registry {
    /// Creates a registry of these controls.
    ///
    /// # Errors
    ///
    /// Returns an error if a name is not valid or two controls have the same name.
    pub fn new(controls: impl IntoIterator<Item = Custom>) -> Result<Self, NameError> {
        let mut registry = Self::default();
        for control in controls {
            let name = control.name();
            let forbidden = |c: char| c.is_whitespace() || matches!(c, ':' | '+' | ',' | '=');
            if name.is_empty() || name.contains(forbidden) {
                return Err(NameError::Form { name });
            }
            if Algorithm::NAMES.contains(&name) || registry.get(name).is_some() {
                return Err(NameError::Taken { name });
            }
            registry.0.push(control);
        }
        Ok(registry)
    }

    /// The control with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Custom> {
        self.0.iter().find(|control| control.name() == name)
    }

    /// The names, in the order of registration.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().map(Custom::name)
    }

    /// Like [`ControlConfig::parse`], and also accepts the names in this registry.
    ///
    /// # Errors
    ///
    /// Returns an error if the name or a key does not exist, or if a value is outside its range.
    pub fn parse<'t>(&self, text: &'t str) -> Result<ControlConfig, ConfigError<'t>> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        match self.get(name) {
            None => ControlConfig::parse(text),
            Some(custom) => {
                let mut config = ControlConfig::custom(custom.clone());
                if text.contains(':') {
                    config.set_all(rest)?;
                }
                Ok(config)
            }
        }
    }
}

/// The reason why a control cannot be registered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The name is empty or contains a character that separates names and settings.
    Form {
        /// The rejected name.
        name: &'static str,
    },
    /// Another control already has this name.
    Taken {
        /// The name.
        name: &'static str,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form { name } => write!(
                f,
                "'{name}' cannot name a congestion control: a name is not empty and contains no \
                 space, ':', '+', ',' or '='"
            ),
            Self::Taken { name } => {
                write!(f, "another congestion control is named '{name}'; choose another name")
            }
        }
    }
}

impl core::error::Error for NameError {}

impl From<Custom> for ControlConfig {
    fn from(custom: Custom) -> Self {
        Self::custom(custom)
    }
}

impl ControlConfig {
    /// A control from outside, with the shared settings of its factory.
    #[must_use]
    pub fn custom(custom: Custom) -> Self {
        let settings = custom.factory().settings();
        Self { selection: Selection::Custom(custom), settings }
    }
}
