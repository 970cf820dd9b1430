//! The option PM (draft-ietf-core-coap-pm), as bytes and as what both ends count.

use crate::common::node::{Datagram, Got, Node, PEER, config, message};
use ebbtide_core::PeerId;
use ebbtide_core::endpoint::{EndpointConfig, Measurement, Reliability};
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber, Type};

const PM: u16 = 65022;

fn measured(block: u16) -> EndpointConfig {
    EndpointConfig { measurement: Some(Measurement::new(block)), ..config("default") }
}

/// A node that measures with blocks of this many messages.
fn node(block: u16) -> Node {
    Node::new(measured(block))
}

fn values(sent: &[Datagram]) -> Vec<Option<Vec<u8>>> {
    sent.iter().map(|datagram| datagram.option(PM)).collect()
}

/// A GET with this message ID and, if there is one, this value of the option.
fn get(id: u16, value: Option<u8>) -> Vec<u8> {
    let value = value.map(|value| [value]);
    let options: Vec<(u16, &[u8])> = value.iter().map(|value| (PM, &value[..])).collect();
    message(Type::NonConfirmable, Code::GET, id, b"t", &options, b"")
}

fn answer(node: &mut Node, datagram: &[u8]) -> Datagram {
    let Got::Request(incoming) = node.arrive(datagram) else { panic!("a request") };
    let content = Content { code: Code::CONTENT, options: &[], payload: b"21" };
    node.ep.respond(node.now, &incoming, &content).expect("room");
    node.settle();
    node.one()
}

#[test]
fn no_message_has_the_option_unless_it_is_configured() {
    let mut node = Node::under("default");
    node.get();
    assert_eq!(values(&node.take()), [None]);
    assert_eq!(node.ep.measured(PEER), None);
}

#[test]
fn the_option_is_one_byte_at_its_place_among_the_others() {
    let mut node = node(64);
    let options = [
        Opt { number: OptionNumber::URI_PATH, value: b"a" },
        Opt { number: OptionNumber(65_100), value: b"xyz" },
    ];
    let post = Content { code: Code::POST, options: &options, payload: b"p" };
    node.try_request(PEER, &post, Reliability::Confirmable).expect("room");
    let sent = node.one();
    // Uri-Path (11) "a"; delta 65011 = 269 + 64742 (0xfce6), one byte; delta 78 = 13 + 65, three bytes.
    let body = [0xb1, b'a', 0xe1, 0xfc, 0xe6, 0x00, 0xd3, 65, b'x', b'y', b'z', 0xff, b'p'];
    assert_eq!(sent.bytes[4 + sent.token().len()..], body);
}

#[test]
fn every_transmission_has_a_place_of_its_own_in_the_wave() {
    let mut node = node(2);
    node.get();
    node.run_until(200.0);
    let sent = node.take();
    let bits: Vec<u8> = sent.iter().map(|datagram| datagram.option(PM).expect("sent")[0]).collect();
    assert_eq!(bits, [0, 0, 0x80, 0x80, 0], "the original and four copies");
}

#[test]
fn empty_messages_have_no_options() {
    let mut node = node(64);
    node.ep.ping(node.now, PEER).expect("room");
    node.settle();
    assert_eq!(node.one().bytes.len(), 4);
}

#[test]
fn a_server_answers_with_the_option_only_who_sends_it() {
    let mut node = node(64);
    assert_eq!(answer(&mut node, &get(1, None)).option(PM), None);
    assert_eq!(answer(&mut node, &get(2, Some(0))).option(PM), Some(vec![0]));
    assert_eq!(answer(&mut node, &get(3, None)).option(PM), Some(vec![0]), "it is known now");
}

#[test]
fn events_to_signal_are_no_reason_to_send_the_option_first() {
    let mut node = node(64);
    node.ep.signal_events(node.now, PEER, 1);
    assert_eq!(answer(&mut node, &get(1, None)).option(PM), None);
    assert_eq!(answer(&mut node, &get(2, Some(0))).option(PM), Some(vec![1]));
}

#[test]
fn strangers_who_send_the_option_take_half_of_the_places_for_peers() {
    let mut config = measured(64);
    config.limits.peers = 6;
    let mut node = Node::new(config);
    for host in 1..20 {
        let stranger = PeerId::Address(([192, 0, 2, host], 5683).into());
        node.arrive_from(stranger, &get(1, Some(0)));
    }
    assert_eq!(node.ep.peers(), 3);
}

#[test]
fn both_ends_count_what_arrives_in_whole_blocks() {
    let mut server = node(8);
    // Blocks of 8: the third message of the second block and two of the third one are lost.
    for (id, place) in (0..40u16).filter(|place| ![10, 16, 23].contains(place)).zip(0u16..) {
        let bit = if (id / 8) % 2 == 1 { 0x80 } else { 0 };
        server.arrive(&get(place + 1, Some(bit)));
    }
    let measured = server.ep.measured(PEER).expect("measured");
    assert_eq!((measured.sent, measured.arrived), (24, 21), "blocks two to four");
    assert_eq!(measured.loss_ppm(), Some(125_000));
}

#[test]
fn event_bits_are_sent_and_read_and_zeros_are_ignored() {
    let mut server = node(64);
    server.arrive(&get(1, Some(0x05)));
    server.arrive(&get(2, Some(0x00)));
    assert_eq!(server.ep.measured(PEER).expect("measured").events, 5);
    server.ep.signal_events(server.now, PEER, 0xff);
    assert_eq!(answer(&mut server, &get(3, Some(0))).option(PM), Some(vec![0x7f]));
}

#[test]
fn an_option_of_two_bytes_is_not_one_of_these() {
    let mut server = node(64);
    let options: [(u16, &[u8]); 1] = [(PM, &[1, 1])];
    server.arrive(&message(Type::NonConfirmable, Code::GET, 1, b"t", &options, b""));
    assert_eq!(server.ep.measured(PEER), None);
}

#[test]
fn the_longest_message_leaves_room_for_the_option() {
    let mut config = measured(64);
    config.limits.message_bytes = 64;
    let mut node = Node::new(config);
    let payload = [b'x'; 64];
    let longest = (0..64)
        .rev()
        .map(|len| Content { code: Code::POST, options: &[], payload: &payload[..len] })
        .find(|post| node.try_request(PEER, post, Reliability::Confirmable).is_ok());
    assert!(longest.is_some_and(|post| post.payload.len() > 40));
    assert!(node.one().bytes.len() <= 64);
}

#[test]
fn nothing_is_measured_of_a_peer_that_does_not_send_the_option() {
    let mut node = node(64);
    node.get();
    let sent = node.one();
    node.arrive(&sent.answer());
    assert_eq!(node.ep.measured(PEER), None);
}
