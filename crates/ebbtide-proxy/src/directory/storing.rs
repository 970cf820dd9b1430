//! Registrations that outlive the program.

use super::DirectoryInner;
use super::endpoint::RegisteredEndpoint;
use super::table::DirectoryTable;
use crate::durable::{Changes, DurableState};
use crate::system;
use ebbtide::server::StoredMap;
use std::time::Duration;

impl DurableState for DirectoryInner {
    fn take_changes(&self) -> Changes {
        let mut table = self.table();
        Changes { stored: table.take_changes(system::now()), version: table.version() }
    }
}

/// Fills a table with what is stored and has not expired.
pub(super) fn restore(map: &StoredMap, table: &mut DirectoryTable) {
    let (now, unix) = (system::now(), system::unix_seconds());
    let mut lost = 0;
    table.set_restoring(true);
    for (key, value) in map.iter() {
        let number = key.try_into().map(u32::from_be_bytes);
        let (Ok(number), Some((endpoint, expires))) = (number, RegisteredEndpoint::decode(value))
        else {
            lost += 1;
            continue;
        };
        // It is kept for as long as it has left, and at most for its lifetime, whatever the clock says.
        let left = expires.saturating_sub(unix).min(endpoint.lifetime.into());
        let expires = now + Duration::from_secs(left);
        lost += u32::from(table.restore(number, endpoint, expires).is_err());
    }
    table.set_restoring(false);
    if lost > 0 {
        tracing::warn!(target: "ebbtide::state", lost, "stored registrations that are not valid, or exceed the limit");
    }
}
