//! The test vectors of RFC 8613 appendix C.

use ebbtide_core::oscore::{
    Algorithm, Freshness, MasterSecret, NotificationOrder, Numbering, OscoreOption,
    SecurityContext, Volatile,
};
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};

const SECRET: &str = "0102030405060708090a0b0c0d0e0f10";
const SALT: &str = "9e7ca92223786340";
const ID_CONTEXT: &str = "37cbf3210017a2d3";

pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    text.as_bytes().as_chunks::<2>().0.iter().map(|[a, b]| digit(*a) << 4 | digit(*b)).collect()
}

/// One of the three contexts of C.1 to C.3, with the IDs of the peers.
struct Vector {
    salt: &'static str,
    id_context: Option<&'static str>,
    client: &'static str,
    server: &'static str,
}

const C_1: Vector = Vector { salt: SALT, id_context: None, client: "", server: "01" };
const C_2: Vector = Vector { salt: "", id_context: None, client: "00", server: "01" };
const C_3: Vector = Vector { salt: SALT, id_context: Some(ID_CONTEXT), client: "", server: "01" };

impl Vector {
    fn context(&self, sender: &str, recipient: &str, next: u64) -> SecurityContext<Volatile> {
        let (secret, salt, id_context) = (hex(SECRET), hex(self.salt), self.id_context.map(hex));
        let secret = MasterSecret {
            secret: &secret,
            salt: &salt,
            id_context: id_context.as_deref(),
            algorithm: Algorithm::AesCcm16_64_128,
        };
        let numbering = if next == 0 { Numbering::Fresh } else { Numbering::Resumed(next) };
        SecurityContext::resume(&secret, &hex(sender), &hex(recipient), numbering, Volatile)
            .unwrap()
    }

    fn client(&self, next: u64) -> SecurityContext<Volatile> {
        self.context(self.client, self.server, next)
    }

    fn server(&self) -> SecurityContext<Volatile> {
        self.context(self.server, self.client, 0)
    }
}

/// The datagram that protects another one, from the parts that a context gives.
fn datagram<'c>(
    plain: &Message<'_>,
    code: Code,
    options: impl Iterator<Item = Opt<'c>>,
    payload: &[u8],
) -> Vec<u8> {
    let options: Vec<_> = options.collect();
    let content = Content { code, options: &options, payload };
    let mut buf = [0; 256];
    let encoded =
        content.encode(&mut buf, plain.kind(), plain.message_id(), plain.token_bytes()).unwrap();
    buf[..encoded.len].to_vec()
}

fn request(
    context: &mut SecurityContext<Volatile>,
    plain: &[u8],
) -> (Vec<u8>, ebbtide_core::oscore::RequestNumber) {
    let message = Message::parse(plain).unwrap();
    let options: Vec<_> = message.options().collect();
    let content = Content { code: message.code(), options: &options, payload: message.payload() };
    let mut buf = [0; 256];
    let (outer, number) = context.protect_request(&content, &mut buf).unwrap();
    (datagram(&message, outer.code, outer.options(&content), outer.payload), number)
}

/// A datagram without its OSCORE option, which a server's context leaves in it.
fn without_option(datagram: &[u8]) -> Vec<u8> {
    let message = Message::parse(datagram).unwrap();
    let others = message.options().filter(|opt| opt.number != OptionNumber::OSCORE);
    self::datagram(&message, message.code(), others, message.payload())
}

/// Sections C.4 to C.6: the request is made with number 20, and read by the server.
fn check_request(vector: &Vector, plain: &str, protected: &str) {
    let (plain, protected) = (hex(plain), hex(protected));
    let (made, number) = request(&mut vector.client(20), &plain);
    assert_eq!(made, protected);
    assert_eq!(number.get(), 20);
    let mut buf = [0; 256];
    let opened =
        vector.server().unprotect_request(&Message::parse(&protected).unwrap(), &mut buf).unwrap();
    assert_eq!(without_option(&buf[..opened.len]), plain);
    assert_eq!((opened.number.get(), opened.freshness), (20, Freshness::New));
}

