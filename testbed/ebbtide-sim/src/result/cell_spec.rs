//! One cell of a campaign, and what identifies its results.

use crate::record::Store;
use crate::scenario::{Control, SHORT_NAMES, Scenario};
use crate::units::Buffer;
use std::collections::BTreeMap;

/// One cell: a scenario with its settings applied, and its controls.
#[derive(Clone, Debug)]
pub struct CellSpec {
    /// The control, or several joined by `+`, as given.
    pub cc: String,
    /// The controls, in turn for each client.
    pub controls: Vec<Control>,
    /// All `--set` keys and their values, in order; the sweeps among them are the axes.
    pub settings: Vec<(String, String)>,
    /// Keys that follow from the settings and their values: not axes, but part of the cell's command.
    pub derived: Vec<(String, String)>,
    /// The scenario with the settings applied.
    pub scenario: Scenario,
    /// Replications.
    pub reps: u32,
}

impl CellSpec {
    /// Returns the notes that a reader of its results must know, each once.
    pub fn notes(&self) -> &'static [&'static str] {
        self.controls.iter().map(Control::notes).find(|notes| !notes.is_empty()).unwrap_or_default()
    }

    /// Its settings as a JSON object in one form, however they were written: keys in order, the
    /// scenario's short name where all that it stands for is set alike, values as files have them.
    pub fn settings_json(&self) -> String {
        let scenario = serde_json::to_value(&self.scenario).unwrap_or_default();
        let written = |path: &str| {
            path.split('.').try_fold(&scenario, |place, part| place.get(part)).cloned()
        };
        let names = &self.scenario.keys;
        let paths = |key: &str| names.get(key).cloned().unwrap_or_else(|| vec![key.to_owned()]);
        let mut left: BTreeMap<String, serde_json::Value> = self
            .settings
            .iter()
            .chain(&self.derived)
            .flat_map(|(key, value)| paths(key).into_iter().map(move |path| (path, value)))
            .map(|(path, value)| {
                let value = written(&path).unwrap_or_else(|| value.clone().into());
                (path, value)
            })
            .collect();
        let mut map: BTreeMap<String, serde_json::Value> = BTreeMap::new();
        for (name, paths) in names {
            let mut values = paths.iter().map(|path| left.get(path));
            let first = values.next().flatten().cloned();
            if let Some(first) = first
                && values.all(|value| value == Some(&first))
            {
                paths.iter().for_each(|path| drop(left.remove(path)));
                map.insert(name.clone(), first);
            }
        }
        map.extend(left);
        let text = |value: serde_json::Value| match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        let map: BTreeMap<String, String> =
            map.into_iter().map(|(key, value)| (key, text(value))).collect();
        serde_json::to_string(&map).unwrap_or_default()
    }

    /// The value of a key, a short name or a dotted one, as a file has it; `None` if there is none.
    pub fn value_of(&self, key: &str) -> Option<String> {
        let scenario = serde_json::to_value(&self.scenario).ok()?;
        let own = self.scenario.keys.get(key).and_then(|paths| paths.first());
        let short = || SHORT_NAMES.iter().find(|(name, _)| *name == key).map(|(_, paths)| paths[0]);
        let path = own.map(String::as_str).or_else(short).unwrap_or(key);
        let value = path.split('.').try_fold(&scenario, |place, part| match place {
            serde_json::Value::Array(list) => list.iter().find(|one| one["name"] == part),
            table => table.get(part),
        })?;
        match value {
            serde_json::Value::String(text) => Some(text.clone()),
            serde_json::Value::Number(bytes) if path.ends_with(".buffer") => {
                Some(Buffer(bytes.as_u64()).in_units())
            }
            serde_json::Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// The cell in words, for messages.
    pub fn name(&self) -> String {
        let settings = self.settings.iter().map(|(key, value)| format!("{key}={value} "));
        format!("{}{}", settings.collect::<String>(), self.cc)
    }
}

/// All of a scenario that results depend on, as text: not what it says of itself.
pub(crate) fn identity(scenario: &Scenario) -> String {
    let mut scenario = scenario.clone();
    scenario.title.clear();
    scenario.description.clear();
    scenario.source.clear();
    scenario.keys.clear();
    scenario.run = crate::scenario::Run::default();
    // A requirement judges results and changes none.
    scenario.drop_requirements();
    serde_json::to_string(&scenario).unwrap_or_default()
}

pub(crate) fn hash_of(scenario: &Scenario) -> String {
    Store::key(&[&identity(scenario)])
}
