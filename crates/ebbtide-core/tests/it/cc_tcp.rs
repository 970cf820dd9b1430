//! TCP's timers over UDP, `linux-rto` and `peak-hopper`: timeouts written out by hand.

use crate::common::path::Path;

#[test]
fn linux_rto_begins_at_two_seconds_without_dither() {
    assert_eq!(Path::new("linux-rto").unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0]);
    let mut path = Path::new("linux-rto").drawing_highest();
    assert_eq!(path.unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0]);
}

#[test]
fn linux_rto_takes_three_round_trips_after_the_first_sample() {
    let mut path = Path::new("linux-rto");
    path.answered_after(0.8);
    // SRTT 0.8, RTTVAR 0.4, K = 4 (RFC 6298 section 2.2).
    assert_eq!(path.next_timeout(), 2.4);
}

#[test]
fn linux_rto_rises_as_rfc_6298_does() {
    let mut path = Path::new("linux-rto");
    path.answered_after(0.8);
    path.answered_after(1.6);
    // RTTVAR = 3/4 * 0.4 + 1/4 * 0.8 = 0.5; SRTT = 7/8 * 0.8 + 1/8 * 1.6 = 0.9; 0.9 + 4 * 0.5.
    assert_eq!(path.next_timeout(), 2.9);
    path.answered_after(0.1);
    // A fall counts an eighth of what it would (Linux): 4 RTTVAR = 2 + (0.8 - 0.5) / 8 = 2.0375;
    // SRTT = 0.9 - 0.8 / 8 = 0.8.
    assert_eq!(path.next_timeout(), 2.8375);
}

#[test]
fn linux_rto_is_at_least_its_floor() {
    let mut path = Path::new("linux-rto");
    path.answered_after(0.1);
    assert_eq!(path.next_timeout(), 1.0);
    let mut path = Path::new("linux-rto:floor=200ms");
    path.answered_after(0.1);
    // 0.1 + max(4 * 0.05, 0.2).
    assert_eq!(path.next_timeout(), 0.3);
}

#[test]
fn linux_rto_on_a_steady_path_comes_down_to_the_round_trip_and_200_ms() {
    let mut path = Path::new("linux-rto:floor=200ms");
    for _ in 0..200 {
        path.answered_after(0.5);
    }
    let timeout = path.next_timeout();
    assert!((0.7..0.701).contains(&timeout), "{timeout}");
}

#[test]
fn linux_rto_keeps_the_backed_off_timeout_until_an_unambiguous_sample() {
    for name in ["linux-rto", "peak-hopper"] {
        let mut path = Path::new(name);
        assert_eq!(path.answered_after(5.0), [2.0, 4.0]);
        // Karn: no sample, the 4 s stay.
        assert_eq!(path.metrics().srtt, None);
        assert_eq!(path.answered_after(9.0), [4.0, 8.0]);
        assert_eq!(path.answered_after(0.8), [8.0]);
        assert!(path.next_timeout() < 2.5);
    }
}

#[test]
fn both_are_bounded_and_dithered_at_the_bound() {
    let mut path = Path::new("linux-rto").retransmitting(8);
    let series = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 108.0, 108.0, 108.0];
    assert_eq!(path.unanswered(), series);
    assert_eq!(path.next_timeout(), 108.0);
    let mut path = Path::new("peak-hopper:bound=60s").retransmitting(6);
    assert_eq!(path.unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0, 54.0, 54.0]);
}

#[test]
fn peak_hopper_hops_with_a_rise_and_fades_by_a_24th() {
    let mut path = Path::new("peak-hopper:floor=0s");
    path.answered_after(0.8);
    // The first sample: B = 1, twice the round trip.
    assert_eq!(path.next_timeout(), 1.6);
    path.answered_after(1.0);
    // B = max(2 * 0.25, 23/24) = 0.958 in thousandths; 1.0 * 1.958.
    assert_eq!(path.next_timeout(), 1.958);
    path.answered_after(0.5);
    // B = 0.958 * 23/24 = 0.918; the larger of the last two, 1.0 * 1.918, beats 1.958 * 23/24.
    assert_eq!(path.next_timeout(), 1.918);
    path.answered_after(0.5);
    // 0.5 * (1 + 0.879) is less than the faded 1.918 * 23/24.
    assert_eq!(path.next_timeout(), 1.838083);
}

#[test]
fn peak_hopper_doubles_and_is_at_least_the_floor_and_the_last_round_trip() {
    let mut path = Path::new("peak-hopper");
    path.answered_after(0.8);
    assert_eq!(path.unanswered(), [1.6, 3.2, 6.4, 12.8, 25.6]);
    let mut path = Path::new("peak-hopper");
    path.answered_after(0.1);
    assert_eq!(path.next_timeout(), 1.0);
    let mut path = Path::new("peak-hopper:floor=0s");
    for _ in 0..300 {
        path.answered_after(0.5);
    }
    // Two ticks of 1 ms above the round trip.
    assert_eq!(path.next_timeout(), 0.502);
}

#[test]
fn rfc6298_is_the_arithmetic_of_its_section_2() {
    let mut path = Path::new("rfc6298");
    // Section 2.1; doubled (5.5), at most 60 s (2.5), without a dither.
    assert_eq!(path.unanswered(), [1.0, 2.0, 4.0, 8.0, 16.0]);
    let mut path = Path::new("rfc6298").drawing_highest();
    for (round_trip, srtt, rttvar, rto) in [
        // Section 2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR.
        (0.8, 0.8, 0.4, 2.4),
        // Section 2.3: RTTVAR = 3/4 0.4 + 1/4 |0.8 - 1.6|, SRTT = 7/8 0.8 + 1/8 1.6.
        (1.6, 0.9, 0.5, 2.9),
        // A falling round trip widens the margin as well, in contrast to Linux.
        (0.1, 0.8, 0.575, 3.1),
    ] {
        path.sample(round_trip, 0);
        let metrics = path.metrics();
        for (ours, theirs) in [(metrics.srtt, srtt), (metrics.rttvar, rttvar), (metrics.rto, rto)] {
            let ours = ours.expect("a sample").as_micros() as f64 / 1e6;
            assert!((ours - theirs).abs() < 1e-5, "{round_trip}: {ours} {theirs}");
        }
        assert!((path.next_timeout() - rto).abs() < 1e-5);
    }
    // Section 2.4: at least 1 s.
    let mut path = Path::new("rfc6298");
    (0..50).for_each(|_| path.sample(0.05, 0));
    assert_eq!(path.next_timeout(), 1.0);
}

#[test]
fn rfc6298_keeps_a_backed_off_timeout_until_an_answer_without_a_copy() {
    let mut path = Path::new("rfc6298");
    path.sample(0.8, 0);
    path.sample(5.0, 1);
    assert_eq!(path.next_timeout(), 4.8);
    path.sample(0.8, 0);
    // RTTVAR = 3/4 0.4.
    assert!((path.next_timeout() - 2.0).abs() < 1e-5);
}
