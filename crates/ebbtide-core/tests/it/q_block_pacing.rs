//! Which block leaves when, and what is said about those that do not arrive: RFC 9177 section 7.2
//! and the examples of its section 10.1, step by step.

use crate::common::{Constant, at};
use ebbtide_core::q_block::{BlockArrival, QBlockParameters, Receiver, Receiving, Sender, Sending};

const PARAMS: QBlockParameters = QBlockParameters::DEFAULT;

/// The shortest NON_TIMEOUT_RANDOM, 2 s.
fn upload(blocks: u32) -> Sender {
    Sender::upload(blocks, true, PARAMS, &mut *Constant::lowest())
}

/// What leaves at this second, and when the sender wants to be asked again.
fn burst(sender: &mut Sender, seconds: f64) -> (Vec<u32>, Sending) {
    let mut left = Vec::new();
    loop {
        match sender.poll(at(seconds)) {
            Sending::Block(num) => left.push(num),
            other => return (left, other),
        }
    }
}

fn wait(seconds: f64) -> Sending {
    Sending::Wait(Some(at(seconds)))
}

/// Gives it these blocks; what it wants then.
fn take(receiver: &mut Receiver, seconds: f64, blocks: impl IntoIterator<Item = u32>) -> Receiving {
    for num in blocks {
        assert_eq!(receiver.on_block(at(seconds), num), BlockArrival::New, "block {num}");
    }
    receiver.poll(at(seconds))
}

fn missing(receiver: &Receiver) -> Vec<u32> {
    receiver.missing().collect()
}

#[test]
fn a_set_leaves_at_once_and_the_next_one_after_non_timeout_random() {
    let mut sender = upload(25);
    assert_eq!(burst(&mut sender, 0.0), ((0..10).collect(), wait(2.0)));
    assert_eq!(burst(&mut sender, 1.9), (vec![], wait(2.0)));
    assert_eq!(burst(&mut sender, 2.0), ((10..20).collect(), wait(4.0)));
    let mut slow = Sender::upload(25, true, PARAMS, &mut *Constant::highest());
    assert_eq!(burst(&mut slow, 0.0).1, wait(3.0));
}

#[test]
fn continue_lets_the_next_set_go_at_once_but_only_one_set() {
    let mut sender = upload(40);
    burst(&mut sender, 0.0);
    sender.on_continue(10);
    sender.on_continue(10);
    assert_eq!(burst(&mut sender, 0.1), ((10..20).collect(), wait(2.1)));
    // Of a set that was confirmed before, and of one that never left.
    sender.on_continue(10);
    sender.on_continue(30);
    assert_eq!(burst(&mut sender, 0.2), (vec![], wait(2.1)));
}

#[test]
fn missing_blocks_leave_before_the_rest_and_another_delay_follows() {
    let mut sender = upload(25);
    burst(&mut sender, 0.0);
    sender.on_missing([1, 9]);
    assert_eq!(burst(&mut sender, 0.5), (vec![1, 9], wait(2.5)));
    // Figure 6: blocks that are requested while a set leaves go before its remainder.
    assert_eq!(sender.poll(at(2.5)), Sending::Block(10));
    sender.on_missing([3]);
    assert_eq!(burst(&mut sender, 2.5).0, [vec![3], (11..20).collect()].concat());
}

#[test]
fn no_more_than_a_set_is_repeated_within_a_delay_however_often_it_is_asked_for() {
    let mut sender = upload(15);
    burst(&mut sender, 0.0);
    burst(&mut sender, 2.0);
    sender.on_missing(0..15);
    assert_eq!(burst(&mut sender, 2.1), ((0..10).collect(), wait(6.1)));
    sender.on_missing(0..15);
    assert_eq!(burst(&mut sender, 2.2), (vec![], wait(4.1)));
    assert_eq!(burst(&mut sender, 4.1).0, (0..10).collect::<Vec<_>>());
}

#[test]
fn a_block_that_never_left_is_not_missing() {
    let mut sender = upload(25);
    burst(&mut sender, 0.0);
    sender.on_missing([10, 11, 24, 1_000]);
    assert_eq!(burst(&mut sender, 0.1), (vec![], wait(2.0)));
}

#[test]
fn without_an_answer_the_last_block_is_repeated_four_times_and_then_it_is_over() {
    let mut sender = upload(3);
    assert_eq!(burst(&mut sender, 0.0), (vec![0, 1, 2], wait(4.0)));
    for (now, next) in [(4.0, 12.0), (12.0, 28.0), (28.0, 60.0), (60.0, 124.0)] {
        assert_eq!(burst(&mut sender, now), (vec![2], wait(next)));
    }
    assert_eq!(burst(&mut sender, 124.0), (vec![], Sending::GiveUp));
}

#[test]
fn a_request_that_must_not_be_processed_twice_is_not_repeated() {
    let mut sender = Sender::upload(3, false, PARAMS, &mut *Constant::lowest());
    assert_eq!(burst(&mut sender, 0.0), (vec![0, 1, 2], wait(4.0)));
    assert_eq!(burst(&mut sender, 4.0), (vec![], wait(12.0)));
}

