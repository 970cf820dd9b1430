//! `cocoa-strong` and `basic-rto` beside Californium's own classes, on the same round trips.

use crate::common::path::Path;

/// A line for each exchange: control, idle time before it in ms, round trip in ms, retransmissions,
/// and Californium's RTO in ms after it. `java -cp 'target/interop/californium/lib/*'
/// ControlSeries` prints it (interop/californium/src/main/java/ControlSeries.java).
const SERIES: &str = include_str!("californium_series.txt");
/// Californium rounds to whole milliseconds: errors of half a millisecond in RTTVAR add up to 4 ms (beta is 1/8), and
/// RTTVAR counts four times.
const TOLERANCE_MS: f64 = 16.0;

fn follow(name: &str) {
    let mut path = Path::new(name);
    let mut compared = 0;
    for line in SERIES.lines().filter(|line| line.split(' ').next() == Some(name)) {
        let numbers: Vec<f64> =
            line.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
        let [idle, round_trip, retransmissions, theirs] = numbers[..] else { panic!("{line}") };
        path.idle(idle / 1e3);
        path.sample_in_time(round_trip / 1e3, retransmissions as u8);
        let ours = path.metrics().rto.map_or(2000.0, |rto| rto.as_micros() as f64 / 1e3);
        assert!((ours.min(32_000.0) - theirs).abs() <= TOLERANCE_MS, "{line}: ours {ours}");
        compared += 1;
    }
    assert_eq!(compared, 120, "{name}");
}

#[test]
fn the_rto_of_cocoa_strong_is_that_of_californium() {
    follow("cocoa-strong");
}

#[test]
fn the_rto_of_basic_rto_is_that_of_californium() {
    follow("basic-rto");
}

#[test]
fn the_first_timeout_of_cocoa_strong_grows_with_the_open_exchanges_even_with_a_sample() {
    let mut path = Path::new("cocoa-strong");
    path.sample(0.5, 0);
    // E = 0.5 + 4 * 0.25; (1.5 + 2) / 2.
    let timeouts: Vec<f64> = (0..3).map(|_| path.open_and_leave()).collect();
    assert_eq!(timeouts, [1.75, 3.5, 5.25]);
}

#[test]
fn the_backoff_factor_of_cocoa_strong_follows_the_first_timeout_as_drawn() {
    let after = |initial: &str| {
        Path::new(&format!("cocoa-strong:initial-rto={initial}:bound=none")).unanswered()
    };
    assert_eq!(after("800ms")[..3], [0.8, 2.4, 7.2]);
    assert_eq!(after("2s")[..3], [2.0, 4.0, 8.0]);
    assert_eq!(after("4s")[..3], [4.0, 6.0, 9.0]);
    // Below Californium's minimum of 500 ms.
    assert_eq!(after("100ms")[..3], [0.5, 1.5, 4.5]);
}

#[test]
fn basic_rto_is_never_dithered_and_doubles() {
    let mut path = Path::new("basic-rto").drawing_highest();
    assert_eq!(path.unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0]);
    path.sample(3.0, 2);
    assert_eq!(path.next_timeout(), 4.5);
    path.sample(9.0, 3);
    assert_eq!(path.next_timeout(), 4.5);
    path.sample(0.1, 0);
    assert_eq!(path.next_timeout(), 0.5);
}
