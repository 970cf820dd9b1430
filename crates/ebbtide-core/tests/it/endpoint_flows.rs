//! Whole exchanges between two endpoints over a wire, as RFC 7252 draws them in sections 2.2, 4
//! and 5.2 and appendix A.

use crate::common::node::{config, content};
use crate::common::pair::{Pair, Serve};
use ebbtide_core::endpoint::{Failure, Reliability};
use ebbtide_core::time::Micros;
use ebbtide_core::wire::Code;

fn pair() -> Pair {
    Pair::new(config("default"), config("default"))
}

/// Runs to the end and checks that nothing is left open on either side.
fn run(pair: &mut Pair) {
    pair.run();
    pair.client.assert_free();
    pair.server.assert_free();
}

#[test]
fn a_response_rides_on_the_acknowledgement() {
    let mut pair = pair();
    pair.client.get();
    run(&mut pair);
    assert_eq!(pair.log, ["0 > CON 0.01", "0.1 < ACK 2.05"]);
    let (_, sample, payload) = &pair.responses[0];
    assert_eq!(payload, b"answer 1");
    assert_eq!(sample.map(|s| crate::common::float(s.since_first)), Some(0.2));
}

#[test]
fn a_lost_request_is_repeated() {
    let mut pair = pair();
    pair.lost = vec![0];
    pair.client.get();
    run(&mut pair);
    assert_eq!(pair.log, ["0 x> CON 0.01", "2 > CON 0.01", "2.1 < ACK 2.05"]);
    let sample = pair.responses[0].1.expect("a sample");
    assert_eq!((sample.transmissions, crate::common::float(sample.since_first)), (2, 2.2));
    assert_eq!(crate::common::float(sample.since_last), 0.2);
}

#[test]
fn a_lost_acknowledgement_makes_the_server_answer_a_get_afresh_and_a_post_from_memory() {
    for (code, seen) in [(Code::GET, 2), (Code::PUT, 2), (Code::POST, 1), (Code::PATCH, 1)] {
        let mut pair = pair();
        pair.lost = vec![1];
        let request = content(code, b"on");
        pair.client
            .try_request(crate::common::node::PEER, &request, Reliability::Confirmable)
            .expect("accepted");
        run(&mut pair);
        let log = [
            format!("0 > CON {code}"),
            "0.1 x< ACK 2.05".to_owned(),
            format!("2 > CON {code}"),
            "2.1 < ACK 2.05".to_owned(),
        ];
        assert_eq!(pair.log, log);
        assert_eq!(pair.requests, seen, "{code}");
        assert_eq!(pair.responses.len(), 1);
        assert_eq!(pair.responses[0].2, format!("answer {seen}").into_bytes());
    }
}

#[test]
fn a_slow_response_is_separate_and_confirmable() {
    let mut pair = pair();
    pair.serve = Serve::After(10.0);
    pair.client.get();
    run(&mut pair);
    let log = ["0 > CON 0.01", "0.1 < ACK 0.00", "10.1 < CON 2.05", "10.2 > ACK 0.00"];
    assert_eq!(pair.log, log);
    // The sample was taken when the empty ACK came.
    assert!(pair.responses[0].1.is_none());
}

#[test]
fn a_slow_request_that_is_repeated_is_acknowledged_again_and_processed_once() {
    let mut pair = pair();
    pair.serve = Serve::After(10.0);
    pair.lost = vec![1];
    pair.client.get();
    run(&mut pair);
    let log = [
        "0 > CON 0.01",
        "0.1 x< ACK 0.00",
        "2 > CON 0.01",
        "2.1 < ACK 0.00",
        "10.1 < CON 2.05",
        "10.2 > ACK 0.00",
    ];
    assert_eq!(pair.log, log);
    assert_eq!(pair.requests, 1);
    assert_eq!(pair.server.ep.counters().duplicates, 1);
}

#[test]
fn a_response_before_its_acknowledgement_implies_it() {
    let mut pair = pair();
    pair.serve = Serve::After(0.5);
    pair.lost = vec![1];
    pair.client.get();
    run(&mut pair);
    let log = ["0 > CON 0.01", "0.1 x< ACK 0.00", "0.6 < CON 2.05", "0.7 > ACK 0.00"];
    assert_eq!(pair.log, log);
    assert_eq!(pair.responses[0].1.map(|s| crate::common::float(s.since_first)), Some(0.7));
}

#[test]
fn a_separate_response_is_repeated_and_its_duplicate_acknowledged_again() {
    let mut pair = pair();
    pair.serve = Serve::After(1.0);
    // The client's acknowledgement of the response.
    pair.lost = vec![3];
    pair.client.get();
    run(&mut pair);
    let log = [
        "0 > CON 0.01",
        "0.1 < ACK 0.00",
        "1.1 < CON 2.05",
        "1.2 x> ACK 0.00",
        "3.1 < CON 2.05",
        "3.2 > ACK 0.00",
    ];
    assert_eq!(pair.log, log);
    assert_eq!(pair.responses.len(), 1);
}

#[test]
fn a_non_confirmable_request_gets_a_non_confirmable_response() {
    let mut pair = pair();
    pair.client.non_get();
    run(&mut pair);
    assert_eq!(pair.log, ["0 > NON 0.01", "0.1 < NON 2.05"]);
    assert!(pair.responses[0].1.is_none(), "no sample from a Non-confirmable message");
}

#[test]
fn a_non_confirmable_request_without_an_answer_fails_in_the_end() {
    let mut pair = pair();
    pair.lost = vec![0];
    let exchange = pair.client.non_get();
    run(&mut pair);
    assert_eq!(pair.client.failed, [(crate::common::at(247.0), exchange, Failure::NoResponse)]);
}

