//! A cell of NB-IoT by itself: its queues, its shared channels, and where its devices' time goes.

use ebbtide_core::time::Instant;
use ebbtide_sim::engine::Engine;
use ebbtide_sim::medium::Crossing;
use ebbtide_sim::medium::nb_iot::{NbIot, NbIotCell, NbIotCounts, NbIotEvent};
use ebbtide_sim::net::Direction;
use ebbtide_sim::random::Streams;
use ebbtide_sim::units::Time;

const SECOND: u64 = 1_000_000_000;

struct Driven {
    settings: NbIot,
    cell: NbIotCell,
    engine: Engine<NbIotEvent>,
    now: u64,
    outcomes: Vec<(u64, Crossing)>,
}

impl Driven {
    fn new(settings: NbIot, devices: u32) -> Self {
        let cell = NbIotCell::new(&settings, devices, &Streams::new(1, 0));
        Self { settings, cell, engine: Engine::new(1), now: 0, outcomes: Vec::new() }
    }

    /// Handles all events until then, ns.
    fn run(&mut self, until: u64) {
        while let Some(at) = self.engine.next_at().filter(|at| at.as_nanos() <= until) {
            let Some((_, event)) = self.engine.pop() else { break };
            self.cell.handle(at, event, &mut self.engine);
            let outcomes = std::iter::from_fn(|| self.cell.poll());
            self.outcomes.extend(outcomes.map(|outcome| (at.as_nanos(), outcome)));
        }
        self.now = until;
    }

    fn send(&mut self, device: u32, direction: Direction, token: u32, bytes: u32) -> bool {
        let now = Instant::from_nanos(self.now);
        self.cell.send(now, device, direction, token, bytes, &mut self.engine)
    }

    /// Gives a device its connection, by a packet, which is over when this returns.
    fn connect(&mut self, device: u32) {
        assert!(self.send(device, Direction::Up, 1000 + device, 1));
        self.run(self.now + 5 * SECOND);
        assert_eq!(self.outcomes.pop().unwrap().1, Crossing::Up(1000 + device));
    }

    fn counts(&self) -> NbIotCounts {
        self.cell.counts(Instant::from_nanos(self.now))
    }
}

fn settings() -> NbIot {
    NbIot { missed_preambles: 0.0, ..NbIot::default() }
}

#[test]
fn the_queue_limits_a_device_with_a_connection_too() {
    for (direction, reverse) in [(Direction::Up, Direction::Down), (Direction::Down, Direction::Up)]
    {
        let mut driven = Driven::new(NbIot { queue: 2, ..settings() }, 1);
        driven.connect(0);
        // The first one is carried at once.
        let accepted: Vec<bool> =
            (0..5).map(|token| driven.send(0, direction, token, 1000)).collect();
        assert_eq!(accepted, [true, true, true, false, false]);
        assert_eq!(driven.counts().overflows[direction as usize], 2);
        assert_eq!(driven.cell.waiting(0, direction), 2);
        assert_eq!(driven.cell.waiting(0, reverse), 0);
        driven.run(driven.now + 10 * SECOND);
        let crossing = |token| direction.select(Crossing::Up(token), Crossing::Down(token));
        let arrived: Vec<Crossing> = driven.outcomes.iter().map(|(_, outcome)| *outcome).collect();
        assert_eq!(arrived, [0, 1, 2].map(crossing));
        assert_eq!(driven.cell.waiting(0, direction), 0);
        assert!(driven.send(0, direction, 5, 1000));
    }
}

#[test]
fn only_what_has_been_transmitted_counts() {
    let mut driven = Driven::new(settings(), 1);
    driven.now = 1;
    assert!(driven.send(0, Direction::Up, 7, 1));
    // The opportunity for preambles is still to come.
    driven.run(SECOND / 10);
    assert_eq!((driven.counts().preambles, driven.counts().times.transmit_ns), (1, 0));
    driven.run(5 * SECOND);
    let before = driven.counts().times;
    let packet = driven.settings.transmission_ns(0, Direction::Up, 1000);
    let signalling = driven.settings.transmission_ns(0, Direction::Up, driven.settings.setup_bytes);
    let first = driven.settings.preamble_ns(0)
        + signalling
        + driven.settings.transmission_ns(0, Direction::Up, 1);
    assert_eq!(before.transmit_ns, first);
    for token in 0..3 {
        assert!(driven.send(0, Direction::Up, token, 1000));
    }
    assert_eq!(driven.counts().times, before);
    driven.run(driven.now + packet + packet / 2);
    let times = driven.counts().times;
    assert_eq!(times.transmit_ns - before.transmit_ns, packet + packet / 2);
    assert_eq!(times.listen_ns, before.listen_ns);
    driven.run(driven.now + 5 * SECOND);
    assert_eq!(driven.counts().times.transmit_ns - before.transmit_ns, 3 * packet);
}

#[test]
fn a_device_that_gives_up_falls_asleep_after_its_active_time() {
    let settings = NbIot {
        missed_preambles: 0.999_999_999,
        attempts: 1,
        active_time: Some(Time(10 * SECOND)),
        ..settings()
    };
    let mut driven = Driven::new(settings, 1);
    assert!(driven.send(0, Direction::Up, 7, 1));
    driven.run(SECOND);
    assert_eq!(driven.outcomes[0].1, Crossing::Lost { token: 7, direction: Direction::Up });
    driven.run(3600 * SECOND);
    assert_eq!(driven.counts().times.idle_ns, 10 * SECOND);
    assert!(driven.send(0, Direction::Down, 8, 1));
    driven.run(7200 * SECOND);
    assert_eq!((driven.counts().paged, driven.counts().accesses), (0, 1));
}

#[test]
fn the_channel_to_the_devices_is_free_until_a_preamble_is_answered() {
    // After 64 repetitions the answer comes 41 ms later.
    let settings =
        NbIot { preamble_repetitions: vec![64], preamble_period: Time(640_000_000), ..settings() };
    let mut driven = Driven::new(settings, 2);
    driven.connect(0);
    let start = driven.now.next_multiple_of(driven.settings.preamble_period.0);
    assert!(driven.send(1, Direction::Up, 7, 1));
    let end = start + driven.settings.preamble_ns(0);
    driven.run(end);
    let time = driven.settings.transmission_ns(0, Direction::Down, 33);
    assert!(time < driven.settings.answer_ns(0));
    assert!(driven.send(0, Direction::Down, 8, 33));
    driven.run(end + 5 * SECOND);
    assert_eq!(driven.outcomes[0], (end + time, Crossing::Down(8)));
    let setup =
        |direction| driven.settings.transmission_ns(0, direction, driven.settings.setup_bytes);
    let connected =
        end + driven.settings.answer_ns(0) + setup(Direction::Down) + setup(Direction::Up);
    let sent = connected + driven.settings.transmission_ns(0, Direction::Up, 1);
    assert_eq!(driven.outcomes[1], (sent, Crossing::Up(7)));
}
