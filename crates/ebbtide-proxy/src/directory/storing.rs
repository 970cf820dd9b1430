//! Registrations that outlive the program.

use super::DirectoryInner;
use super::endpoint::RegisteredEndpoint;
use super::table::{DirectoryFull, DirectoryTable};
use crate::durable::{self, Changes, DurableState, StoredFate};
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
pub(super) fn restore(map: &mut StoredMap, table: &mut DirectoryTable) {
    let (now, unix) = (system::now(), system::unix_seconds());
    table.set_restoring(true);
    durable::restore(map, |number, value| {
        let Some((endpoint, expires)) = RegisteredEndpoint::decode(value) else {
            return StoredFate::Rejected;
        };
        // It is kept for as long as it has left, and at most for its lifetime, whatever the clock says.
        let left = expires.saturating_sub(unix).min(endpoint.lifetime.into());
        if left == 0 || table.number(&endpoint.name).is_some() {
            return StoredFate::Over;
        }
        match table.restore(number, endpoint, now + Duration::from_secs(left)) {
            Ok(()) => StoredFate::Kept,
            Err(DirectoryFull) => StoredFate::Rejected,
        }
    });
    table.set_restoring(false);
}
