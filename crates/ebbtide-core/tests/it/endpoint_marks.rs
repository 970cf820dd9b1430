//! Marks: transmissions told apart by token or option (Thesis19 section 7.3, fasor-02), and whom
//! to believe.

use crate::common::node::{COUNT, Datagram, Got, Node, PEER, config, message};
use ebbtide_core::ExchangeId;
use ebbtide_core::cc::Sample;
use ebbtide_core::endpoint::{Ignored, Reliability};
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber, Type};

/// A piggybacked response to `sent` whose mark names `ordinal`.
fn token_answer(sent: &Datagram, ordinal: u8) -> Vec<u8> {
    let mut token = sent.token();
    token[0] = ordinal;
    message(Type::Acknowledgement, Code::CONTENT, sent.id(), &token, &[], b"x")
}

/// A piggybacked response to `sent` with this value of Rexmit-Cnt, or without.
fn option_answer(sent: &Datagram, count: Option<&[u8]>) -> Vec<u8> {
    let option = count.map(|value| (COUNT, value));
    let token = sent.token();
    let options: Vec<(u16, &[u8])> = option.into_iter().collect();
    message(Type::Acknowledgement, Code::CONTENT, sent.id(), &token, &options, b"x")
}

/// A GET of which the original and `lost` retransmissions have left; the transmissions.
fn sent_times(node: &mut Node, retransmissions: usize) -> (ExchangeId, Vec<Datagram>) {
    let exchange = node.get();
    while node.sent.len() <= retransmissions {
        node.now = node.timeout.expect("open");
        node.ep.handle_timeout(node.now);
        node.settle();
    }
    (exchange, node.take())
}

/// Which transmission the sample is of, and how long ago that left.
fn told(sample: Option<Sample>) -> Option<(u8, f64)> {
    sample.expect("a sample").answered.map(|a| (a.ordinal, crate::common::float(a.since)))
}

#[test]
fn a_token_carries_the_ordinal_in_its_first_byte() {
    let mut node = Node::under("fasor-token");
    let (_, sent) = sent_times(&mut node, 4);
    let tokens: Vec<Vec<u8>> = sent.iter().map(Datagram::token).collect();
    for (ordinal, token) in tokens.iter().enumerate() {
        assert_eq!(token.len(), 5);
        assert_eq!(usize::from(token[0]), ordinal);
        assert_eq!(token[1..], tokens[0][1..], "the rest is the same");
    }
    let ids: Vec<u16> = sent.iter().map(Datagram::id).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "and so is the message ID");
}

#[test]
fn a_registration_keeps_its_token_under_every_control_that_marks_tokens() {
    for name in ["fasor-token", "ebb"] {
        let mut node = Node::under(name);
        let options = [Opt { number: OptionNumber::OBSERVE, value: &[] }];
        let get = Content { code: Code::GET, options: &options, payload: &[] };
        node.try_request(PEER, &get, Reliability::Confirmable).expect("accepted");
        node.run_until(90.0);
        // A control may send pings in between, which have no token.
        let mut sent = node.take();
        sent.retain(|datagram| datagram.code() == Code::GET);
        let tokens: Vec<Vec<u8>> = sent.iter().map(Datagram::token).collect();
        assert!(tokens.len() > 1, "{name}: {tokens:?}");
        assert!(tokens.iter().all(|token| *token == tokens[0]), "{name}: {tokens:?}");
    }
}

#[test]
fn copies_of_a_request_that_oscore_protects_are_the_same_datagram_under_every_control() {
    for name in ["fasor-token", "fasor-option", "ebb"] {
        let mut node = Node::under(name);
        // Partial IV 5, kid `c`.
        let options = [Opt { number: OptionNumber::OSCORE, value: &[0x09, 5, b'c'] }];
        let post = Content { code: Code::POST, options: &options, payload: b"ciphertext" };
        node.try_request(PEER, &post, Reliability::Confirmable).expect("accepted");
        node.run_until(90.0);
        let mut sent = node.take();
        // A control may send pings in between.
        sent.retain(|datagram| datagram.code() == Code::POST);
        assert!(sent.len() > 1, "{name}");
        assert!(sent.iter().all(|datagram| datagram.bytes == sent[0].bytes), "{name}: {sent:?}");
    }
}

