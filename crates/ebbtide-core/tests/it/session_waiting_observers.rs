//! Observers that wait for their turns: whatever the others do meanwhile, each is told.

use crate::common::server_session::{at, peer};
use ebbtide_core::session::{Due, Observers, Registration, Response, Room, Subject};
use ebbtide_core::{PeerId, PeerToken};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

const SUBJECT: Subject = Subject { id: 1, confirmable: true };
const REQUEST: &[u8] = &[0x41, 1, 0, 1, 1];

/// An observer of its own at each port.
fn client(host: u8, port: u16) -> PeerId {
    PeerId::Address(SocketAddr::from(([192, 0, 2, host], port)))
}

fn register(observers: &mut Observers, remote: PeerId, unverified: bool) {
    register_with(observers, remote, unverified, REQUEST, 100_000).unwrap();
}

fn register_with(
    observers: &mut Observers,
    remote: PeerId,
    unverified: bool,
    request: &[u8],
    max: usize,
) -> Option<u32> {
    let registration = Registration {
        remote,
        token: PeerToken::new(&[1]),
        local: None,
        unverified,
        subject: SUBJECT,
        request,
        sent: 40,
        format: None,
    };
    observers.register(at(1), &registration, max)
}

fn all_due(observers: &mut Observers) -> Vec<Due> {
    std::iter::from_fn(|| observers.pop_due(at(2))).collect()
}

/// Observers at ports of one host, all of which have acknowledged a notification.
fn register_proven(observers: &mut Observers, host: u8, ports: u16) {
    (0..ports).for_each(|port| register(observers, client(host, port), false));
    observers.changed(SUBJECT.id);
    while let Some(due) = observers.pop_due(at(1)) {
        observers.acknowledged(due.observer);
    }
}

#[test]
fn proven_observers_of_an_address_do_not_keep_its_new_ones_waiting() {
    let mut observers = Observers::new(7);
    register_proven(&mut observers, 1, 1500);
    observers.changed(SUBJECT.id);
    assert_eq!(all_due(&mut observers).len(), 1500, "none of them answers");
    for port in 2000..2600 {
        register(&mut observers, client(1, port), false);
    }
    observers.changed(SUBJECT.id);
    let new = all_due(&mut observers);
    assert_eq!(new.len(), 512, "half of those to observers that are not proven");
    assert!(new.iter().all(|due| !due.proven));
}

#[test]
fn observers_that_need_no_notification_any_more_leave_their_places_to_the_next_ones() {
    let mut observers = Observers::new(7);
    (0..1500).for_each(|port| register(&mut observers, client(1, port), false));
    observers.changed(SUBJECT.id);
    let first = all_due(&mut observers);
    assert_eq!((first.len(), observers.parked()), (512, 988));
    // These have received the state as the answer to another registration.
    (512..1200).for_each(|port| register(&mut observers, client(1, port), false));
    first.iter().for_each(|due| observers.acknowledged(due.observer));
    assert_eq!(all_due(&mut observers).len(), 300);
    assert_eq!(observers.parked(), 0);
}

#[test]
fn the_share_of_an_address_grows_when_others_need_theirs_no_more() {
    let mut observers = Observers::new(7);
    for host in [2, 1] {
        (0..2000).for_each(|port| register(&mut observers, client(host, port), false));
    }
    observers.changed(SUBJECT.id);
    let first = all_due(&mut observers);
    let of_the_second = |due: &&Due| due.remote.source() == peer(1).source();
    assert_eq!(first.iter().filter(of_the_second).count(), 256);
    // The other one's are lost, and the second address does not answer.
    for due in first.iter().filter(|due| !of_the_second(due)) {
        observers.lost(due.observer);
    }
    for port in 0..2000 {
        observers.deregister(client(2, port), &PeerToken::new(&[1]));
    }
    let more = all_due(&mut observers);
    assert_eq!(more.len(), 256, "half of all, with those in flight");
    assert!(more.iter().all(|due| of_the_second(&due)));
}

#[test]
fn room_that_an_observer_needs_no_more_is_left_to_the_next_one() {
    let mut observers = Observers::new(7);
    for token_of in 1..=4 {
        register(&mut observers, client(1, token_of), false);
    }
    observers.changed(SUBJECT.id);
    let scope = Room::Scope(peer(1));
    for due in all_due(&mut observers) {
        observers.postponed(due.observer, None, scope);
    }
    // It has the newest state by another way.
    register(&mut observers, client(1, 1), false);
    observers.room(peer(1));
    // The second had room, and went before its turn came, and the third is told by another way.
    observers.deregister(client(1, 2), &PeerToken::new(&[1]));
    register(&mut observers, client(1, 3), false);
    let told: Vec<_> = all_due(&mut observers).iter().map(|due| due.remote).collect();
    assert_eq!(told, [client(1, 4)]);
    assert_eq!(observers.parked(), 0);
}

#[test]
fn a_longer_registration_for_the_same_resource_is_the_same_observer() {
    let mut observers = Observers::new(7);
    let long = [0; 1000];
    register(&mut observers, client(1, 1), false);
    observers.event(SUBJECT.id, &Response::content("event"));
    register_with(&mut observers, client(1, 1), false, &long, 100).unwrap();
    assert_eq!((observers.len(), observers.taken()), (1, 8));
    let told = all_due(&mut observers).remove(0);
    assert_eq!(told.event.unwrap().text(), "event", "each reaches it");
    // RFC 7641 section 4.1: an answer without Observe says that nobody is notified.
    assert!(register_with(&mut observers, client(1, 1), false, &[0; 100_000], 100).is_none());
    assert_eq!((observers.len(), observers.taken(), observers.refused()), (0, 0, 1));
}

