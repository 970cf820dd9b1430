//! Which clients have the places behind a gate.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::Instant;

/// How long a client that has asked counts as one that asks.
const RECENT: Duration = Duration::from_secs(2);

/// See the [module](self). The queue gives clients equal turns, but requests to devices that do not answer keep their
/// places for seconds, and those of one client would soon have all.
#[derive(Debug, Default)]
pub(super) struct PlaceShares {
    taken: BTreeMap<IpAddr, usize>,
    latest: Option<Asked>,
    /// The latest of another client than that.
    other: Option<Asked>,
}

/// The places that a client may have one of.
#[derive(Copy, Clone, Debug)]
pub(super) struct Offer {
    pub(super) free: usize,
    /// Places beyond the budget, for a client that has none: the budget may have shrunk to what another one has.
    pub(super) spare: usize,
    /// The other clients that wait for one.
    pub(super) rivals: usize,
    pub(super) now: Instant,
}

#[derive(Copy, Clone, Debug)]
struct Asked {
    client: IpAddr,
    at: Instant,
}

impl PlaceShares {
    /// A client asks for a place.
    pub(super) fn note(&mut self, client: IpAddr, now: Instant) {
        if self.latest.is_some_and(|latest| latest.client != client) {
            self.other = self.latest;
        }
        self.latest = Some(Asked { client, at: now });
    }

    /// Whether a client may take a place: while others ask, as many as it leaves free.
    pub(super) fn may_take(&self, client: IpAddr, offer: Offer) -> bool {
        let Offer { free, spare, rivals, now } = offer;
        let own = self.taken.get(&client).copied().unwrap_or(0);
        let is_rival =
            |asked: &Asked| asked.client != client && now.duration_since(asked.at) < RECENT;
        let is_alone = || rivals == 0 && !self.latest.iter().chain(&self.other).any(is_rival);
        own < free || own == 0 && spare > 0 || free > 0 && is_alone()
    }

    pub(super) fn add(&mut self, client: IpAddr) {
        *self.taken.entry(client).or_default() += 1;
    }

    pub(super) fn remove(&mut self, client: IpAddr) {
        if let Some(taken) = self.taken.get_mut(&client) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_all_places_while_it_is_alone_and_leaves_as_many_as_it_takes_while_it_is_not() {
        let (mut shares, start) = (PlaceShares::default(), crate::system::now());
        let [greedy, modest] = [1, 2].map(|host| IpAddr::from([192, 0, 2, host]));
        let taken = |shares: &mut PlaceShares, client, before: usize, now| {
            let takes = |free: &usize| {
                let may = shares.may_take(client, Offer { free: *free, spare: 0, rivals: 0, now });
                may.then(|| shares.add(client)).is_some()
            };
            (1..=before).rev().take_while(takes).count()
        };
        shares.note(greedy, start);
        assert_eq!(taken(&mut shares, greedy, 8, start), 8);
        (0..8).for_each(|_| shares.remove(greedy));
        for client in [modest, greedy, greedy] {
            shares.note(client, start);
        }
        assert_eq!(taken(&mut shares, greedy, 8, start), 4);
        assert_eq!(taken(&mut shares, modest, 4, start), 2);
        let third = |rivals| Offer { free: 1, spare: 0, rivals, now: start + RECENT };
        assert!(!shares.may_take(greedy, third(1)) && shares.may_take(greedy, third(0)));
        let newcomer = [192, 0, 2, 3].into();
        assert!(shares.may_take(newcomer, third(1)));
        let spare = Offer { free: 0, spare: 1, rivals: 1, now: start };
        assert!(shares.may_take(newcomer, spare) && !shares.may_take(modest, spare));
    }
}
