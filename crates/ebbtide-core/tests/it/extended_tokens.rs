//! Tokens of more than eight bytes (RFC 8974), which a server repeats.

use crate::common::node::{Node, PEER, message};
use crate::common::wired::{Wired, content};
use ebbtide_core::PeerToken;
use ebbtide_core::endpoint::{EndpointConfig, Ignored, Limits, Reliability};
use ebbtide_core::session::BlockSizes;
use ebbtide_core::stream::{Closed, Config, Connection, Event, Fault, Received};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{
    Code, Content, EncodeError, FormatError, Frame, FrameHeader, Framing, Message, MessageId,
    SignalOption, Token, Type, signal_option,
};

const GET: Content<'static> = Content { code: Code::GET, options: &[], payload: &[] };

/// An endpoint that takes tokens of up to 40 bytes.
fn node() -> Node {
    let limits = Limits { token_bytes: 40, ..Limits::default() };
    Node::new(EndpointConfig { limits, ..EndpointConfig::default() })
}

fn get(id: u16, token: &[u8]) -> Vec<u8> {
    message(Type::Confirmable, Code::GET, id, token, &[], b"")
}

#[test]
fn the_length_of_a_token_takes_the_shortest_of_three_forms() {
    for (len, first, extension) in [
        (8, 0x48, &[][..]),
        (9, 0x49, &[]),
        (12, 0x4c, &[]),
        (13, 0x4d, &[0]),
        (268, 0x4d, &[0xff]),
        (269, 0x4e, &[0, 0]),
        (65_804, 0x4e, &[0xff, 0xff]),
    ] {
        let token = vec![7; len];
        let bytes = get(0x1234, &token);
        let header = [&[first, 1, 0x12, 0x34], extension].concat();
        assert_eq!((&bytes[..header.len()], bytes.len()), (&header[..], header.len() + len));
        let read = Message::parse(&bytes).unwrap();
        assert_eq!((read.token_bytes(), read.token().is_some()), (&token[..], len == 8));
        for cut in 4..bytes.len().min(300) {
            let error = Message::parse(&bytes[..cut]).unwrap_err();
            assert!(error.to_string().ends_with("ends within its token"), "{len} {cut}: {error}");
        }
        // Over TCP the code stands between length and extension, and the rest is the same.
        let mut framed = vec![0; GET.framed_len(Framing::Stream, &token)];
        GET.encode_framed(&mut framed, Framing::Stream, &token).unwrap();
        let header = [&[first & 0x0f, 1], extension].concat();
        assert_eq!(framed[..header.len()], header);
        for cut in 0..header.len() {
            assert_eq!(FrameHeader::parse(Framing::Stream, &framed[..cut]), Ok(None));
        }
        let header = FrameHeader::parse(Framing::Stream, &framed).unwrap().unwrap();
        assert_eq!(header.message_len(), framed.len() as u64);
        let frame = Frame::parse(header, &framed).unwrap();
        assert_eq!(frame.token_bytes(), token);
        let (head, rest) = frame.as_datagram(Type::Confirmable, MessageId(0x1234));
        assert_eq!([&head, rest].concat(), bytes);
    }
}

#[test]
fn a_token_longer_than_the_longest_is_an_error_of_its_sender() {
    let (token, mut room) = (vec![0; 65_805], vec![0; 70_000]);
    let error = GET.encode(&mut room, Type::Confirmable, MessageId(1), &token);
    assert_eq!(error, Err(EncodeError::TokenTooLong { len: 65_805 }));
    let error = GET.encode_framed(&mut room, Framing::Stream, &token);
    assert_eq!(error, Err(EncodeError::TokenTooLong { len: 65_805 }));
}

