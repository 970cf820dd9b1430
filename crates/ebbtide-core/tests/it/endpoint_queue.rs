//! NSTART, the queue behind it, message IDs, and peers: what is bounded, and that it comes back.

use crate::common::node::{Datagram, Node, PEER, config, content, message, peer, peer_at};
use crate::common::{at, seeded};
use ebbtide_core::ExchangeId;
use ebbtide_core::cc::ControlConfig;
use ebbtide_core::endpoint::{EndpointConfig, Failure, Reliability, Scope, SendError};
use ebbtide_core::wire::{Code, Type};
use ebbtide_core::{PeerId, SessionKey};
use std::collections::{BTreeMap, BTreeSet};

fn payloads(sent: &[Datagram]) -> Vec<u8> {
    sent.iter().map(|datagram| datagram.message().payload()[0]).collect()
}

/// A Confirmable PUT of one byte.
fn put(node: &mut Node, to: PeerId, byte: u8) -> Result<ExchangeId, SendError> {
    node.try_request(to, &content(Code::PUT, &[byte]), Reliability::Confirmable)
}

#[test]
fn at_most_nstart_exchanges_are_open_and_the_rest_leave_in_order() {
    for nstart in [1, 2, 4] {
        let mut node = Node::under(&format!("default:nstart={nstart}"));
        for byte in 0..10 {
            put(&mut node, PEER, byte).unwrap();
        }
        let mut sent = node.take();
        assert_eq!(sent.len(), nstart);
        for answered in 0..10 {
            let answer = sent[answered].answer();
            node.arrive(&answer);
            sent.extend(node.take());
            assert_eq!(sent.len(), (answered + 1 + nstart).min(10));
        }
        assert_eq!(payloads(&sent), (0..10).collect::<Vec<u8>>());
        node.assert_free();
    }
}

#[test]
fn peers_do_not_wait_for_each_other() {
    let mut node = Node::under("default");
    for last in 2..10 {
        put(&mut node, peer(last), last).unwrap();
    }
    assert_eq!(node.take().len(), 8);
}

#[test]
fn the_place_is_free_on_every_way_an_exchange_can_end() {
    type End = fn(&mut Node, ExchangeId, &Datagram);
    let ends: [(&str, End); 9] = [
        ("piggybacked response", |node, _, sent| drop(node.arrive(&sent.answer()))),
        ("empty acknowledgement", |node, _, sent| drop(node.arrive(&sent.ack()))),
        ("separate response", |node, _, sent| {
            node.arrive(&sent.separate(Type::Confirmable, 900));
        }),
        ("separate response, NON", |node, _, sent| {
            node.arrive(&sent.separate(Type::NonConfirmable, 901));
        }),
        ("reset", |node, _, sent| drop(node.arrive(&sent.rst()))),
        ("cancel", |node, exchange, _| node.cancel(exchange)),
        ("send error", |node, exchange, _| {
            node.ep.handle_send_error(node.now, exchange);
            node.settle();
        }),
        ("bad option in the response", |node, _, sent| {
            let options: &[(u16, &[u8])] = &[(9, b"")];
            let ack = Type::Acknowledgement;
            node.arrive(&message(ack, Code::CONTENT, sent.id(), &sent.token(), options, b""));
        }),
        ("give-up", |_, _, _| {}),
    ];
    for control in ["default", "cocoa", "fasor", "fasor-token", "fasor-option", "linux-rto"] {
        for (name, end) in ends {
            let mut node = Node::under(control);
            let first = put(&mut node, PEER, 1).unwrap();
            let sent = node.one();
            put(&mut node, PEER, 2).unwrap();
            assert!(node.take().is_empty(), "{control}, {name}");
            if name == "give-up" {
                while node.failed.is_empty() {
                    node.now = node.timeout.expect("the exchange has a timer");
                    node.ep.handle_timeout(node.now);
                    node.settle();
                }
                assert_eq!(node.failures(), [(first, Failure::GaveUp)]);
            } else {
                end(&mut node, first, &sent);
            }
            let next = node.take().into_iter().rfind(|datagram| datagram.code() == Code::PUT);
            let next = next.expect("the second leaves");
            assert_eq!(payloads(&[next]), [2], "{control}, {name}");
        }
    }
}

