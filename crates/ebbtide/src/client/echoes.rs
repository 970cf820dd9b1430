//! The Echo values of responses other than 4.01, each for the next request to its server (RFC 9175 section
//! 2.3).

use bytes::Bytes;
use ebbtide_core::PeerId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of servers whose values are kept. A client may discard a value at any time.
const MAX_SERVERS: usize = 1024;

/// See the [module](self). A value is sent only where it came from: over a session to that session.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    values: Mutex<BTreeMap<PeerId, Bytes>>,
    /// How many there are: mostly none, which costs no lock.
    count: AtomicUsize,
}

impl Echoes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PeerId, Bytes>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a value until the next request to this server.
    pub(super) fn remember(&self, server: PeerId, value: &[u8]) {
        let mut values = self.lock();
        if values.len() >= MAX_SERVERS && !values.contains_key(&server) {
            values.pop_first();
        }
        values.insert(server, Bytes::copy_from_slice(value));
        self.count.store(values.len(), Ordering::Release);
    }

    /// The value for a request to this server, which no other request gets.
    pub(super) fn take(&self, server: PeerId) -> Option<Bytes> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut values = self.lock();
        let value = values.remove(&server);
        self.count.store(values.len(), Ordering::Release);
        value
    }
}
