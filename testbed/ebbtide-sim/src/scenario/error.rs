//! Errors in scenarios and arguments, with their remedies.

use std::fmt;

/// The file, key or argument at fault, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, `--set`, `--cc`, ...
    place: String,
    /// The line in the file, from 1, if it is known.
    line: Option<usize>,
    /// The key or value at fault; may be empty.
    key: String,
    /// The error and its remedy.
    message: String,
}

impl ScenarioError {
    /// An error of a file as a whole.
    pub(crate) fn file(place: &str, message: &str) -> Self {
        Self { place: place.into(), line: None, key: String::new(), message: message.into() }
    }

    /// An error at a line or key of a file.
    pub(crate) fn at_line(place: &str, line: Option<usize>, key: &str, message: &str) -> Self {
        Self { place: place.into(), line, key: key.into(), message: message.into() }
    }

    /// The error without its place.
    pub(crate) fn reason(&self) -> &str {
        &self.message
    }

    /// The error with another option at fault instead of `--set`, which stood for it.
    pub(crate) fn of_option(mut self, option: &str) -> Self {
        if self.place == "--set" {
            option.clone_into(&mut self.place);
        }
        self
    }

    /// An error of an argument.
    pub fn argument(option: &str, value: &str, message: &str) -> Self {
        Self { place: option.into(), line: None, key: value.into(), message: message.into() }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ScenarioError {}
