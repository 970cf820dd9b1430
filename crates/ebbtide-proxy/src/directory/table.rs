//! The registrations of a directory: found by their number, by the name of the endpoint, and by when they expire.

use super::endpoint::{EndpointName, RegisteredEndpoint};
use super::index::{self, AttributeIndex, Candidates};
use super::lookup::Lookup;
use crate::durable::StoredChange;
use crate::numbered;
use crate::room::{FairRoom, Holding, PLACE};
use crate::system;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct DirectoryTable {
    kept: BTreeMap<u32, KeptEndpoint>,
    names: BTreeMap<EndpointName, u32>,
    expiries: BTreeSet<(Instant, u32)>,
    index: AttributeIndex,
    room: FairRoom,
    /// The registrations that have changed since they were taken to be stored.
    changed: BTreeSet<u32>,
    /// The number of changes so far.
    version: u64,
}

#[derive(Debug)]
struct KeptEndpoint {
    endpoint: RegisteredEndpoint,
    expires: Instant,
    holding: Holding,
}

/// There is no place for an endpoint.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct DirectoryFull;

impl DirectoryTable {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            kept: BTreeMap::new(),
            names: BTreeMap::new(),
            expiries: BTreeSet::new(),
            index: AttributeIndex::default(),
            room: FairRoom::new(max_bytes / PLACE),
            changed: BTreeSet::new(),
            version: 0,
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn number(&self, name: &EndpointName) -> Option<u32> {
        self.names.get(name).copied()
    }

    pub(super) fn get(&self, number: u32) -> Option<&RegisteredEndpoint> {
        self.kept.get(&number).map(|kept| &kept.endpoint)
    }