#[test]
fn a_ping_and_a_response_of_ours_hold_a_place_too() {
    let mut node = Node::under("default");
    let get = message(Type::Confirmable, Code::GET, 5, b"t", &[], b"");
    let mut incoming = node.arrive(&get).request();
    node.acknowledge(&mut incoming);
    node.ep.ping(node.now, PEER).unwrap();
    node.settle();
    let ping = node.take().pop().unwrap();
    node.respond(&incoming, b"late");
    assert!(node.take().is_empty());
    node.arrive(&ping.rst());
    let response = node.one();
    assert_eq!((response.kind(), response.code()), (Type::Confirmable, Code::CONTENT));
    node.arrive(&response.ack());
    node.assert_free();
}

#[test]
fn a_full_queue_is_an_error_and_is_counted() {
    let mut config = config("default");
    config.limits.queue_per_peer = 3;
    let mut node = Node::new(config);
    for byte in 0..4 {
        put(&mut node, PEER, byte).unwrap();
    }
    assert_eq!(put(&mut node, PEER, 9), Err(SendError::QueueFull));
    assert_eq!(put(&mut node, PEER, 9), Err(SendError::QueueFull));
    assert_eq!(node.ep.counters().queue_full, 2);
    // Another peer has its own.
    put(&mut node, peer(3), 0).unwrap();
    // When one ends there is room for one.
    let first = node.take()[0].answer();
    node.arrive(&first);
    put(&mut node, PEER, 4).unwrap();
    assert_eq!(put(&mut node, PEER, 9), Err(SendError::QueueFull));
}

#[test]
fn exchanges_are_bounded_over_all_peers() {
    let mut config = config("default");
    config.limits.exchanges = 5;
    let mut node = Node::new(config);
    let first = put(&mut node, peer(2), 0).unwrap();
    for last in 3..7 {
        put(&mut node, peer(last), 0).unwrap();
    }
    assert_eq!(put(&mut node, peer(7), 0), Err(SendError::TooManyExchanges));
    assert_eq!((node.ep.counters().queue_full, node.ep.open_exchanges()), (1, 5));
    node.cancel(first);
    put(&mut node, peer(7), 0).unwrap();
}

#[test]
fn the_first_token_and_message_id_of_an_endpoint_are_random() {
    // RFC 7252 section 11.4.
    let first = |seed| {
        let mut node = Node::with_rng(config("default"), seeded(seed));
        node.get();
        let sent = node.one();
        (sent.id(), sent.token())
    };
    let (ids, tokens): (BTreeSet<_>, BTreeSet<_>) = (0..64).map(first).unzip();
    assert!(ids.len() > 60 && tokens.len() == 64, "{} IDs, {} tokens", ids.len(), tokens.len());
    assert!(tokens.iter().all(|token| token.len() >= 4), "32 bits (section 5.3.1)");
}

#[test]
fn message_ids_are_unique_within_exchange_lifetime() {
    let mut node = Node::new(config("default"));
    let mut last: BTreeMap<u16, f64> = BTreeMap::new();
    let mut most: f64 = 0.0;
    // As fast as answers come back, far beyond the rate that IDs allow.
    for n in 0..140_000u32 {
        put(&mut node, PEER, 0).unwrap();
        while node.sent.is_empty() {
            node.now = node.timeout.expect("it waits for an ID");
            node.ep.handle_timeout(node.now);
            node.settle();
        }
        let sent = node.one();
        let now = sent.at.as_nanos() as f64 / 1e9;
        if let Some(before) = last.insert(sent.id(), now) {
            assert!(now - before >= 247.0, "ID {} again after {} s", sent.id(), now - before);
        }
        most = most.max(now);
        node.arrive(&sent.answer());
        // Responses take IDs from the same circle.
        if n % 3 == 0 {
            let get = message(Type::NonConfirmable, Code::GET, n as u16, b"t", &[], b"");
            let incoming = node.arrive(&get).request();
            node.respond(&incoming, b"x");
            let sent = node.one();
            if sent.id() != n as u16 {
                let before = last.insert(sent.id(), now);
                assert!(before.is_none_or(|before| now - before >= 247.0));
            }
        }
        node.wait(0.001);
    }
    assert!(most > 400.0, "IDs must have run out");
}