#[test]
fn a_response_waits_for_nothing_once_all_of_it_has_left() {
    let mut sender = Sender::download(3, PARAMS, &mut *Constant::lowest());
    assert_eq!(burst(&mut sender, 0.0), (vec![0, 1, 2], Sending::Wait(None)));
    sender.on_missing([1]);
    assert_eq!(burst(&mut sender, 1.0), (vec![1], Sending::Wait(None)));
}

#[test]
fn a_complete_set_is_confirmed_and_a_duplicate_of_it_once_more() {
    let mut receiver = Receiver::new(at(0.0), 25, PARAMS);
    assert_eq!(take(&mut receiver, 0.0, 0..9), Receiving::Wait(at(4.0)));
    assert_eq!(take(&mut receiver, 1.0, [9]), Receiving::Continue(10));
    assert_eq!(receiver.poll(at(1.0)), Receiving::Wait(at(5.0)));
    assert_eq!(receiver.on_block(at(1.5), 9), BlockArrival::Duplicate);
    assert_eq!(receiver.poll(at(1.5)), Receiving::Continue(10));
    assert_eq!(receiver.on_block(at(1.5), 25), BlockArrival::Outside);
}

#[test]
fn blocks_may_arrive_in_any_order() {
    let mut receiver = Receiver::new(at(0.0), 12, PARAMS);
    assert_eq!(take(&mut receiver, 0.0, (0..10).rev()), Receiving::Continue(10));
    assert_eq!(take(&mut receiver, 0.0, [11, 10]), Receiving::Complete);
}

/// Figures 5 and 6.
#[test]
fn the_first_block_of_the_next_set_makes_it_ask_for_what_is_missing_before() {
    let mut receiver = Receiver::new(at(0.0), 13, PARAMS);
    take(&mut receiver, 0.0, [0, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(take(&mut receiver, 2.5, [11]), Receiving::Missing);
    assert_eq!(missing(&receiver), [1, 9]);
    // Only one time by this.
    assert_eq!(receiver.poll(at(2.5)), Receiving::Wait(at(10.5)));
    assert_eq!(take(&mut receiver, 2.7, [1, 9, 12]), Receiving::Wait(at(6.7)));
    assert_eq!(receiver.poll(at(6.7)), Receiving::Missing);
    assert_eq!(missing(&receiver), [10]);
    assert_eq!(take(&mut receiver, 7.0, [10]), Receiving::Complete);
}

/// Figure 7.
#[test]
fn missing_blocks_are_asked_for_four_times_after_doubling_times() {
    let mut receiver = Receiver::new(at(0.0), 3, PARAMS);
    assert_eq!(take(&mut receiver, 0.0, [0, 2]), Receiving::Wait(at(4.0)));
    for (now, next) in [(4.0, 12.0), (12.0, 28.0), (28.0, 60.0), (60.0, 124.0)] {
        assert_eq!(receiver.poll(at(now)), Receiving::Missing);
        assert_eq!(missing(&receiver), [1]);
        assert_eq!(receiver.poll(at(now)), Receiving::Wait(at(next)));
    }
    assert_eq!(receiver.poll(at(124.0)), Receiving::GiveUp);
}

#[test]
fn a_set_that_never_began_is_asked_for_after_the_one_that_was_confirmed() {
    let mut receiver = Receiver::new(at(0.0), 25, PARAMS);
    assert_eq!(take(&mut receiver, 0.0, 0..10), Receiving::Continue(10));
    assert_eq!(receiver.poll(at(4.0)), Receiving::Missing);
    assert_eq!(missing(&receiver), (10..20).collect::<Vec<_>>());
}

#[test]
fn unanswered_requests_are_subject_to_probing_rate() {
    let mut receiver = Receiver::new(at(0.0), 3, PARAMS);
    take(&mut receiver, 0.0, [0, 2]);
    assert_eq!(receiver.poll(at(4.0)), Receiving::Missing);
    // 30 bytes at a byte a second.
    receiver.sent(at(4.0), 30);
    assert_eq!(receiver.poll(at(12.0)), Receiving::Wait(at(34.0)));
    // What arrives is an answer.
    let mut receiver = Receiver::new(at(0.0), 4, PARAMS);
    take(&mut receiver, 0.0, [0, 2]);
    receiver.poll(at(4.0));
    receiver.sent(at(4.0), 30);
    assert_eq!(take(&mut receiver, 5.0, [1]), Receiving::Wait(at(9.0)));
}

#[test]
fn a_partial_body_is_given_up_when_nothing_new_came_for_non_partial_timeout() {
    // Waits longer than that, since PROBING_RATE wants it.
    let mut receiver = Receiver::new(at(0.0), 3, PARAMS);
    take(&mut receiver, 10.0, [0]);
    assert_eq!(receiver.poll(at(14.0)), Receiving::Missing);
    receiver.sent(at(14.0), 1_000);
    assert_eq!(receiver.poll(at(200.0)), Receiving::Wait(at(257.0)));
    assert_eq!(receiver.poll(at(257.0)), Receiving::GiveUp);
}
