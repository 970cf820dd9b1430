//! The resources to which long bodies are on their way: one to each, since devices without Request-Tag would put the
//! blocks of two into one body (RFC 9175 section 3.3).

use crate::ask::CacheKey;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct UploadsUnderWay(Mutex<BTreeSet<CacheKey>>);

/// A long body on its way, until it is dropped.
pub(crate) struct UploadAlone {
    uploads: Arc<UploadsUnderWay>,
    uri: CacheKey,
}

impl UploadsUnderWay {
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<CacheKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a body; `None` if another one is on its way.
    pub(crate) fn begin(self: &Arc<Self>, uri: &CacheKey) -> Option<UploadAlone> {
        let is_new = self.lock().insert(uri.clone());
        is_new.then(|| UploadAlone { uploads: self.clone(), uri: uri.clone() })
    }
}

impl Drop for UploadAlone {
    fn drop(&mut self) {
        self.uploads.lock().remove(&self.uri);
    }
}