#[test]
fn a_load_generator_may_use_message_ids_at_any_rate() {
    let mut config = config("default");
    config.study.unique_message_ids = false;
    let mut node = Node::new(config);
    for _ in 0..70_000 {
        put(&mut node, PEER, 0).unwrap();
        let answer = node.one().answer();
        node.arrive(&answer);
    }
    assert_eq!(node.now, at(10.0));
}

fn parsed(address: &str) -> PeerId {
    PeerId::Address(address.parse().unwrap())
}

#[test]
fn a_scope_shares_one_control() {
    let other_port = peer_at(1);
    let in_prefix = parsed("10.0.0.77:9");
    let elsewhere = parsed("10.0.1.2:5683");
    let cases = [
        (Scope::TransportAddress, [false, false, false]),
        (Scope::Address, [true, false, false]),
        (Scope::Prefix { v4: 24, v6: 64 }, [true, true, false]),
        (Scope::Prefix { v4: 16, v6: 64 }, [true, true, true]),
        (Scope::Prefix { v4: 0, v6: 0 }, [true, true, true]),
        (Scope::Prefix { v4: 255, v6: 255 }, [true, false, false]),
    ];
    for (scope, shared) in cases {
        let mut node = Node::new(EndpointConfig { scope, ..config("cocoa") });
        put(&mut node, PEER, 0).unwrap();
        let sent = node.one();
        for (remote, shared) in [other_port, in_prefix, elsewhere].into_iter().zip(shared) {
            // NSTART is the scope's, and so is what is learnt.
            put(&mut node, remote, 1).unwrap();
            assert_eq!(node.take().is_empty(), shared, "{scope:?} {remote}");
        }
        node.wait(0.5);
        node.arrive(&sent.answer());
        for (remote, shared) in [other_port, in_prefix, elsewhere].into_iter().zip(shared) {
            let knows = node.ep.metrics(remote).is_some_and(|metrics| metrics.srtt.is_some());
            assert_eq!(knows, shared, "{scope:?} {remote}");
        }
    }
}

#[test]
fn ipv6_prefixes_are_scopes() {
    let scope = Scope::Prefix { v4: 24, v6: 64 };
    let mut node = Node::new(EndpointConfig { scope, ..config("cocoa") });
    put(&mut node, parsed("[2001:db8:0:1::1]:5683"), 0).unwrap();
    assert_eq!(node.take().len(), 1);
    put(&mut node, parsed("[2001:db8:0:1:ffff::2]:1"), 0).unwrap();
    assert_eq!(node.take().len(), 0);
    put(&mut node, parsed("[2001:db8:0:2::1]:5683"), 0).unwrap();
    assert_eq!(node.take().len(), 1);
    assert_eq!(node.ep.peers(), 2);
}

#[test]
fn a_session_is_a_scope_of_its_own() {
    let scope = Scope::Prefix { v4: 0, v6: 0 };
    let mut node = Node::new(EndpointConfig { scope, ..config("cocoa") });
    for (socket, number) in [(0, 1), (0, 2), (1, 1)] {
        put(&mut node, PeerId::Session(SessionKey::new(socket, number)), 0).unwrap();
        assert_eq!(node.take().len(), 1, "{number} of {socket}");
    }
    assert_eq!(node.ep.peers(), 3);
}

/// An endpoint that keeps state for so many peers.
fn keeping(peers: usize) -> Node {
    let mut config = config("cocoa");
    config.limits.peers = peers;
    Node::new(config)
}

/// An exchange that is answered after half a second.
fn meet(node: &mut Node, remote: PeerId) {
    node.get_from(remote);
    let sent = node.one();
    node.wait(0.5);
    node.arrive_from(remote, &sent.answer());
}