#[test]
fn a_request_of_a_context_with_salt_is_that_of_c_4() {
    check_request(
        &C_1,
        "44015d1f00003974396c6f63616c686f737483747631",
        "44025d1f00003974396c6f63616c686f7374620914ff612f1092f1776f1c1668b3825e",
    );
}

#[test]
fn a_request_of_a_context_without_salt_is_that_of_c_5() {
    check_request(
        &C_2,
        "440171c30000b932396c6f63616c686f737483747631",
        "440271c30000b932396c6f63616c686f737463091400ff4ed339a5a379b0b8bc731fffb0",
    );
}

#[test]
fn a_request_of_a_context_with_an_id_context_is_that_of_c_6() {
    check_request(
        &C_3,
        "44012f8eef9bbf7a396c6f63616c686f737483747631",
        "44022f8eef9bbf7a396c6f63616c686f73746b19140837cbf3210017a2d3ff72cd7273fd331ac45cffbe55c3",
    );
}

const REQUEST: &str = "44025d1f00003974396c6f63616c686f7374620914ff612f1092f1776f1c1668b3825e";
const RESPONSE: &str = "64445d1f0000397490ffdbaad1e9a7e7b2a813d3c31524378303cdafae119106";
const RESPONSE_WITH_PARTIAL_IV: &str =
    "64445d1f00003974920100ff4d4c13669384b67354b2b6175ff4b8658c666a6cf88e";
const PLAIN_RESPONSE: &str = "64455d1f00003974ff48656c6c6f20576f726c6421";

/// The responses of C.7 and C.8: the second one cannot use the nonce of the request again.
#[test]
fn two_responses_to_a_request_are_those_of_c_7_and_c_8() {
    let mut server = C_1.server();
    let mut buf = [0; 256];
    let number = {
        let outer = hex(REQUEST);
        server.unprotect_request(&Message::parse(&outer).unwrap(), &mut buf).unwrap().number
    };
    let plain = hex(PLAIN_RESPONSE);
    let message = Message::parse(&plain).unwrap();
    let content = Content { code: message.code(), options: &[], payload: message.payload() };
    for expected in [RESPONSE, RESPONSE_WITH_PARTIAL_IV] {
        let outer = server.protect_response(number, &content, &mut buf).unwrap();
        assert_eq!(
            datagram(&message, outer.code, outer.options(&content), outer.payload),
            hex(expected)
        );
    }
}

#[test]
fn a_client_reads_the_responses_of_c_7_and_c_8() {
    let mut client = C_1.client(20);
    let (_, number) = request(&mut client, &hex("44015d1f00003974396c6f63616c686f737483747631"));
    for protected in [RESPONSE, RESPONSE_WITH_PARTIAL_IV] {
        let (protected, mut buf) = (hex(protected), [0; 256]);
        let outer = Message::parse(&protected).unwrap();
        let mut order = NotificationOrder::default();
        let len = client.unprotect_response(number, &mut order, &outer, &mut buf).unwrap();
        assert_eq!(buf[..len], hex(PLAIN_RESPONSE));
    }
}

/// C.1 to C.3 give keys and nonces, which the messages of C.4 to C.8 contain for the client of C.1,
/// the server of C.1, and the clients of C.2 and C.3. What remains are the servers of C.2 and C.3:
/// each reads what its client says and is read by it, and its key is the client's recipient key.
#[test]
fn both_sides_of_each_context_derive_the_same_keys() {
    for vector in [&C_1, &C_2, &C_3] {
        let (mut client, mut server) = (vector.client(0), vector.server());
        let plain = hex("44015d1f00003974396c6f63616c686f737483747631");
        let (outer, number) = request(&mut client, &plain);
        let mut buf = [0; 256];
        let opened = server.unprotect_request(&Message::parse(&outer).unwrap(), &mut buf).unwrap();
        let content = Content { code: Code::CONTENT, options: &[], payload: b"21.5" };
        let answer = server.protect_response(opened.number, &content, &mut buf).unwrap();
        let message = Message::parse(&plain).unwrap();
        let answer = datagram(&message, answer.code, answer.options(&content), answer.payload);
        let mut order = NotificationOrder::default();
        let outer = Message::parse(&answer).unwrap();
        let len = client.unprotect_response(number, &mut order, &outer, &mut buf).unwrap();
        assert_eq!(Message::parse(&buf[..len]).unwrap().payload(), b"21.5");
    }
}