/// What a registered client is expected to be told.
#[derive(Clone, Copy, Debug)]
struct Client {
    unverified: bool,
    proven: bool,
    has_news: bool,
    /// How many notifications had been completed when it got news.
    since: usize,
}

struct World {
    observers: Observers,
    clients: BTreeMap<PeerId, Client>,
    in_flight: VecDeque<Due>,
    completed: usize,
    /// The quarters of the addresses that may be forged.
    unverified: usize,
    rng: ChaCha8Rng,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            observers: Observers::new(seed),
            clients: BTreeMap::new(),
            in_flight: VecDeque::new(),
            completed: 0,
            unverified: seed as usize % 4,
            rng: ChaCha8Rng::seed_from_u64(seed),
        };
        // In the tiers with the narrowest limits.
        for host in 1..=3 {
            let ports = 600 + world.below(400) as u16;
            (0..ports).for_each(|port| world.register(client(host, port)));
        }
        world
    }

    fn below(&mut self, end: usize) -> usize {
        self.rng.next_u32() as usize % end
    }

    /// A client registers, possibly again.
    fn register(&mut self, remote: PeerId) {
        let new = self.clients.get(&remote).copied().unwrap_or_else(|| {
            let unverified = self.below(4) < self.unverified;
            Client { unverified, proven: false, has_news: false, since: 0 }
        });
        register(&mut self.observers, remote, new.unverified);
        let is_told = new.proven || !new.unverified;
        let has_news = new.has_news && !is_told;
        self.clients.insert(remote, Client { has_news, ..new });
    }

    fn deregister(&mut self, remote: PeerId) {
        self.observers.deregister(remote, &PeerToken::new(&[1]));
        self.clients.remove(&remote);
    }

    fn some_client(&mut self) -> PeerId {
        client(1 + self.below(3) as u8, self.below(1000) as u16)
    }

    fn change(&mut self) {
        self.observers.changed(SUBJECT.id);
        for client in self.clients.values_mut().filter(|client| !client.has_news) {
            (client.has_news, client.since) = (true, self.completed);
        }
    }

    fn tell(&mut self) {
        while let Some(due) = self.observers.pop_due(at(2)) {
            let client = self.clients.get_mut(&due.remote).expect("it is registered");
            assert!(client.has_news, "{:?} has received the state already", due.remote);
            client.has_news = false;
            self.in_flight.push_back(due);
        }
        assert!(!self.observers.any_due());
    }

    /// A notification in flight is acknowledged, or lost.
    fn complete(&mut self, index: usize, lost: bool) {
        let Some(due) = self.in_flight.remove(index) else { return };
        self.completed += 1;
        // The observer may have gone, or registered anew.
        let is_there = self.observers.len();
        if lost {
            self.observers.lost(due.observer);
            if self.observers.len() < is_there {
                self.clients.remove(&due.remote);
            }
        } else {
            let before = self.observers.version();
            self.observers.acknowledged(due.observer);
            if self.observers.version() != before {
                self.clients.get_mut(&due.remote).unwrap().proven = true;
            }
        }
    }

    fn step(&mut self) {
        match self.below(40) {
            0 => self.change(),
            1..=12 => {
                let remote = self.some_client();
                self.register(remote);
            }
            13..=16 => {
                let remote = self.some_client();
                self.deregister(remote);
            }
            17..=24 => self.tell(),
            _ if !self.in_flight.is_empty() => {
                let index = self.below(self.in_flight.len());
                let lost = self.below(8) == 0;
                self.complete(index, lost);
            }
            _ => {}
        }
    }
}

#[test]
fn when_nothing_is_in_flight_no_observer_waits() {
    for seed in 0..8 {
        let mut world = World::new(seed);
        for _ in 0..1000 {
            world.step();
        }
        // Most have acknowledged nothing.
        for remote in world.clients.keys().copied().collect::<Vec<_>>() {
            if world.below(4) > 0 {
                world.deregister(remote);
                world.register(remote);
            }
        }
        world.change();
        world.tell();
        while !world.in_flight.is_empty() {
            let (index, lost) = (world.below(world.in_flight.len()), world.below(8) == 0);
            world.complete(index, lost);
            // Many of those that wait need no notification any more.
            for _ in 0..10 {
                let remote = world.some_client();
                match world.below(100) {
                    0 => world.deregister(remote),
                    _ if world.clients.contains_key(&remote) => world.register(remote),
                    _ => {}
                }
            }
            world.tell();
        }
        let waiting = world.clients.values().filter(|client| client.has_news).count();
        assert_eq!((waiting, world.observers.parked()), (0, 0), "seed {seed}");
    }
}

#[test]
fn every_observer_is_told_after_a_bounded_number_of_completions() {
    for seed in 0..2 {
        let mut world = World::new(seed);
        for step in 0..20_000 {
            world.step();
            // Some begin anew, and have acknowledged nothing.
            let remote = world.some_client();
            world.deregister(remote);
            world.register(remote);
            // The oldest ends first, and everything changes all the time.
            world.complete(0, false);
            world.tell();
            if step % 500 == 0 {
                world.change();
                let waiting = world.clients.values().filter(|client| client.has_news);
                let longest = waiting.map(|client| world.completed - client.since).max();
                assert!(longest < Some(2 * 3000), "seed {seed}, step {step}");
            }
        }
        assert!(world.completed > 10_000);
    }
}
