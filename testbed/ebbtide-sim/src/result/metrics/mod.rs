//! The tables of figures: one row of them for each figure of a cell.
//!
//! A figure of what records hold already is a new row of a table. A new measurement of a client needs
//! a field and a column in `record/client.rs` as well, and the host that counts it. The JSON document,
//! the tables of the page and of the terminal, CSV files and `ebbtide list figures` follow.

mod background;
mod cell;
mod lora;
mod measurement;
mod mesh;
mod nb_iot;
mod outcome;
mod wifi;

use super::metric::{Better, Group, Metric, Unit};

pub use background::BACKGROUND;
pub use cell::CELL;
pub use lora::LORA;
pub use measurement::MEASUREMENT;
pub use mesh::MESH;
pub use nb_iot::NB_IOT;
pub use outcome::{OUTCOME, RunMetric};
pub use wifi::WIFI;

/// The description of a figure.
#[derive(Copy, Clone, Debug)]
pub struct Described {
    /// Its name in the JSON document.
    pub name: &'static str,
    /// A sentence about it.
    pub about: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
}

/// All figures that documents have, in their order.
pub fn all_figures() -> impl Iterator<Item = Described> {
    let cells = GROUPS.iter().flat_map(|group| group.metrics).filter(|one| one.is_measured());
    let cells = cells.map(|Metric { name, about, unit, better, .. }| Described {
        name,
        about,
        unit: *unit,
        better: *better,
    });
    let runs = OUTCOME.iter().map(|RunMetric { name, about, unit, better, .. }| Described {
        name,
        about,
        unit: *unit,
        better: *better,
    });
    runs.chain(cells)
}

/// All tables, in the order in which documents have them.
pub static GROUPS: [&Group; 7] = [&CELL, &MESH, &WIFI, &BACKGROUND, &LORA, &NB_IOT, &MEASUREMENT];

#[cfg(test)]
mod tests {
    use super::{Better, GROUPS, OUTCOME};
    use std::collections::BTreeSet;

    #[test]
    fn no_two_figures_have_the_same_name_and_a_group_has_only_names_under_its_key() {
        let mut names = BTreeSet::new();
        let runs = OUTCOME.iter().map(|metric| metric.name);
        let cells = GROUPS.iter().flat_map(|group| group.metrics).map(|metric| metric.name);
        for name in runs.chain(cells) {
            assert!(names.insert(name), "{name} stands in the tables twice");
        }
        for group in GROUPS.iter().filter(|group| !group.key.is_empty()) {
            let prefix = format!("{}.", group.key);
            let other = group.metrics.iter().find(|metric| !metric.name.starts_with(&prefix));
            assert!(other.is_none(), "{:?}", other.map(|metric| metric.name));
        }
    }

    #[test]
    fn of_what_a_network_loses_less_is_better() {
        let lost =
            ["collided", "deaf", "faded", "weak", "missed", "acks_lost", "overflows", "given_up"];
        let columns =
            GROUPS.iter().flat_map(|group| group.metrics).filter(|one| one.page.is_some());
        let mut rated = 0;
        for metric in columns {
            if metric.name.rsplit('.').next().is_some_and(|name| lost.contains(&name)) {
                assert_eq!(metric.better, Better::Less, "{}", metric.name);
                rated += 1;
            }
        }
        assert!(rated >= lost.len(), "{rated}");
    }
}