#[test]
fn a_peer_is_kept_for_255_seconds_and_then_makes_room() {
    let mut node = keeping(100);
    meet(&mut node, peer(2));
    node.wait(254.0);
    meet(&mut node, peer(3));
    assert_eq!(node.ep.peers(), 2);
    assert!(node.ep.metrics(peer(2)).is_some());
    node.wait(1.0);
    meet(&mut node, peer(4));
    assert_eq!(node.ep.peers(), 2);
    assert!(node.ep.metrics(peer(2)).is_none());
    assert!(node.ep.metrics(peer(3)).is_some());
    assert_eq!(node.ep.counters().peers_evicted_early, 0);
}

#[test]
fn use_keeps_a_peer() {
    let mut node = keeping(100);
    meet(&mut node, peer(2));
    for _ in 0..10 {
        node.wait(100.0);
        meet(&mut node, peer(2));
    }
    meet(&mut node, peer(3));
    assert_eq!(node.ep.peers(), 2);
}

#[test]
fn without_room_the_peer_unused_for_longest_leaves_early_and_is_counted() {
    let mut node = keeping(3);
    for last in 2..5 {
        meet(&mut node, peer(last));
    }
    meet(&mut node, peer(2));
    meet(&mut node, peer(5));
    assert!(node.ep.metrics(peer(3)).is_none());
    for last in [2, 4, 5] {
        assert!(node.ep.metrics(peer(last)).is_some(), "{last}");
    }
    assert_eq!((node.ep.peers(), node.ep.counters().peers_evicted_early), (3, 1));
}

#[test]
fn a_peer_with_an_exchange_never_leaves_and_one_without_always_makes_room() {
    let mut node = keeping(6);
    // The least recently used ones all have exchanges.
    let open: Vec<ExchangeId> = (2..7).map(|last| node.get_from(peer(last))).collect();
    node.take();
    meet(&mut node, peer(7));
    meet(&mut node, peer(8));
    meet(&mut node, peer(9));
    assert_eq!((node.ep.peers(), node.ep.open_exchanges()), (6, 5));
    node.get_from(peer(9));
    let refused = node.try_request(peer(10), &content(Code::GET, b""), Reliability::Confirmable);
    assert_eq!(refused, Err(SendError::TooManyPeers));
    assert_eq!(node.ep.counters().queue_full, 1);
    for exchange in open {
        node.cancel(exchange);
    }
    node.get_from(peer(10));
    assert!(node.ep.metrics(peer(2)).is_none());
    assert!(node.ep.metrics(peer(9)).is_some());
}

#[test]
fn a_peer_whose_exchange_was_long_is_kept_from_its_end_on() {
    let mut node = keeping(100);
    node.get_from(peer(2));
    let sent = node.one();
    node.arrive_from(peer(2), &sent.ack());
    node.wait(240.0);
    node.arrive_from(peer(2), &sent.separate(Type::NonConfirmable, 5));
    node.wait(200.0);
    meet(&mut node, peer(3));
    assert!(node.ep.metrics(peer(2)).is_some());
}

#[test]
fn a_control_can_be_chosen_for_a_peer_and_takes_effect_at_once() {
    let mut node = Node::under("default");
    for byte in 0..5 {
        put(&mut node, PEER, byte).unwrap();
    }
    assert_eq!(node.take().len(), 1);
    let four = ControlConfig::parse("cocoa:nstart=4").unwrap();
    node.ep.set_control(node.now, PEER, four).unwrap();
    node.settle();
    // Three more may be open, blind beside each other.
    let sent = node.take();
    let timeouts: Vec<f64> = sent.iter().map(|d| crate::common::float(d.timeout())).collect();
    assert_eq!(timeouts, [4.0, 6.0, 8.0]);
    // Others keep the endpoint's.
    put(&mut node, peer(3), 0).unwrap();
    put(&mut node, peer(3), 0).unwrap();
    assert_eq!(node.take().len(), 1);
}

