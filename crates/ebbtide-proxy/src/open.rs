//! Bounded places with fair shares for clients: of open requests and of connections.

use crate::system;
use ebbtide_core::session::FairShares;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places, of which a client's address has at most as many as are free.
#[derive(Debug)]
pub(crate) struct FairPlaces {
    shares: Mutex<Shares>,
    max: usize,
}

#[derive(Debug)]
struct Shares {
    taken: usize,
    fair: FairShares,
}

/// A place that is taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Counted {
    open: Arc<FairPlaces>,
    client: IpAddr,
}

impl FairPlaces {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        let shares = Shares { taken: 0, fair: FairShares::new(system::seed()) };
        Arc::new(Self { shares: Mutex::new(shares), max })
    }

    fn lock(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a request of this client; `None` at the limit.
    pub(crate) fn admit(self: &Arc<Self>, client: IpAddr) -> Option<Counted> {
        let mut shares = self.lock();
        if shares.taken >= self.max || !shares.fair.admit(client, shares.taken, self.max) {
            return None;
        }
        shares.taken += 1;
        shares.fair.add(client);
        Some(Counted { open: self.clone(), client })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut shares = self.open.lock();
        shares.taken -= 1;
        shares.fair.remove(self.client);
    }
}
