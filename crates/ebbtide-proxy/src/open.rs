//! Bounded places with fair shares for clients: of open requests and of connections.

use crate::room::{FairRoom, Holding};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places, each of which is taken for a while.
#[derive(Debug)]
pub(crate) struct FairPlaces(Mutex<FairRoom>);

/// A place that is taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    open: Arc<FairPlaces>,
    holding: Holding,
}

/// The places of a request and of its body, until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    pub(crate) _request: Counted,
    pub(crate) _body: Option<Counted>,
}

impl FairPlaces {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(FairRoom::new(max))))
    }

    fn lock(&self) -> MutexGuard<'_, FairRoom> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`FairRoom::is_full_for_unverified`].
    pub(crate) fn is_full_for_unverified(&self) -> bool {
        self.lock().is_full_for_unverified()
    }

    /// Whether addresses that may be forged hold so many places, and one of `part` of all.
    pub(crate) fn has_many_unverified(&self, part: usize, least: usize) -> bool {
        let room = self.lock();
        room.unverified() >= least.max(room.max() / part)
    }

    /// A place for a request of this client; `None` at the limit.
    pub(crate) fn admit(self: &Arc<Self>, client: IpAddr) -> Option<Counted> {
        self.hold(Holding { client, places: 1 })
    }

    /// So many places; `None` at the limit.
    pub(crate) fn hold(self: &Arc<Self>, holding: Holding) -> Option<Counted> {
        let is_admitted = self.lock().replace(None, Some(holding));
        is_admitted.then(|| Counted { open: self.clone(), holding })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.lock().replace(Some(self.holding), None);
    }
}
