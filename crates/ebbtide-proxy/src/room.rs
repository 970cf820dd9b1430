//! Room that clients share fairly.

use crate::system;
use ebbtide::server::Call;
use ebbtide_core::session::FairShares;
use ebbtide_core::sharing_prefix;
use std::net::{IpAddr, Ipv4Addr};

/// The bytes of a place where memory is counted in places.
pub(crate) const PLACE: usize = 1024;

/// The client as which all addresses count that may be forged, since a stranger can forge any number of them.
pub(crate) const UNVERIFIED: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// The requests of such addresses a second where their share is used up: each request has to prove its address.
pub(crate) const UNVERIFIED_WITHOUT_SHARE: u32 = 0;
/// Most requests need no more than one of so many places, and one beside.
const USUAL: usize = 1024;

/// The client in whose share a request counts.
pub(crate) fn client_of(call: &Call<'_>) -> IpAddr {
    if call.is_verified() { sharing_prefix(call.remote().ip()) } else { UNVERIFIED }
}

/// Places, of which a client's address has at most as many as are free.
#[derive(Debug)]
pub(crate) struct FairRoom {
    shares: FairShares,
    taken: usize,
    /// The places of [`UNVERIFIED`].
    unverified: usize,
    max: usize,
    /// Only the maximum counts.
    is_restoring: bool,
}

/// The places that one client has for one thing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) client: IpAddr,
    pub(crate) places: usize,
}

impl Holding {
    /// The places for so many bytes.
    pub(crate) fn of_bytes(client: IpAddr, bytes: usize) -> Self {
        Self { client, places: bytes.div_ceil(PLACE) }
    }

    fn of_unverified(self) -> usize {
        if self.client == UNVERIFIED { self.places } else { 0 }
    }
}

impl FairRoom {
    pub(crate) fn new(max: usize) -> Self {
        let shares = FairShares::new(system::seed());
        Self { shares, taken: 0, unverified: 0, max, is_restoring: false }
    }

    /// While it is filled with what was let in before, only the maximum counts: the order has changed.
    pub(crate) fn set_restoring(&mut self, is_restoring: bool) {
        self.is_restoring = is_restoring;
    }

    /// Takes the places of `next` and gives back those of `former`. Returns false, and changes nothing, if there is no
    /// room. A client always finds room for no more than it had.
    pub(crate) fn replace(&mut self, former: Option<Holding>, next: Option<Holding>) -> bool {
        former.into_iter().for_each(|former| self.give_back(former));
        let Some(next) = next else { return true };
        let is_no_larger =
            former.is_some_and(|had| had.client == next.client && next.places <= had.places);
        let has_room = is_no_larger || self.has(next);
        if let Some(taken) = if has_room { Some(next) } else { former } {
            self.taken += taken.places;
            self.unverified += taken.of_unverified();
            (0..taken.places).for_each(|_| self.shares.add(taken.client));
        }
        has_room
    }

    /// Whether the share of all addresses that may be forged is used up, so that most of their requests find no room.
    pub(crate) fn is_full_for_unverified(&self) -> bool {
        !self.has(Holding { client: UNVERIFIED, places: 1 + self.max / USUAL })
    }

    /// The places of all addresses that may be forged.
    pub(crate) fn unverified(&self) -> usize {
        self.unverified
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    fn has(&self, next: Holding) -> bool {
        let taken = self.taken + next.places;
        // The last of its places decides.
        let is_fair = || self.shares.admit(next.client, taken.saturating_sub(1), self.max);
        taken <= self.max && (self.is_restoring || is_fair())
    }

    fn give_back(&mut self, former: Holding) {
        self.taken -= former.places;
        self.unverified -= former.of_unverified();
        (0..former.places).for_each(|_| self.shares.remove(former.client));
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(client: u8, places: usize) -> Option<Holding> {
        Some(Holding { client: [192, 0, 2, client].into(), places })
    }

    #[test]
    fn one_client_leaves_as_much_as_it_takes_and_keeps_what_it_has() {
        let mut room = FairRoom::new(100);
        let taken = (0..100).filter(|_| room.replace(None, of(1, 1))).count();
        assert!((50..=51).contains(&taken), "{taken}");
        assert!(room.replace(None, of(2, 20)));
        assert!(room.replace(of(1, 1), of(1, 1)), "the same in its own place");
        let before = room.taken();
        assert!(!room.replace(of(1, 1), of(1, 2)) && !room.replace(of(2, 20), of(2, 60)));
        assert_eq!(room.taken(), before, "nothing changes");
        assert!(room.replace(of(2, 20), None));
        let mut restored = FairRoom::new(100);
        restored.set_restoring(true);
        assert!(restored.replace(None, of(1, 60)) && restored.replace(None, of(2, 40)));
        assert!(!restored.replace(None, of(3, 1)), "the maximum counts");
        assert_eq!(room.taken(), taken);
    }

    #[test]
    fn the_share_of_addresses_that_may_be_forged_is_used_up_by_them_alone() {
        let mut room = FairRoom::new(100);
        while room.replace(None, of(1, 1)) {}
        assert!(room.taken() >= 50 && !room.is_full_for_unverified());
        let unverified = Some(Holding { client: UNVERIFIED, places: 1 });
        while !room.is_full_for_unverified() {
            assert!(room.replace(None, unverified));
        }
        assert!((20..=26).contains(&room.unverified()), "{}", room.unverified());
        assert!(room.replace(unverified, unverified), "what is there can be replaced");
        (0..5).for_each(|_| assert!(room.replace(unverified, None)));
        assert!(!room.is_full_for_unverified());
    }
}
