//! The FASOR family: timeouts written out by hand from Thesis19 section 7 and fasor-02.
//!
//! Draws are the lowest, a quarter of SRTT above the RTO, unless said otherwise.

use crate::common::path::Path;

const FAMILY: [&str; 6] = ["fasor", "fasor-token", "fasor-option", "fasor-k4", "fast-slow", "slow"];
const FAST_SLOW_FAST: [&str; 4] = ["fasor", "fasor-token", "fasor-option", "fasor-k4"];

#[test]
fn the_first_timeout_lies_between_2_167_and_2_667_seconds() {
    for name in FAMILY {
        // A third of 2 s stands in for SRTT; microseconds are cut off.
        assert_eq!(Path::new(name).next_timeout(), 2.166_666, "{name}");
        assert_eq!(Path::new(name).drawing_highest().next_timeout(), 2.666_666, "{name}");
    }
}

#[test]
fn the_first_sample_gives_one_and_a_half_round_trips() {
    for name in ["fasor", "fasor-token", "fasor-option"] {
        let mut path = Path::new(name);
        path.answered_after(0.8);
        // SRTT 0.8, RTTVAR 0.1: RTO 1.2; dithered over [1.4, 2].
        assert_eq!(path.next_timeout(), 1.4, "{name}");
        assert_eq!(path.drawing_highest().next_timeout(), 2.0, "{name}");
    }
}

#[test]
fn the_first_sample_of_k4_and_the_development_variants_gives_three() {
    for name in ["fasor-k4", "fast-slow", "slow"] {
        let mut path = Path::new(name);
        path.answered_after(0.8);
        assert_eq!(path.next_timeout(), 2.6, "{name}");
    }
}

#[test]
fn there_is_no_floor_of_a_second_and_ambiguous_samples_do_not_count() {
    let mut path = Path::new("fasor");
    path.answered_after(0.08);
    assert_eq!(path.next_timeout(), 0.14);
    path.answered_after(0.2);
    assert_eq!(crate::common::float(path.metrics().srtt.expect("a sample")), 0.08);
}

#[test]
fn fast_doubles_the_dithered_value_without_a_new_dither() {
    for name in ["fasor", "fasor-token", "fasor-option"] {
        let mut path = Path::new(name);
        path.answered_after(0.8);
        assert_eq!(path.state(), "FAST");
        assert_eq!(path.unanswered(), [1.4, 2.8, 5.6, 11.2, 22.4], "{name}");
        let mut path = Path::new(name).drawing_highest();
        path.answered_after(0.8);
        assert_eq!(path.unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0], "{name}");
    }
}

#[test]
fn after_one_exchange_with_retransmissions_the_second_timeout_is_the_slow_one() {
    let mut path = Path::new("fasor");
    path.answered_after(0.8);
    assert_eq!(path.answered_after(5.0), [1.4, 2.8, 5.6]);
    assert_eq!(path.state(), "FAST_SLOW_FAST");
    // s = 1.5 * 5 + 0.2.
    assert_eq!(path.unanswered(), [1.4, 7.7, 2.8, 5.6, 11.2]);
}

#[test]
fn the_slow_timeout_of_fast_slow_fast_is_at_least_twice_the_fast_one() {
    let mut path = Path::new("fasor");
    path.answered_after(0.8);
    assert_eq!(path.answered_after(1.5), [1.4, 2.8]);
    // s = 1.5 * 1.5 + 0.2 = 2.45 is less than 2 * 1.4.
    assert_eq!(path.unanswered(), [1.4, 2.8, 2.8, 5.6, 11.2]);
}

#[test]
fn after_two_exchanges_with_retransmissions_the_slow_timeout_comes_first() {
    let mut path = Path::new("fasor");
    path.answered_after(0.8);
    path.answered_after(5.0);
    assert_eq!(path.answered_after(3.0), [1.4, 7.7]);
    assert_eq!(path.state(), "SLOW_FAST");
    // s = 1.5 * 3 + 0.2, measured anew and never smoothed.
    assert_eq!(path.answered_after(8.0), [4.7, 1.4, 2.8]);
    assert_eq!(path.state(), "SLOW_FAST");
    assert_eq!(path.unanswered(), [12.2, 1.4, 2.8, 5.6, 11.2]);
}

