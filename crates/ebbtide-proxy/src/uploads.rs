//! The resources to which bodies in blocks are on their way: one to each, since devices without Request-Tag would put
//! the blocks of two into one body (RFC 9175 section 3.3).

use crate::ask::CacheKey;
use crate::cell::{Applicant, FairQueue, Place};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// See the [module](self). Those that wait for their turn are with the resource.
#[derive(Debug, Default)]
pub(crate) struct UploadsUnderWay(Mutex<BTreeMap<CacheKey, UploadQueue>>);

type UploadQueue = FairQueue<oneshot::Sender<UploadAlone>>;

/// A body on its way, until it is dropped.
#[derive(Debug)]
pub(crate) struct UploadAlone {
    uploads: Arc<UploadsUnderWay>,
    uri: CacheKey,
}

/// A body that waits for its turn, until it is dropped.
struct WaitingUpload<'u> {
    uploads: &'u UploadsUnderWay,
    uri: &'u CacheKey,
    place: Place,
}

impl Drop for WaitingUpload<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.uploads.lock().get_mut(self.uri) {
            waiting.remove(self.place);
        }
    }
}

impl UploadsUnderWay {
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.lock().values().map(FairQueue::len).sum()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<CacheKey, UploadQueue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a body; `None` if another one is on its way.
    pub(crate) fn begin(self: &Arc<Self>, uri: &CacheKey) -> Option<UploadAlone> {
        match self.lock().entry(uri.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(vacant) => {
                vacant.insert(UploadQueue::default());
                Some(UploadAlone { uploads: self.clone(), uri: uri.clone() })
            }
        }
    }

    /// Begins a body when it is its turn.
    pub(crate) async fn turn(
        self: &Arc<Self>,
        uri: &CacheKey,
        applicant: Applicant,
    ) -> UploadAlone {
        loop {
            if let Some(alone) = self.begin(uri) {
                return alone;
            }
            let (sender, turn) = oneshot::channel();
            let _waiting = match self.lock().get_mut(uri) {
                // It has ended in this moment.
                None => continue,
                Some(waiting) => {
                    let place = waiting.push(applicant, sender);
                    WaitingUpload { uploads: self, uri, place }
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
        while let Some((_, next)) = waiting.pop(|_| true) {
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

    fn of(client: u8) -> Applicant {
        Applicant { client: [192, 0, 2, client].into(), urgency: 3 }
    }

    #[tokio::test]
    async fn a_client_with_many_bodies_does_not_delay_one_with_few() {
        let uploads = Arc::new(UploadsUnderWay::default());
        let uri = CacheKey(vec![1]);
        let first = uploads.turn(&uri, of(1)).await;
        let mut of_greedy = [1, 1].map(|client| Box::pin(uploads.turn(&uri, of(client))));
        let mut modest = Box::pin(uploads.turn(&uri, of(2)));
        for waiting in of_greedy.iter_mut().chain([&mut modest]) {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        drop(first);
        let [second, third] = &mut of_greedy;
        drop(second.as_mut().now_or_never().unwrap());
        let modest = modest.as_mut().now_or_never().unwrap();
        assert!(third.as_mut().now_or_never().is_none());
        drop(modest);
        assert!(third.as_mut().now_or_never().is_some());
        assert_eq!(uploads.count(), 0);
    }

    #[tokio::test]
    async fn bodies_have_their_turns_in_order_and_those_that_have_gone_have_none() {
        let uploads = Arc::new(UploadsUnderWay::default());
        let uri = CacheKey(vec![1]);
        let turn = || uploads.turn(&uri, of(1));
        let first = turn().await;
        let mut gone = Box::pin(turn());
        let mut second = Box::pin(turn());
        let mut given_up = Box::pin(turn());
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