#[test]
fn a_control_chosen_for_a_peer_outlives_the_retention_of_what_is_learnt() {
    let mut node = keeping(3);
    let chosen = ControlConfig::parse("default:nstart=4").unwrap();
    node.ep.set_control(node.now, PEER, chosen.clone()).unwrap();
    for last in 10..40 {
        node.wait(1000.0);
        meet(&mut node, peer(last));
    }
    for byte in 0..4 {
        put(&mut node, PEER, byte).unwrap();
    }
    assert_eq!(node.take().len(), 4);
    node.run_until(200_000.0);
    node.take();
    // Only where there is no other room it leaves, and that is counted.
    for last in 50..53 {
        node.ep.set_control(node.now, peer(last), chosen.clone()).unwrap();
    }
    assert_eq!(node.ep.peers(), 3);
    let left = [PEER, peer(50), peer(51), peer(52)].map(|peer| node.ep.metrics(peer).is_some());
    assert_eq!(left.iter().filter(|&&left| left).count(), 3);
}

#[test]
fn the_wait_for_a_message_id_is_counted_and_no_longer_than_the_timeouts_can_last() {
    let mut config = config("default");
    config.params.max_retransmit = 20;
    config.params.nstart = u16::MAX;
    let mut node = Node::new(config);
    let mut sent = 0;
    while node.ep.counters().id_waits == 0 {
        let exchange = put(&mut node, PEER, 0).unwrap();
        sent += node.take().len();
        node.cancel(exchange);
    }
    assert!(sent >= 49_152, "{sent}");
    put(&mut node, PEER, 0).unwrap();
    assert!(node.take().is_empty());
    // It is reported once, however many messages wait.
    assert_eq!(node.ep.counters().id_waits, 1);
    assert_eq!(node.without_ids.len(), 1);
    assert_eq!(node.without_ids[0].0, PEER);
    // Twenty timeouts of at most five times MAX_RTT, and one MAX_RTT more: not 36 days.
    node.run_until(10.0 + 101.0 * 202.0 + 2.0);
    assert!(!node.take().is_empty());
}

#[test]
fn as_many_controls_as_a_byte_can_number() {
    let mut node = Node::under("default");
    for n in 0..255u32 {
        let text = format!("cocoa:nstart={}", n + 1);
        node.ep.set_control(node.now, PEER, ControlConfig::parse(&text).unwrap()).unwrap();
    }
    let one_more = ControlConfig::parse("fasor").unwrap();
    let refused = node.ep.set_control(node.now, PEER, one_more);
    assert_eq!(refused, Err(SendError::TooManyControls));
    // One that is known already is fine.
    node.ep.set_control(node.now, PEER, ControlConfig::parse("default").unwrap()).unwrap();
}

#[test]
fn a_forgotten_peer_is_as_if_new_but_for_what_is_open() {
    let mut node = Node::under("cocoa");
    meet(&mut node, PEER);
    node.get();
    let sent = node.one();
    node.get();
    assert_eq!(sent.timeout(), crate::common::secs(1.75));
    node.ep.forget(PEER);
    node.settle();
    assert_eq!(node.ep.metrics(PEER).unwrap().srtt, None);
    assert!(node.take().is_empty(), "NSTART still holds");
    assert_eq!(node.ep.open_exchanges(), 2);
    node.wait(0.5);
    node.arrive(&sent.ack());
    // The next starts from what that answer told.
    assert_eq!(node.one().timeout(), crate::common::secs(1.75));
    node.ep.forget(peer(99));
}

#[test]
fn a_peer_is_not_forgotten_within_exchange_lifetime_whatever_the_retention() {
    // EXCHANGE_LIFETIME is 435 s with an ACK_TIMEOUT of 10 s, and message IDs must not begin anew.
    let mut config = config("default");
    config.params.ack_timeout = crate::common::secs(10.0);
    config.limits.peer_retention = ebbtide_core::time::Duration::from_secs(255);
    let mut node = Node::new(config);
    meet(&mut node, PEER);
    node.wait(420.0);
    for last in 10..20 {
        meet(&mut node, peer(last));
    }
    assert!(node.ep.metrics(PEER).is_some(), "its message IDs are still in use");
    node.wait(40.0);
    for last in 20..30 {
        meet(&mut node, peer(last));
    }
    assert!(node.ep.metrics(PEER).is_none());
}
