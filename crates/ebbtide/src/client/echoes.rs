//! The Echo values of responses other than 4.01, each for the next request to its server (RFC 9175 section
//! 2.3).

use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum number of servers whose values are kept. A client may discard a value at any time.
const MAX_SERVERS: usize = 1024;

/// See the [module](self). The address of a server over DTLS stands for the session, so that a value is sent
/// only where it came from.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    values: Mutex<BTreeMap<SocketAddr, Bytes>>,
    /// How many there are: mostly none, which costs no lock.
    count: AtomicUsize,
}

impl Echoes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Bytes>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a value until the next request to this server.
    pub(super) fn keep(&self, server: SocketAddr, value: &[u8]) {
        let mut values = self.lock();
        if values.len() >= MAX_SERVERS && !values.contains_key(&server) {
            values.pop_first();
        }
        values.insert(server, Bytes::copy_from_slice(value));
        self.count.store(values.len(), Ordering::Release);
    }

    /// The value for a request to this server, which no other request gets.
    pub(super) fn take(&self, server: SocketAddr) -> Option<Bytes> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut values = self.lock();
        let value = values.remove(&server);
        self.count.store(values.len(), Ordering::Release);
        value
    }
}
