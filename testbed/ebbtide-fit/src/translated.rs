//! Addresses that the path translates (NAT): a message then has other addresses behind the translator than before
//! it, and nothing says that the two packets are one.

use super::copies::SAME_PLACE_NS;
use super::error::FitError;
use super::read::CapturedDatagram;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Refuses two interfaces of which one shows the messages of the other under other addresses.
///
/// # Errors
///
/// Returns an error if more than a tenth of the messages at the second interface are such.
pub(super) fn refuse_between(
    all: &[CapturedDatagram],
    near: usize,
    far: usize,
) -> Result<(), FitError> {
    let at = |place: usize| all.iter().filter(move |own| own.interface == place);
    let pairs: BTreeSet<_> = at(near).map(|own| (own.from, own.to)).collect();
    let by_hash: BTreeMap<u64, &CapturedDatagram> = at(near).map(|own| (own.hash, own)).collect();
    let mut example = None;
    let translated = at(far)
        .filter(|own| !pairs.contains(&(own.from, own.to)))
        .filter_map(|own| Some((*by_hash.get(&own.hash)?, own)))
        .inspect(|(one, other)| {
            example.get_or_insert_with(|| addresses(one, other));
        })
        .count();
    match example.filter(|_| 10 * translated > at(far).count()) {
        Some(addresses) => Err(FitError::Translated(addresses)),
        None => Ok(()),
    }
}

/// Refuses a capture of both sides of a translator in one interface (`tcpdump -i any` on a gateway).
///
/// # Errors
///
/// Returns an error if more than three tenths of the messages appear at once under another address as well; if all
/// do, the second ones are half of the messages.
pub(super) fn refuse_within(all: &[CapturedDatagram]) -> Result<(), FitError> {
    let mut last: BTreeMap<(usize, u64), &CapturedDatagram> = BTreeMap::new();
    let mut example = None;
    let mut translated = 0;
    for own in all {
        if let Some(before) = last.insert((own.interface, own.hash), own)
            && own.at.saturating_sub(before.at) <= SAME_PLACE_NS
            && (own.from == before.from) != (own.to == before.to)
        {
            translated += 1;
            example.get_or_insert_with(|| addresses(before, own));
        }
    }
    match example.filter(|_| 10 * translated > 3 * all.len()) {
        Some(addresses) => Err(FitError::TranslatedHere(addresses)),
        None => Ok(()),
    }
}

/// The two addresses of one host, of which a message shows one at each side.
fn addresses(one: &CapturedDatagram, other: &CapturedDatagram) -> (SocketAddr, SocketAddr) {
    if one.from == other.from { (one.to, other.to) } else { (one.from, other.from) }
}
