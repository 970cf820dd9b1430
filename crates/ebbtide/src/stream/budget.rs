//! The limits on all connections of a server together, and the choice of the connection to close
//! when one is reached.
//!
//! Every connection belongs to the address from which it comes; for IPv6 this is the network of 64
//! bits, which belongs to one host. When a limit is reached, the address with the largest share
//! loses a connection, so that the peer that fills the server is the one that is closed.

use super::link::Link;
use core::net::{IpAddr, Ipv6Addr};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::Notify;

/// The number of bytes that a connection counts for, in addition to its buffers.
pub(crate) const OF_A_CONNECTION: usize = 4 << 10;
/// The number of bytes that a TLS session and its handshake count for.
pub(crate) const OF_TLS: usize = 16 << 10;
/// The number of bytes that a WebSocket counts for.
pub(crate) const OF_A_WEBSOCKET: usize = 8 << 10;

/// A counted connection, which is being established or open.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) number: u64,
    pub(crate) from: IpAddr,
    /// When its peer was last active, as a number that only grows.
    used: AtomicU64,
    /// Set once it is established.
    link: OnceLock<Weak<Link>>,
    /// Whether it must close; a handshake is notified at once.
    gone: AtomicBool,
    dismissed: Notify,
}

impl Member {
    /// Records that its peer was active.
    pub(crate) fn use_at(&self, now: u64) {
        self.used.store(now, Ordering::Relaxed);
    }

    pub(crate) fn establish(&self, link: &Arc<Link>) {
        let _ = self.link.set(Arc::downgrade(link));
        if self.gone.load(Ordering::SeqCst) {
            // It was told to close between its handshake and now.
            self.dismiss();
        }
    }

    #[cfg(any(feature = "tls", feature = "ws"))]
    pub(crate) async fn dismissed(&self) {
        self.dismissed.notified().await;
    }

    /// Ends the connection, with a Release if the peer accepts it.
    pub(crate) fn dismiss(&self) {
        self.gone.store(true, Ordering::SeqCst);
        match self.link.get().and_then(Weak::upgrade) {
            None => self.dismissed.notify_one(),
            Some(link) => link.with(|state, now| {
                if state.connection.output_len() == 0 {
                    state.connection.abort(now, "the server is full");
                } else {
                    state.connection.handle_loss(now);
                }
            }),
        }
    }
}

/// The connections of one address.
#[derive(Debug, Default)]
struct Share {
    bytes: usize,
    members: BTreeMap<u64, (Arc<Member>, usize)>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Budget {
    next: u64,
    connections: usize,
    bytes: usize,
    shares: BTreeMap<IpAddr, Share>,
    /// Connections whose handshakes are not over, oldest first.
    starting: BTreeMap<u64, Arc<Member>>,
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
        let member = Arc::new(Member {
            number: self.next,
            from,
            used: AtomicU64::default(),
            link: OnceLock::new(),
            gone: AtomicBool::new(false),
            dismissed: Notify::new(),
        });
        let share = self.shares.entry(from).or_default();
        share.members.insert(member.number, (member.clone(), bytes));
        share.bytes += bytes;
        self.bytes += bytes;
        self.connections += 1;
        member
    }

    /// Removes a connection, if that has not been done.
    pub(crate) fn remove(&mut self, member: &Member) {
        self.starting.remove(&member.number);
        let Some(share) = self.shares.get_mut(&member.from) else { return };
        let Some((_, bytes)) = share.members.remove(&member.number) else { return };
        share.bytes -= bytes;
        if share.members.is_empty() {
            self.shares.remove(&member.from);
        }
        self.bytes -= bytes;
        self.connections -= 1;
    }

    /// Updates the number of bytes that a connection holds.
    pub(crate) fn hold(&mut self, member: &Member, bytes: usize) {
        let Some(share) = self.shares.get_mut(&member.from) else { return };
        let Some((_, held)) = share.members.get_mut(&member.number) else { return };
        share.bytes = share.bytes - *held + bytes;
        self.bytes = self.bytes - *held + bytes;
        *held = bytes;
    }

    /// A connection's handshakes begin. If more than `max` are in progress, the oldest one must
    /// close and is returned.
    pub(crate) fn start(&mut self, member: &Arc<Member>, max: usize) -> Option<Arc<Member>> {
        self.starting.insert(member.number, member.clone());
        if self.starting.len() <= max {
            return None;
        }
        let (_, oldest) = self.starting.pop_first()?;
        self.remove(&oldest);
        Some(oldest)
    }

    /// A connection's handshakes have ended.
    pub(crate) fn started(&mut self, member: &Member) {
        self.starting.remove(&member.number);
    }

    /// Makes room for a connection from `from`. The address with the most connections loses the
    /// one that has been idle longest. `None` if `from` itself has as many.
    pub(crate) fn make_room(&mut self, from: IpAddr) -> Option<Arc<Member>> {
        let most = self.shares.values().map(|share| share.members.len()).max()?;
        if self.connections_from(from) >= most {
            return None;
        }
        let shares = self.shares.values().filter(|share| share.members.len() == most);
        let members = shares.flat_map(|share| share.members.values());
        let used = |(member, _): &&(Arc<Member>, usize)| member.used.load(Ordering::Relaxed);
        let member = members.min_by_key(used)?.0.clone();
        self.remove(&member);
        Some(member)
    }

    /// While more than `max` bytes are held: the connection that holds most, of the address that
    /// holds most.
    pub(crate) fn relieve(&mut self, max: usize) -> Option<Arc<Member>> {
        if self.bytes <= max {
            return None;
        }
        let most = self.shares.values().max_by_key(|share| share.bytes)?;
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
    fn an_ipv6_network_of_64_bits_is_one_address() {
        let mut budget = Budget::default();
        for address in ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "::ffff:192.0.2.1"] {
            budget.add(address.parse().unwrap(), 1);
        }
        assert_eq!(budget.connections_from("2001:db8::3".parse().unwrap()), 2);
        assert_eq!(budget.connections_from(host(1)), 1);
    }
}
