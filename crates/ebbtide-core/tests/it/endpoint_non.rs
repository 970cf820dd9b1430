//! Non-confirmable requests: paced by PROBING_RATE (RFC 7252 section 4.7) or by the control.

use crate::common::node::{Node, PEER, config, content};
use ebbtide_core::endpoint::{Reliability, SendError};
use ebbtide_core::wire::{Code, Type};

/// When each datagram left after `begin` seconds, and its type.
fn times(node: &mut Node) -> Vec<(f64, Type)> {
    let seconds = |at: ebbtide_core::time::Instant| at.as_nanos() as f64 / 1e9 - 10.0;
    node.take().iter().map(|datagram| (seconds(datagram.at), datagram.kind())).collect()
}

#[test]
fn default_sends_a_byte_a_second_while_nothing_is_heard() {
    let mut node = Node::under("default");
    for _ in 0..4 {
        node.non_get();
    }
    node.run_until(100.0);
    let expected: Vec<(f64, Type)> =
        [0.0, 8.0, 16.0, 24.0].map(|at| (at, Type::NonConfirmable)).to_vec();
    // Header and token are 8 bytes.
    assert_eq!(times(&mut node), expected);
}

#[test]
fn default_does_not_hold_back_from_a_peer_that_answers() {
    let mut node = Node::under("default");
    for _ in 0..20 {
        let exchange = node.non_get();
        let sent = node.one();
        node.wait(0.05);
        node.arrive(&sent.separate(Type::NonConfirmable, 9)).response_to(exchange);
    }
    node.assert_free();
}

#[test]
fn an_answer_lets_what_waits_go() {
    let mut node = Node::under("default");
    let first = node.non_get();
    let sent = node.one();
    node.non_get();
    node.wait(1.0);
    assert!(node.take().is_empty());
    node.arrive(&sent.separate(Type::NonConfirmable, 9)).response_to(first);
    assert_eq!(node.take().len(), 1);
}

#[test]
fn adaptive_controls_send_one_per_rto_and_every_eighth_confirmable() {
    for control in ["cocoa", "cocoa-plus", "cocoa-01", "fasor", "fasor-token", "linux-rto"] {
        let mut node = Node::under(control);
        for _ in 0..16 {
            node.non_get();
        }
        // 8 bytes at 1 B/s are slower than an RTO of 2 s.
        let mut sent = Vec::new();
        for _ in 0..16 {
            node.wait(2.0);
            for datagram in node.take() {
                if datagram.kind() == Type::Confirmable && datagram.ordinal() == 0 {
                    node.arrive(&datagram.rst());
                }
                sent.push(datagram);
            }
        }
        let originals: Vec<_> = sent.iter().filter(|datagram| datagram.ordinal() == 0).collect();
        assert_eq!(originals.len(), 16, "{control}");
        for (n, datagram) in originals.iter().enumerate() {
            let expected = if n % 8 == 7 { Type::Confirmable } else { Type::NonConfirmable };
            assert_eq!(datagram.kind(), expected, "{control}, message {n}");
        }
        for pair in originals.windows(2) {
            let gap = (pair[1].at - pair[0].at).as_secs_f64();
            assert!(gap > 0.0, "{control}: two at once at {:?}", pair[0].at);
        }
        for pair in originals[..8].windows(2) {
            assert_eq!((pair[1].at - pair[0].at).as_secs_f64(), 2.0, "{control}");
        }
    }
}

