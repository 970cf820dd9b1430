//! The table of settings in the documents is the one of the source.

use ebbtide_core::cc::{Algorithm, ControlConfig, SettingKey};
use std::collections::BTreeMap;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/controls/settings.md");
const HEAD: &str = "| key | default | it takes | meaning | controls |\n|---|---|---|---|---|\n";

fn names(controls: &[Algorithm]) -> String {
    let names: Vec<_> = controls.iter().map(|control| format!("`{control}`")).collect();
    if controls.len() == Algorithm::ALL.len() { "all".to_owned() } else { names.join(", ") }
}

/// The row of a key. A default that not all of its controls have is followed by those that have it.
fn row(key: &SettingKey) -> String {
    let mut by_default = BTreeMap::<String, Vec<Algorithm>>::new();
    let users = Algorithm::ALL.iter().filter(|control| control.keys().contains(&key.name()));
    for control in users.clone() {
        let settings = ControlConfig::new(*control).settings;
        by_default.entry(key.display(&settings).to_string()).or_default().push(*control);
    }
    let default = match &by_default.iter().collect::<Vec<_>>()[..] {
        [(value, _)] => (*value).clone(),
        values => values
            .iter()
            .map(|(value, of)| format!("{value} ({})", names(of)))
            .collect::<Vec<_>>()
            .join("; "),
    };
    let users: Vec<_> = users.copied().collect();
    format!(
        "| `{}` | {default} | {} | {} | {} |\n",
        key.name(),
        key.takes(),
        key.about(),
        names(&users)
    )
}

/// To write it, run this test with `UPDATE_DOCUMENTS=1`.
#[test]
fn the_table_of_settings_is_the_one_that_the_source_gives() {
    let table: String = HEAD.to_owned() + &SettingKey::all().iter().map(row).collect::<String>();
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, _) = page.split_once("| key | ").expect("a table of settings");
    let updated = format!("{before}{table}");
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(PAGE, &updated).unwrap();
    }
    let current = std::fs::read_to_string(PAGE).unwrap();
    assert!(
        current == updated,
        "docs/controls/settings.md is out of date: set UPDATE_DOCUMENTS=1 and run this test"
    );
}

#[test]
fn a_key_is_declared_once_and_some_control_reads_it() {
    for key in SettingKey::all() {
        assert_eq!(
            SettingKey::all().iter().filter(|other| other.name() == key.name()).count(),
            1,
            "{}",
            key.name()
        );
        assert!(
            Algorithm::ALL.iter().any(|control| control.keys().contains(&key.name())),
            "{}",
            key.name()
        );
    }
    for control in Algorithm::ALL {
        for name in control.keys() {
            assert!(SettingKey::all().iter().any(|key| key.name() == *name), "{control}: {name}");
        }
    }
}
