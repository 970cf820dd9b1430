//! The CoCoA family: check values and timeouts written out by hand from cocoa-03, SOCNE14, WiMob17
//! and ANRW18 section 4.2.

use crate::common::path::Path;

const FAMILY: [&str; 5] = ["cocoa", "cocoa-plus", "cocoa-01", "cocoa-fb1", "cocoa-fb2"];

#[test]
fn without_a_sample_the_timeout_is_two_to_three_seconds() {
    for name in FAMILY {
        assert_eq!(Path::new(name).next_timeout(), 2.0, "{name}");
        assert_eq!(Path::new(name).drawing_highest().next_timeout(), 3.0, "{name}");
    }
}

#[test]
fn a_blind_exchange_starts_later_the_more_are_open_beside_it() {
    for name in ["cocoa", "cocoa-plus", "cocoa-fb1", "cocoa-fb2"] {
        let mut path = Path::new(name);
        let timeouts: Vec<f64> = (0..4).map(|_| path.open_and_leave()).collect();
        assert_eq!(timeouts, [2.0, 4.0, 6.0, 8.0], "{name}");
    }
    let mut path = Path::new("cocoa-01");
    let timeouts: Vec<f64> = (0..4).map(|_| path.open_and_leave()).collect();
    assert_eq!(timeouts, [2.0, 4.0, 8.0, 16.0]);
}

#[test]
fn with_a_sample_nothing_is_blind() {
    for name in FAMILY {
        let mut path = Path::new(name);
        path.answered_after(0.5);
        let first = path.open_and_leave();
        assert_eq!(path.open_and_leave(), first, "{name}");
    }
}

#[test]
fn strong_samples_move_the_overall_rto_halfway() {
    for name in ["cocoa", "cocoa-plus", "cocoa-fb1", "cocoa-fb2"] {
        let mut path = Path::new(name);
        path.answered_after(0.5);
        // E = 0.5 + 4 * 0.25 = 1.5; (1.5 + 2) / 2.
        assert_eq!(path.next_timeout(), 1.75, "{name}");
        path.answered_after(0.5);
        // RTTVAR = 3/4 * 0.25 = 0.1875, E = 0.5 + 0.75 = 1.25; (1.25 + 1.75) / 2.
        assert_eq!(path.next_timeout(), 1.5, "{name}");
    }
}

#[test]
fn weak_samples_move_the_overall_rto_a_quarter_of_the_way() {
    for name in ["cocoa", "cocoa-plus", "cocoa-01"] {
        // An overall RTO of 1.5 s.
        let mut path = Path::new(&format!("{name}:initial-rto=1.5s"));
        path.sample(2.0, 1);
        // SRTT 2, RTTVAR 1, K = 1: E = 3.
        assert_eq!(path.next_timeout(), 1.875, "{name}");
    }
    let mut path = Path::new("cocoa:initial-rto=1.5s");
    path.sample(2.0, 1);
    // The sample that leaves E at 3 s: SRTT = 2 + d/8, RTTVAR = 3/4 + d/4 for d = 2/3.
    path.sample(2.666_667, 2);
    assert!((path.next_timeout() - 2.156_25).abs() < 2e-6, "{}", path.next_timeout());
}

#[test]
fn a_weak_sample_is_measured_from_the_original_transmission() {
    let mut path = Path::new("cocoa");
    assert_eq!(path.answered_after(5.0), [2.0, 4.0]);
    // E = 5 + 2.5; 0.25 * 7.5 + 0.75 * 2.
    assert_eq!(path.next_timeout(), 3.375);
}

#[test]
fn three_retransmissions_give_no_sample_and_in_cocoa_01_two() {
    let mut path = Path::new("cocoa");
    path.sample(9.0, 3);
    assert_eq!(path.next_timeout(), 2.0);
    path.sample(9.0, 2);
    assert!(path.next_timeout() > 2.0);
    let mut path = Path::new("cocoa-01");
    path.sample(9.0, 2);
    assert_eq!(path.next_timeout(), 2.0);
    path.sample(9.0, 1);
    assert!(path.next_timeout() > 2.0);
}

