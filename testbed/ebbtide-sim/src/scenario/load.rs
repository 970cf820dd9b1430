//! Loads a [`Scenario`] by name or from a file, and applies `--set` overrides.

use super::Scenario;
use super::builtin::BUILTIN;
use super::error::ScenarioError;
use super::limits::MOST_TEXT;
use super::nearest::did_you_mean;
use super::settings::Override;
use super::table::{key_at_fault, read, set, why_unknown};
use super::validate::ScenarioFile;
use super::wording::in_words_of;
use crate::keys::Fault;
use ebbtide_core::cc::Registry;
use std::io::Read;
use std::path::Path;
use toml::{Table, Value};

/// Short names that every scenario has unless its own table gives them another meaning.
pub(crate) const SHORT_NAMES: [(&str, &[&str]); 9] = [
    ("clients", &["clients.count"]),
    ("window", &["clients.start_window"]),
    ("rate", &["network.up.rate", "network.down.rate"]),
    ("buffer", &["network.up.buffer", "network.down.buffer"]),
    ("errors", &["network.errors"]),
    ("workload", &["workload.kind"]),
    ("exchanges", &["workload.exchanges"]),
    ("period", &["workload.period"]),
    ("max_retransmit", &["coap.max_retransmit"]),
];

/// The characters of a line that a message repeats.
const LONGEST_LINE: usize = 100;

/// The text of a scenario and its origin.
#[derive(Clone, Debug)]
pub struct Source {
    /// A file's path or a built-in's name.
    pub place: String,
    /// The TOML text.
    pub text: String,
    /// Additional congestion controls of a program, which `--cc` can then name.
    pub custom: Registry,
}

/// Finds a built-in scenario by name, or reads a file.
///
/// # Errors
///
/// Returns an error if there is neither a built-in scenario nor a file with this name; the message
/// lists the built-in names. Also returns an error if the file cannot be read or is not a valid
/// scenario; the message names line and key.
pub fn load(name: &str) -> Result<Source, ScenarioError> {
    if let Some(builtin) = BUILTIN.iter().find(|builtin| builtin.name == name) {
        return Ok(Source::new(name, builtin.toml));
    }
    if !Path::new(name).exists() {
        let names: Vec<&str> = BUILTIN.iter().map(|builtin| builtin.name).collect();
        return Err(ScenarioError::file(
            name,
            &format!(
                "no such file, and no built-in scenario; there are {}{}",
                names.join(", "),
                did_you_mean(name, names.iter().copied())
            ),
        ));
    }
    let mut text = String::new();
    let read = std::fs::File::open(name)
        .and_then(|file| file.take(MOST_TEXT + 1).read_to_string(&mut text));
    read.map_err(|error| ScenarioError::file(name, &format!("cannot be read: {error}")))?;
    if text.len() as u64 > MOST_TEXT {
        return Err(ScenarioError::file(name, "is longer than 1 MiB, the limit for a scenario"));
    }
    let source = Source::new(name, text);
    source.scenario(&[])?;
    Ok(source)
}

