//! What OSCORE hides, keeps and refuses, for arbitrary messages.

use ebbtide_core::oscore::{
    Algorithm, ContextName, ContextTable, MasterSecret, NotificationOrder, OscoreOption,
    ParameterError, PeerId, Refusal, ResponseFault, SecurityContext, Volatile,
};
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};
use proptest::prelude::*;

fn secret(algorithm: Algorithm) -> MasterSecret<'static> {
    MasterSecret { secret: b"a secret of many bytes", salt: b"salt", id_context: None, algorithm }
}

fn pair(algorithm: Algorithm) -> [SecurityContext<Volatile>; 2] {
    let secret = secret(algorithm);
    [
        SecurityContext::new(&secret, b"c", b"s", Volatile).unwrap(),
        SecurityContext::new(&secret, b"s", b"c", Volatile).unwrap(),
    ]
}

fn encode(code: Code, kind: Type, options: &[Opt<'_>], payload: &[u8]) -> Vec<u8> {
    let content = Content { code, options, payload };
    let mut buf = vec![0; 4 + 2 + content.encoded_len()];
    content.encode(&mut buf, kind, MessageId(7), Token::new(b"tk").unwrap()).unwrap();
    buf
}

/// Protects a request, as the datagram that carries it.
fn protected(client: &mut SecurityContext<Volatile>, content: &Content<'_>) -> Vec<u8> {
    let mut buf = vec![0; content.encoded_len() + 17];
    let (outer, _) = client.protect_request(content, &mut buf).unwrap();
    let options: Vec<_> = outer.options(content).collect();
    encode(outer.code, Type::Confirmable, &options, outer.payload)
}

const GET: Content<'static> = Content {
    code: Code::GET,
    options: &[Opt { number: OptionNumber::URI_PATH, value: b"lock" }],
    payload: &[],
};

fn option() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let number = prop_oneof![
        Just(OptionNumber::URI_HOST.0),
        Just(OptionNumber::URI_PATH.0),
        Just(OptionNumber::BLOCK1.0),
        Just(OptionNumber::ECHO.0),
        Just(OptionNumber::PROXY_SCHEME.0),
        (1_u16..70).prop_filter("not protectable", |number| {
            !matches!(
                OptionNumber(*number),
                OptionNumber::OSCORE | OptionNumber::PROXY_URI | OptionNumber::OBSERVE
            )
        }),
    ];
    (number, prop::collection::vec(any::<u8>(), 0..20))
}

proptest! {
    #[test]
    fn a_request_arrives_as_it_was(
        options in prop::collection::vec(option(), 0..8),
        payload in prop::collection::vec(any::<u8>(), 0..100),
        gcm in any::<bool>(),
    ) {
        let algorithm = if gcm { Algorithm::AesGcm128 } else { Algorithm::AesCcm16_64_128 };
        let [mut client, mut server] = pair(algorithm);
        let options: Vec<_> =
            options.iter().map(|(number, value)| Opt { number: OptionNumber(*number), value }).collect();
        let content = Content { code: Code::PUT, options: &options, payload: &payload };
        let outer = protected(&mut client, &content);
        let mut buf = vec![0; 2 * outer.len()];
        let opened = server.unprotect_request(&Message::parse(&outer).unwrap(), &mut buf).unwrap();
        // Its OSCORE option remains.
        let plain = Message::parse(&buf[..opened.len]).unwrap();
        let others: Vec<_> = plain.options().filter(|opt| opt.number != OptionNumber::OSCORE).collect();
        prop_assert_eq!(plain.options().count(), others.len() + 1);
        let plain = encode(plain.code(), plain.kind(), &others, plain.payload());
        prop_assert_eq!(plain, encode(Code::PUT, Type::Confirmable, &options, &payload));
    }

    #[test]
    fn a_request_with_a_changed_bit_is_refused_or_the_same(bit in 0_usize..1000) {
        let [mut client, mut server] = pair(Algorithm::AesCcm16_64_128);
        let mut outer = protected(&mut client, &GET);
        // Version, type and token length decide about the message layer.
        let bit = 8 + bit % (8 * outer.len() - 8);
        outer[bit / 8] ^= 0x80 >> (bit % 8);
        let Ok(message) = Message::parse(&outer) else { return Ok(()) };
        let mut buf = vec![0; 2 * outer.len() + 16];
        if let Ok(opened) = server.unprotect_request(&message, &mut buf) {
            let plain = Message::parse(&buf[..opened.len]).unwrap();
            // Code, message ID and token of the outer message are not protected, and change nothing.
            prop_assert!(bit / 8 < 6, "bit {}", bit);
            prop_assert_eq!((plain.code(), plain.path().next()), (Code::GET, Some(b"lock".as_slice())));
        }
    }

    #[test]
    fn arbitrary_values_of_the_option_decode_to_what_encodes_to_them(
        value in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        if let Some(option) = OscoreOption::decode(&value)
            && option.kid.is_none_or(|kid| kid.len() <= 7)
        {
            let encoded = option.encode();
            prop_assert_eq!(encoded.as_slice(), value);
        }
    }
}

