//! The wait before a repetition holds up its own neighbour's frames only.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use ebbtide_core::time::Instant;
use ebbtide_sim::engine::Engine;
use ebbtide_sim::medium::ieee802154::{Csma, Event, Mac};
use ebbtide_sim::medium::{Air, Frame, Indication, Outcome, Path};
use ebbtide_sim::random::Streams;
use ebbtide_sim::scenario::units::Time;

const MS: u64 = 1_000_000;

#[test]
fn a_station_sends_to_others_while_a_frame_waits_for_its_repetition() {
    // Station 0 is heard by 1, but not by 2.
    let hears = |from: usize, to: usize| from != to && from + to == 1;
    let path = |pair: usize| Path { audible: hears(pair / 3, pair % 3), ..Path::default() };
    let air = Air::new(3, (0..9).map(path).collect(), vec![None; 9], None);
    let csma = Csma { retry_interval: Time(125 * MS), ..Csma::default() };
    let mut mac = Mac::new(air, 3, csma, None, &Streams::new(1, 0));
    let mut engine: Engine<Event> = Engine::new(0);
    let frame = |to: u32| Frame { from: 0, to, bytes: 60, token: to, more: false, confirmed: true };
    mac.send(Instant::ZERO, frame(2), &mut engine);
    let mut done = Vec::new();
    let mut sent_other = false;
    while let Some((now, event)) = engine.pop() {
        assert_eq!(event.station(), 0);
        mac.handle(now, event, &mut engine);
        if !sent_other && mac.is_idle(0) {
            sent_other = true;
            mac.send(now, frame(1), &mut engine);
        }
        while let Some(indication) = mac.poll() {
            if let Indication::Done(frame, outcome) = indication {
                done.push((frame.to, outcome, now.as_nanos() / MS));
            }
        }
    }
    let [(1, Outcome::Sent, first), (2, Outcome::NoAck, second)] = done[..] else {
        panic!("{done:?}")
    };
    // Three waits of at least 125 ms each, and at most 375 and twice 500.
    assert!(first < 125 && (375..1500).contains(&second), "{done:?}");
    let counts = mac.counts(0);
    assert_eq!((counts.accepted, counts.sent, counts.no_ack, counts.transmitted), (2, 1, 1, 5));
}
