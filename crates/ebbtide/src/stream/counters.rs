//! What the connections of a client or a server have counted.

use ebbtide_core::stream::{Closed, Counters, Fault};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sums over all connections, those included that are over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamCounters {
    /// Connections that are open.
    pub open: usize,
    /// Connections that were established.
    pub connections: u64,
    /// Connections that a limit turned away.
    pub refused: u64,
    /// TLS or WebSocket handshakes that failed or took too long.
    pub handshakes_failed: u64,
    /// Connections that ended in good order.
    pub released: u64,
    /// Connections that the peer or the network ended.
    pub lost: u64,
    /// Connections that we aborted because the first message was no CSM, or none came in time.
    pub no_csm: u64,
    /// Connections that we aborted for a message beyond Max-Message-Size.
    pub too_long: u64,
    /// Connections that we aborted for what is no message, or a signal's critical option.
    pub malformed: u64,
    /// Connections that we aborted for slowness: a message that did not come to its end, a peer
    /// that took nothing or gave no sign of life.
    pub slow: u64,
    /// Connections that the peer aborted.
    pub aborted_by_peer: u64,
    /// Requests answered or made, and everything else about messages.
    pub messages: Counters,
}

/// [`StreamCounters`] that many connections share, and who is connected.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    counters: StreamCounters,
    by_address: HashMap<IpAddr, usize>,
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection in, unless there are as many as may be, in all or from its address.
    pub(crate) fn admit(&self, from: IpAddr, max: usize, per_address: usize) -> bool {
        let mut inner = self.lock();
        let there = inner.by_address.get(&from).copied().unwrap_or(0);
        if inner.counters.open >= max || there >= per_address {
            inner.counters.refused += 1;
            return false;
        }
        inner.counters.open += 1;
        *inner.by_address.entry(from).or_default() += 1;
        true
    }

    /// A connection that was admitted is over, or never came to be.
    pub(crate) fn leave(&self, from: IpAddr) {
        let mut inner = self.lock();
        inner.counters.open = inner.counters.open.saturating_sub(1);
        if let Some(count) = inner.by_address.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                inner.by_address.remove(&from);
            }
        }
    }

    pub(crate) fn established(&self) {
        self.lock().counters.connections += 1;
    }

    pub(crate) fn handshake_failed(&self) {
        self.lock().counters.handshakes_failed += 1;
    }

    /// A connection is over.
    pub(crate) fn closed(&self, closed: Closed, messages: Counters) {
        let mut inner = self.lock();
        let counters = &mut inner.counters;
        *match closed {
            Closed::Released | Closed::Aborted(Fault::Application) => &mut counters.released,
            Closed::ByPeer | Closed::Lost => &mut counters.lost,
            Closed::AbortedByPeer(_) => &mut counters.aborted_by_peer,
            Closed::Aborted(Fault::CsmMissing(_) | Fault::CsmLate) => &mut counters.no_csm,
            Closed::Aborted(Fault::TooLong { .. }) => &mut counters.too_long,
            Closed::Aborted(Fault::Malformed(_) | Fault::CriticalOption { .. }) => {
                &mut counters.malformed
            }
            Closed::Aborted(Fault::SlowMessage | Fault::WriteStalled | Fault::Silent) => {
                &mut counters.slow
            }
        } += 1;
        counters.messages += messages;
    }

    pub(crate) fn counters(&self) -> StreamCounters {
        self.lock().counters.clone()
    }
}