#[test]
fn the_pace_holds_for_peers_that_answer_too() {
    let mut node = Node::under("cocoa");
    for _ in 0..5 {
        node.non_get();
    }
    let mut all = Vec::new();
    for n in 0..100 {
        node.wait(0.1);
        for datagram in node.take() {
            node.arrive(&datagram.separate(Type::NonConfirmable, n));
            all.push(datagram.at.as_nanos() as f64 / 1e9 - 10.0);
        }
    }
    assert_eq!(all, [0.0, 2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn the_confirmable_eighth_measures_and_the_pace_follows() {
    let mut node = Node::under("fasor");
    for _ in 0..12 {
        node.non_get();
    }
    let mut all = Vec::new();
    for _ in 0..400 {
        node.wait(0.05);
        for datagram in node.take() {
            if datagram.kind() == Type::Confirmable {
                // 50 ms later: f = 1.5 * 0.05 = 75 ms.
                node.wait(0.05);
                node.arrive(&datagram.ack());
            }
            all.push(datagram.at.as_nanos() as f64 / 1e9 - 10.0);
        }
    }
    assert_eq!(all[..8], [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]);
    let gaps: Vec<f64> = all.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for gap in &gaps[7..] {
        assert!((0.0749..0.16).contains(gap), "{gaps:?}");
    }
}

#[test]
fn silence_earns_no_credit() {
    let mut node = Node::under("default");
    node.non_get();
    node.wait(3600.0);
    node.take();
    for _ in 0..4 {
        node.non_get();
    }
    node.wait(30.0);
    let times: Vec<f64> = times(&mut node).iter().map(|(at, _)| at - 3600.0).collect();
    assert_eq!(times, [0.0, 8.0, 16.0, 24.0]);
}

#[test]
fn any_answer_of_a_peer_counts_as_a_sign_of_life() {
    type Answer = fn(&crate::common::node::Datagram) -> Vec<u8>;
    let answers: [Answer; 5] = [
        |sent| sent.ack(),
        |sent| sent.rst(),
        |sent| sent.answer(),
        |sent| sent.separate(Type::Confirmable, 9),
        |sent| sent.separate(Type::NonConfirmable, 9),
    ];
    for answer in answers {
        let mut node = Node::under("default");
        node.get();
        let sent = node.one();
        node.non_get();
        node.non_get();
        assert_eq!(node.take().len(), 1, "one leaves, one waits");
        node.wait(1.0);
        node.arrive(&answer(&sent));
        assert!(node.take().iter().any(
            |datagram| datagram.kind() == Type::NonConfirmable && datagram.code() == Code::GET
        ));
    }
}

#[test]
fn a_message_behind_a_cancelled_one_does_not_wait_longer() {
    let mut node = Node::under("default");
    node.non_get();
    let paced = node.non_get();
    node.non_get();
    assert_eq!(node.take().len(), 1);
    node.cancel(paced);
    node.run_until(17.9);
    assert!(node.take().is_empty());
    node.run_until(18.0);
    assert_eq!(node.one().kind(), Type::NonConfirmable);
}

#[test]
fn a_message_that_does_not_fit_the_queue_is_an_error() {
    let mut config = config("default");
    config.limits.queue_per_peer = 2;
    let mut node = Node::new(config);
    let get = content(Code::GET, b"");
    for _ in 0..3 {
        node.non_get();
    }
    let refused = node.try_request(PEER, &get, Reliability::NonConfirmable);
    assert_eq!(refused, Err(SendError::QueueFull));
    assert_eq!(node.ep.counters().queue_full, 1);
}

#[test]
fn a_wrong_rate_of_zero_is_one() {
    let mut config = config("default");
    config.params.probing_rate = 0;
    let mut node = Node::new(config);
    node.non_get();
    node.non_get();
    node.run_until(18.0);
    assert_eq!(times(&mut node).len(), 2);
}

#[test]
fn a_message_that_waits_for_its_pace_holds_back_no_confirmable_one() {
    let mut node = Node::under("default");
    for _ in 0..3 {
        node.non_get();
    }
    assert_eq!(node.take().len(), 1, "the second waits eight seconds");
    let exchange = node.get();
    let sent = node.one();
    assert_eq!(sent.kind(), Type::Confirmable);
    // An answer to it lets the others go; an acknowledgement of it lets the next one go.
    node.get();
    assert!(node.take().is_empty(), "NSTART is 1");
    node.wait(0.5);
    node.arrive(&sent.answer()).response_to(exchange);
    let kinds: Vec<_> = node.take().iter().map(|datagram| datagram.kind()).collect();
    assert_eq!(kinds, [Type::NonConfirmable, Type::Confirmable]);
}
