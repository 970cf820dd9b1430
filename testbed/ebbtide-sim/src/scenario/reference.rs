//! The reference of keys, from the tables that read them.

use super::validate::ScenarioFile;
use crate::keys::{KeyRange, KeyRow};
use std::fmt::Write;
use toml::Value;

/// A file with every table and array, and with the required keys only.
const REQUIRED: &str = include_str!("required.toml");

/// Every key of scenario files, in the order of their tables.
///
/// # Errors
///
/// Returns an error if the list of required keys lacks one.
pub fn reference() -> Result<Vec<KeyRow>, toml::de::Error> {
    let file: ScenarioFile = toml::from_str(REQUIRED)?;
    let required: Value = toml::from_str(REQUIRED)?;
    let mut keys = Vec::new();
    for (key, about, entry) in file.entries() {
        entry.describe(key, about, &KeyRange::ANY, &mut keys);
    }
    // The keys of a table stand together, before those of the tables within it.
    let tables: Vec<String> = keys.iter().map(|key| table_of(key).to_owned()).collect();
    keys.sort_by_key(|key| tables.iter().position(|table| table == table_of(key)));
    for key in &mut keys {
        if stands_in(&required, &key.key) {
            key.default = "required".to_owned();
        }
    }
    Ok(keys)
}

/// The table of a key; empty for those before the first table.
fn table_of(key: &KeyRow) -> &str {
    key.key.rsplit_once('.').map_or("", |(table, _)| table)
}

/// Whether a file has a dotted key, in which `NAME` stands for the first entry of an array of tables.
fn stands_in(file: &Value, key: &str) -> bool {
    let inner = |place: &Value, part: &str| match place {
        Value::Array(list) => list.first().cloned(),
        table => table.get(part).cloned(),
    };
    key.split('.').try_fold(file.clone(), |place, part| inner(&place, part)).is_some()
}

/// The reference as a page of the documents: one section for each table.
///
/// # Errors
///
/// As [`reference()`].
pub fn reference_page() -> Result<String, toml::de::Error> {
    let mut page = "# Every key of a scenario file\n\n\
        Generated from the source; a test fails if the page is out of date. [Scenarios](scenarios.md) explains how \
        the keys work together, and how values are written. Ranges include both ends unless they say otherwise. A key \
        without a default is optional, and its absence means that there is no such thing.\n"
        .to_owned();
    let mut table = None;
    for key in reference()? {
        let (own, name) = key.key.rsplit_once('.').unwrap_or(("", &key.key));
        if table.as_deref() != Some(own) {
            let heading = match own.split_once(".NAME") {
                _ if own.is_empty() => "Top level".to_owned(),
                Some((array, "")) => format!("`[[{array}]]`"),
                Some((array, inner)) => format!("`[{array}{inner}]`"),
                None => format!("`[{own}]`"),
            };
            // Writing to a text cannot fail.
            let _ = write!(
                page,
                "\n## {heading}\n\n| key | values | default | range | meaning |\n|---|---|---|---|---|\n"
            );
            table = Some(own.to_owned());
        }
        let default = match key.default.as_str() {
            "" | "required" => key.default.clone(),
            value => format!("`{value}`"),
        };
        let _ = writeln!(
            page,
            "| `{name}` | {} | {default} | {} | {} |",
            key.kind,
            key.range,
            key.about.replace('|', "\\|")
        );
    }
    Ok(page)
}
