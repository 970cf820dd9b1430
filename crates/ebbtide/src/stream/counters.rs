//! Counters of the connections of a client or a server.

use super::budget::Budget;
use super::config::StreamLimits;
use super::member::Member;
use crate::refusals::Reason;
use ebbtide_core::Shares;
use ebbtide_core::stream::{Closed, Counters, Fault};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sums over all connections, including those that have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamCounters {
    /// Connections that are open.
    pub open: usize,
    /// Observers over open connections.
    pub observers: usize,
    /// Connections that were established.
    pub connections: u64,
    /// Connections that a limit refused, for one of the three reasons that follow.
    pub refused: u64,
    /// Refused because their address had the maximum number of connections.
    pub refused_of_address: u64,
    /// Refused because the maximum number of connections was open, and no address had more than
    /// theirs.
    pub refused_when_full: u64,
    /// Refused because few descriptors were left, and no address had more connections than theirs.
    pub refused_without_descriptors: u64,
    /// Idle connections closed to make room for others, because their address had the most.
    pub made_room: u64,
    /// Connections closed because all connections together held too many bytes.
    pub held_too_much: u64,
    /// Handshakes ended because too many began after them.
    pub handshakes_displaced: u64,
    /// Bytes that the open connections hold, as [`ConnectionLimits::bytes`](crate::config::ConnectionLimits::bytes)
    /// counts them.
    pub bytes: usize,
    /// TLS or WebSocket handshakes that failed or took too long.
    pub handshakes_failed: u64,
    /// Connections that ended with a Release.
    pub released: u64,
    /// Connections that the peer closed without a Release, as clients do that have their answer.
    pub closed_by_peer: u64,
    /// Connections that the network ended, or a peer that was gone.
    pub lost: u64,
    /// Connections that we aborted because the first message was not a CSM, or none came in time.
    pub no_csm: u64,
    /// Connections that we aborted because of a message beyond Max-Message-Size.
    pub too_long: u64,
    /// Connections that we aborted because of a malformed message, or a critical option of a
    /// signal.
    pub malformed: u64,
    /// Connections that we aborted because they were too slow: a message was not completed, or the
    /// peer accepted no data or did not answer a Ping.
    pub slow: u64,
    /// Connections that the peer aborted.
    pub aborted_by_peer: u64,
    /// Counters of the messages of all connections.
    pub messages: Counters,
}

/// [`StreamCounters`] shared by many connections, and the list of connections.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    counters: StreamCounters,
    budget: Budget,
    lingering: Shares<u64>,
    /// The number of the last place in that.
    last_lingering: u64,
}

/// Connections that have ended and are still read, at once. The budget counts them no longer. Of one address they are at
/// most as many as are free to others.
const MAX_LINGERING: usize = 256;

/// One of the places of connections that have ended and are still read.
pub(super) struct Lingering {
    tally: Arc<Tally>,
    from: IpAddr,
    number: u64,
}

impl Drop for Lingering {
    fn drop(&mut self) {
        self.tally.lock().lingering.remove(self.from, self.number);
    }
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection that holds `bytes`, unless its address has the maximum number. If there
    /// is no room for it, another connection is closed or this one is refused. `scarce` states
    /// that few descriptors are left.
    pub(crate) fn admit(
        &self,
        from: IpAddr,
        limits: &StreamLimits,
        bytes: usize,
        scarce: bool,
    ) -> Result<Arc<Member>, Reason> {
        let mut inner = self.lock();
        let Inner { counters, budget, .. } = &mut *inner;
        if budget.connections_from(from) >= limits.per_address {
            counters.refused += 1;
            counters.refused_of_address += 1;
            return Err(Reason::ConnectionsOfAddress);
        }
        let mut gone = None;
        if scarce || budget.connections() >= limits.connections {
            gone = budget.make_room(from);
            if gone.is_none() {
                counters.refused += 1;
                let (count, why) = match scarce {
                    true => (&mut counters.refused_without_descriptors, Reason::Descriptors),
                    false => (&mut counters.refused_when_full, Reason::ConnectionsFull),
                };
                *count += 1;
                return Err(why);
            }
            counters.made_room += 1;
        }
        let member = budget.add(from, bytes);
        drop(inner);
        gone.iter().for_each(|gone| gone.dismiss());
        self.relieve(limits.bytes);
        Ok(member)
    }

    /// An admitted connection has ended, or was not established.
    pub(crate) fn leave(&self, member: &Member) {
        self.lock().budget.remove(member);
    }

    /// A place for a connection of this address that has ended, if there is one.
    pub(super) fn linger(self: &Arc<Self>, from: IpAddr) -> Option<Lingering> {
        let mut inner = self.lock();
        if inner.lingering.surplus(from, MAX_LINGERING).is_some() {
            return None;
        }
        inner.last_lingering += 1;
        let number = inner.last_lingering;
        inner.lingering.add(from, number);
        Some(Lingering { tally: self.clone(), from, number })
    }

    /// A connection's handshakes begin.
    pub(crate) fn start(&self, member: &Arc<Member>, limits: &StreamLimits) {
        let mut inner = self.lock();
        let displaced = inner.budget.start(member, limits.handshakes.max(1));
        inner.counters.handshakes_displaced += u64::from(displaced.is_some());
        drop(inner);
        displaced.iter().for_each(|member| member.dismiss());
    }

    /// A connection's handshakes have ended.
    pub(crate) fn started(&self, member: &Member) {
        self.lock().budget.started(member);
    }

    /// A connection now holds `bytes`. If all together hold too much, some are closed.
    pub(crate) fn hold(&self, member: &Member, bytes: usize, max: usize) {
        self.lock().budget.hold(member, bytes);
        self.relieve(max);
    }

    fn relieve(&self, max: usize) {
        loop {
            let mut inner = self.lock();
            let Some(member) = inner.budget.relieve(max) else { return };
            inner.counters.held_too_much += 1;
            drop(inner);
            member.dismiss();
        }
    }

    pub(crate) fn established(&self) {
        self.lock().counters.connections += 1;
    }

    pub(crate) fn handshake_failed(&self) {
        self.lock().counters.handshakes_failed += 1;
    }

    /// Counts a connection that has ended.
    pub(crate) fn closed(&self, closed: Closed, messages: Counters) {
        let mut inner = self.lock();
        let counters = &mut inner.counters;
        *match closed {
            Closed::Released | Closed::Aborted(Fault::Application) => &mut counters.released,
            Closed::ByPeer => &mut counters.closed_by_peer,
            Closed::Lost => &mut counters.lost,
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
        let inner = self.lock();
        let (open, bytes) = (inner.budget.connections(), inner.budget.bytes());
        StreamCounters { open, bytes, ..inner.counters.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_that_ends_very_many_connections_leaves_places_to_those_of_others() {
        let tally = Arc::new(Tally::default());
        let from = |host: u8, count: usize| -> Vec<_> {
            (0..count).filter_map(|_| tally.linger([192, 0, 2, host].into())).collect()
        };
        let greedy = from(1, 2 * MAX_LINGERING);
        assert_eq!(greedy.len(), MAX_LINGERING / 2);
        let modest = from(2, 10);
        assert_eq!(modest.len(), 10);
        drop((greedy, modest));
        assert!(tally.lock().lingering.is_empty());
        let many: Vec<_> = (0..=255).chain(0..=255).flat_map(|host| from(host, 1)).collect();
        assert!(many.len() <= MAX_LINGERING, "{}", many.len());
    }
}