#[test]
fn strong_and_weak_estimators_are_apart() {
    let mut path = Path::new("cocoa");
    path.sample(8.0, 1);
    // E_weak = 12; 3 + 1.5.
    assert_eq!(path.next_timeout(), 4.5);
    path.sample(1.0, 0);
    // E_strong = 3, from this sample alone; 1.5 + 2.25.
    assert_eq!(path.next_timeout(), 3.75);
}

#[test]
fn cocoa_chooses_the_backoff_factor_anew_at_every_expiry() {
    // From 0.3 s: times 3 below 1 s, times 2 between, times 1.5 above 3 s.
    let mut path = Path::new("cocoa:initial-rto=300ms");
    path.sample(0.1, 0);
    assert_eq!(path.unanswered(), [0.3, 0.9, 2.7, 5.4, 8.1]);
    assert_eq!(Path::new("cocoa").unanswered(), [2.0, 4.0, 6.0, 9.0, 13.5]);
}

#[test]
fn one_and_three_seconds_themselves_double() {
    assert_eq!(Path::new("cocoa:initial-rto=1s").unanswered()[..2], [1.0, 2.0]);
    assert_eq!(Path::new("cocoa:initial-rto=3s").unanswered()[..2], [3.0, 6.0]);
    assert_eq!(Path::new("cocoa-plus:initial-rto=1s").unanswered()[..2], [1.0, 2.0]);
    assert_eq!(Path::new("cocoa-plus:initial-rto=3s").unanswered()[..2], [3.0, 6.0]);
}

#[test]
fn cocoa_plus_and_cocoa_01_choose_the_factor_once_by_the_initial_timeout() {
    for name in ["cocoa-plus", "cocoa-01"] {
        let mut path = Path::new(&format!("{name}:initial-rto=300ms"));
        path.sample(0.1, 0);
        assert_eq!(path.unanswered(), [0.3, 0.9, 2.7, 8.1, 24.3], "{name}");
        assert_eq!(Path::new(name).unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0], "{name}");
        let mut path = Path::new(&format!("{name}:initial-rto=4s"));
        assert_eq!(path.unanswered(), [4.0, 5.2, 6.76, 8.788, 11.4244], "{name}");
        // The dithered timeout counts, not the RTO: 0.8 s drawn as 1.2 s doubles.
        let mut path = Path::new(&format!("{name}:initial-rto=800ms")).drawing_highest();
        assert_eq!(path.unanswered()[..3], [1.2, 2.4, 4.8], "{name}");
    }
}

#[test]
fn backoff_is_truncated_at_32_seconds_and_in_the_older_ones_at_60() {
    let mut path = Path::new("cocoa").retransmitting(7);
    let series = [2.0, 4.0, 6.0, 9.0, 13.5, 20.25, 30.375, 28.8];
    assert_eq!(path.unanswered(), series);
    let mut path = Path::new("cocoa-plus").retransmitting(6);
    assert_eq!(path.unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0, 54.0, 54.0]);
    let mut path = Path::new("cocoa-01").retransmitting(6);
    assert_eq!(path.unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0, 54.0, 54.0]);
}

#[test]
fn the_truncation_bounds_the_backoff_never_the_estimate() {
    let mut path = Path::new("cocoa");
    path.sample(26.0, 0);
    // E = 78; (78 + 2) / 2.
    assert_eq!(path.unanswered(), [40.0, 40.0, 40.0, 40.0, 40.0]);
    let mut path = Path::new("cocoa-plus");
    path.sample(46.0, 0);
    assert_eq!(path.unanswered()[..2], [70.0, 70.0]);
}

#[test]
fn a_large_estimate_ages_after_four_times_itself() {
    for name in ["cocoa", "cocoa-plus", "cocoa-fb1", "cocoa-fb2"] {
        let mut path = Path::new(name);
        path.sample(2.0, 0);
        assert_eq!(path.next_timeout(), 4.0, "{name}");
        path.idle(15.9);
        assert_eq!(path.next_timeout(), 4.0, "{name}");
        path.idle(0.1);
        assert_eq!(path.next_timeout(), 3.0, "{name}");
        // 3 s is not above 3 s.
        path.idle(1000.0);
        assert_eq!(path.next_timeout(), 3.0, "{name}");
    }
}

