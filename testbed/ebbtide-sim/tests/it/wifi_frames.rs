//! Every frame of a Wi-Fi cell is in exactly one place, and goes when the standard says.

use crate::common::wifi::Cell;
use ebbtide_core::time::Instant;
use ebbtide_sim::engine::Engine;
use ebbtide_sim::medium::wifi::{Dcf, Mac, WifiEvent};
use ebbtide_sim::medium::{Air, AirPath, FrameCounts, FrameOutcome, Indication, MacFrame};
use ebbtide_sim::random::Streams;
use proptest::prelude::*;

/// What may still be under way when the run is stopped: one frame per station.
fn assert_conserved(total: &FrameCounts, stations: u64) {
    let ended = total.sent + total.no_ack + total.no_access;
    assert!(total.accepted - ended <= stations, "{total:?}");
    let fates =
        total.received + total.repeated + total.collided + total.faded + total.deaf + total.asleep;
    assert!(total.transmitted - fates <= stations, "{total:?}");
    assert!(total.acks_lost <= total.acks && total.acks <= total.received + total.repeated);
    assert_eq!(total.no_access + total.asleep, 0, "stations listen all the time");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn frames_are_conserved_on_any_line_of_saturated_stations(
        places in prop::collection::vec(0.0f64..60.0, 2..12),
        cw_min in 0u32..6,
        more in 0u32..4,
        retry_limit in 1u8..9,
        confirmed in any::<bool>(),
    ) {
        let window = |exponent: u32| (1u16 << exponent) - 1;
        let dcf = Dcf {
            cw_min: window(cw_min),
            cw_max: window(cw_min + more),
            retry_limit,
            ..Dcf::default()
        };
        let mut cell = Cell::new(&places, 20.0, dcf, 7);
        cell.confirmed = confirmed;
        let stations = places.len() as u32;
        (0..stations).for_each(|station| cell.route(station, (station + 1) % stations));
        cell.run(2, 200);
        let total = cell.total();
        assert_conserved(&total, stations.into());
        prop_assert_eq!(cell.arrived.iter().sum::<u64>(), total.received);
    }
}

/// Two senders on either side of a receiver, which hear each other or not.
fn three(places: [f64; 3]) -> FrameCounts {
    let mut cell = Cell::new(&places, 20.0, Dcf::default(), 7);
    cell.route(0, 1);
    cell.route(2, 1);
    cell.run(20, 1000);
    assert_conserved(&cell.total(), 3);
    cell.total()
}

#[test]
fn hidden_stations_collide_where_neighbours_do_not() {
    let share = |total: FrameCounts| total.collided as f64 / total.transmitted as f64;
    let (hidden, seen) = (share(three([0.0, 15.0, 30.0])), share(three([0.0, 10.0, 20.0])));
    assert!(hidden > 0.3 && seen < 0.1, "{hidden} {seen}");
}

#[test]
fn a_frame_whose_acknowledgement_is_lost_is_repeated_and_delivered_once() {
    // 0 sends to 1, whose acknowledgement 2 spoils: it hears neither 1 nor 0, and 0 hears it.
    let hears = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 2), (3, 3), (3, 2), (2, 3)];
    let path = |from, to| AirPath { audible: hears.contains(&(from, to)), distance_squared: 1.0 };
    let paths = (0..4).flat_map(|from| (0..4).map(move |to| path(from, to))).collect();
    let air = Air::new(4, paths, (0..16).map(|_| None).collect(), None);
    let mut mac = Mac::new(air, 4, Dcf::default(), &Streams::new(1, 0));
    let mut engine: Engine<WifiEvent> = Engine::new(0);
    let frame =
        |from, to| MacFrame { from, to, bytes: 500, confirmed: true, ..MacFrame::default() };
    let mut arrived = [0u64; 4];
    mac.send(Instant::ZERO, frame(0, 1), &mut engine);
    mac.send(Instant::ZERO, frame(2, 3), &mut engine);
    while let Some((now, event)) = engine.pop().filter(|(now, _)| now.as_nanos() < 20_000_000_000) {
        mac.handle(now, event, &mut engine);
        while let Some(indication) = mac.poll() {
            match indication {
                Indication::Arrived(frame) => arrived[frame.to as usize] += 1,
                Indication::Done(frame, _) => mac.send(now, frame, &mut engine),
            }
        }
    }
    let counts = mac.counts(0);
    assert!(counts.acks_lost > 100 && counts.repeated > 100, "{counts:?}");
    assert_eq!(counts.received, arrived[1]);
    assert_eq!(counts.received + counts.repeated, counts.acks);
}

/// What a station that is alone hears of its frame to one out of range, or within.
fn alone(at: u64, range: f64) -> (Vec<(u64, Indication)>, FrameCounts) {
    let mut mac = Mac::new(
        Air::new(
            2,
            vec![AirPath { audible: range >= 1.0, distance_squared: 1.0 }; 4],
            vec![None, None, None, None],
            None,
        ),
        2,
        Dcf::default(),
        &Streams::new(1, 0),
    );
    let mut engine: Engine<WifiEvent> = Engine::new(0);
    let frame = MacFrame { from: 0, to: 1, bytes: 142, confirmed: true, ..MacFrame::default() };
    mac.send(Instant::from_nanos(at), frame, &mut engine);
    let mut seen = Vec::new();
    while let Some((now, event)) = engine.pop() {
        mac.handle(now, event, &mut engine);
        while let Some(indication) = mac.poll() {
            seen.push((now.as_nanos(), indication));
        }
    }
    (seen, mac.counts(0))
}

#[test]
fn a_frame_that_finds_the_channel_idle_goes_at_once() {
    let (seen, _) = alone(1_000_000, 1.0);
    // 142 bytes last 296 µs, SIFS and acknowledgement 314.
    assert_eq!(seen.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1_296_000, 1_610_000]);
    assert!(matches!(seen[1].1, Indication::Done(_, FrameOutcome::Sent)));
}

#[test]
fn a_frame_that_nobody_acknowledges_goes_seven_times_with_a_doubling_window() {
    let (seen, counts) = alone(1_000_000, 0.0);
    assert_eq!((counts.transmitted, counts.faded, counts.acks), (7, 7, 0));
    assert!(matches!(seen[..], [(_, Indication::Done(_, FrameOutcome::NoAck))]));
    // Seven frames and waits, and six backoffs of DIFS and 0 to 63, ..., 1023, 1023 slots.
    let fixed = 1_000_000 + 7 * (296_000 + 314_000) + 6 * 50_000;
    let slots = (seen[0].0 - fixed) / 20_000;
    assert_eq!((seen[0].0 - fixed) % 20_000, 0);
    assert!((1..=63 + 127 + 255 + 511 + 1023 + 1023).contains(&slots), "{slots}");
}