#[test]
fn an_exchange_that_is_cancelled_before_a_retransmission_says_nothing_of_the_path() {
    let mut path = Path::new("fasor");
    path.answered_after(0.8);
    path.answered_after(5.0);
    path.next_timeout();
    assert_eq!(path.state(), "FAST_SLOW_FAST");
    assert_eq!(path.unanswered(), [1.4, 7.7, 2.8, 5.6, 11.2]);
}

#[test]
fn one_exchange_without_a_retransmission_returns_to_fast_from_every_state() {
    for exchanges_with_loss in 1..=3 {
        let mut path = Path::new("fasor");
        path.answered_after(0.8);
        for seconds in [20.0, 20.0, 30.5].into_iter().take(exchanges_with_loss) {
            assert!(path.answered_after(seconds).len() > 1);
        }
        assert_eq!(path.answered_after(0.8).len(), 1);
        assert_eq!(path.state(), "FAST");
        // RTTVAR = 3/4 * 0.1: RTO 1.1.
        assert_eq!(path.next_timeout(), 1.3);
    }
}

#[test]
fn the_slow_timeout_is_dithered_when_it_is_armed() {
    let mut path = Path::new("fasor").drawing_highest();
    path.answered_after(0.8);
    path.answered_after(5.0);
    assert_eq!(path.unanswered(), [2.0, 8.3, 4.0, 8.0, 16.0]);
    assert_eq!(path.state(), "SLOW_FAST");
    assert_eq!(path.unanswered(), [8.3, 2.0, 4.0, 8.0, 16.0]);
}

#[test]
fn a_bound_holds_for_every_timeout_the_slow_one_too_and_is_dithered() {
    let bounded = "fasor:bound=60s";
    let mut path = Path::new(bounded);
    path.sample(8.0, 0);
    assert_eq!(path.unanswered(), [14.0, 28.0, 56.0, 54.0, 54.0]);
    let mut path = Path::new(bounded).drawing_highest();
    path.sample(8.0, 0);
    assert_eq!(path.unanswered(), [20.0, 40.0, 60.0, 60.0, 60.0]);
    let mut path = Path::new(bounded);
    path.answered_after(0.8);
    path.sample(50.0, 1);
    path.sample(50.0, 1);
    assert_eq!(path.next_timeout(), 54.0);
    // No bound unless one is set.
    let mut path = Path::new("fasor");
    path.sample(8.0, 0);
    assert_eq!(path.unanswered(), [14.0, 28.0, 56.0, 112.0, 224.0]);
}

#[test]
fn no_bound_cuts_a_timeout_below_the_measured_round_trip_or_the_first_timeout() {
    let mut path = Path::new("fasor-token:bound=60s");
    path.sample(80.0, 0);
    // 1.5 x 80 s + 80 s / 4, and twice that is cut to ten ninths of it, of which the lowest draw is it.
    assert_eq!(path.unanswered(), [140.0, 140.0, 140.0, 140.0, 140.0]);
    for name in ["fasor", "peak-hopper", "slow", "cocoa", "linux-rto", "rcoap", "cocoa-plus"] {
        let mut path = Path::new(&format!("{name}:initial-rto=300"));
        assert!(path.unanswered().iter().all(|timeout| *timeout >= 300.0), "{name}");
    }
}

#[test]
fn an_exchange_given_up_moves_the_state_and_measures_nothing() {
    for name in FAST_SLOW_FAST {
        let mut path = Path::new(name);
        path.answered_after(0.8);
        let series = path.unanswered();
        assert_eq!(path.state(), "FAST_SLOW_FAST", "{name}");
        assert_eq!(path.metrics().second, None, "{name}");
        // There is no slow RTO to use yet.
        assert_eq!(path.unanswered(), series, "{name}");
        assert_eq!(path.state(), "SLOW_FAST", "{name}");
    }
}

