//! The packets of the links other than the bottleneck, and those of others.

use super::model::{LinkCell, PacketCounts};
use super::pooled::utilisation_of;
use crate::net::Direction;
use crate::record::{CrossRecord, DirectionCounts, RunRecord};

/// The packets of the links other than the bottleneck.
pub(super) fn links(records: &[RunRecord]) -> Vec<LinkCell> {
    let Some(first) = records.first() else { return Vec::new() };
    let link = |index: usize| {
        let of = |record: &'_ RunRecord, direction: Direction| -> DirectionCounts {
            let link = record.totals.links.get(index);
            link.map_or_else(DirectionCounts::default, |link| direction.select(link.up, link.down))
        };
        let side = |direction| records.iter().map(|record| of(record, direction)).sum();
        LinkCell {
            name: first.totals.links[index].name.clone(),
            up: side(Direction::Up),
            down: side(Direction::Down),
            utilisation_up: utilisation_of(records, |record| of(record, Direction::Up)),
            utilisation_down: utilisation_of(records, |record| of(record, Direction::Down)),
        }
    };
    (0..first.totals.links.len()).map(link).collect()
}

/// The packets of others, summed over replications.
pub(super) fn cross(records: &[RunRecord]) -> Vec<(String, PacketCounts)> {
    let Some(first) = records.first() else { return Vec::new() };
    let sum = |index: usize, field: fn(&CrossRecord) -> u64| {
        records.iter().filter_map(|record| record.totals.cross.get(index)).map(field).sum()
    };
    let source = |(index, source): (usize, &CrossRecord)| {
        let counts = PacketCounts {
            sent: sum(index, |one| one.sent),
            delivered: sum(index, |one| one.delivered),
            dropped_queue: sum(index, |one| one.dropped_queue),
            lost_link: sum(index, |one| one.lost_link),
            marked: 0,
        };
        (source.name.clone(), counts)
    };
    first.totals.cross.iter().enumerate().map(source).collect()
}