#[test]
fn the_lengths_of_tokens_are_bounded_with_the_mark() {
    for (length, marked, plain) in [(0, 1, 0), (1, 2, 1), (7, 8, 7), (8, 8, 8), (200, 8, 8)] {
        for (control, expected) in [("fasor-token", marked), ("fasor", plain)] {
            let mut config = config(control);
            config.token_length = length;
            let mut node = Node::new(config);
            node.get();
            assert_eq!(node.one().token().len(), expected, "{control} {length}");
        }
    }
}

#[test]
fn an_answer_to_a_retransmission_gives_its_own_round_trip() {
    for ordinal in 1..=3u8 {
        let mut config = config("fasor-token");
        config.study.trusts_marks = true;
        let mut node = Node::new(config);
        let (exchange, sent) = sent_times(&mut node, 3);
        node.wait(0.25);
        let got = node.arrive(&token_answer(&sent[0], ordinal));
        let sample = got.response_to(exchange);
        let since = (node.now - sent[usize::from(ordinal)].at).as_secs_f64();
        let (named, measured) = told(sample).expect("told");
        assert_eq!(named, ordinal);
        assert!((measured - since).abs() < 2e-6, "{measured} {since}");
        assert_eq!(sample.map(|s| s.transmissions), Some(4));
        let srtt = node.ep.metrics(PEER).unwrap().srtt.map(crate::common::float);
        assert!((srtt.expect("a sample") - since).abs() < 2e-6);
    }
}

#[test]
fn an_ordinal_that_was_never_sent_is_ignored_and_counted() {
    let mut node = Node::under("fasor-token");
    let (exchange, sent) = sent_times(&mut node, 1);
    for ordinal in [2, 3, 254, 255] {
        let got = node.arrive(&token_answer(&sent[0], ordinal));
        assert_eq!(got.ignored(), Ignored::WrongToken);
    }
    assert_eq!(node.ep.counters().wrong_tokens, 4);
    // Nor in a separate response, which is rejected.
    let mut token = sent[0].token();
    token[0] = 2;
    let separate = message(Type::Confirmable, Code::CONTENT, 9, &token, &[], b"x");
    assert_eq!(node.arrive(&separate).ignored(), Ignored::UnknownExchange);
    assert_eq!(node.one().kind(), Type::Reset);
    assert_eq!(node.ep.metrics(PEER).unwrap().srtt, None);
    // The exchange is still open.
    assert!(told(node.arrive(&token_answer(&sent[0], 1)).response_to(exchange)).is_some());
}

#[test]
fn a_wrong_rest_of_the_token_is_ignored() {
    let mut node = Node::under("fasor-token");
    let (_, sent) = sent_times(&mut node, 0);
    let mut token = sent[0].token();
    token[3] ^= 1;
    for token in [&token[..], &sent[0].token()[1..], b""] {
        let wrong = message(Type::Acknowledgement, Code::CONTENT, sent[0].id(), token, &[], b"x");
        assert_eq!(node.arrive(&wrong).ignored(), Ignored::WrongToken);
    }
}

#[test]
fn an_answer_that_names_an_earlier_copy_is_believed_after_two_copies_were_answered_as_themselves() {
    let mut node = Node::under("fasor-token");
    let (exchange, sent) = sent_times(&mut node, 1);
    let got = node.arrive(&token_answer(&sent[0], 0));
    assert_eq!(told(got.response_to(exchange)), None, "perhaps a stored response");
    // The second answer names the second copy: none of them was stored.
    let second = node.arrive(&token_answer(&sent[0], 1));
    assert_eq!(second.ignored(), Ignored::UnknownExchange);
    let (exchange, sent) = sent_times(&mut node, 1);
    let got = node.arrive(&token_answer(&sent[0], 0));
    assert_eq!(told(got.response_to(exchange)).map(|t| t.0), Some(0));
    // Forgotten, it has to show it again.
    node.ep.forget(PEER);
    let (exchange, sent) = sent_times(&mut node, 1);
    let got = node.arrive(&token_answer(&sent[0], 0));
    assert_eq!(told(got.response_to(exchange)), None);
}