impl Source {
    /// Creates a source from a text; errors refer to it as `place`.
    pub fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into(), custom: Registry::default() }
    }

    /// Adds congestion controls from outside, which `--cc` and tables such as `[control.NAME]` can
    /// then name.
    pub fn with_controls(mut self, custom: Registry) -> Self {
        self.custom = custom;
        self
    }

    /// Parses and validates the scenario with overrides applied.
    ///
    /// # Errors
    ///
    /// Returns an error if a key is unknown or a value impossible; the message names the file and
    /// line, or the `--set`, and the range.
    pub fn scenario(&self, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        // The file is parsed without overrides first, so that its own errors are reported with
        // their lines.
        let mut file: ScenarioFile =
            toml::from_str(&self.text).map_err(|error| self.parse_error(&error))?;
        file.custom = self.custom.clone();
        let plain = file.read().map_err(|Fault { key, message }| {
            ScenarioError::at_line(&self.place, self.line_of(&key), &key, &message)
        })?;
        let mut table: Table =
            toml::from_str(&self.text).map_err(|error| self.parse_error(&error))?;
        if overrides.is_empty() {
            // Once, and not for each setting of a sweep.
            self.check_short_names(&plain, &table)?;
        }
        let mut file = None;
        let mut set_by: Vec<(String, Override)> = Vec::new();
        for change in overrides {
            let argument = format!("{}={}", change.key, change.value);
            let fail = |message: &str| ScenarioError::argument("--set", &argument, message);
            for path in self.paths(&plain, &change.key)? {
                // If a key is given several times, the last value counts; two different keys with
                // the same meaning are a mistake.
                let clash =
                    set_by.iter().find(|(known, by)| *known == path && by.key != change.key);
                if let Some((_, Override { key, value })) = clash {
                    let message =
                        format!("sets {path}, and so does --set {key}={value}; keep one of them");
                    return Err(fail(&message));
                }
                set_by.push((path.clone(), change.clone()));
                let value = change.value_for(&table, &path);
                set(&mut table, &path, value).map_err(|message| fail(&message))?;
            }
            file = Some(read(&table).or_else(|error| {
                // A number was given in place of a name. The list of names is only available if
                // the value is a text.
                if error.message().contains("unit variant") {
                    for path in self.paths(&plain, &change.key)? {
                        let text = Value::String(change.value.clone());
                        set(&mut table, &path, text).map_err(|message| fail(&message))?;
                    }
                }
                let paths = self.paths(&plain, &change.key)?;
                let path = paths.first().map_or("", String::as_str);
                read(&table).map_err(|error| fail(&in_words_of(path, error.message())))
            })?);
        }
        let Some(mut file) = file else { return self.settled(plain) };
        file.custom = self.custom.clone();
        let scenario = file.read().map_err(|Fault { key, message }| {
            let fault = overrides.iter().find(|change| {
                let paths = self.paths(&plain, &change.key).unwrap_or_default();
                paths.iter().any(|path| key.starts_with(path.as_str()))
            });
            let argument = fault.map_or(key, |change| format!("{}={}", change.key, change.value));
            ScenarioError::argument("--set", &argument, &message)
        })?;
        self.settled(scenario)
    }

    /// The scenario with what follows from the rest of it, and with the traces and logs that it names.
    fn settled(&self, mut scenario: Scenario) -> Result<Scenario, ScenarioError> {
        scenario.clients.count = scenario.client_count();
        super::trace::read(&mut scenario, &self.place)?;
        super::request_log::read(&mut scenario, &self.place)?;
        Ok(scenario)
    }

    /// Fails if a short name of the file stands for a key that does not exist.
    fn check_short_names(&self, scenario: &Scenario, table: &Table) -> Result<(), ScenarioError> {
        for (name, paths) in &scenario.keys {
            let key = format!("keys.{name}");
            let fail =
                |why: &str| ScenarioError::at_line(&self.place, self.line_of(&key), &key, why);
            if paths.is_empty() {
                return Err(fail("stands for no key: name one, such as [\"network.up.rate\"]"));
            }
            for path in paths {
                if let Some(why) = why_unknown(table, path) {
                    return Err(fail(&format!("stands for {path}: {}", in_words_of(path, &why))));
                }
            }
        }
        Ok(())
    }

    /// The dotted keys for which a `--set` key stands.
    fn paths(&self, scenario: &Scenario, key: &str) -> Result<Vec<String>, ScenarioError> {
        if let Some(paths) = scenario.keys.get(key) {
            return Ok(paths.clone());
        }
        if key.contains('.') {
            return Ok(vec![key.to_owned()]);
        }
        if let Some((_, paths)) = SHORT_NAMES.iter().find(|(name, _)| *name == key) {
            return Ok(paths.iter().map(|path| (*path).to_owned()).collect());
        }
        let mut known: Vec<&str> = scenario.keys.keys().map(String::as_str).collect();
        known.extend(SHORT_NAMES.iter().map(|(name, _)| *name));
        known.sort_unstable();
        known.dedup();
        let message = format!(
            "no such key; there are {} and every dotted key of the file, such as network.up.rate{}",
            known.join(", "),
            did_you_mean(key, known.iter().copied())
        );
        Err(ScenarioError::argument("--set", key, &message))
    }

    fn parse_error(&self, error: &toml::de::Error) -> ScenarioError {
        let line = error.span().map(|span| {
            1 + self.text.as_bytes().iter().take(span.start).filter(|byte| **byte == b'\n').count()
        });
        if let Some(field) = missing_field(error.message())
            && error.span().is_none_or(|span| span.start == 0)
        {
            let message = match field {
                "network" | "workload" => format!("the table [{field}] is missing"),
                _ => format!("the key {field} is missing; it stands before the first table"),
            };
            return ScenarioError::file(&self.place, &message);
        }
        let of_key = |line| key_at_fault(&self.text, line, error.message()).unwrap_or(line);
        let line = line.map(of_key);
        let key = line.and_then(|line| self.text.lines().nth(line - 1)).unwrap_or_default();
        let key = key.char_indices().nth(LONGEST_LINE).map_or(key, |(end, _)| &key[..end]);
        let name = key.split('=').next().unwrap_or_default().trim();
        ScenarioError::at_line(&self.place, line, key.trim(), &in_words_of(name, error.message()))
    }

    /// The line that sets a dotted key, found by its table header and name.
    fn line_of(&self, dotted: &str) -> Option<usize> {
        let mut table = String::new();
        // The array of tables that was begun last, with the name of its entry.
        let mut entry: Option<(&str, String)> = None;
        for (index, line) in self.text.lines().enumerate() {
            let line = line.trim();
            if let Some(array) = line.strip_prefix("[[").and_then(|line| line.split(']').next())
                && matches!(
                    array,
                    "class"
                        | "link"
                        | "cross"
                        | "power_cut"
                        | "cell_outage"
                        | "device_move"
                        | "phase"
                )
            {
                let rest = self.text.lines().skip(index + 1).map(str::trim);
                let own = rest.take_while(|line| !line.starts_with('['));
                let name = own
                    .filter_map(|line| line.split_once('='))
                    .find(|(key, _)| key.trim() == "name");
                let name = name
                    .map_or("", |(_, value)| value.trim().split('"').nth(1).unwrap_or_default());
                let dotted_name = format!("{array}.{name}");
                if dotted_name == dotted {
                    return Some(index + 1);
                }
                table = format!("{dotted_name}.");
                entry = Some((array, dotted_name));
            } else if let Some(header) =
                line.strip_prefix('[').and_then(|line| line.split(']').next())
            {
                let inner = entry.as_ref().and_then(|(array, name)| {
                    header
                        .strip_prefix(array)?
                        .strip_prefix('.')
                        .map(|rest| format!("{name}.{rest}"))
                });
                let header = inner.as_deref().unwrap_or(header);
                if header == dotted {
                    return Some(index + 1);
                }
                table = format!("{header}.");
            } else if let Some((key, _)) = line.split_once('=')
                && format!("{table}{}", key.trim()) == dotted
            {
                return Some(index + 1);
            }
        }
        None
    }
}

/// The name of the missing field, if the parser reports one.
fn missing_field(message: &str) -> Option<&str> {
    message.trim().strip_prefix("missing field `")?.strip_suffix('`')
}
