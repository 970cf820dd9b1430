//! Which senders of requests are one device: the ports of an address, or all of them together.

use super::read::CapturedDatagram;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// The clients that a capture is taken to show.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ClientsBy {
    /// Each address is one: its ports follow each other, as those of a program that is started for each request.
    Address,
    /// Each port of an address is one, as those of devices behind a gateway.
    Port,
}

/// Addresses and ports that send requests, and which of them count as clients.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientCount {
    pub(super) addresses: usize,
    pub(super) ports: usize,
    pub(super) by: ClientsBy,
    /// Whether that is a guess.
    pub(super) is_guess: bool,
}

/// The messages of one port of an address.
#[derive(Default)]
struct PortUse {
    /// The message IDs of its requests.
    asked: BTreeSet<u16>,
    first: u64,
    last: u64,
}

/// Counts the clients of servers at `port`, and makes one end of the ports of an address if they are one client.
pub(super) fn count(all: &mut [CapturedDatagram], port: u16, by: Option<ClientsBy>) -> ClientCount {
    let mut hosts: BTreeMap<IpAddr, BTreeMap<u16, PortUse>> = BTreeMap::new();
    for datagram in all.iter() {
        let is_request = datagram.code.is_request();
        let end = if is_request { datagram.from } else { datagram.to };
        if end.port() == port {
            continue;
        }
        let own = hosts.entry(end.ip()).or_default().entry(end.port()).or_default();
        if is_request {
            own.asked.insert(datagram.id);
        }
        if own.last == 0 {
            own.first = datagram.at;
        }
        own.last = own.last.max(datagram.at);
    }
    for ports in hosts.values_mut() {
        ports.retain(|_, own| !own.asked.is_empty());
    }
    hosts.retain(|_, ports| !ports.is_empty());
    let (addresses, ports) = (hosts.len(), hosts.values().map(BTreeMap::len).sum());
    let guess = if are_one_after_another(&hosts) { ClientsBy::Address } else { ClientsBy::Port };
    let count = ClientCount { addresses, ports, by: by.unwrap_or(guess), is_guess: by.is_none() };
    if count.by == ClientsBy::Address {
        let one = |end: &mut SocketAddr| {
            if end.port() != port && hosts.contains_key(&end.ip()) {
                end.set_port(0);
            }
        };
        for datagram in all {
            one(&mut datagram.from);
            one(&mut datagram.to);
        }
    }
    count
}

/// Whether nearly every port opens one exchange, after the one before it at its address is done.
fn are_one_after_another(hosts: &BTreeMap<IpAddr, BTreeMap<u16, PortUse>>) -> bool {
    let (mut ports, mut single, mut follow, mut pairs) = (0, 0, 0, 0);
    for own in hosts.values() {
        let mut uses: Vec<&PortUse> = own.values().collect();
        uses.sort_by_key(|one| one.first);
        ports += uses.len();
        single += uses.iter().filter(|one| one.asked.len() == 1).count();
        pairs += uses.len() - 1;
        follow += uses.windows(2).filter(|pair| pair[0].last <= pair[1].first).count();
    }
    let nearly_all = |part: usize, whole: usize| 10 * part >= 9 * whole;
    pairs > hosts.len() && nearly_all(single, ports) && nearly_all(follow, pairs)
}