#[test]
fn a_small_estimate_doubles_after_sixteen_times_itself() {
    for name in ["cocoa", "cocoa-plus", "cocoa-01"] {
        let mut path = Path::new(&format!("{name}:initial-rto=300ms"));
        path.sample(0.1, 0);
        assert_eq!(path.next_timeout(), 0.3, "{name}");
        path.idle(4.7);
        assert_eq!(path.next_timeout(), 0.3, "{name}");
        path.idle(0.1);
        assert_eq!(path.next_timeout(), 0.6, "{name}");
        // Each application restarts the clock: 16 * 0.6 more.
        path.idle(9.5);
        assert_eq!(path.next_timeout(), 0.6, "{name}");
        path.idle(0.1);
        assert_eq!(path.next_timeout(), 1.2, "{name}");
    }
}

#[test]
fn several_ageings_apply_in_a_row() {
    let mut path = Path::new("cocoa");
    path.sample(4.0, 0);
    assert_eq!(path.next_timeout(), 7.0);
    // 28 s to 4.5 s, 18 s more to 3.25 s, 13 s more to 2.625 s.
    path.idle(28.0 + 18.0 + 12.9);
    assert_eq!(path.next_timeout(), 3.25);
    path.idle(0.1);
    assert_eq!(path.next_timeout(), 2.625);
    let mut path = Path::new("cocoa:initial-rto=300ms");
    path.sample(0.1, 0);
    path.idle(4.8 + 9.6);
    assert_eq!(path.next_timeout(), 1.2);
}

#[test]
fn a_sample_restarts_the_idle_clock() {
    let mut path = Path::new("cocoa:initial-rto=300ms");
    path.sample(0.1, 0);
    path.idle(4.7);
    path.sample(0.1, 0);
    let timeout = path.next_timeout();
    path.idle(4.0);
    assert_eq!(path.next_timeout(), timeout);
}

#[test]
fn an_aged_estimate_is_what_the_next_sample_moves() {
    let mut path = Path::new("cocoa");
    path.sample(2.0, 0);
    path.idle(16.0);
    path.sample(2.0, 0);
    // RTTVAR = 0.75, E = 5; (5 + 3) / 2, not (5 + 4) / 2.
    assert_eq!(path.next_timeout(), 4.0);
}

#[test]
fn ageing_can_be_turned_off() {
    for name in FAMILY {
        let mut path = Path::new(&format!("{name}:ageing=off"));
        path.sample(2.0, 0);
        path.idle(1000.0);
        assert_eq!(path.next_timeout(), 4.0, "{name}");
        let mut path = Path::new(&format!("{name}:ageing=off:initial-rto=300ms"));
        path.sample(0.1, 0);
        path.idle(1000.0);
        assert_eq!(path.next_timeout(), 0.3, "{name}");
    }
}

#[test]
fn estimates_between_one_and_three_seconds_do_not_age() {
    let mut path = Path::new("cocoa");
    path.answered_after(0.5);
    path.idle(4000.0);
    assert_eq!(path.next_timeout(), 1.75);
}

#[test]
fn cocoa_01_has_its_own_gains() {
    let mut path = Path::new("cocoa-01");
    path.answered_after(0.8);
    assert_eq!(path.next_timeout(), 2.2);
    path.answered_after(1.6);
    // RTTVAR = 7/8 * 0.4 + 1/8 * 0.8 = 0.45; SRTT = 3/4 * 0.8 + 1/4 * 1.6 = 1; E = 2.8.
    assert_eq!(path.next_timeout(), 2.5);
}

#[test]
fn cocoa_01_lets_large_estimates_age_after_a_minute() {
    let mut path = Path::new("cocoa-01");
    path.answered_after(0.8);
    path.answered_after(1.6);
    assert_eq!(path.next_timeout(), 2.5);
    path.idle(59.9);
    assert_eq!(path.next_timeout(), 2.5);
    path.idle(0.1);
    // SRTT = (2 + 1) / 2, RTTVAR = 0.225: E = 2.4, so the RTO is half of the way to 2 s.
    assert_eq!(path.next_timeout(), 2.25);
    path.answered_after(1.5);
    // Of the decayed estimator: RTTVAR = 7/8 * 0.225 = 0.196875, SRTT 1.5, E = 2.2875.
    assert_eq!(path.next_timeout(), 2.26875);
    path.idle(120.0);
    assert!((path.next_timeout() - (2.0 + 0.26875 / 4.0)).abs() < 2e-6);
}

