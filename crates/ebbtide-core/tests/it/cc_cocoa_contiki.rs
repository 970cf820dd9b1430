//! `cocoa-plus:code=contiki`: where the code of CoCoA's authors for Contiki differs from WiMob17's text.

use crate::common::path::Path;
use ebbtide_core::cc::ControlConfig;

fn path(initial: &str) -> Path {
    Path::new(&format!("cocoa-plus:code=contiki:initial-rto={initial}"))
}

#[test]
fn timeouts_are_dithered_before_the_first_sample_only() {
    let mut path = path("2s").drawing_highest();
    assert_eq!(path.next_timeout(), 3.0);
    path.sample(0.5, 0);
    // E = 0.5 + 4 * 0.25 = 1.5; (1.5 + 2) / 2, as drawn as any.
    assert_eq!(path.next_timeout(), 1.75);
}

#[test]
fn a_small_estimate_that_is_idle_becomes_one_second() {
    let mut path = path("300ms");
    path.sample(0.1, 0);
    assert_eq!(path.next_timeout(), 0.3);
    path.idle(4.7);
    assert_eq!(path.next_timeout(), 0.3);
    path.idle(0.1);
    assert_eq!(path.next_timeout(), 1.0);
    path.idle(1000.0);
    assert_eq!(path.next_timeout(), 1.0);
}

#[test]
fn a_weak_sample_weighs_three_quarters_after_any_number_of_retransmissions() {
    for retransmissions in [1, 2, 3, 4] {
        let mut path = path("1.5s");
        path.sample(2.0, retransmissions);
        // SRTT 2, RTTVAR 1, K = 1: E = 3; 3/4 * 3 + 1/4 * 1.5.
        assert_eq!(path.next_timeout(), 2.625, "{retransmissions}");
    }
}

#[test]
fn backoff_factors_are_two_and_a_half_two_and_one_and_a_half() {
    let mut small = path("300ms");
    small.sample(0.1, 0);
    assert_eq!(small.unanswered()[..3], [0.3, 0.75, 1.875]);
    assert_eq!(path("2s").unanswered()[..3], [2.0, 4.0, 8.0]);
    assert_eq!(path("4s").unanswered()[..3], [4.0, 6.0, 9.0]);
}

#[test]
fn more_than_three_retransmissions_without_a_strong_sample_start_the_strong_estimator_again() {
    let after = |weak: u8| {
        let mut path = path("1s");
        path.sample(1.0, 0);
        for _ in 0..weak {
            path.sample(1.0, 2);
        }
        let before = path.next_timeout();
        path.sample(0.1, 0);
        // The strong estimate that has been averaged with what was there.
        2.0 * path.next_timeout() - before
    };
    // SRTT = 7/8 + 0.1/8, RTTVAR = 3/4 * 0.5 + 0.9/4: E = 0.8875 + 2.4.
    assert!((after(1) - 3.2875).abs() < 1e-4, "{}", after(1));
    // Anew: 0.1 + 4 * 0.05.
    assert!((after(2) - 0.3).abs() < 1e-4, "{}", after(2));
}

#[test]
fn a_blind_exchange_doubles_for_each_that_is_open_beside_it_up_to_32_seconds() {
    let mut path = path("2s");
    let timeouts: Vec<f64> = (0..6).map(|_| path.open_and_leave()).collect();
    assert_eq!(timeouts, [2.0, 4.0, 8.0, 16.0, 32.0, 32.0]);
}

#[test]
fn the_setting_belongs_to_cocoa_plus_and_is_printed_as_it_is_read() {
    let text = "cocoa-plus:code=contiki";
    assert_eq!(ControlConfig::parse(text).unwrap().to_string(), text);
    let plain = ControlConfig::parse("cocoa-plus:code=paper").unwrap();
    assert_eq!(plain, ControlConfig::parse("cocoa-plus").unwrap());
    let message = ControlConfig::parse("cocoa-plus:code=linux").unwrap_err().to_string();
    assert!(message.contains("code") && message.contains("paper or contiki"), "{message}");
    let message = ControlConfig::parse("cocoa:code=contiki").unwrap_err().to_string();
    assert!(message.contains("code") && message.contains("cocoa"), "{message}");
}
