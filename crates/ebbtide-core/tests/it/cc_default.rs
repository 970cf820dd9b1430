//! `default`, `default-b`, and Full Backoff on `default`: timeouts written out by hand from RFC
//! 7252 section 4.2, SOCNE14 and ANRW18 section 4.2.

use crate::common::path::Path;

#[test]
fn default_draws_between_ack_timeout_and_one_and_a_half_and_doubles() {
    assert_eq!(Path::new("default").unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0]);
    let mut path = Path::new("default").drawing_highest();
    let series = path.unanswered();
    assert_eq!(series, [3.0, 6.0, 12.0, 24.0, 48.0]);
    // MAX_TRANSMIT_WAIT (RFC 7252 section 4.8.2).
    assert_eq!(series.iter().sum::<f64>(), 93.0);
}

#[test]
fn default_remembers_nothing() {
    let mut path = Path::new("default");
    assert_eq!(path.answered_after(5.0), [2.0, 4.0]);
    assert_eq!(path.answered_after(0.1), [2.0]);
    path.unanswered();
    assert_eq!(path.answered_after(1.0), [2.0]);
}

#[test]
fn default_has_no_bound_unless_one_is_set() {
    let mut path = Path::new("default").retransmitting(7);
    assert_eq!(path.unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]);
    let mut path = Path::new("default:bound=60s").retransmitting(7);
    assert_eq!(path.unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0, 54.0, 54.0, 54.0]);
}

#[test]
fn default_b_begins_at_one_second() {
    assert_eq!(Path::new("default-b").unanswered(), [1.0, 2.0, 4.0, 8.0, 16.0]);
    let mut path = Path::new("default-b").drawing_highest();
    assert_eq!(path.unanswered(), [1.5, 3.0, 6.0, 12.0, 24.0]);
}

#[test]
fn fb1_begins_the_next_exchange_with_the_last_armed_timeout_without_a_new_dither() {
    let mut path = Path::new("default-fb1");
    // Lost, lost, answered: 8 s was armed when the answer came.
    assert_eq!(path.answered_after(10.0), [2.0, 4.0, 8.0]);
    let mut path = path.drawing_highest();
    assert_eq!(path.answered_after(10.0), [8.0, 16.0]);
    assert_eq!(path.answered_after(1.0), [16.0]);
}

#[test]
fn fb1_returns_to_the_random_timeout_after_one_exchange_without_a_retransmission() {
    let mut path = Path::new("default-fb1");
    path.unanswered();
    assert_eq!(path.answered_after(1.0), [32.0]);
    assert_eq!(path.answered_after(1.0), [2.0]);
}

#[test]
fn fb2_returns_by_halves_until_the_initial_range() {
    let mut path = Path::new("default-fb2");
    assert_eq!(path.unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0]);
    let mut path = path.drawing_highest();
    assert_eq!(path.answered_after(1.0), [32.0]);
    assert_eq!(path.answered_after(1.0), [16.0]);
    assert_eq!(path.answered_after(1.0), [8.0]);
    assert_eq!(path.answered_after(1.0), [4.0]);
    // Half of 4 s lies in [2, 3]: a fresh draw.
    assert_eq!(path.answered_after(1.0), [3.0]);
}

#[test]
fn fb2_doubles_on_from_what_it_kept() {
    let mut path = Path::new("default-fb2");
    assert_eq!(path.answered_after(5.0), [2.0, 4.0]);
    assert_eq!(path.answered_after(20.0), [4.0, 8.0, 16.0]);
    assert_eq!(path.answered_after(1.0), [16.0]);
    assert_eq!(path.answered_after(10.0), [8.0, 16.0]);
    assert_eq!(path.answered_after(1.0), [16.0]);
}

#[test]
fn a_kept_timeout_respects_a_bound() {
    let mut path = Path::new("default-fb1:bound=60s");
    path.unanswered();
    assert_eq!(path.unanswered(), [32.0, 54.0, 54.0, 54.0, 54.0]);
    assert_eq!(path.answered_after(1.0), [54.0]);
}
