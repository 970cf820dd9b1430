//! The limits on all connections of a server together, and the choice of the connection to close
//! when one is reached.
//!
//! Every connection belongs to the address from which it comes; for IPv6 this is the network of 64
//! bits, which belongs to one host. When a limit is reached, the address with the largest share
//! loses a connection, so that the peer that fills the server is the one that is closed.

use super::member::Member;
use super::starting::Starting;
use core::net::{IpAddr, Ipv6Addr};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// The number of bytes that a connection counts for, in addition to its buffers.
pub(crate) const OF_A_CONNECTION: usize = 4 << 10;
/// The number of bytes that a TLS session and its handshake count for.
pub(crate) const OF_TLS: usize = 16 << 10;
/// The number of bytes that a WebSocket counts for.
pub(crate) const OF_A_WEBSOCKET: usize = 8 << 10;

/// The connections of one address.
#[derive(Debug, Default)]
struct Share {
    bytes: usize,
    members: BTreeMap<u64, (Arc<Member>, usize)>,
}

/// Connections among which the one that was idle longest makes room, or those of one address: a look at all of them
/// would cost more than a new connection.
const LOOKED_AT: usize = 128;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Budget {
    next: u64,
    connections: usize,
    bytes: usize,
    shares: BTreeMap<IpAddr, Share>,
    /// The addresses by their connections, and by their bytes.
    by_count: BTreeSet<(usize, IpAddr)>,
    by_bytes: BTreeSet<(usize, IpAddr)>,
    /// The address behind which the next look for an idle connection begins.
    looked_at: Option<IpAddr>,
    starting: Starting,
}

impl Budget {
    pub(crate) const fn connections(&self) -> usize {
        self.connections
    }

    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn connections_from(&self, from: IpAddr) -> usize {
        self.shares.get(&network(from)).map_or(0, |share| share.members.len())
    }

    /// Adds a connection.
    pub(crate) fn add(&mut self, from: IpAddr, bytes: usize) -> Arc<Member> {
        let from = network(from);
        self.next += 1;
        let member = Arc::new(Member::new(self.next, from));
        self.change(from, |share| {
            share.members.insert(member.number, (member.clone(), bytes));
            share.bytes += bytes;
        });
        self.bytes += bytes;
        self.connections += 1;
        member
    }

    /// Changes the share of an address, which may be new, or be empty afterwards.
    fn change<R>(&mut self, from: IpAddr, change: impl FnOnce(&mut Share) -> R) -> R {
        let share = self.shares.entry(from).or_default();
        let (count, bytes) = (share.members.len(), share.bytes);
        let result = change(share);
        let (count_now, bytes_now) = (share.members.len(), share.bytes);
        if count_now == 0 {
            self.shares.remove(&from);
        }
        for (order, old, new) in [
            (&mut self.by_count, count, count_now),
            (&mut self.by_bytes, bytes, if count_now > 0 { bytes_now } else { 0 }),
        ] {
            if old != new {
                order.remove(&(old, from));
                if new > 0 {
                    order.insert((new, from));
                }
            }
        }
        result
    }

    /// Removes a connection, if that has not been done.
    pub(crate) fn remove(&mut self, member: &Member) {
        self.starting.remove(member);
        let removed = self.change(member.from, |share| {
            let (_, bytes) = share.members.remove(&member.number)?;
            share.bytes -= bytes;
            Some(bytes)
        });
        let Some(bytes) = removed else { return };
        self.bytes -= bytes;
        self.connections -= 1;
    }

    /// Updates the number of bytes that a connection holds.
    pub(crate) fn hold(&mut self, member: &Member, bytes: usize) {
        let before = self.change(member.from, |share| {
            let (_, held) = share.members.get_mut(&member.number)?;
            share.bytes = share.bytes - *held + bytes;
            Some(core::mem::replace(held, bytes))
        });
        let Some(before) = before else { return };
        self.bytes = self.bytes - before + bytes;
    }

    /// A connection's handshakes begin. If more than `max` are in progress, the oldest one of the address that has most
    /// must close and is returned.
    pub(crate) fn start(&mut self, member: &Arc<Member>, max: usize) -> Option<Arc<Member>> {
        let displaced = self.starting.add(member, max)?;
        self.remove(&displaced);
        Some(displaced)
    }

    /// A connection's handshakes have ended.
    pub(crate) fn started(&mut self, member: &Member) {
        self.starting.remove(member);
    }

    /// Makes room for a connection from `from`. The address with the most connections loses the
    /// one that has been idle longest; of several such addresses, some are looked at, others the next time. `None` if
    /// `from` itself has as many.
    pub(crate) fn make_room(&mut self, from: IpAddr) -> Option<Arc<Member>> {
        let (most, _) = *self.by_count.last()?;
        if self.connections_from(from) >= most {
            return None;
        }
        let first = (most, IpAddr::from([0; 4]));
        let after = self.looked_at.map_or(first, |last| (most, last));
        let addresses = self.by_count.range((Bound::Excluded(after), Bound::Unbounded));
        let addresses = addresses.chain(self.by_count.range(first..=after));
        let addresses = addresses.map(|(_, address)| *address).take(LOOKED_AT.div_ceil(most));
        let mut idlest: Option<(u64, &Arc<Member>)> = None;
        let mut last = None;
        for address in addresses {
            last = Some(address);
            let members =
                self.shares.get(&address).into_iter().flat_map(|share| share.members.values());
            for (member, _) in members {
                let used = member.used();
                if idlest.is_none_or(|(longest, _)| used < longest) {
                    idlest = Some((used, member));
                }
            }
        }
        self.looked_at = last;
        let member = idlest?.1.clone();
        self.remove(&member);
        Some(member)
    }