#[test]
fn every_answer_has_the_whole_token() {
    let token: Vec<u8> = (0..40).collect();
    let mut node = node();
    // Piggybacked, separate, Non-confirmable, a notification, and a repeated answer to a POST.
    let incoming = node.arrive(&get(1, &token)).request();
    node.ep.respond(node.now, &incoming, &content(b"hi")).unwrap();
    let mut slow = node.arrive(&get(2, &token)).request();
    node.ep.defer(node.now, &mut slow);
    node.ep.acknowledge(node.now, &mut slow);
    node.ep.respond(node.now, &slow, &content(b"late")).unwrap();
    let non = message(Type::NonConfirmable, Code::GET, 3, &token, &[], b"");
    let incoming = node.arrive(&non).request();
    node.ep.respond(node.now, &incoming, &content(b"non")).unwrap();
    node.ep
        .notify(node.now, PEER, &incoming.token, &content(b"new"), Reliability::NonConfirmable)
        .unwrap();
    let post = message(Type::Confirmable, Code::POST, 4, &token, &[], b"");
    let incoming = node.arrive(&post).request();
    node.ep.respond(node.now, &incoming, &content(b"done")).unwrap();
    assert_eq!(node.arrive(&post).ignored(), Ignored::DuplicateRequest);
    node.settle();
    let said: Vec<(Vec<u8>, Vec<u8>)> =
        node.take().iter().map(|sent| (sent.token(), sent.message().payload().to_vec())).collect();
    let expected = [&b"hi"[..], b"", b"late", b"non", b"new", b"done", b"done"].map(|payload| {
        let token = if payload.is_empty() { Vec::new() } else { token.clone() };
        (token, payload.to_vec())
    });
    let sorted = |mut all: Vec<(Vec<u8>, Vec<u8>)>| {
        all.sort();
        all
    };
    assert_eq!(sorted(said), sorted(expected.to_vec()));
}

#[test]
fn a_token_that_is_too_long_is_answered_4_00_and_not_rejected() {
    let mut node = node();
    for kind in [Type::Confirmable, Type::NonConfirmable] {
        let request = message(kind, Code::POST, 5, &[1; 41], &[], b"");
        assert_eq!(node.arrive(&request).ignored(), Ignored::TokenTooLong);
        let answer = node.one();
        assert_eq!((answer.code(), answer.token()), (Code::BAD_REQUEST, vec![1; 41]));
    }
    assert_eq!(node.ep.counters().malformed, 0);
}

#[test]
fn a_token_that_leaves_no_room_for_an_answer_is_answered_4_00() {
    let limits = Limits { token_bytes: 65_000, ..Limits::default() };
    let mut node = Node::new(EndpointConfig { limits, ..EndpointConfig::default() });
    let half = limits.message_bytes / 2;
    node.arrive(&get(1, &vec![1; half])).request();
    for (id, len) in (2..).zip([half + 1, 1146, 1152, 1200, 9000]) {
        assert_eq!(node.arrive(&get(id, &vec![1; len])).ignored(), Ignored::TokenTooLong);
        let answer = node.one();
        assert_eq!((answer.code(), answer.token().len()), (Code::BAD_REQUEST, len));
    }
}

#[test]
fn without_the_extension_a_ninth_byte_is_a_format_error() {
    let mut node = Node::new(EndpointConfig::default());
    assert_eq!(node.arrive(&get(1, &[1; 9])).ignored(), Ignored::Malformed);
    assert_eq!(node.one().head(), (Type::Reset, Code::EMPTY, 1));
}

#[test]
fn a_response_with_a_token_that_we_never_use_answers_nothing() {
    let mut node = node();
    node.get();
    let sent = node.one();
    let token = [sent.token(), vec![0; 9]].concat();
    let separate = message(Type::Confirmable, Code::CONTENT, 9, &token, &[], b"x");
    assert_eq!(node.arrive(&separate).ignored(), Ignored::UnknownExchange);
    assert_eq!(node.one().head(), (Type::Reset, Code::EMPTY, 9));
    let piggybacked = message(Type::Acknowledgement, Code::CONTENT, sent.id(), &token, &[], b"x");
    assert_eq!(node.arrive(&piggybacked).ignored(), Ignored::WrongToken);
    assert_eq!(node.ep.open_exchanges(), 1);
}