#[test]
fn a_ping_is_answered_by_a_reset() {
    let mut pair = pair();
    pair.client.ep.ping(crate::common::at(0.0), crate::common::node::PEER).expect("accepted");
    run(&mut pair);
    assert_eq!(pair.log, ["0 > CON 0.00", "0.1 < RST 0.00"]);
    assert_eq!(pair.server.ep.counters().pings, 1);
    assert!(pair.client.failed.is_empty());
}

#[test]
fn an_exchange_is_given_up_after_max_transmit_wait() {
    let mut pair = pair();
    pair.lost = (0..10).collect();
    let exchange = pair.client.get();
    run(&mut pair);
    let log =
        ["0 x> CON 0.01", "2 x> CON 0.01", "6 x> CON 0.01", "14 x> CON 0.01", "30 x> CON 0.01"];
    assert_eq!(pair.log, log);
    assert_eq!(pair.client.failed, [(crate::common::at(62.0), exchange, Failure::GaveUp)]);
    let counters = pair.client.ep.counters();
    assert_eq!((counters.retransmissions, counters.timeouts, counters.gave_up), (4, 5, 1));
}

#[test]
fn with_the_longest_draw_it_is_93_seconds() {
    let highest = crate::common::Constant::highest();
    let mut node = crate::common::node::Node::with_rng(config("default"), highest);
    let exchange = node.get();
    node.run_until(200.0);
    let times: Vec<f64> = node.sent.iter().map(|d| d.at.as_nanos() as f64 / 1e9 - 10.0).collect();
    assert_eq!(times, [0.0, 3.0, 9.0, 21.0, 45.0]);
    assert_eq!(node.failed, [(crate::common::at(103.0), exchange, Failure::GaveUp)]);
}

#[test]
fn a_separate_response_that_is_never_acknowledged_is_given_up_too() {
    let mut pair = pair();
    pair.serve = Serve::After(1.0);
    pair.lost = (2..20).collect();
    let request = pair.client.get();
    run(&mut pair);
    // The client waits for its response from the acknowledgement on.
    assert_eq!(pair.client.failed, [(crate::common::at(247.2), request, Failure::NoResponse)]);
    assert_eq!(pair.server.failed.len(), 1);
    // The last copy leaves at the end of MAX_TRANSMIT_WAIT, 62 s after the first, and its timeout is 32 s.
    assert_eq!(pair.server.failed[0].0, crate::common::at(95.1));
    assert_eq!(pair.server.failed[0].2, Failure::GaveUp);
}

#[test]
fn tokens_and_options_that_mark_transmissions_work_between_two_of_us() {
    for name in ["fasor-token", "fasor-option"] {
        let mut pair = Pair::new(config(name), config("default"));
        pair.client.get();
        run(&mut pair);
        // The first copy of this one is lost, the second is answered.
        pair.lost = vec![2];
        pair.client.get();
        run(&mut pair);
        let sample = pair.responses[1].1.expect("a sample");
        let answered = sample.answered.expect("told by the mark");
        assert_eq!((answered.ordinal, crate::common::float(answered.since)), (1, 0.2), "{name}");
    }
}

#[test]
fn the_duplicate_of_a_post_is_answered_with_its_own_mark() {
    for name in ["fasor-token", "fasor-option"] {
        let mut pair = Pair::new(config(name), config("default"));
        pair.client.get();
        run(&mut pair);
        // The first answer is lost: the second copy is answered from memory.
        pair.lost = vec![3];
        let post = content(Code::POST, b"on");
        pair.client
            .try_request(crate::common::node::PEER, &post, Reliability::Confirmable)
            .expect("accepted");
        run(&mut pair);
        assert_eq!(pair.requests, 2);
        let sample = pair.responses[1].1.expect("a sample");
        let answered = sample.answered.expect("told by the mark");
        assert_eq!((answered.ordinal, crate::common::float(answered.since)), (1, 0.2), "{name}");
    }
}

/// One path of two hours: with its length as ACK_TIMEOUT, and with it as the control's first timeout.
#[test]
fn a_path_of_two_hours_carries_requests_their_copies_and_separate_responses() {
    let two_hours = Micros::from_millis(7_500_000);
    let mut set = config("default");
    set.params.ack_timeout = two_hours;
    for of_both in [set, config("fasor-token:initial-rto=7500")] {
        let mut pair = Pair::new(of_both.clone(), of_both);
        pair.delay = 3600.0;
        // The acknowledgement takes two hours, and the response three hours more.
        pair.serve = Serve::After(10_800.0);
        pair.client.get();
        run(&mut pair);
        assert_eq!(pair.responses.len(), 1, "{:?}", pair.log);
        assert_eq!(pair.log[0], "0 > CON 0.01");
        assert_eq!(pair.log[1], "3600 < ACK 0.00");
        assert_eq!(pair.log[2], "14400 < CON 2.05");
        assert_eq!(pair.log.iter().filter(|line| line.contains("> CON 0.01")).count(), 1);
    }
}

#[test]
fn on_a_path_of_two_hours_lost_copies_are_repeated_until_one_arrives() {
    let mut of_both = config("default");
    of_both.params.ack_timeout = Micros::from_millis(7_500_000);
    let mut pair = Pair::new(of_both.clone(), of_both);
    pair.delay = 3600.0;
    pair.lost = vec![0, 1];
    pair.client.get();
    run(&mut pair);
    assert_eq!(
        pair.log,
        ["0 x> CON 0.01", "7500 x> CON 0.01", "22500 > CON 0.01", "26100 < ACK 2.05"]
    );
    assert_eq!(pair.responses.len(), 1);
}
