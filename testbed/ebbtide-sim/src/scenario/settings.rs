//! `--set KEY=VALUE[,VALUE...]`: overrides and sweeps.

use super::error::ScenarioError;
use super::limits::MOST_REPLICATIONS;
use ebbtide_core::cc::Algorithm;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// One key set to one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// A short name of the scenario, or a dotted key.
    pub key: String,
    /// The value as text.
    pub value: String,
}

/// A key and the values that it takes in turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// A short name of the scenario, or a dotted key.
    pub key: String,
    /// At least one value.
    pub values: Vec<String>,
}

/// Parses `KEY=VALUE[,VALUE...]`.
///
/// # Errors
///
/// Returns an error if there is no `=`, or if the key or a value is empty.
pub fn parse_set(text: &str) -> Result<Axis, ScenarioError> {
    let fail = || {
        ScenarioError::argument("--set", text, "takes KEY=VALUE or KEY=VALUE,VALUE,... for a sweep")
    };
    let (key, values) = text.split_once('=').ok_or_else(fail)?;
    let values = split_outside_brackets(values);
    if key.trim().is_empty() || values.iter().any(String::is_empty) {
        return Err(fail());
    }
    Ok(Axis { key: key.trim().to_owned(), values })
}

/// Reads the names of `--cc`; `all` stands for every built-in control.
///
/// # Errors
///
/// Returns an error if a name occurs twice.
pub fn parse_controls(text: &str) -> Result<Vec<String>, String> {
    if text == "all" {
        return Ok(Algorithm::ALL.iter().map(|control| control.name().to_owned()).collect());
    }
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    match names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
        Some((_, twice)) => Err(format!("--cc: '{twice}' is named twice")),
        None => Ok(names),
    }
}

/// Reads a number of replications or of threads.
///
/// # Errors
///
/// Returns an error if it is not a whole number from 1 to 100000.
pub fn parse_count(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) if number <= MOST_REPLICATIONS => Ok(number),
        _ => Err(format!("takes a whole number, at least 1 and at most {MOST_REPLICATIONS}")),
    }
}

/// Reads a seed.
///
/// # Errors
///
/// Returns an error if it is not a whole number of 64 bits.
pub fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("takes a whole number, at most {}", u64::MAX))
}

/// Splits at commas, but not at those within a range such as `[10 ms, 20 ms]`.
fn split_outside_brackets(values: &str) -> Vec<String> {
    let mut depth = 0i32;
    let parts = values.split(|c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth == 0
    });
    parts.map(|value| value.trim().to_owned()).collect()
}

/// Every combination of the axes' values, the last axis changing fastest.
pub fn combinations(axes: &[Axis]) -> Vec<Vec<Override>> {
    axes.iter().fold(vec![Vec::new()], |before, axis| {
        before
            .iter()
            .flat_map(|combination| {
                axis.values.iter().map(move |value| {
                    let mut longer = combination.clone();
                    longer.push(Override { key: axis.key.clone(), value: value.clone() });
                    longer
                })
            })
            .collect()
    })
}

impl Override {
    /// The value as TOML: a number or boolean if it can be parsed as one, unless the value that it
    /// replaces is a text.
    pub(super) fn value_for(&self, table: &Table, path: &str) -> Value {
        let mut place = Some(&Value::Table(table.clone())).cloned();
        for part in path.split('.') {
            place = place.and_then(|value| match value {
                Value::Array(list) => list.into_iter().find(|entry| name_of(entry) == Some(part)),
                other => other.get(part).cloned(),
            });
        }
        let text = || Value::String(self.value.clone());
        // Settings of controls are texts, as on the command line.
        if path.starts_with("control.") {
            return text();
        }
        if self.value.starts_with('[') {
            let inner = self.value.trim_start_matches('[').trim_end_matches(']');
            let elements = inner.split(',').map(|element| {
                let element = element.trim().trim_matches('"');
                let text = || Value::String(element.to_owned());
                element.parse::<i64>().map_or_else(|_| text(), Value::Integer)
            });
            return Value::Array(elements.collect());
        }
        if let Ok(number) = self.value.parse::<i64>() {
            return match place {
                Some(Value::Float(_)) => Value::Float(number as f64),
                _ => Value::Integer(number),
            };
        }
        match (self.value.parse::<f64>(), self.value.as_str()) {
            (Ok(number), _) if number.is_finite() => Value::Float(number),
            (_, "true") => Value::Boolean(true),
            (_, "false") => Value::Boolean(false),
            _ => text(),
        }
    }
}

/// The name of an entry of an array of tables.
pub(super) fn name_of(entry: &Value) -> Option<&str> {
    entry.get("name")?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_axis_changes_fastest() {
        let axes = [parse_set("a=1,2").unwrap(), parse_set("b=x,y").unwrap()];
        let seen: Vec<String> = combinations(&axes)
            .iter()
            .map(|c| c.iter().map(|o| o.value.as_str()).collect::<String>())
            .collect();
        assert_eq!(seen, ["1x", "1y", "2x", "2y"]);
        assert_eq!(combinations(&[]).len(), 1);
    }

    #[test]
    fn a_range_in_brackets_is_one_value() {
        let axis = parse_set("network.up.delay=[10 ms, 20 ms],[1 s,2 s],5 ms").unwrap();
        assert_eq!(axis.values, ["[10 ms, 20 ms]", "[1 s,2 s]", "5 ms"]);
    }

    #[test]
    fn an_invalid_setting_is_refused_by_name() {
        for text in ["clients", "=4", "clients=", "clients=1,,2"] {
            let error = parse_set(text).unwrap_err().to_string();
            assert!(error.contains("KEY=VALUE") && error.contains(text), "{error}");
        }
    }
}
