//! `ecoap` and `ecoap-rpl`: timeouts that are drawn anew.

use crate::common::path::Path;

#[test]
fn before_a_sample_ecoap_waits_as_rfc_7252() {
    assert_eq!(Path::new("ecoap").unanswered(), [2.0, 4.0, 8.0, 16.0, 32.0]);
    assert_eq!(Path::new("ecoap").drawing_highest().next_timeout(), 3.0);
}

#[test]
fn each_try_of_ecoap_waits_between_once_and_twice_its_number_of_round_trips() {
    let mut path = Path::new("ecoap");
    path.sample(1.5, 0);
    assert_eq!(path.unanswered(), [1.5, 3.0, 4.5, 6.0, 7.5]);
    assert_eq!(path.drawing_highest().unanswered(), [3.0, 6.0, 9.0, 12.0, 15.0]);
}

#[test]
fn an_exchange_without_an_answer_teaches_ecoap_nothing() {
    let mut path = Path::new("ecoap");
    path.sample(1.5, 1);
    path.unanswered();
    assert_eq!(path.next_timeout(), 1.5);
}

#[test]
fn ecoap_rpl_draws_from_a_range_that_grows_with_each_try() {
    let series = |text: &str| Path::new(text).unanswered();
    assert_eq!(series("ecoap-rpl"), [2.0, 3.0, 4.5, 6.75, 10.125]);
    assert_eq!(
        Path::new("ecoap-rpl").drawing_highest().unanswered(),
        [3.0, 4.5, 6.75, 10.125, 15.1875]
    );
    let mut path = Path::new("ecoap-rpl:min=1s:max=4s:growth=200").drawing_highest();
    assert_eq!(path.unanswered()[..3], [4.0, 8.0, 16.0]);
    path.sample(0.1, 0);
    assert_eq!(path.next_timeout(), 4.0);
}

#[test]
fn a_maximum_below_the_minimum_leaves_the_minimum() {
    let mut path = Path::new("ecoap-rpl:min=5s:max=2s").drawing_highest();
    assert_eq!(path.next_timeout(), 5.0);
}
