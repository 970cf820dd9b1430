//! `ebb` and EXCHANGE_LIFETIME: no copy may leave after it, so that the copies must fit into it.

use crate::common::ebb::{answered, timeout};
use crate::common::node::{Datagram, Node, PEER, config, content};
use crate::common::secs;
use ebbtide_core::endpoint::Reliability;
use ebbtide_core::wire::Code;

/// A sender whose last ten exchanges took so long, without a copy on the way.
fn with_round_trip(seconds: f64) -> Node {
    let mut node = Node::impatient("ebb");
    let mut grows = 5.0_f64.min(seconds);
    while grows < seconds {
        answered(&mut node, 1, grows);
        grows *= 1.2;
    }
    answered(&mut node, 10, seconds);
    node
}

/// What leaves for a request until it is given up. Timers expire 5 ms late, as those of a driver do.
fn unanswered(node: &mut Node, code: Code) -> Vec<Datagram> {
    let failed = node.failed.len();
    node.try_request(PEER, &content(code, b""), Reliability::Confirmable).expect("accepted");
    while node.failed.len() == failed {
        node.now = node.timeout.expect("a timer") + secs(0.005);
        node.ep.handle_timeout(node.now);
        node.settle();
    }
    node.take()
}

#[test]
fn every_copy_on_a_known_path_leaves_although_timers_expire_late() {
    for code in [Code::GET, Code::POST] {
        for round_trip in [0.02, 1.0, 10.0] {
            let mut node = with_round_trip(round_trip);
            let answered = node.now;
            // What is held after each exchange must not take tries from the next one. An estimate is
            // forgotten after 255 s.
            while node.now.saturating_since(answered).as_secs_f64() < 250.0 {
                let sent = unanswered(&mut node, code);
                // The probe of an estimate that is no longer fresh is beside them.
                let copies = sent.iter().filter(|sent| !sent.is_probe()).count();
                assert_eq!(copies, 5, "{code:?}, {round_trip} s: {sent:?}");
            }
        }
    }
}

#[test]
fn behind_a_queue_the_time_that_remains_is_divided_among_two_copies() {
    let sent = unanswered(&mut with_round_trip(60.0), Code::GET);
    let timeouts: Vec<f64> = sent.iter().map(timeout).collect();
    assert!((100.0..124.0).contains(&timeouts[0]), "{timeouts:?}");
    assert!(timeouts.iter().all(|timeout| *timeout >= 60.0), "{timeouts:?}");
    assert!((3..=4).contains(&sent.len()), "a try is a maximum: {timeouts:?}");
}

#[test]
fn a_path_that_takes_longer_than_a_share_of_the_lifetime_loses_tries_but_is_not_hurried() {
    let mut node = Node::impatient("ebb");
    for _ in 0..10 {
        node.get();
        let request = node.one();
        node.wait(80.0);
        node.take();
        node.arrive(&request.answer());
    }
    let sent = unanswered(&mut node, Code::GET);
    assert!((2..5).contains(&sent.len()), "{sent:?}");
    assert!(sent.iter().all(|sent| timeout(sent) >= 80.0), "{sent:?}");
}

#[test]
fn after_four_exchanges_that_were_given_up_copies_still_leave_while_nothing_is_known() {
    for code in [Code::GET, Code::POST] {
        let mut node = Node::impatient("ebb");
        for _ in 0..4 {
            unanswered(&mut node, code);
        }
        let copies = unanswered(&mut node, code).iter().filter(|sent| !sent.is_probe()).count() - 1;
        assert!(copies >= 2, "{code:?}: {copies}");
    }
}

#[test]
fn many_retransmissions_do_not_shorten_timeouts() {
    let mut config = config("ebb");
    config.params.max_retransmit = 100;
    let mut node = Node::with_rng(config, crate::common::Constant::lowest());
    answered(&mut node, 1, 1.9);
    answered(&mut node, 60, 3.0);
    let timeouts: Vec<f64> = unanswered(&mut node, Code::GET).iter().map(timeout).collect();
    assert!(timeouts[50] > 59.0, "the bound: {timeouts:?}");
}