#[test]
fn path_and_query_are_hidden_and_the_host_is_not() {
    let [mut client, _] = pair(Algorithm::AesCcm16_64_128);
    let options = [
        Opt { number: OptionNumber::URI_QUERY, value: b"secret=1" },
        Opt { number: OptionNumber::URI_HOST, value: b"example" },
        Opt { number: OptionNumber::URI_PATH, value: b"hidden-path" },
    ];
    let outer =
        protected(&mut client, &Content { code: Code::GET, options: &options, payload: &[] });
    let shown = |text: &[u8]| outer.windows(text.len()).any(|part| part == text);
    assert!(shown(b"example") && !shown(b"secret=1") && !shown(b"hidden-path"));
    let message = Message::parse(&outer).unwrap();
    assert_eq!(message.code(), Code::POST);
    assert!(
        message
            .options()
            .all(|opt| matches!(opt.number, OptionNumber::URI_HOST | OptionNumber::OSCORE))
    );
}

#[test]
fn a_message_that_shows_its_path_is_not_protected() {
    let [mut client, _] = pair(Algorithm::AesCcm16_64_128);
    let options = [Opt { number: OptionNumber::PROXY_URI, value: b"coap://example/hidden" }];
    let content = Content { code: Code::GET, options: &options, payload: &[] };
    assert!(client.protect_request(&content, &mut [0; 64]).is_err());
}

#[test]
fn refusals_have_the_codes_of_section_8() {
    let [mut client, mut server] = pair(Algorithm::AesCcm16_64_128);
    let mut buf = [0; 256];
    let outer = protected(&mut client, &GET);
    let message = Message::parse(&outer).unwrap();
    server.unprotect_request(&message, &mut buf).unwrap();
    assert_eq!(server.unprotect_request(&message, &mut buf).unwrap_err(), Refusal::Replayed);

    let mut other =
        SecurityContext::new(&secret(Algorithm::AesCcm16_64_128), b"s", b"d", Volatile).unwrap();
    assert_eq!(other.unprotect_request(&message, &mut buf).unwrap_err(), Refusal::NoContext);

    let mut wrong_key = secret(Algorithm::AesCcm16_64_128);
    wrong_key.salt = b"other";
    let mut forger = SecurityContext::new(&wrong_key, b"c", b"s", Volatile).unwrap();
    for _ in 0..2 {
        let forged = protected(&mut forger, &GET);
        let forged = Message::parse(&forged).unwrap();
        let refused = server.unprotect_request(&forged, &mut buf).unwrap_err();
        // The first one has the number of the request that was accepted.
        assert!(matches!(refused, Refusal::Replayed | Refusal::NotAuthentic));
    }

    for value in [b"".as_slice(), b"\x01\x05", b"\x08c", b"\x20"] {
        let options = [Opt { number: OptionNumber::OSCORE, value }];
        let malformed = encode(Code::POST, Type::Confirmable, &options, &[0; 20]);
        let malformed = Message::parse(&malformed).unwrap();
        assert_eq!(
            server.unprotect_request(&malformed, &mut buf).unwrap_err(),
            Refusal::Malformed,
            "{value:?}"
        );
    }

    let codes = [
        (Refusal::Malformed, Code::BAD_OPTION),
        (Refusal::NoContext, Code::UNAUTHORIZED),
        (Refusal::Replayed, Code::UNAUTHORIZED),
        (Refusal::NotAuthentic, Code::BAD_REQUEST),
    ];
    assert!(codes.iter().all(|(refusal, code)| refusal.code() == *code));
}

