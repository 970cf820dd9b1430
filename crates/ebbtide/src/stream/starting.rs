//! Connections whose handshakes are not over. An address that begins very many displaces its own first.

use super::member::Member;
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Starting {
    /// Oldest first.
    all: BTreeMap<u64, Arc<Member>>,
    /// The numbers of each address, and the addresses by how many they have.
    own: BTreeMap<IpAddr, BTreeSet<u64>>,
    by_count: BTreeSet<(usize, IpAddr)>,
}

impl Starting {
    /// Adds a connection. If there are more than `max` then, returns the one to end: the oldest of the address that has
    /// most.
    pub(super) fn add(&mut self, member: &Arc<Member>, max: usize) -> Option<Arc<Member>> {
        self.all.insert(member.number, member.clone());
        self.change(member.from, |own| own.insert(member.number));
        if self.all.len() <= max {
            return None;
        }
        let (count, most) = *self.by_count.last()?;
        let number = match count {
            1 => *self.all.first_key_value()?.0,
            _ => *self.own.get(&most)?.first()?,
        };
        let displaced = self.all.get(&number)?.clone();
        self.remove(&displaced);
        Some(displaced)
    }

    /// Removes a connection, if it is there.
    pub(super) fn remove(&mut self, member: &Member) {
        if self.all.remove(&member.number).is_some() {
            self.change(member.from, |own| own.remove(&member.number));
        }
    }

    fn change(&mut self, from: IpAddr, change: impl FnOnce(&mut BTreeSet<u64>) -> bool) {
        let own = self.own.entry(from).or_default();
        self.by_count.remove(&(own.len(), from));
        change(own);
        match own.len() {
            0 => drop(self.own.remove(&from)),
            count => drop(self.by_count.insert((count, from))),
        }
    }
}