#[test]
fn an_answer_that_names_a_copy_shows_nothing_if_the_original_may_have_been_lost() {
    let mut node = Node::under("fasor-token");
    let (exchange, sent) = sent_times(&mut node, 2);
    let got = node.arrive(&token_answer(&sent[0], 1));
    assert_eq!(
        told(got.response_to(exchange)),
        None,
        "it may be stored, and answer the second copy"
    );
    let (exchange, sent) = sent_times(&mut node, 2);
    let got = node.arrive(&token_answer(&sent[0], 2));
    assert_eq!(told(got.response_to(exchange)).map(|t| t.0), Some(2), "the last one");
    let (exchange, sent) = sent_times(&mut node, 1);
    let got = node.arrive(&token_answer(&sent[0], 0));
    assert_eq!(told(got.response_to(exchange)), None);
}

#[test]
fn two_answers_show_nothing_if_they_name_one_copy_or_one_of_them_is_forged() {
    let mut node = Node::under("fasor-token");
    let (_, sent) = sent_times(&mut node, 1);
    node.arrive(&token_answer(&sent[0], 0));
    node.arrive(&token_answer(&sent[0], 0));
    // Another token, another address, and a copy that was never sent.
    let mut other = sent[1].token();
    other[2] ^= 1;
    let id = sent[0].id();
    node.arrive(&message(Type::Acknowledgement, Code::CONTENT, id, &other, &[], b"x"));
    node.arrive_from(crate::common::node::peer(9), &token_answer(&sent[0], 1));
    node.arrive(&token_answer(&sent[0], 2));
    let (exchange, sent) = sent_times(&mut node, 1);
    let got = node.arrive(&token_answer(&sent[0], 0));
    assert_eq!(told(got.response_to(exchange)), None);
}

#[test]
fn a_verified_peer_is_trusted_at_once() {
    let mut config = config("fasor-token");
    config.study.trusts_marks = true;
    let mut node = Node::new(config);
    let (exchange, sent) = sent_times(&mut node, 2);
    let got = node.arrive(&token_answer(&sent[0], 0));
    assert_eq!(told(got.response_to(exchange)).map(|t| t.0), Some(0));
}

#[test]
fn without_a_retransmission_everybody_is_believed() {
    let mut node = Node::under("fasor-token");
    let (exchange, sent) = sent_times(&mut node, 0);
    node.wait(0.5);
    let got = node.arrive(&token_answer(&sent[0], 0));
    assert_eq!(told(got.response_to(exchange)), Some((0, 0.5)));
}

#[test]
fn an_empty_acknowledgement_tells_nothing_and_feeds_like_plain_fasor() {
    let mut node = Node::under("fasor-token");
    let (_, sent) = sent_times(&mut node, 1);
    match node.arrive(&sent[1].ack()) {
        Got::Acknowledged { sample, .. } => {
            assert_eq!((sample.answered, sample.transmissions), (None, 2))
        }
        other => panic!("{other:?}"),
    }
    let metrics = node.ep.metrics(PEER).unwrap();
    assert_eq!((metrics.srtt, metrics.state), (None, "FAST_SLOW_FAST"));
}

#[test]
fn a_separate_response_may_carry_the_token_of_any_transmission() {
    for ordinal in 0..=2 {
        let mut node = Node::under("fasor-token");
        let (exchange, sent) = sent_times(&mut node, 2);
        node.arrive(&sent[1].ack());
        let token = sent[ordinal].token();
        let separate = message(Type::Confirmable, Code::CONTENT, 9, &token, &[], b"x");
        assert!(node.arrive(&separate).response_to(exchange).is_none());
        assert_eq!(node.one().kind(), Type::Acknowledgement);
        node.assert_free();
    }
}

