//! The wait before a repetition holds up its own neighbour's frames only, and what is waited for.

use ebbtide_core::time::Instant;
use ebbtide_sim::engine::Engine;
use ebbtide_sim::medium::low_power::{Csma, LowPowerEvent, Mac};
use ebbtide_sim::medium::{Air, AirPath, FrameOutcome, Indication, MacFrame};
use ebbtide_sim::random::Streams;
use ebbtide_sim::scenario::units::Time;

const MS: u64 = 1_000_000;

fn frame(from: u32, to: u32) -> MacFrame {
    MacFrame { from, to, bytes: 60, token: to, more: false, confirmed: true }
}

/// Three stations that hear each other.
fn one_hop(csma: Csma) -> Mac {
    let path = |pair: usize| AirPath { audible: pair / 3 != pair % 3, ..AirPath::default() };
    let air = Air::new(3, (0..9).map(path).collect(), vec![None; 9], None);
    Mac::new(air, 3, csma, None, &Streams::new(1, 0))
}

/// Lets station 0 send to station 1, and station 2 do so a little later; what came of the latter, when.
fn one_after_the_other(mac: &mut Mac, later: u64) -> (FrameOutcome, u64) {
    let mut engine: Engine<LowPowerEvent> = Engine::new(0);
    mac.send(Instant::ZERO, frame(0, 1), &mut engine);
    let mut has_begun = false;
    let mut second = None;
    while let Some((now, event)) = engine.pop() {
        if !has_begun && now.as_nanos() >= later {
            has_begun = true;
            mac.send(now, frame(2, 1), &mut engine);
        }
        mac.handle(now, event, &mut engine);
        while let Some(indication) = mac.poll() {
            if let Indication::Done(MacFrame { from: 2, .. }, outcome) = indication {
                second = Some((outcome, now.as_nanos()));
            }
        }
    }
    second.unwrap()
}

#[test]
fn waiting_for_a_busy_channel_is_not_a_repetition() {
    let wait = Time(125 * MS);
    let once = Csma { min_be: 0, max_be: 0, max_backoffs: 0, max_retries: 0, ..Csma::default() };
    let contiki = Csma { retry_interval: wait, ..once };
    // Station 0 is on the air from 0.32 to 2.4 ms.
    let (outcome, at) = one_after_the_other(&mut one_hop(once), 320_000);
    assert_eq!(outcome, FrameOutcome::ChannelAccessFailure);
    assert!(at < MS);
    let mut mac = one_hop(contiki);
    let (outcome, at) = one_after_the_other(&mut mac, 320_000);
    assert_eq!(outcome, FrameOutcome::Sent);
    assert!((125 * MS..255 * MS).contains(&at), "{at}");
    let counts = mac.counts(2);
    assert_eq!((counts.busy, counts.transmitted), (1, 1));
}

#[test]
fn a_station_sends_to_others_while_a_frame_waits_for_its_repetition() {
    // Station 0 is heard by 1, but not by 2.
    let hears = |from: usize, to: usize| from != to && from + to == 1;
    let path = |pair: usize| AirPath { audible: hears(pair / 3, pair % 3), ..AirPath::default() };
    let air = Air::new(3, (0..9).map(path).collect(), vec![None; 9], None);
    let csma = Csma { retry_interval: Time(125 * MS), ..Csma::default() };
    let mut mac = Mac::new(air, 3, csma, None, &Streams::new(1, 0));
    let mut engine: Engine<LowPowerEvent> = Engine::new(0);
    let frame = |to: u32| frame(0, to);
    mac.send(Instant::ZERO, frame(2), &mut engine);
    let mut done = Vec::new();
    let mut sent_other = false;
    while let Some((now, event)) = engine.pop() {
        assert_eq!(event.station, 0);
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
    let [(1, FrameOutcome::Sent, first), (2, FrameOutcome::NoAck, second)] = done[..] else {
        panic!("{done:?}")
    };
    // Three waits of at least 125 ms each, and at most 375 and twice 500.
    assert!(first < 125 && (375..1500).contains(&second), "{done:?}");
    let counts = mac.counts(0);
    assert_eq!((counts.accepted, counts.sent, counts.no_ack, counts.transmitted), (2, 1, 1, 5));
}
