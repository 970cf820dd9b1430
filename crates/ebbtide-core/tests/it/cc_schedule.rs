//! Schedules of timeouts, as the programs have them: the waits after the original and after each of four copies. The
//! shell's patience, which stretches an endpoint's last three waits, has its own tests.

use crate::common::path::Path;

fn series(control: &str) -> [Vec<f64>; 2] {
    [Path::new(control), Path::new(control).drawing_highest()].map(|mut path| path.unanswered())
}

#[test]
fn go_coap_repeats_at_a_constant_interval_and_draws_nothing() {
    // Release 3.5.0: a copy leaves once start + T * (copies + 1) has passed.
    for waits in series("go-coap") {
        assert_eq!(waits, [2.0; 5]);
    }
    let mut path = Path::new("go-coap:ack-timeout=500ms");
    assert_eq!(path.unanswered(), [0.5; 5]);
}

#[test]
fn wakaama_doubles_two_seconds_and_draws_nothing() {
    // transaction.c: T, then T << (copies - 1) after each copy.
    for waits in series("wakaama") {
        assert_eq!(waits, [2.0, 4.0, 8.0, 16.0, 32.0]);
    }
}

#[test]
fn each_wait_of_gcoap_is_drawn_from_its_own_range() {
    // gcoap.c: random between T << n and (T * 1.5) << n for each n.
    let [lowest, highest] = series("gcoap");
    assert_eq!(lowest, [2.0, 4.0, 8.0, 16.0, 32.0]);
    assert_eq!(highest, [3.0, 6.0, 12.0, 24.0, 48.0]);
    // With the least first draw, the second wait is still drawn.
    let mut path = Path::new("gcoap");
    assert_eq!(path.next_timeout(), 2.0);
    assert_eq!(path.drawing_highest().next_timeout(), 3.0);
}

#[test]
fn nyoci_sends_three_copies_at_once_and_then_waits() {
    // calc_retransmit_timeout: tries 0 and 1 of each three wait 20 to 50 ms, the third 1.5 s << (try / 3).
    let [lowest, highest] = series("nyoci");
    assert_eq!(lowest[..4], [0.02, 0.02, 1.5, 0.02]);
    assert_eq!(highest[..4], [0.05, 0.05, 2.25, 0.05]);
    let tries = Path::new("nyoci").retransmitting(14).unanswered();
    assert_eq!(tries[..9], [0.02, 0.02, 1.5, 0.02, 0.02, 3.0, 0.02, 0.02, 6.0]);
    // COAP_MAX_ACK_RETRANSMIT_DURATION is 14 s; the fourth wait of 12 s is below it.
    assert_eq!(tries[11], 12.0);
    assert!(tries[14] <= 14.0);
}

#[test]
fn coco_red_multiplies_its_first_wait_by_fibonacci_numbers() {
    // er-coap-transactions.c: start_rto, then start_rto times 1, 2, 3, 5.
    let [lowest, highest] = series("coco-red");
    assert_eq!(lowest[..4], [2.0, 2.0, 4.0, 6.0]);
    assert_eq!(highest[..4], [3.0, 3.0, 6.0, 9.0]);
    assert_eq!(Path::new("coco-red").retransmitting(8).unanswered()[..8], {
        [2.0, 2.0, 4.0, 6.0, 10.0, 16.0, 26.0, 42.0]
    });
}

#[test]
fn encoco_red_holds_its_third_interval() {
    // The same program: after three copies the interval becomes (interval << 1) / 2.
    let tries = Path::new("encoco-red").retransmitting(6).unanswered();
    assert_eq!(tries[..6], [2.0, 2.0, 4.0, 6.0, 6.0, 6.0]);
}

#[test]
fn a_schedule_learns_nothing_from_answers() {
    for control in ["go-coap", "wakaama", "gcoap", "coco-red", "encoco-red"] {
        let mut path = Path::new(control);
        path.sample(9.0, 0);
        path.unanswered();
        assert_eq!(path.next_timeout(), 2.0, "{control}");
    }
}