#[test]
fn a_separate_response_before_the_acknowledgement_tells_which_copy_it_answers() {
    let mut node = Node::under("fasor-token");
    let (exchange, sent) = sent_times(&mut node, 2);
    node.wait(0.5);
    let separate = sent[2].separate(Type::NonConfirmable, 9);
    let sample = node.arrive(&separate).response_to(exchange);
    assert_eq!(told(sample), Some((2, 0.5)));
}

#[test]
fn the_first_request_asks_for_the_option_with_255() {
    let mut node = Node::under("fasor-option");
    let (_, sent) = sent_times(&mut node, 2);
    let counts: Vec<Option<Vec<u8>>> = sent.iter().map(|d| d.option(COUNT)).collect();
    assert_eq!(counts, [Some(vec![255]), Some(vec![1]), Some(vec![2])]);
    assert!(sent.iter().all(|d| d.token() == sent[0].token()), "tokens are not marked");
}

#[test]
fn an_echo_confirms_support_and_from_then_on_originals_omit_the_option() {
    let mut node = Node::under("fasor-option");
    let (exchange, sent) = sent_times(&mut node, 0);
    node.wait(0.4);
    let got = node.arrive(&option_answer(&sent[0], Some(&[255])));
    assert_eq!(told(got.response_to(exchange)), Some((0, 0.4)));
    let (exchange, sent) = sent_times(&mut node, 2);
    let counts: Vec<Option<Vec<u8>>> = sent.iter().map(|d| d.option(COUNT)).collect();
    assert_eq!(counts, [None, Some(vec![1]), Some(vec![2])]);
    node.wait(0.3);
    let got = node.arrive(&option_answer(&sent[0], Some(&[2])));
    assert_eq!(told(got.response_to(exchange)), Some((2, 0.3)));
    // An original without the option is answered without it.
    let (exchange, sent) = sent_times(&mut node, 0);
    node.wait(0.2);
    let got = node.arrive(&option_answer(&sent[0], None));
    assert_eq!(told(got.response_to(exchange)), Some((0, 0.2)));
}

#[test]
fn without_an_echo_the_option_is_dropped_and_plain_fasor_runs() {
    let mut node = Node::under("fasor-option");
    let (exchange, sent) = sent_times(&mut node, 0);
    let got = node.arrive(&option_answer(&sent[0], None));
    assert_eq!(told(got.response_to(exchange)), None);
    let (exchange, sent) = sent_times(&mut node, 2);
    assert!(sent.iter().all(|datagram| datagram.option(COUNT).is_none()));
    assert!(sent.iter().all(|datagram| datagram.bytes == sent[0].bytes));
    let got = node.arrive(&option_answer(&sent[0], None));
    assert_eq!(told(got.response_to(exchange)), None);
    // Another endpoint in its place may know it.
    node.ep.forget(PEER);
    let (_, sent) = sent_times(&mut node, 0);
    assert_eq!(sent[0].option(COUNT), Some(vec![255]));
}

#[test]
fn an_empty_acknowledgement_says_nothing_about_support() {
    let mut node = Node::under("fasor-option");
    let (_, sent) = sent_times(&mut node, 0);
    node.arrive(&sent[0].ack());
    node.arrive(&sent[0].separate(Type::NonConfirmable, 9));
    let (_, sent) = sent_times(&mut node, 0);
    assert_eq!(sent[0].option(COUNT), Some(vec![255]));
}

#[test]
fn an_echo_of_what_was_never_sent_is_ignored_and_counted() {
    let mut node = Node::under("fasor-option");
    let (exchange, sent) = sent_times(&mut node, 1);
    for count in [2u8, 254] {
        let got = node.arrive(&option_answer(&sent[0], Some(&[count])));
        assert_eq!(got.ignored(), Ignored::WrongToken);
    }
    let got = node.arrive(&option_answer(&sent[0], Some(&[1, 0])));
    assert_eq!(got.ignored(), Ignored::WrongToken);
    assert_eq!(node.ep.counters().wrong_tokens, 3);
    let got = node.arrive(&option_answer(&sent[0], Some(&[1])));
    assert_eq!(told(got.response_to(exchange)).map(|t| t.0), Some(1));
    // Once support is known 255 is not sent.
    let (_, sent) = sent_times(&mut node, 1);
    let got = node.arrive(&option_answer(&sent[0], Some(&[255])));
    assert_eq!(got.ignored(), Ignored::WrongToken);
    // Nor is anything sent to a peer that is known not to echo.
    let mut node = Node::under("fasor-option");
    let (_, sent) = sent_times(&mut node, 0);
    node.arrive(&option_answer(&sent[0], None));
    let (_, sent) = sent_times(&mut node, 1);
    let got = node.arrive(&option_answer(&sent[0], Some(&[1])));
    assert_eq!(got.ignored(), Ignored::WrongToken);
}

