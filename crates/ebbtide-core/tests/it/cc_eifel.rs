//! `eifel`: the series of the program for Contiki, whose clock has ticks of 1/128 s.

use crate::common::path::Path;

#[test]
fn before_a_sample_eifel_draws_its_first_timeout_from_one_to_one_and_a_half_times_two_seconds() {
    assert_eq!(Path::new("eifel").unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0]);
    assert_eq!(Path::new("eifel").drawing_highest().next_timeout(), 3.0);
}

#[test]
fn the_timeouts_of_eifel_are_those_of_the_program() {
    let mut path = Path::new("eifel");
    // Round trip; then SRTT, RTTVAR and RTO, all in ms, from zero by the program's rules:
    for (round_trip, srtt, rttvar, rto) in [
        // delta = 900 >= RTTVAR: SRTT = 900/3, RTTVAR = 900/3; SRTT + 3 RTTVAR.
        (900.0, 300.0, 300.0, 1200.0),
        // delta = 600 >= 300: SRTT = 300 + 200, RTTVAR = 300 + 300/3.
        (900.0, 500.0, 400.0, 1700.0),
        // delta = 40 < 400: RTTVAR = 400 - 360/9.
        (540.0, 513.333, 360.0, 1593.333),
        // delta < 0: SRTT = 513.333 - 183.333/3, RTTVAR stays.
        (330.0, 452.222, 360.0, 1532.222),
        // delta = 3547.778: SRTT = 452.222 + 1182.593, RTTVAR = 360 + 1062.593; less than 4000 + 2
        // ticks does not happen.
        (4000.0, 1634.815, 1422.593, 5902.593),
    ] {
        path.sample(round_trip / 1e3, 0);
        let metrics = path.metrics();
        for (ours, theirs) in [(metrics.srtt, srtt), (metrics.rttvar, rttvar), (metrics.rto, rto)] {
            let ours = ours.expect("a sample").as_micros() as f64 / 1e3;
            assert!((ours - theirs).abs() < 0.01, "{round_trip}: {ours} {theirs}");
        }
    }
}

#[test]
fn a_timeout_of_eifel_exceeds_the_last_round_trip_by_two_ticks() {
    let mut path = Path::new("eifel");
    // A steady path: SRTT + 3 RTTVAR falls towards the round trip.
    for _ in 0..200 {
        path.sample(0.5, 0);
    }
    let rto = path.metrics().rto.expect("a sample").as_micros();
    assert!((515_623..=515_626).contains(&rto), "{rto}");
}

#[test]
fn eifel_keeps_a_backed_off_timeout_until_an_answer_without_a_copy() {
    let mut path = Path::new("eifel");
    path.sample(0.9, 0);
    assert_eq!(path.next_timeout(), 1.2);
    path.sample(2.0, 1);
    assert_eq!(path.next_timeout(), 2.4);
    path.sample(0.9, 0);
    assert!((path.next_timeout() - 1.7).abs() < 1e-5);
}
