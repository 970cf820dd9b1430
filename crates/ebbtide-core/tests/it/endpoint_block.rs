//! Requests that carry or ask for blocks (RFC 9177): at once, and answered any number of times.

use crate::common::node::{Got, Node, PEER, config, content, message};
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{EndpointConfig, Failure, Ignored};
use ebbtide_core::q_block::QBlockParameters;
use ebbtide_core::time::Duration;
use ebbtide_core::wire::{Code, OptionNumber, Type};

fn block(node: &mut Node) -> ExchangeId {
    let exchange = node.ep.request_block(node.now, PEER, &content(Code::GET, b""));
    node.settle();
    exchange.expect("there is room")
}

#[test]
fn they_leave_at_once_whatever_the_pace_of_other_messages() {
    for control in ["default", "cocoa", "fasor-token"] {
        let mut node = Node::under(control);
        let con = node.get();
        let exchanges: Vec<_> = (0..10).map(|_| block(&mut node)).collect();
        let sent = node.take();
        assert_eq!(sent.len(), 11, "{control}");
        assert!(sent[1..].iter().all(|datagram| datagram.kind() == Type::NonConfirmable));
        for exchange in exchanges.into_iter().chain([con]) {
            node.cancel(exchange);
        }
        node.assert_free();
    }
}

#[test]
fn any_number_of_responses_may_come_until_it_is_cancelled() {
    let mut node = Node::under("default");
    let exchange = block(&mut node);
    let sent = node.one();
    for id in 0..20 {
        node.wait(100.0);
        let got = node.arrive(&sent.separate(Type::NonConfirmable, id));
        assert!(matches!(got, Got::Notification { exchange: of, .. } if of == exchange), "{got:?}");
    }
    node.cancel(exchange);
    node.assert_free();
    let got = node.arrive(&sent.separate(Type::NonConfirmable, 99));
    assert!(matches!(got, Got::Ignored(Ignored::UnknownExchange)));
}

#[test]
fn it_fails_when_nothing_came_for_response_timeout_and_ends_with_a_reset() {
    let mut node = Node::under("default");
    let silent = block(&mut node);
    node.run_until(300.0);
    assert_eq!(node.failures(), [(silent, Failure::NoResponse)]);
    node.take();
    let refused = block(&mut node);
    let sent = node.one();
    let got = node.arrive(&sent.rst());
    assert!(matches!(got, Got::Reset { exchange, .. } if exchange == refused), "{got:?}");
    node.assert_free();
}

#[test]
fn probing_rate_says_how_long_a_silent_peer_gets_nothing_more() {
    let mut node = Node::under("default");
    assert_eq!(node.ep.silent_until(PEER, &QBlockParameters::DEFAULT), None);
    let start = node.now;
    let exchange = block(&mut node);
    let sent = node.one();
    let until = start + Duration::from_secs(sent.bytes.len() as u64);
    assert_eq!(node.ep.silent_until(PEER, &QBlockParameters::DEFAULT), Some(until));
    node.arrive(&sent.separate(Type::NonConfirmable, 1));
    assert_eq!(node.ep.silent_until(PEER, &QBlockParameters::DEFAULT), None);
    node.cancel(exchange);
}

#[test]
fn without_an_application_that_knows_them_the_options_are_refused() {
    let q_block = OptionNumber::Q_BLOCK2.0;
    let asks = |kind, options: &[(u16, &[u8])]| message(kind, Code::GET, 7, &[1], options, b"");
    let mut plain = Node::under("default");
    let got = plain.arrive(&asks(Type::Confirmable, &[(q_block, &[8])]));
    assert!(matches!(got, Got::Ignored(Ignored::UnknownCriticalOption)));
    assert_eq!(plain.one().code(), Code::BAD_OPTION);

    let mut knows = Node::new(EndpointConfig { q_block: true, ..config("default") });
    // Q-Block2 may be repeated; Q-Block1 may not (RFC 9177 section 4.1).
    let got = knows.arrive(&asks(Type::NonConfirmable, &[(q_block, &[0x10]), (q_block, &[0x90])]));
    assert!(matches!(got, Got::Request(_)));
    let twice = [(OptionNumber::Q_BLOCK1.0, &[8][..]), (OptionNumber::Q_BLOCK1.0, &[8][..])];
    let got = knows.arrive(&asks(Type::NonConfirmable, &twice));
    assert!(matches!(got, Got::Ignored(Ignored::UnknownCriticalOption)));
}

#[test]
fn they_pass_a_queue_that_is_full() {
    let mut node = Node::under("default");
    for _ in 0..=64 {
        node.get();
    }
    assert_eq!(node.ep.waiting(PEER), 64);
    let get = content(Code::GET, b"");
    let full = node.try_request(PEER, &get, ebbtide_core::endpoint::Reliability::Confirmable);
    assert_eq!(full, Err(ebbtide_core::endpoint::SendError::QueueFull));
    node.take();
    assert!(node.ep.request_block(node.now, PEER, &get).is_ok());
    node.settle();
    assert_eq!(node.take().len(), 1);
}