#[test]
fn fast_slow_backs_off_the_slow_value_after_one_fast_try() {
    let mut path = Path::new("fast-slow");
    path.answered_after(0.8);
    assert_eq!(path.answered_after(5.0), [2.6, 5.2]);
    assert_eq!(path.state(), "FAST_SLOW");
    assert_eq!(path.answered_after(12.0), [2.6, 7.7, 15.4]);
    assert_eq!(path.state(), "SLOW");
    // s = 18 + 0.2.
    assert_eq!(path.unanswered(), [18.2, 36.4, 72.8, 145.6, 291.2]);
    assert_eq!(path.answered_after(0.8).len(), 1);
    assert_eq!(path.state(), "FAST");
}

#[test]
fn slow_backs_off_the_slow_value_at_once() {
    let mut path = Path::new("slow");
    path.answered_after(0.8);
    assert_eq!(path.unanswered()[..3], [2.6, 5.2, 10.4]);
    assert_eq!(path.answered_after(5.0), [2.6, 5.2]);
    assert_eq!(path.state(), "SLOW");
    assert_eq!(path.answered_after(10.0), [7.7, 15.4]);
    assert_eq!(path.state(), "SLOW");
    assert_eq!(path.answered_after(0.8), [15.2]);
    assert_eq!(path.state(), "FAST");
}

#[test]
fn a_mark_makes_every_sample_unambiguous() {
    for name in ["fasor-token", "fasor-option"] {
        let mut path = Path::new(name);
        path.answered_after(0.8);
        // The original was lost; the retransmission at 1.4 s was answered at 2.2 s: 0.8 s again.
        assert_eq!(path.marked_answer_after(2.2, 1), [1.4, 2.8], "{name}");
        let metrics = path.metrics();
        assert_eq!(metrics.srtt.map(crate::common::float), Some(0.8), "{name}");
        assert_eq!(metrics.rttvar.map(crate::common::float), Some(0.075), "{name}");
        // The slow RTO is measured and the state moves as without marks.
        assert_eq!(metrics.second.map(crate::common::float), Some(3.3), "{name}");
        assert_eq!(metrics.state, "FAST_SLOW_FAST", "{name}");
        assert_eq!(path.unanswered(), [1.3, 3.5, 2.6, 5.2, 10.4], "{name}");
    }
}

#[test]
fn a_mark_that_names_the_original_tells_of_a_delay() {
    let mut path = Path::new("fasor-token");
    path.answered_after(0.8);
    path.marked_answer_after(4.0, 0);
    // RTTVAR = 0.075 + 0.8 = 0.875, SRTT = 0.7 + 0.5 = 1.2; 1.2 + 3.5 + 0.3.
    assert_eq!(path.metrics().rttvar.map(crate::common::float), Some(0.875));
    let mut path = path;
    path.answered_after(4.0);
    assert!(path.next_timeout() > 4.0, "at least the previous sample");
}

#[test]
fn controls_without_marks_do_not_use_them() {
    for name in ["fasor", "fasor-k4", "slow", "fast-slow"] {
        let mut path = Path::new(name);
        path.answered_after(0.8);
        path.marked_answer_after(3.5, 1);
        assert_eq!(path.metrics().srtt.map(crate::common::float), Some(0.8), "{name}");
    }
}

#[test]
fn an_answer_without_a_mark_feeds_a_marked_control_like_plain_fasor() {
    for name in ["fasor-token", "fasor-option"] {
        let (mut marked, mut plain) = (Path::new(name), Path::new("fasor"));
        for seconds in [0.8, 5.0, 3.0, 9.0, 0.5, 0.9, 4.0] {
            let series = marked.answered_after(seconds);
            assert_eq!(series, plain.answered_after(seconds), "{name}");
        }
    }
}
