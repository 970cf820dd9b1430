//! Which marks are believed: a path with losses, and servers that answer each copy afresh or with what
//! they have stored for the first copy that arrived.

use crate::common::node::{Datagram, Got, Node, config};
use crate::common::{float, secs};
use ebbtide_core::endpoint::Ignored;
use ebbtide_core::time::Instant;
use rand_core::Rng;
use std::collections::BTreeMap;

/// The time that a datagram takes in either direction, in seconds.
const ONE_WAY: f64 = 0.02;
/// Requests of one run.
const REQUESTS: usize = 300;

/// How a server answers a copy of a request.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Copies {
    /// With the token of the copy.
    Afresh,
    /// With the bytes that the first copy that arrived was answered with, as Californium does.
    Stored,
}

/// A client, a server and the path between them.
struct World {
    node: Node,
    copies: Copies,
    stored: BTreeMap<u16, Vec<u8>>,
    /// Answers on their way, by arrival.
    flying: Vec<(Instant, Vec<u8>)>,
    luck: Box<dyn Rng + Send>,
    /// Percent of the datagrams that are lost in either direction.
    lost: u32,
    /// The time that each answer spends in a queue, in seconds.
    queue: f64,
}

impl World {
    fn new(control: &str, copies: Copies, lost: u32, seed: u64) -> Self {
        let node = Node::with_rng(config(control), crate::common::seeded(seed));
        let (stored, flying) = (BTreeMap::new(), Vec::new());
        Self {
            node,
            copies,
            stored,
            flying,
            luck: crate::common::seeded(seed + 1),
            lost,
            queue: 0.0,
        }
    }

    fn is_lost(&mut self) -> bool {
        self.luck.next_u32() % 100 < self.lost
    }

    /// What the server does with a datagram at once.
    fn answer(&mut self, datagram: &Datagram) -> Vec<u8> {
        match self.copies {
            _ if datagram.is_probe() => datagram.rst(),
            Copies::Afresh => datagram.answer(),
            Copies::Stored => {
                self.stored.entry(datagram.id()).or_insert_with(|| datagram.answer()).clone()
            }
        }
    }

    fn send(&mut self) {
        for datagram in self.node.take() {
            if self.is_lost() {
                continue;
            }
            let answer = self.answer(&datagram);
            if !self.is_lost() {
                let at = datagram.at + secs(2.0 * ONE_WAY + self.queue);
                self.flying.push((at, answer));
            }
        }
    }

    /// One request. Returns the transmission that its answer was believed to belong to, the round trip
    /// measured, and the number of transmissions; `None` if it failed.
    fn ask(&mut self) -> Option<(Option<(u8, f64)>, u8)> {
        let exchange = self.node.get();
        loop {
            self.send();
            self.flying.sort_by_key(|(at, _)| *at);
            let arrives = self.flying.first().map(|(at, _)| *at);
            if arrives.is_some_and(|at| self.node.timeout.is_none_or(|timeout| at <= timeout)) {
                let (at, bytes) = self.flying.remove(0);
                self.node.now = self.node.now.max(at);
                if let Got::Response { exchange: answered, sample, .. } = self.node.arrive(&bytes)
                    && answered == exchange
                {
                    let sample = sample.unwrap();
                    let told = sample.answered.map(|told| (told.ordinal, float(told.since)));
                    return Some((told, sample.transmissions));
                }
            } else {
                self.node.now = self.node.timeout.expect("it is open");
                self.node.ep.handle_timeout(self.node.now);
                self.node.settle();
                if self.node.failures().iter().any(|(failed, _)| *failed == exchange) {
                    return None;
                }
            }
        }
    }
}

#[test]
fn no_round_trip_is_measured_that_the_path_did_not_take_whichever_copies_are_lost() {
    for control in ["ebb", "fasor-token"] {
        for copies in [Copies::Afresh, Copies::Stored] {
            for seed in 0..10 {
                let mut world = World::new(control, copies, 15, seed);
                let (mut believed, mut repeated) = (0, 0);
                for _ in 0..REQUESTS {
                    let Some((told, transmissions)) = world.ask() else { continue };
                    repeated += usize::from(transmissions > 1);
                    let Some((named, measured)) = told else { continue };
                    believed += usize::from(transmissions > 1);
                    let took = 2.0 * ONE_WAY;
                    assert!(
                        (measured - took).abs() < 1e-3,
                        "{control}, {copies:?}, seed {seed}: {measured} s since copy {named} of {transmissions}"
                    );
                }
                assert!(3 * believed > repeated, "{control}, {copies:?}: {believed} of {repeated}");
            }
        }
    }
}

#[test]
fn behind_a_queue_a_server_that_answers_each_copy_with_its_mark_is_believed_after_one_request() {
    for copies in [Copies::Afresh, Copies::Stored] {
        let mut world = World::new("fasor-token", copies, 0, 3);
        for _ in 0..20 {
            assert_eq!(world.ask().unwrap().1, 1, "nothing is lost or late");
        }
        // Each request finds a much longer queue than the one before, so the answer to its original
        // arrives after a copy has left.
        let mut named = Vec::new();
        for _ in 0..4 {
            world.queue = 2.5 * world.queue + 0.2;
            let (told, transmissions) = world.ask().unwrap();
            assert!(transmissions > 1, "{copies:?}");
            named.push(told.map(|(ordinal, _)| ordinal));
            // The answers to its copies arrive before the next request.
            world.node.wait(10.0);
            for (_, bytes) in std::mem::take(&mut world.flying) {
                assert_eq!(world.node.arrive(&bytes).ignored(), Ignored::UnknownExchange);
            }
        }
        assert_eq!(named[0], None, "the first one may be a stored answer");
        let later = (copies == Copies::Afresh).then_some(0);
        assert!(named[1..].iter().all(|named| *named == later), "{copies:?}: {named:?}");
    }
}
