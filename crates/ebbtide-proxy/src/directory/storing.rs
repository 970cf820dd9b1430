//! Registrations outlive the program: what is acknowledged has been stored.

use super::DirectoryInner;
use super::endpoint::RegisteredEndpoint;
use super::table::DirectoryTable;
use crate::system;
use ebbtide::server::StoredMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How long a registrant waits until its registration is stored.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait after something could not be stored.
const RETRY: Duration = Duration::from_secs(1);

/// The task that stores changes. All that come while it writes are written next, at once.
#[derive(Debug)]
pub(super) struct Durable {
    wake: Arc<Notify>,
    /// The version of the table that is stored.
    stored: watch::Receiver<u64>,
}

impl Durable {
    /// Stores the changes of a directory until it is dropped.
    pub(super) fn start(map: StoredMap, directory: Weak<DirectoryInner>) -> Self {
        let wake = Arc::new(Notify::new());
        let (written, stored) = watch::channel(0);
        tokio::spawn(store(map, directory, wake.clone(), written));
        Self { wake, stored }
    }

    /// There are changes.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits until a version of the table is stored. Returns whether it is.
    pub(super) async fn has(&self, version: u64) -> bool {
        self.wake();
        let mut stored = self.stored.clone();
        let waiting = stored.wait_for(|stored| *stored >= version);
        matches!(tokio::time::timeout(PATIENCE, waiting).await, Ok(Ok(_)))
    }
}

impl Drop for Durable {
    fn drop(&mut self) {
        // The task sees that its directory is gone.
        self.wake.notify_one();
    }
}

async fn store(
    mut map: StoredMap,
    directory: Weak<DirectoryInner>,
    wake: Arc<Notify>,
    written: watch::Sender<u64>,
) {
    loop {
        wake.notified().await;
        let Some(directory) = directory.upgrade() else { return };
        let (changes, version) = {
            let mut table = directory.table();
            (table.take_changes(system::now()), table.version())
        };
        drop(directory);
        let writing = tokio::task::spawn_blocking(move || {
            let outcome = map.write(changes);
            (map, outcome)
        });
        // The runtime ends.
        let Ok((again, outcome)) = writing.await else { return };
        map = again;
        match outcome {
            Ok(()) => {
                written.send_replace(version);
            }
            Err(error) => {
                tracing::error!(target: "ebbtide::state", %error, "registrations cannot be stored; it is tried again");
                tokio::time::sleep(RETRY).await;
                // The map has the changes, and stores them with the next ones.
                wake.notify_one();
            }
        }
    }
}

/// Fills a table with what is stored and has not expired.
pub(super) fn restore(map: &StoredMap, table: &mut DirectoryTable) {
    let (now, unix) = (system::now(), system::unix_seconds());
    let mut lost = 0;
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
    if lost > 0 {
        tracing::warn!(target: "ebbtide::state", lost, "stored registrations that are not valid, or exceed the limit");
    }
}
