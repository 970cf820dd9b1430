//! Packets that a capture holds twice, because it was taken at several interfaces or merged.

use super::error::FitError;
use super::read::{CapturedDatagram, Contents};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Packets with the same bytes this close to each other are one packet that was captured twice, ns: no timeout is
/// that short.
pub(super) const SAME_PLACE_NS: u64 = 1_000_000;
/// Copies without IP identification that are further apart may have been sent again (RFC 7252 section 4.8: after
/// 2 s by default), ns.
const SENT_AGAIN_NS: u64 = 1_000_000_000;
/// Fewer messages do not show that all of them appear twice.
const LEAST: usize = 8;

/// One packet: two have the same key if one is a copy of the other, made by the capture or by a host without IP
/// identification.
type CopyKey = (usize, SocketAddr, SocketAddr, u64, u16);

fn key(datagram: &CapturedDatagram) -> CopyKey {
    let CapturedDatagram { interface, from, to, hash, ip_id, .. } = datagram;
    (*interface, *from, *to, *hash, *ip_id)
}

/// Leaves one of the packets that were captured twice at the same place, and counts the others.
///
/// # Errors
///
/// Refuses a capture in which one interface holds both ends of the path.
pub(super) fn remove(contents: &mut Contents) -> Result<(), FitError> {
    join_interfaces(contents);
    let mut last: BTreeMap<CopyKey, u64> = BTreeMap::new();
    let before = contents.datagrams.len();
    contents.datagrams.retain(|datagram| {
        let is_copy = last
            .get(&key(datagram))
            .is_some_and(|earlier| datagram.at.saturating_sub(*earlier) <= SAME_PLACE_NS);
        if !is_copy {
            last.insert(key(datagram), datagram.at);
        }
        !is_copy
    });
    contents.twice = before - contents.datagrams.len();
    match apart(&contents.datagrams) {
        Some(nanos) => Err(FitError::BothEnds(nanos)),
        None => Ok(()),
    }
}

/// Makes interfaces one whose packets are the same at the same time, both ways: those of one host, or copies of one.
fn join_interfaces(contents: &mut Contents) {
    let is_named = |name: &str| contents.interfaces.iter().any(|own| own.as_deref() == Some(name));
    if contents.interfaces.len() < 2 || (is_named("clients") && is_named("server")) {
        return;
    }
    // The first interface at which a packet was seen, and when.
    type PacketKey = (SocketAddr, SocketAddr, u64, u16);
    let mut first: BTreeMap<PacketKey, (usize, u64)> = BTreeMap::new();
    let mut pairs: BTreeMap<(usize, usize), (usize, usize)> = BTreeMap::new();
    let mut totals: BTreeMap<usize, usize> = BTreeMap::new();
    for datagram in &contents.datagrams {
        *totals.entry(datagram.interface).or_default() += 1;
        let (place, from, to, hash, id) = key(datagram);
        match first.get(&(from, to, hash, id)) {
            Some((other, at)) if *other != place => {
                let pair = pairs.entry((place.min(*other), place.max(*other))).or_default();
                pair.0 += 1;
                pair.1 += usize::from(datagram.at.saturating_sub(*at) <= SAME_PLACE_NS);
            }
            _ => {
                first.insert((from, to, hash, id), (place, datagram.at));
            }
        }
    }
    let mut joined: BTreeMap<usize, usize> = BTreeMap::new();
    for ((one, other), (both, close)) in pairs {
        let total = |place: usize| totals.get(&place).copied().unwrap_or(0);
        let least = total(one).min(total(other));
        if 10 * close >= 9 * both && 10 * both >= 9 * least {
            joined.entry(other).or_insert(one);
        }
    }
    for datagram in &mut contents.datagrams {
        datagram.interface = joined.get(&datagram.interface).copied().unwrap_or(datagram.interface);
    }
}

/// The usual time between two copies of a packet, ns, if most packets of both directions appear twice.
fn apart(all: &[CapturedDatagram]) -> Option<u64> {
    let mut seen: BTreeMap<CopyKey, (u64, bool)> = BTreeMap::new();
    let mut gaps = Vec::new();
    for datagram in all {
        let (first, is_twice) = seen.entry(key(datagram)).or_insert((datagram.at, false));
        let gap = datagram.at.saturating_sub(*first);
        if !*is_twice && gap > 0 {
            *is_twice = true;
            gaps.push(gap);
        }
    }
    gaps.sort_unstable();
    let usual = *gaps.get(gaps.len() / 2)?;
    let is_identified = seen.iter().all(|((.., id), _)| *id != 0);
    let most = |is_request: bool| {
        let mut all = 0_usize;
        let mut twice = 0_usize;
        for ((_, from, to, ..), (_, is_twice)) in &seen {
            if (from < to) == is_request {
                all += 1;
                twice += usize::from(*is_twice);
            }
        }
        all >= LEAST && 5 * twice >= 3 * all
    };
    (most(true) && most(false) && (is_identified || usual < SENT_AGAIN_NS)).then_some(usual)
}
