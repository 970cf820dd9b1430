//! Requests under way that change something: a client must be able to distinguish equal ones.

use ebbtide_core::PeerId;
use ebbtide_core::session::client::RequestParts;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

type Key = (PeerId, u64);

/// How many requests there are of each kind.
#[derive(Debug, Default)]
pub(super) struct Equals(Mutex<BTreeMap<Key, usize>>);

/// A request under way, until it is dropped.
#[derive(Debug)]
pub(super) struct EqualRequest {
    equals: Arc<Equals>,
    key: Key,
}

impl Equals {
    /// A request begins. Whether an equal one is under way: then a server would take later blocks of the
    /// response to one for blocks of the other (RFC 9175 section 3.3).
    pub(super) fn begin(
        self: &Arc<Self>,
        peer: PeerId,
        parts: &RequestParts,
    ) -> (EqualRequest, bool) {
        let mut hasher = DefaultHasher::new();
        parts.code.0.hash(&mut hasher);
        for opt in parts.options.iter() {
            (opt.number.0, opt.value).hash(&mut hasher);
        }
        parts.payload.hash(&mut hasher);
        let key = (peer, hasher.finish());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.entry(key).or_default();
        *count += 1;
        (EqualRequest { equals: self.clone(), key }, *count > 1)
    }
}

impl Drop for EqualRequest {
    fn drop(&mut self) {
        let mut all = self.equals.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.key);
            }
        }
    }
}
