//! What holds for two endpoints after any sequence of operations over any wire.

use crate::common::machine::{self, Flying, World};
use ebbtide_core::cc::{Algorithm, ControlConfig};
use ebbtide_core::endpoint::{EndpointConfig, Incoming, Limits, Reliability};
use ebbtide_core::params::Parameters;
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber};
use proptest::collection::vec;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// Steps as `machine::play` reads them, weighted so that most datagrams arrive and most requests are
/// answered; the first 32 bytes are settings.
fn script() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>;
    let side = || prop_oneof![Just(0u8), Just(0x80)];
    let step = prop_oneof![
        // Requests, Confirmable and not.
        4 => (side(), 0..2u8, byte()).prop_map(|(who, non, bits)| vec![who | non << 4, bits & 0x3f]),
        // The oldest datagram arrives.
        12 => Just(vec![0x09, 0]),
        // Any one, whole or not, once or twice, lost, from elsewhere.
        3 => (0..16u8, byte(), byte(), byte()).prop_map(|(how, at, a, b)| vec![how << 4 | 9, at, a, b]),
        // The application answers, or acknowledges first.
        8 => (side(), byte()).prop_map(|(who, bits)| vec![who | 4, 0, bits & 0xf1]),
        2 => side().prop_map(|who| vec![who | 6, 0]),
        // A timer fires; time passes.
        2 => side().prop_map(|who| vec![who | 13]),
        1 => (0..8u8).prop_map(|span| vec![span << 4 | 14]),
        // Anything.
        1 => vec(any::<u8>(), 1..6),
    ];
    (vec(any::<u8>(), 32), vec(step, 0..200)).prop_map(|(settings, steps)| {
        settings.into_iter().chain(steps.into_iter().flatten()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_exchange_ends_exactly_once_and_everything_is_free_in_the_end(script in script()) {
        machine::play(&script);
    }

    #[test]
    fn nor_does_it_matter_what_the_script_is(script in vec(any::<u8>(), 0..600)) {
        machine::play(&script);
    }
}

/// Both endpoints ask each other all the time, over a wire that loses, duplicates, reorders and
/// corrupts a tenth each; their applications answer at once, late, or never.
struct Soak {
    world: World,
    rng: ChaCha8Rng,
    /// Datagrams and late answers by time and sequence number.
    agenda: BTreeMap<(Instant, u64), Due>,
    sequence: u64,
}

enum Due {
    Arrival(Flying),
    Answer(usize, Incoming),
}

impl Soak {
    fn new(control: Algorithm, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let config = |nstart| {
            let mut control = ControlConfig::new(control);
            control.settings.nstart = Some(nstart);
            EndpointConfig {
                params: Parameters { max_retransmit: 3, ..Parameters::DEFAULT },
                control,
                limits: Limits { exchanges: 200, ..Limits::default() },
                ..EndpointConfig::default()
            }
        };
        let world = World::new([config(4), config(2)], Instant::ZERO, rng.next_u64());
        Self { world, rng, agenda: BTreeMap::new(), sequence: 0 }
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.rng.next_u32().is_multiple_of(n)
    }

    fn millis(&mut self, most: u32) -> Duration {
        Duration::from_millis(u64::from(self.rng.next_u32() % (most + 1)))
    }

    fn put(&mut self, after: Duration, due: Due) {
        self.sequence += 1;
        self.agenda.insert((self.world.now + after, self.sequence), due);
    }

    /// Puts what was sent on its way, unless it is lost.
    fn carry(&mut self) {
        while let Some(mut datagram) = self.world.wire.pop_front() {
            if self.one_in(10) {
                continue;
            }
            if self.one_in(10) {
                let place = self.rng.next_u32() as usize % datagram.bytes.len();
                datagram.bytes[place] ^= 1 << (self.rng.next_u32() % 8);
            }
            let mut copies = 1;
            while self.one_in(10) {
                copies += 1;
            }
            for _ in 0..copies {
                let mut after = Duration::from_millis(40);
                if self.one_in(10) {
                    after += self.millis(3000);
                }
                let (from, to, bytes) = (datagram.from, datagram.to, datagram.bytes.clone());
                self.put(after, Due::Arrival(Flying { from, to, bytes }));
            }
        }
    }

    /// The applications look at their requests.
    fn serve(&mut self) {
        for who in 0..2 {
            while let Some(mut incoming) = self.world.sides[who].pending.pop_front() {
                match self.rng.next_u32() % 10 {
                    0 => {}
                    1 | 2 => {
                        self.world.acknowledge(who, &mut incoming);
                        let after = self.millis(5000);
                        self.put(after, Due::Answer(who, incoming));
                    }
                    3 => {
                        let after = self.millis(4000);
                        self.put(after, Due::Answer(who, incoming));
                    }
                    _ => self.answer(who, &incoming),
                }
            }
        }
    }

    fn answer(&mut self, who: usize, incoming: &Incoming) {
        let content = Content { code: Code::CONTENT, options: &[], payload: b"22.5" };
        self.world.respond(who, incoming, &content);
    }

    fn ask(&mut self) {
        let who = usize::from(self.one_in(3));
        let to = self.world.other(who);
        let code = [Code::GET, Code::POST, Code::PUT][self.rng.next_u32() as usize % 3];
        let how =
            if self.one_in(5) { Reliability::NonConfirmable } else { Reliability::Confirmable };
        let path = [Opt { number: OptionNumber::URI_PATH, value: b"t" }];
        if self.one_in(30) {
            self.world.ping(who);
        } else {
            self.world.request(who, to, &Content { code, options: &path, payload: b"" }, how);
        }
    }

    /// Lets everything happen that is due until `end`.
    fn run_until(&mut self, end: Instant) {
        loop {
            self.serve();
            self.carry();
            let event = self.agenda.first_key_value().map(|(key, _)| key.0);
            let timer = self.world.next_timer();
            let Some(next) = event.into_iter().chain(timer).min().filter(|&at| at <= end) else {
                self.world.now = end;
                return;
            };
            self.world.now = self.world.now.max(next);
            if event == Some(next) {
                match self.agenda.pop_first().unwrap().1 {
                    Due::Arrival(datagram) => self.world.deliver(&datagram),
                    Due::Answer(who, incoming) => self.answer(who, &incoming),
                }
            } else {
                self.world.tick(0);
                self.world.tick(1);
            }
        }
    }
}

#[test]
fn thousands_of_exchanges_over_a_bad_wire_are_answered_or_fail_and_none_twice() {
    let mut total = 0;
    for (n, control) in Algorithm::ALL.iter().enumerate() {
        let mut soak = Soak::new(*control, 1000 + n as u64);
        for _ in 0..2000 {
            soak.ask();
            let pause = soak.millis(600);
            let end = soak.world.now + pause;
            soak.run_until(end);
        }
        let end = soak.world.now + Duration::from_secs(4000);
        soak.run_until(end);
        for (who, side) in soak.world.sides.iter().enumerate() {
            let ends = side.ends;
            assert_eq!(side.ep.open_exchanges(), 0, "{control}");
            assert_eq!(ends.accepted, ends.ended(), "{control}: {ends:?}");
            // The wire is bad, not broken.
            assert!(ends.answered * 2 > ends.accepted, "{control}, side {who}: {ends:?}");
            total += ends.accepted;
        }
        soak.world.drain();
    }
    assert!(total > 20_000, "{total} exchanges");
}
