//! The resources to which bodies in blocks are on their way: one to each, since devices without Request-Tag would put
//! the blocks of two into one body (RFC 9175 section 3.3).

use crate::ask::CacheKey;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// See the [module](self). Those that wait for their turn, in their order, are with the resource.
#[derive(Debug, Default)]
pub(crate) struct UploadsUnderWay(Mutex<BTreeMap<CacheKey, UploadQueue>>);

type UploadQueue = VecDeque<oneshot::Sender<UploadAlone>>;

/// A body on its way, until it is dropped.
#[derive(Debug)]
pub(crate) struct UploadAlone {
    uploads: Arc<UploadsUnderWay>,
    uri: CacheKey,
}

impl UploadsUnderWay {
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().values().map(VecDeque::len).sum()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<CacheKey, UploadQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a body; `None` if another one is on its way.
    pub(crate) fn begin(self: &Arc<Self>, uri: &CacheKey) -> Option<UploadAlone> {
        match self.lock().entry(uri.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(vacant) => {
                vacant.insert(UploadQueue::new());
                Some(UploadAlone { uploads: self.clone(), uri: uri.clone() })
            }
        }
    }

    /// Begins a body when it is its turn.
    pub(crate) async fn turn(self: &Arc<Self>, uri: &CacheKey) -> UploadAlone {
        loop {
            if let Some(alone) = self.begin(uri) {
                return alone;
            }
            let turn = match self.lock().get_mut(uri) {
                // It has ended in this moment.
                None => continue,
                Some(waiting) => {
                    waiting.retain(|other| !other.is_closed());
                    let (sender, turn) = oneshot::channel();
                    waiting.push_back(sender);
                    turn
                }
            };
            if let Ok(alone) = turn.await {
                return alone;
            }
        }
    }

    /// A body has ended: the next one that still waits, if there is one.
    fn next(&self, uri: &CacheKey) -> Option<oneshot::Sender<UploadAlone>> {
        let mut known = self.lock();
        let waiting = known.get_mut(uri)?;
        while let Some(next) = waiting.pop_front() {
            if !next.is_closed() {
                return Some(next);
            }
        }
        known.remove(uri);
        None
    }
}

impl Drop for UploadAlone {
    fn drop(&mut self) {
        if let Some(next) = self.uploads.next(&self.uri) {
            // If that one has gone in this moment, what comes back is dropped, and is the turn of the one after it.
            drop(next.send(Self { uploads: self.uploads.clone(), uri: self.uri.clone() }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn bodies_have_their_turns_in_order_and_those_that_have_gone_have_none() {
        let uploads = Arc::new(UploadsUnderWay::default());
        let uri = CacheKey(vec![1]);
        let first = uploads.turn(&uri).await;
        let mut gone = Box::pin(uploads.turn(&uri));
        let mut second = Box::pin(uploads.turn(&uri));
        let mut given_up = Box::pin(uploads.turn(&uri));
        for waiting in [&mut gone, &mut second, &mut given_up] {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        drop(gone);
        assert!(uploads.begin(&uri).is_none() && uploads.begin(&CacheKey(vec![2])).is_some());
        drop(first);
        let second = second.as_mut().now_or_never().unwrap();
        // It has its turn, and goes before it knows.
        drop(second);
        assert_eq!(uploads.count(), 1);
        drop(given_up);
        assert_eq!(uploads.count(), 0);
    }
}
