//! Topics that outlive the program.

use super::BrokerInner;
use super::table::TopicTable;
use super::topic::Topic;
use crate::durable::{self, Changes, DurableState};
use ebbtide::server::StoredMap;
use std::io;
use std::sync::Arc;

impl DurableState for BrokerInner {
    fn take_changes(&self) -> Changes {
        self.table().take_changes()
    }
}

/// Fills a table with what is stored.
pub(super) fn restore(map: &mut StoredMap, table: &mut TopicTable) -> io::Result<()> {
    table.set_restoring(true);
    let restored = durable::restore(map, |number, value| {
        Topic::decode(value).is_some_and(|topic| table.restore(number, topic).is_ok())
    });
    table.set_restoring(false);
    restored
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