#[test]
fn a_response_is_accepted_for_its_request_only() {
    let [mut client, mut server] = pair(Algorithm::AesCcm16_64_128);
    let mut buf = [0; 256];
    let mut out = [0; 64];
    let (_, first) = client.protect_request(&GET, &mut out).unwrap();
    let outer = protected(&mut client, &GET);
    let opened = server.unprotect_request(&Message::parse(&outer).unwrap(), &mut buf).unwrap();
    for _ in 0..2 {
        let answer = Content { code: Code::CONTENT, options: &[], payload: b"open" };
        let sealed = server.protect_response(opened.number, &answer, &mut buf).unwrap();
        let options: Vec<_> = sealed.options(&answer).collect();
        let datagram = encode(sealed.code, Type::NonConfirmable, &options, sealed.payload);
        let datagram = Message::parse(&datagram).unwrap();
        let mut order = NotificationOrder::default();
        let mut plain = [0; 256];
        let result = client.unprotect_response(first, &mut order, &datagram, &mut plain);
        assert_eq!(result, Err(ResponseFault::NotAuthentic), "it answers another request");
        client.unprotect_response(opened.number, &mut order, &datagram, &mut plain).unwrap();
    }
}

#[test]
fn notifications_are_accepted_in_their_order_only() {
    let [mut client, mut server] = pair(Algorithm::AesCcm16_64_128);
    let mut buf = [0; 256];
    let options = [GET.options[0], Opt { number: OptionNumber::OBSERVE, value: b"" }];
    let outer = protected(&mut client, &Content { options: &options, ..GET });
    assert_eq!(Message::parse(&outer).unwrap().code(), Code::FETCH);
    let opened = server.unprotect_request(&Message::parse(&outer).unwrap(), &mut buf).unwrap();
    let plain = Message::parse(&buf[..opened.len]).unwrap();
    assert!(plain.option(OptionNumber::OBSERVE).is_some());

    let notifications: Vec<_> = (0_u8..4)
        .map(|state| {
            let (number, mut buf) = ([state], [0; 64]);
            let options = [Opt { number: OptionNumber::OBSERVE, value: &number }];
            let content =
                Content { code: Code::CONTENT, options: &options, payload: &[b'0' + state] };
            let outer = server.protect_response(opened.number, &content, &mut buf).unwrap();
            assert_eq!(outer.code, Code::CONTENT);
            // Section 4.1.3.5.2: the inner Observe is empty, the outer one is the application's,
            // and the order is the Partial IV.
            assert_eq!(outer.payload.len(), b"\x45\x60\xff0".len() + 8);
            let options: Vec<_> = outer.options(&content).collect();
            assert!(options.iter().any(|opt| opt.value == number));
            assert_eq!(outer.value.as_slice(), [1, state]);
            encode(outer.code, Type::NonConfirmable, &options, outer.payload)
        })
        .collect();
    let mut order = NotificationOrder::default();
    let mut accepted = Vec::new();
    for at in [0, 2, 1, 2, 3, 0] {
        let outer = Message::parse(&notifications[at]).unwrap();
        match client.unprotect_response(opened.number, &mut order, &outer, &mut buf) {
            Ok(len) => {
                let plain = Message::parse(&buf[..len]).unwrap();
                let sequence = plain.option(OptionNumber::OBSERVE).unwrap().as_uint().unwrap();
                accepted.push((sequence, plain.payload()[0]));
            }
            Err(fault) => assert_eq!(fault, ResponseFault::Outdated),
        }
    }
    assert_eq!(accepted, [(1, b'0'), (2, b'2'), (3, b'3')]);
}

