//! Topics that outlive the program.

use super::BrokerInner;
use super::table::TopicTable;
use super::topic::Topic;
use crate::durable::{Changes, DurableState};
use ebbtide::server::StoredMap;

impl DurableState for BrokerInner {
    fn take_changes(&self) -> Changes {
        self.table().take_changes()
    }
}

/// Fills a table with what is stored.
pub(super) fn restore(map: &StoredMap, table: &mut TopicTable) {
    let mut lost = 0;
    table.set_restoring(true);
    for (key, value) in map.iter() {
        let number = key.try_into().map(u32::from_be_bytes);
        let (Ok(number), Some(topic)) = (number, Topic::decode(value)) else {
            lost += 1;
            continue;
        };
        lost += u32::from(table.restore(number, topic).is_err());
    }
    table.set_restoring(false);
    if lost > 0 {
        tracing::warn!(target: "ebbtide::state", lost, "stored topics that are not valid, or exceed the limit");
    }
}