    /// All registrations in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &RegisteredEndpoint)> {
        self.kept.iter().map(|(number, kept)| (*number, &kept.endpoint))
    }

    /// The registrations that a look-up has to pass, found within about so many steps.
    pub(super) fn candidates(&self, lookup: &Lookup, max_steps: usize) -> Candidates<'_> {
        self.index.candidates(lookup, max_steps)
    }

    /// These registrations in the order of their numbers.
    pub(super) fn passed<'t>(
        &'t self,
        candidates: &'t Candidates<'_>,
    ) -> Box<dyn Iterator<Item = (u32, &'t RegisteredEndpoint)> + 't> {
        match &candidates.numbers {
            Some(numbers) => Box::new(
                numbers
                    .iter()
                    .filter_map(|number| self.get(*number).map(|endpoint| (*number, endpoint))),
            ),
            None => Box::new(self.iter()),
        }
    }

    /// The work of a look-up: a step for each criterion and each place of the registrations that it passes. Beyond
    /// `max` steps it is not counted to the end.
    pub(super) fn work(&self, lookup: &Lookup, candidates: &Candidates<'_>, max: usize) -> usize {
        let of_place = lookup.criteria().max(1);
        let mut steps = candidates.steps;
        let Some(numbers) = &candidates.numbers else {
            return steps.saturating_add(self.room.taken().saturating_mul(of_place));
        };
        for kept in numbers.iter().filter_map(|number| self.kept.get(number)) {
            if steps > max {
                break;
            }
            steps = steps.saturating_add(kept.holding.places.saturating_mul(of_place));
        }
        steps
    }

    /// See [`FairRoom::is_full_for_unverified`].
    pub(super) fn is_full_for_unverified(&self) -> bool {
        self.room.is_full_for_unverified()
    }

    /// Keeps an endpoint in the place of the one with its name, from now on. Returns its number.
    ///
    /// # Errors
    ///
    /// If there is no place; then nothing changes.
    pub(super) fn put(
        &mut self,
        now: Instant,
        endpoint: RegisteredEndpoint,
    ) -> Result<u32, DirectoryFull> {
        let expires = now + Duration::from_secs(endpoint.lifetime.into());
        let number = match self.number(&endpoint.name) {
            Some(number) => number,
            None => numbered::free(&self.kept),
        };
        self.insert(number, endpoint, expires)?;
        self.change(number);
        Ok(number)
    }

    /// See [`FairRoom::set_restoring`].
    pub(super) fn set_restoring(&mut self, is_restoring: bool) {
        self.room.set_restoring(is_restoring);
    }

    /// Keeps a stored endpoint with its number.
    pub(super) fn restore(
        &mut self,
        number: u32,
        endpoint: RegisteredEndpoint,
        expires: Instant,
    ) -> Result<(), DirectoryFull> {
        self.insert(number, endpoint, expires)
    }

    fn insert(
        &mut self,
        number: u32,
        endpoint: RegisteredEndpoint,
        expires: Instant,
    ) -> Result<(), DirectoryFull> {
        let cost = endpoint.cost() + index::cost(&endpoint);
        let holding = Holding::of_bytes(endpoint.client, cost);
        let former = self.kept.get(&number).map(|former| former.holding);
        if !self.room.replace(former, Some(holding)) {
            return Err(DirectoryFull);
        }
        self.take_out(number);
        self.put_in(number, KeptEndpoint { endpoint, expires, holding });
        Ok(())
    }

    fn put_in(&mut self, number: u32, kept: KeptEndpoint) {
        self.names.insert(kept.endpoint.name.clone(), number);
        self.expiries.insert((kept.expires, number));
        self.index.add(number, &kept.endpoint);
        self.kept.insert(number, kept);
    }

    fn take_out(&mut self, number: u32) -> Option<KeptEndpoint> {
        let kept = self.kept.remove(&number)?;
        self.names.remove(&kept.endpoint.name);
        self.expiries.remove(&(kept.expires, number));
        self.index.remove(number, &kept.endpoint);
        Some(kept)
    }

    fn change(&mut self, number: u32) {
        self.version += 1;
        self.changed.insert(number);
    }

    /// Returns false if there is no such registration.
    pub(super) fn remove(&mut self, number: u32) -> bool {
        let Some(kept) = self.take_out(number) else { return false };
        self.room.replace(Some(kept.holding), None);
        self.change(number);
        true
    }

    /// Removes what has expired. Returns whether anything has.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        let before = self.version;
        while let Some((at, number)) = self.expiries.first().copied().filter(|(at, _)| *at <= now) {
            if !self.remove(number) {
                self.expiries.remove(&(at, number));
            }
        }
        self.version != before
    }

    /// The changes since the last call, in their stored form.
    pub(super) fn take_changes(&mut self, now: Instant) -> Vec<StoredChange> {
        let unix = system::unix_seconds();
        let changed = core::mem::take(&mut self.changed);
        let stored = |number: u32| {
            let value = self.kept.get(&number).map(|kept| {
                let left = kept.expires.saturating_duration_since(now).as_secs();
                kept.endpoint.encode(unix.saturating_add(left))
            });
            (number.to_be_bytes().to_vec(), value)
        };
        changed.into_iter().map(stored).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::endpoint::{BaseSource, BaseUri};
    use super::super::lookup::LookupKind;
    use super::*;
    use crate::web_link;

    fn endpoint(name: &str, client: [u8; 4], links: usize) -> RegisteredEndpoint {
        let base = BaseUri {
            text: "coap://192.0.2.1".to_owned(),
            named_by: BaseSource::Address,
            interface: None,
        };
        RegisteredEndpoint {
            name: EndpointName { name: name.to_owned(), sector: None },
            lifetime: 60,
            base,
            attributes: Vec::new(),
            links: web_link::parse(&vec!["</a>"; links].join(",")).unwrap(),
            owner: None,
            client: client.into(),
        }
    }

    #[test]
    fn a_name_has_one_registration_that_expires_at_the_end_of_its_lifetime() {
        let (mut table, now) = (DirectoryTable::new(1 << 20), system::now());
        let first = table.put(now, endpoint("a", [192, 0, 2, 1], 1)).unwrap();
        let later = now + Duration::from_secs(30);
        assert_eq!(table.put(later, endpoint("a", [192, 0, 2, 1], 2)), Ok(first));
        let other = table.put(now, endpoint("b", [192, 0, 2, 1], 1)).unwrap();
        assert_ne!(other, first);
        assert_eq!(table.get(first).unwrap().links.len(), 2);
        assert!(!table.expire(later));
        assert!(table.expire(now + Duration::from_secs(60)));
        assert_eq!(table.iter().map(|(number, _)| number).collect::<Vec<_>>(), [first]);
        assert!(!table.expire(later + Duration::from_secs(59)));
        assert_eq!(table.take_changes(later).len(), 2);
        assert!(table.remove(first) && !table.remove(first));
        assert_eq!((table.room.taken(), table.take_changes(later).len()), (0, 1));
    }

    #[test]
    fn its_bytes_are_bounded_and_one_address_leaves_as_much_as_it_takes() {
        let (mut table, now) = (DirectoryTable::new(100 * PLACE), system::now());
        let mut put = |client: [u8; 4]| {
            (0..200)
                .filter(|n| table.put(now, endpoint(&format!("{client:?}{n}"), client, 1)).is_ok())
                .count()
        };
        let greedy = put([192, 0, 2, 1]);
        assert!((50..=51).contains(&greedy), "{greedy}");
        assert!(put([192, 0, 2, 2]) >= 20);
        assert!(table.put(now, endpoint("large", [192, 0, 2, 3], 10_000)).is_err());
        // What is there already remains as it was when it cannot be replaced.
        let name = "[192, 0, 2, 2]0";
        assert!(table.put(now, endpoint(name, [192, 0, 2, 2], 10_000)).is_err());
        let number = table.number(&EndpointName { name: name.to_owned(), sector: None }).unwrap();
        assert_eq!(table.get(number).unwrap().links.len(), 1);
    }

    #[test]
    fn a_look_up_by_an_attribute_finds_what_a_look_at_all_registrations_finds() {
        let (mut table, now) = (DirectoryTable::new(1 << 20), system::now());
        for n in 0..50 {
            let mut endpoint = endpoint(&format!("node{n}"), [192, 0, 2, 1], 1);
            let links = format!("</a>;rt=\"t{} t{}\";if=sensor,</b>;ct=40", n % 5, n % 7);
            endpoint.links = web_link::parse(&links).unwrap();
            table.put(now, endpoint).unwrap();
        }
        // One has other links now, and one is gone.
        let changed = endpoint("node3", [192, 0, 2, 1], 1);
        table.put(now, changed).unwrap();
        let name = EndpointName { name: "node4".to_owned(), sector: None };
        table.remove(table.number(&name).unwrap());
        for (query, looked_at) in [
            (&["ep=node7"][..], 1),
            (&["ep=node4"], 0),
            (&["rt=t3"], 14),
            (&["rt=t3 t3"], 1),
            (&["rt=t*", "ep=node1*"], 11),
            (&["if=sensor", "rt=t6"], 7),
            (&["rt=core.rd-ep"], 49),
            (&["ct=40"], 49),
            (&["rt=none"], 0),
            (&[], 49),
        ] {
            let lookup = Lookup::read(query.iter().copied()).unwrap();
            let candidates = table.candidates(&lookup, usize::MAX);
            for kind in [LookupKind::Endpoints, LookupKind::Resources] {
                let indexed = lookup.find(kind, table.passed(&candidates));
                assert_eq!(indexed, lookup.find(kind, table.iter()), "{query:?}");
            }
            assert_eq!(table.passed(&candidates).count(), looked_at, "{query:?}");
        }
        let all: Vec<u32> = table.iter().map(|(number, _)| number).collect();
        all.into_iter().for_each(|number| assert!(table.remove(number)));
        assert!(table.index.is_empty());
    }
    #[test]
    fn what_a_look_up_takes_is_found_within_what_its_client_may_cause() {
        let (mut table, now) = (DirectoryTable::new(64 << 20), system::now());
        for n in 0..6000 {
            let mut endpoint = endpoint(&format!("node{n}"), [192, 0, 2, 1], 1);
            endpoint.links = web_link::parse("</a>;rt=popular").unwrap();
            table.put(now, endpoint).unwrap();
        }
        let beginnings = vec!["ep=n*"; 200];
        let one_of_all = [&["ep=node7"][..], &beginnings].concat();
        let none_of_all = [&["ep=x"][..], &beginnings].concat();
        for (query, little, all) in [
            (&["ep=node7"][..], 0..=1, 1..=1),
            (&none_of_all[..], 0..=0, 0..=0),
            // Each criterion may be compared with each link.
            (&one_of_all[..], 201..=201, 201..=201),
            (&["rt=popular"], 257..=257, 6000..=6000),
            (&["ep=node1*"], 257..=257, 1181..=1181),
            (&beginnings[..], 257..=usize::MAX, 1_200_000..=1_201_100),
            (&[], 6000..=6000, 6000..=6000),
        ] {
            let lookup = Lookup::read(query.iter().copied()).unwrap();
            for (max, expected) in [(256, little), (usize::MAX, all)] {
                let candidates = table.candidates(&lookup, max);
                assert!(candidates.steps <= max.min(1024) + 1, "{query:?}");
                let work = table.work(&lookup, &candidates, max);
                assert!(expected.contains(&work), "{work} for {query:?}");
            }
        }
    }
}