#[test]
fn blocks_leave_room_for_the_token() {
    let sizes = BlockSizes::of_datagrams(1024);
    for (token, szx) in [(8, 6), (9, 5), (13, 5), (256, 5), (510, 5), (519, 4), (1100, 0)] {
        let beside = sizes.beside(&PeerToken::new(&vec![0; token]));
        assert_eq!((beside.szx, beside.whole), (szx, 16 << szx), "{token}");
    }
    // With BERT (RFC 8323 section 6), as many units as fit; otherwise one of at most 1024 bytes.
    for (peer, szx, block) in [(&[0xe1, 0x22, 0x16, 0x04][..], 7, 4096), (&[0xe1], 5, 512)] {
        let mut at = Connection::new(Instant::ZERO, Framing::Stream, Config::default());
        let csm = [&[if peer.len() > 1 { 0x40 } else { 0 }], peer, &[0x20][..peer.len() / 4]];
        at.handle_input(Instant::ZERO, &csm.concat()).unwrap();
        let sizes = BlockSizes::of_connection(&at, 0).beside(&PeerToken::new(&[0; 500]));
        assert_eq!((sizes.szx, sizes.block), (szx, block));
        assert!(sizes.whole + 500 + 120 <= at.message_limit(), "{sizes:?}");
    }
}

/// A connection with tokens of up to `most` bytes whose peer has sent its CSM.
fn connection(framing: Framing, most: u32) -> Connection {
    let config = Config { max_token_length: most, ..Config::default() };
    let mut connection = Connection::new(Instant::ZERO, framing, config);
    connection.handle_input(Instant::ZERO, &[0x00, 0xe1]).unwrap();
    connection
}

/// The only message that waits to be sent.
fn sent(connection: &mut Connection) -> Vec<u8> {
    let bytes = connection.poll_transmit().to_vec();
    connection.handle_transmitted(Instant::ZERO, bytes.len());
    assert!(connection.poll_transmit().is_empty());
    bytes
}

#[test]
fn a_csm_says_how_long_a_token_may_be() {
    for (most, said) in
        [(0, None), (8, None), (9, Some(9)), (256, Some(256)), (70_000, Some(65_804))]
    {
        let bytes = sent(&mut connection(Framing::Stream, most));
        let header = FrameHeader::parse(Framing::Stream, &bytes).unwrap().unwrap();
        let csm = Frame::parse(header, &bytes).unwrap();
        let option = signal_option(&csm, SignalOption::EXTENDED_TOKEN_LENGTH);
        assert_eq!(option.and_then(|option| option.as_uint()), said);
    }
}

#[test]
fn over_a_connection_the_token_is_repeated_up_to_that_length() {
    // No message of these has options or payload, so both framings have the same bytes.
    for framing in [Framing::Stream, Framing::WebSocket] {
        let mut at = connection(framing, 40);
        sent(&mut at);
        let get = [&[0x0d, 0x01, 27][..], &[5; 40]].concat();
        let received = at.handle_input(Instant::ZERO, &get).unwrap().received;
        let Received::Request(incoming, _) = received else { panic!("no request: {received:?}") };
        at.respond(Instant::ZERO, &incoming, &Content { code: Code::CONTENT, ..GET }).unwrap();
        assert_eq!(sent(&mut at), [&[0x0d, 0x45, 27][..], &[5; 40]].concat());
        // A Pong repeats the token of its Ping.
        at.handle_input(Instant::ZERO, &[&[0x0d, 0xe2, 27][..], &[6; 40]].concat()).unwrap();
        assert_eq!(sent(&mut at), [&[0x0d, 0xe3, 27][..], &[6; 40]].concat());
        // RFC 8974 section 2.2.1: one more byte "MUST" be handled "as a message format error".
        at.handle_input(Instant::ZERO, &[&[0x0d, 0x01, 28][..], &[5; 41]].concat()).unwrap();
        sent(&mut at);
        let fault = Fault::Malformed(FormatError::TokenLength(41));
        assert_eq!(at.poll_event(), Some(Event::Closed(Closed::Aborted(fault))));
    }
}

#[test]
fn what_a_client_asks_for_over_a_connection_has_a_short_token() {
    let config = Config { max_token_length: 300, ..Config::default() };
    let mut wired = Wired::new(config, config);
    wired.a.request(wired.now, &GET).unwrap();
    wired.exchange();
    assert_eq!(wired.b_requests()[0].token.as_slice().len(), 4);
    let token = PeerToken::from(Token::new(&[1, 2]).unwrap());
    assert_eq!((format!("{token:?}"), token.encoded_len()), ("PeerToken(0102)".to_owned(), 2));
}
