//! Topics that outlive the program.

use super::BrokerInner;
use super::table::{NotKept, TopicTable};
use super::topic::Topic;
use crate::durable::{self, Changes, DurableState, StoredFate};
use crate::system;
use ebbtide::server::StoredMap;
use std::sync::Arc;

impl DurableState for BrokerInner {
    fn take_changes(&self) -> Changes {
        self.table().take_changes()
    }
}

/// Fills a table with what is stored.
pub(super) fn restore(map: &mut StoredMap, table: &mut TopicTable) {
    let unix = system::unix_seconds();
    table.set_restoring(true);
    durable::restore(map, |number, value| {
        let Some(topic) = Topic::decode(value) else { return StoredFate::Rejected };
        if topic.properties.expires().is_some_and(|expires| expires <= unix) {
            return StoredFate::Over;
        }
        match table.restore(number, topic) {
            Ok(()) => StoredFate::Kept,
            Err(NotKept::Full | NotKept::NameTaken) => StoredFate::Rejected,
        }
    });
    table.set_restoring(false);
}

/// A new topic, which is taken back when this is dropped, unless it is stored: its client then receives a refusal.
pub(super) struct UnstoredTopic {
    broker: Arc<BrokerInner>,
    number: u32,
    /// `None` once it is stored.
    version: Option<u64>,
}

impl UnstoredTopic {
    pub(super) fn new(broker: Arc<BrokerInner>, number: u32, version: u64) -> Self {
        Self { broker, number, version: Some(version) }
    }

    /// It is stored.
    pub(super) fn keep(mut self) {
        self.version = None;
    }
}

impl Drop for UnstoredTopic {
    fn drop(&mut self) {
        let Some(version) = self.version else { return };
        // Others may have found and changed it meanwhile; then it is theirs as well.
        let removed = self.broker.table().take_back(self.number, version);
        let Some(subject) = removed else { return };
        subject.changed();
        if let Some(durable) = &self.broker.durable {
            durable.wake();
        }
    }
}