#[test]
fn the_option_has_the_same_rule_of_trust() {
    let mut node = Node::under("fasor-option");
    let (exchange, sent) = sent_times(&mut node, 1);
    // Perhaps stored when the first copy came.
    let got = node.arrive(&option_answer(&sent[0], Some(&[255])));
    assert_eq!(told(got.response_to(exchange)), None);
    let (exchange, sent) = sent_times(&mut node, 1);
    let got = node.arrive(&option_answer(&sent[0], Some(&[1])));
    assert_eq!(told(got.response_to(exchange)).map(|t| t.0), Some(1));
    // An answer without the option names none.
    node.arrive(&option_answer(&sent[0], None));
    let (exchange, sent) = sent_times(&mut node, 1);
    let got = node.arrive(&option_answer(&sent[0], None));
    assert_eq!(told(got.response_to(exchange)), None);
    node.arrive(&option_answer(&sent[0], Some(&[1])));
    let (exchange, sent) = sent_times(&mut node, 1);
    let got = node.arrive(&option_answer(&sent[0], None));
    assert_eq!(told(got.response_to(exchange)).map(|t| t.0), Some(0));
}

#[test]
fn the_option_comes_after_the_others_and_before_the_payload() {
    use ebbtide_core::endpoint::Reliability;
    use ebbtide_core::wire::{Content, Opt, OptionNumber};
    let mut node = Node::under("fasor-option");
    let path = [
        Opt { number: OptionNumber::URI_PATH, value: b"sensors" },
        Opt { number: OptionNumber::URI_PATH, value: b"temperature" },
    ];
    let content = Content { code: Code::PUT, options: &path, payload: b"22.5" };
    node.try_request(PEER, &content, Reliability::Confirmable).unwrap();
    node.wait(3.0);
    for (sent, count) in node.take().iter().zip([255, 1]) {
        let message = sent.message();
        let segments: Vec<&[u8]> = message.path().collect();
        assert_eq!(segments, [&b"sensors"[..], b"temperature"]);
        assert_eq!(message.payload(), b"22.5");
        assert_eq!(sent.option(COUNT), Some(vec![count]));
    }
}

#[test]
fn the_number_of_the_option_can_be_set() {
    let mut config = config("fasor-option");
    config.rexmit_count_option = ebbtide_core::wire::OptionNumber(65052);
    let mut node = Node::new(config);
    let (exchange, sent) = sent_times(&mut node, 0);
    assert_eq!((sent[0].option(COUNT), sent[0].option(65052)), (None, Some(vec![255])));
    let echo: &[(u16, &[u8])] = &[(65052, &[255])];
    let (id, token) = (sent[0].id(), sent[0].token());
    let answer = message(Type::Acknowledgement, Code::CONTENT, id, &token, echo, b"");
    assert!(told(node.arrive(&answer).response_to(exchange)).is_some());
}

#[test]
fn more_retransmissions_than_a_mark_can_count_do_no_harm() {
    for control in
        ["fasor-token:initial-rto=20ms:bound=20ms", "fasor-option:initial-rto=20ms:bound=20ms"]
    {
        let mut config = config(control);
        config.params.max_retransmit = 255;
        let mut node = Node::new(config);
        node.get();
        node.wait(100.0);
        let sent = node.take();
        assert_eq!(sent.len(), 255);
        assert_eq!(sent[254].ordinal(), 254);
        assert_eq!(node.failures().len(), 1);
        node.assert_free();
    }
}