/// RFC 8613 section 6.3 has examples of the option's value.
#[test]
fn option_values_are_those_of_section_6() {
    let examples = [
        ("090525", Some(5), None, Some("25")),
        ("0900", Some(0), None, Some("")),
        ("19050644616c656b", Some(5), Some("44616c656b"), Some("")),
        ("", None, None, None),
        ("0107", Some(7), None, None),
    ];
    for (value, partial_iv, kid_context, kid) in examples {
        if value == "19050644616c656b" {
            // Its length byte says six, one more than there are.
            assert_eq!(OscoreOption::decode(&hex(value)), None);
            continue;
        }
        let (value, kid_context, kid) = (hex(value), kid_context.map(hex), kid.map(hex));
        let option =
            OscoreOption { partial_iv, kid_context: kid_context.as_deref(), kid: kid.as_deref() };
        assert_eq!(OscoreOption::decode(&value), Some(option));
        assert_eq!(option.encode().as_slice(), value);
    }
    let value = hex("19050544616c656b");
    let option = OscoreOption::decode(&value).unwrap();
    assert_eq!((option.partial_iv, option.kid_context), (Some(5), Some(b"Dalek".as_slice())));
    assert_eq!(option.encode().as_slice(), value);
}

#[test]
fn malformed_option_values_are_not_decoded() {
    // A reserved flag; lengths 6 and 7 of the Partial IV; bytes that are missing, left over or in
    // front; an empty ID Context's length.
    let malformed = [
        "20",
        "80",
        "06010203040506",
        "0701020304050607",
        "0501",
        "0105ff",
        "020001",
        "10",
        "1005",
        "00",
        "0000",
    ];
    for value in malformed {
        assert_eq!(OscoreOption::decode(&hex(value)), None, "{value}");
    }
}

/// RFC 8613 section 9 (table 2, AES-CCM-16-64-128, sender ID of no byte): a request grows by 12 to
/// 13 bytes plus the length of the number, a response by 11; of our figures, a GET whose number has
/// one byte.
#[test]
fn a_get_and_its_answer_grow_as_section_9_says() {
    let (mut client, mut server) = (C_1.client(0), C_1.server());
    let path = [Opt { number: OptionNumber::URI_PATH, value: b"tv1" }];
    let get = Content { code: Code::GET, options: &path, payload: &[] };
    let mut buf = [0; 256];
    let (outer, _) = client.protect_request(&get, &mut buf).unwrap();
    let plain = Message::parse(&[0x40, 1, 0, 1]).unwrap();
    let protected = datagram(&plain, outer.code, outer.options(&get), outer.payload);
    assert_eq!(protected.len() - (4 + get.encoded_len()), 13, "option 3, marker 1, code 1, tag 8");
    let number =
        server.unprotect_request(&Message::parse(&protected).unwrap(), &mut buf).unwrap().number;
    let answer = Content { code: Code::CONTENT, options: &[], payload: b"22.3 C" };
    let outer = server.protect_response(number, &answer, &mut buf).unwrap();
    let token = Token::EMPTY;
    let options: Vec<_> = outer.options(&answer).collect();
    let content = Content { code: outer.code, options: &options, payload: outer.payload };
    let mut datagram = [0; 256];
    let encoded =
        content.encode(&mut datagram, Type::Acknowledgement, MessageId(1), token).unwrap();
    assert_eq!(encoded.len - (4 + answer.encoded_len()), 11, "option 1, marker 1, code 1, tag 8");
}