#[test]
fn an_observation_that_a_proxy_does_not_pass_on_is_a_plain_request() {
    let [mut client, mut server] = pair(Algorithm::AesCcm16_64_128);
    let options = [GET.options[0], Opt { number: OptionNumber::OBSERVE, value: b"" }];
    let content = Content { options: &options, ..GET };
    let mut buf = [0; 256];
    let outer = {
        let (outer, _) = client.protect_request(&content, &mut buf).unwrap();
        let options: Vec<_> =
            outer.options(&content).filter(|opt| opt.number != OptionNumber::OBSERVE).collect();
        encode(outer.code, Type::Confirmable, &options, outer.payload)
    };
    let opened = server.unprotect_request(&Message::parse(&outer).unwrap(), &mut buf).unwrap();
    assert!(Message::parse(&buf[..opened.len]).unwrap().option(OptionNumber::OBSERVE).is_none());
}

#[test]
fn parameters_that_would_be_unsafe_are_refused() {
    let good = secret(Algorithm::AesGcm128);
    let new = |secret: &MasterSecret<'_>, a: &[u8], b: &[u8]| {
        SecurityContext::new(secret, a, b, Volatile).unwrap_err()
    };
    assert_eq!(new(&good, b"1", b"1"), ParameterError::SameIds);
    assert_eq!(new(&good, b"1234567", b""), ParameterError::SenderIdTooLong { max: 6 });
    assert_eq!(new(&MasterSecret { secret: &[], ..good }, b"1", b""), ParameterError::NoSecret);
    assert_eq!(
        new(&MasterSecret { id_context: Some(&[0; 33]), ..good }, b"1", b""),
        ParameterError::IdContextTooLong
    );
}

#[test]
fn a_context_is_found_by_its_names() {
    let name = |kid: &[u8], context: Option<&[u8]>| ContextName {
        kid: PeerId::new(kid).unwrap(),
        kid_context: context.map(|id| ebbtide_core::oscore::ContextId::new(id).unwrap()),
    };
    let mut table = ContextTable::default();
    assert_eq!(table.add(name(b"a", None), "a"), Ok(0));
    assert_eq!(table.add(name(b"b", Some(b"2")), "b in 2"), Ok(1));
    assert_eq!(table.add(name(b"b", Some(b"1")), "b in 1"), Ok(2));
    assert_eq!(table.add(name(b"a", None), "again"), Err("again"));
    let found = |table: &ContextTable<&'static str>, kid: &[u8], kid_context: Option<&[u8]>| {
        let option = OscoreOption { partial_iv: None, kid: Some(kid), kid_context };
        table.find(&option).and_then(|number| table.get(number)).copied()
    };
    let find = |kid: &[u8], kid_context: Option<&[u8]>| found(&table, kid, kid_context);
    assert_eq!(find(b"a", None), Some("a"));
    assert_eq!(find(b"a", Some(b"1")), None);
    assert_eq!(find(b"b", Some(b"2")), Some("b in 2"));
    assert_eq!(find(b"b", None), Some("b in 1"));
    assert_eq!(find(b"c", None), None);
    assert_eq!(find(b"more than seven", None), None);
    assert_eq!(table.remove(0), Some("a"));
    assert_eq!(table.add(name(b"a", None), "another"), Ok(3), "no number is used again");
    assert!(table.has(&PeerId::new(b"b").unwrap()) && !table.has(&PeerId::new(b"c").unwrap()));
}