#[test]
fn cocoa_01_can_multiply_small_estimates_by_sixteen_as_its_paper_prints() {
    let mut path = Path::new("cocoa-01:initial-rto=300ms:small-ageing-factor=16");
    path.sample(0.1, 0);
    path.idle(4.8);
    assert_eq!(path.next_timeout(), 4.8);
}

#[test]
fn cocoa_01_can_smooth_over_its_last_values() {
    let mut path = Path::new("cocoa-01:history=2");
    path.answered_after(0.8);
    // The first value has nothing before it.
    assert_eq!(path.next_timeout(), 2.2);
    path.answered_after(1.6);
    assert_eq!(path.next_timeout(), 2.35);
    let mut path = Path::new("cocoa-01:history=1");
    path.answered_after(0.8);
    path.answered_after(1.6);
    assert_eq!(path.next_timeout(), 2.5);
}

#[test]
fn fb1_begins_with_the_backed_off_timeout_until_an_exchange_needs_no_retransmission() {
    let mut path = Path::new("cocoa-fb1");
    assert_eq!(path.answered_after(5.0), [2.0, 4.0]);
    let mut path = path.drawing_highest();
    // Not dithered again; 4 s backs off by 1.5.
    assert_eq!(path.answered_after(5.0), [4.0, 6.0]);
    assert_eq!(path.answered_after(1.0), [6.0]);
    // Back to CoCoA's own: the RTO that three samples made.
    let mut path = path.drawing_lowest();
    let rto = crate::common::float(path.metrics().rto.expect("samples"));
    assert_eq!(path.next_timeout(), rto);
}

#[test]
fn fb1_keeps_the_timeout_of_an_exchange_that_was_given_up() {
    let mut path = Path::new("cocoa-fb1");
    assert_eq!(path.unanswered(), [2.0, 4.0, 6.0, 9.0, 13.5]);
    assert_eq!(path.unanswered(), [13.5, 20.25, 30.375, 28.8, 28.8]);
    assert_eq!(path.answered_after(1.0), [28.8]);
}

#[test]
fn fb2_backs_off_once_more_what_was_in_force() {
    let mut path = Path::new("cocoa-fb2");
    // In force 4 s, the new RTO 0.25 * 7.5 + 0.75 * 2 = 3.375: 4 * 1.5.
    assert_eq!(path.answered_after(5.0), [2.0, 4.0]);
    assert_eq!(path.next_timeout(), 6.0);
}

#[test]
fn fb2_backs_off_once_more_the_new_rto_if_that_is_larger() {
    let mut path = Path::new("cocoa-fb2");
    path.sample(30.0, 1);
    // In force 4 s, the new RTO 0.25 * 45 + 0.75 * 2 = 12.75: 12.75 * 1.5.
    assert_eq!(path.next_timeout(), 19.125);
}

#[test]
fn fb2_without_a_new_rto_backs_off_what_was_in_force() {
    let mut path = Path::new("cocoa-fb2");
    assert_eq!(path.answered_after(15.0), [2.0, 4.0, 6.0, 9.0]);
    assert_eq!(path.next_timeout(), 13.5);
    let mut path = Path::new("cocoa-fb2");
    assert_eq!(path.unanswered(), [2.0, 4.0, 6.0, 9.0, 13.5]);
    assert_eq!(path.answered_after(1.0), [20.25]);
    // r = 0: CoCoA's own again, (3 + 2) / 2.
    assert_eq!(path.next_timeout(), 2.5);
}

#[test]
fn fb2_takes_its_base_from_this_exchange_and_no_earlier_one() {
    // An exchange that opened before another one kept 20.25 s is given up at 13.5 s.
    let mut path = Path::new("cocoa-fb2");
    path.unanswered();
    assert_eq!(path.next_timeout(), 20.25);
    path.close_overlapping(13.5);
    assert_eq!(path.next_timeout(), 20.25);
    path.close_overlapping(4.0);
    assert_eq!(path.next_timeout(), 6.0);
}
