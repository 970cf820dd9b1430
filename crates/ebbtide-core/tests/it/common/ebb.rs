//! What the tests of `ebb` share.

use super::float;
use super::node::{Datagram, Node, PEER, config};

/// The timeout in seconds.
pub(crate) fn timeout(datagram: &Datagram) -> f64 {
    float(datagram.timeout())
}

pub(crate) fn state(node: &Node) -> &'static str {
    node.ep.metrics(PEER).expect("a peer").state
}

/// So many exchanges, each answered after `seconds`. Only the first one may probe.
pub(crate) fn answered(node: &mut Node, exchanges: u32, seconds: f64) {
    for _ in 0..exchanges {
        node.get();
        let request = node.one();
        node.wait(seconds);
        assert!(node.take().iter().all(Datagram::is_probe), "nothing else leaves");
        node.arrive(&request.answer());
    }
}

/// An exchange whose original and copies are lost until `copies` have left; the last is answered
/// after a second.
pub(crate) fn lossy(node: &mut Node, copies: u8) {
    node.get();
    let mut last = node.one();
    while last.ordinal() < copies {
        node.wait(0.05);
        if let Some(next) = node.take().pop() {
            last = next;
        }
    }
    node.wait(1.0);
    node.take();
    node.arrive(&last.answer());
}

pub(crate) fn config_faithful() -> ebbtide_core::endpoint::EndpointConfig {
    let mut config = config("ebb");
    config.study.trusts_marks = true;
    config
}