    /// While more than `max` bytes are held: the connection that holds most, of the address that
    /// holds most.
    pub(crate) fn relieve(&mut self, max: usize) -> Option<Arc<Member>> {
        if self.bytes <= max {
            return None;
        }
        let most = self.shares.get(&self.by_bytes.last()?.1)?;
        let member = most.members.values().max_by_key(|(_, bytes)| *bytes)?.0.clone();
        self.remove(&member);
        Some(member)
    }
}

/// The unit that counts as one host: an IPv4 address, or an IPv6 network of 64 bits.
fn network(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    #[test]
    fn the_idlest_connection_of_the_address_that_has_most_makes_room() {
        let mut budget = Budget::default();
        let honest = budget.add(host(1), 1);
        let idle = budget.add(host(2), 1);
        let busy = budget.add(host(2), 1);
        honest.use_at(1);
        idle.use_at(2);
        busy.use_at(3);
        assert_eq!(budget.make_room(host(3)).map(|member| member.number), Some(idle.number));
        assert_eq!(
            (budget.connections(), budget.bytes(), budget.connections_from(host(2))),
            (2, 2, 1)
        );
        assert!(budget.make_room(host(2)).is_none(), "it has as many as any other");
    }

    #[test]
    fn of_very_many_addresses_with_one_connection_each_loses_its_own_after_the_other() {
        let mut budget = Budget::default();
        let from = |n: u32| IpAddr::from((0x0a00_0000 + n).to_be_bytes());
        let members: Vec<_> = (0..1000).map(|n| budget.add(from(n), 1)).collect();
        for (number, member) in (0..).zip(&members) {
            member.use_at(number % 7 + 1);
        }
        members[777].use_at(0);
        let mut lost = Vec::new();
        for _ in 0..1000 / LOOKED_AT + 1 {
            lost.push(budget.make_room(host(1)).unwrap().number);
        }
        // Each round looks at the next ones, and finds the idlest of them.
        assert!(lost.contains(&members[777].number), "{lost:?}");
        let idle = |number: &u64| members[*number as usize - 1].used();
        assert!(lost.iter().all(|number| idle(number) <= 1), "{lost:?}");
        // Who has two is the first.
        let second = budget.add(from(5), 1);
        second.use_at(9);
        let gone = budget.make_room(host(1)).unwrap();
        assert_eq!(gone.from, from(5));
        members.iter().chain([&second]).for_each(|member| budget.remove(member));
        assert_eq!((budget.by_count.len(), budget.by_bytes.len(), budget.shares.len()), (0, 0, 0));
    }

    #[test]
    fn the_greatest_connection_of_the_address_that_holds_most_relieves_the_budget() {
        let mut budget = Budget::default();
        let honest = budget.add(host(1), 50);
        let small = budget.add(host(2), 20);
        let great = budget.add(host(2), 20);
        budget.hold(&great, 40);
        assert!(budget.relieve(110).is_none());
        assert_eq!(budget.relieve(109).map(|member| member.number), Some(great.number));
        assert_eq!(budget.bytes(), 70);
        // It is removed once, whichever call does it.
        budget.remove(&great);
        budget.hold(&great, 1000);
        assert_eq!(budget.bytes(), 70);
        assert_eq!(budget.relieve(60).map(|member| member.number), Some(honest.number));
        budget.remove(&small);
        budget.remove(&honest);
        assert_eq!((budget.bytes(), budget.connections(), budget.shares.len()), (0, 0, 0));
    }

    #[test]
    fn the_oldest_handshake_gives_way() {
        let mut budget = Budget::default();
        let members: Vec<_> = (0..3).map(|n| budget.add(host(n), 1)).collect();
        assert!(budget.start(&members[0], 2).is_none());
        assert!(budget.start(&members[1], 2).is_none());
        budget.started(&members[0]);
        assert!(budget.start(&members[2], 2).is_none());
        let late = budget.add(host(9), 1);
        let gone = budget.start(&late, 2).map(|member| member.number);
        assert_eq!(gone, Some(members[1].number));
    }

    #[test]
    fn an_address_that_begins_many_handshakes_displaces_its_own() {
        let mut budget = Budget::default();
        let slow = budget.add(host(1), 1);
        assert!(budget.start(&slow, 10).is_none());
        for n in 0..100 {
            let member = budget.add(host(2 + n % 3), 1);
            let displaced = budget.start(&member, 10);
            assert!(displaced.is_none_or(|displaced| displaced.from != host(1)), "{n}");
        }
        budget.started(&slow);
        assert_eq!((budget.connections(), budget.connections_from(host(1))), (10, 1));
    }

    #[test]
    fn an_ipv6_network_of_64_bits_is_one_address() {
        let mut budget = Budget::default();
        for address in ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "::ffff:192.0.2.1"] {
            budget.add(address.parse().unwrap(), 1);
        }
        assert_eq!(budget.connections_from("2001:db8::3".parse().unwrap()), 2);
        assert_eq!(budget.connections_from(host(1)), 1);
    }
}
