//! A transmission that has not left does not count, and a path that has changed is used at once.

use crate::common::node::{Node, config};
use ebbtide_core::cc::Algorithm;
use ebbtide_core::endpoint::Failure;

/// The copies of a request of which those before `up` seconds do not leave, and when each was made.
fn transmissions(control: &str, up: f64) -> (Vec<f64>, Vec<f64>, Node) {
    let mut node = Node::new(config(control));
    let start = node.now;
    let exchange = node.get();
    let (mut unsent, mut sent) = (Vec::new(), Vec::new());
    for _ in 0..4000 {
        for datagram in node.take() {
            let at = datagram.at.saturating_since(start).as_secs_f64();
            if at < up {
                unsent.push(at);
                node.ep.handle_unsent(node.now, exchange);
                node.settle();
            } else if !datagram.is_probe() {
                sent.push(at);
            }
        }
        if !node.failed.is_empty() {
            break;
        }
        node.wait(0.1);
    }
    (unsent, sent, node)
}

#[test]
fn what_does_not_leave_is_tried_again_every_few_seconds_whatever_the_control() {
    // R-CoAP does not send messages before a peer has answered its pings.
    for algorithm in Algorithm::ALL.iter().filter(|control| !matches!(control, Algorithm::Rcoap)) {
        let (unsent, sent, node) = transmissions(algorithm.name(), 15.0);
        // Pauses of 1.9 to 2.8 s; shorter for controls with an ACK_TIMEOUT of their own.
        assert!((6..=16).contains(&unsent.len()), "{algorithm:?}: {unsent:?}");
        assert!((15.0..18.0).contains(&sent[0]), "{algorithm:?}: {sent:?}");
        // The first that leaves begins the series: RFC 7252's number of copies follows, within a peer's memory.
        assert!((4..=5).contains(&sent.len()), "{algorithm:?}: {sent:?}");
        assert_eq!(node.failed[0].2, Failure::GaveUp);
    }
}

#[test]
fn a_request_that_never_leaves_is_given_up_after_max_transmit_span() {
    for algorithm in Algorithm::ALL {
        let (unsent, sent, node) = transmissions(algorithm.name(), 1000.0);
        assert_eq!(node.failed[0].2, Failure::GaveUp);
        assert!(sent.is_empty());
        assert!((8..=40).contains(&unsent.len()), "{algorithm:?}: {unsent:?}");
        let last = unsent[unsent.len() - 1];
        // 45 s; less for controls with an ACK_TIMEOUT of their own.
        assert!((20.0..=48.0).contains(&last), "{algorithm:?}: {last}");
    }
}

#[test]
fn a_copy_leaves_at_once_where_the_path_has_changed_and_no_more_than_there_are() {
    let mut node = Node::under("default");
    let exchange = node.get();
    assert_eq!(node.take().len(), 1);
    for copies in 1..=6 {
        node.ep.repeat_now(node.now, exchange);
        node.ep.handle_timeout(node.now);
        node.settle();
        assert_eq!(node.take().len(), usize::from(copies <= 4), "copy {copies}");
    }
    node.cancel(exchange);
    node.ep.repeat_now(node.now, exchange);
    node.ep.handle_unsent(node.now, exchange);
    node.assert_free();
}
