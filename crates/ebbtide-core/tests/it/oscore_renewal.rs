//! New keys from a secret that was used before (RFC 8613 appendix B.2), message by message.

use ebbtide_core::oscore::renewal::{self, ANSWERED, AnswerKey, DRAWN, Renewed};
use ebbtide_core::oscore::{
    Algorithm, ContextName, ContextTable, MasterSecret, OscoreOption, Refusal, SecurityContext,
    Volatile,
};
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};

const SECRET: MasterSecret<'static> = MasterSecret {
    secret: &[7; 16],
    salt: b"salt",
    id_context: None,
    algorithm: Algorithm::AesCcm16_64_128,
};
const GET: Content<'static> = Content { code: Code::GET, options: &[], payload: &[] };

fn client(id_context: &[u8]) -> SecurityContext<Volatile> {
    SecurityContext::renewed(&SECRET, b"c", b"s", id_context, Volatile).unwrap()
}

fn server(id_context: &[u8]) -> SecurityContext<Volatile> {
    SecurityContext::renewed(&SECRET, b"s", b"c", id_context, Volatile).unwrap()
}

fn encode(code: Code, value: &[u8], payload: &[u8]) -> Vec<u8> {
    let options = [Opt { number: OptionNumber::OSCORE, value }];
    let content = Content { code, options: &options, payload };
    let mut buf = vec![0; 4 + content.encoded_len()];
    content.encode(&mut buf, Type::NonConfirmable, MessageId(0), Token::EMPTY).unwrap();
    buf
}

/// The ID Context in an option, decoded.
fn part(value: &[u8]) -> Vec<u8> {
    let sent = OscoreOption::decode(value).unwrap().kid_context.unwrap().to_vec();
    renewal::decode_part(&sent).unwrap().to_vec()
}

#[test]
fn two_exchanges_give_keys_that_no_message_before_had() {
    let (mut out, mut plain) = ([0; 64], [0; 256]);
    let id1 = [1; DRAWN];
    let mut first = client(&id1);
    let (outer, number) = first.protect_request(&GET, &mut out).unwrap();
    let request = encode(outer.code, outer.value.as_slice(), outer.payload);
    // Flags for number, ID and ID Context; number 0; the length; ID1 as a byte string of CBOR; the ID.
    assert_eq!(outer.value.as_slice(), b"\x19\0\x09\x48\x01\x01\x01\x01\x01\x01\x01\x01c");

    // The server keeps nothing.
    let (key, renewed) = (AnswerKey::new([9; 16]), Renewed { kid: b"c", count: 0 });
    assert_eq!(part(outer.value.as_slice()), id1);
    let mut asked = server(&id1);
    asked.unprotect_request(&Message::parse(&request).unwrap(), &mut plain).unwrap();
    let r2 = key.answer(&renewed, &id1);
    assert_eq!(key.answer(&renewed, &id1), r2, "a copy is answered in the same way");
    let whole = renewal::join(&r2, &id1).unwrap();
    let refusal = Content { code: Code::UNAUTHORIZED, options: &[], payload: &[] };
    let answering = server(whole.as_slice());
    let sealed = answering.protect_renewal(&asked, number, &refusal, &mut plain).unwrap();
    assert_eq!(sealed.value.as_slice(), b"", "it has the nonce of the request");

    let mut buf = [0; 64];
    let whole = renewal::join(&r2, &id1).unwrap();
    let open = client(whole.as_slice());
    let payload = sealed.payload;
    let buf = &mut buf[..payload.len()];
    let opened = open.open_renewal(&first, number, Some(sealed.value.as_slice()), payload, buf);
    assert_eq!(opened.unwrap().code, Code::UNAUTHORIZED);

    let whole = renewal::join(&r2, &[3; DRAWN]).unwrap();
    let mut second = client(whole.as_slice());
    let (outer, _) = second.protect_request(&GET, &mut out).unwrap();
    let id_context = part(outer.value.as_slice());
    assert_eq!(id_context, whole.as_slice());
    assert_eq!(key.recognise(&renewed, &id_context), Some(&r2[..]));
    let request = encode(outer.code, outer.value.as_slice(), outer.payload);
    let mut accepted = server(&id_context);
    accepted.unprotect_request(&Message::parse(&request).unwrap(), &mut plain).unwrap();
    // Then the ID says enough.
    second.omit_id_context();
    let (outer, _) = second.protect_request(&GET, &mut out).unwrap();
    assert_eq!(outer.value.as_slice(), b"\x09\x01c");
    let request = encode(outer.code, outer.value.as_slice(), outer.payload);
    accepted.unprotect_request(&Message::parse(&request).unwrap(), &mut plain).unwrap();
}

/// The first exchange with Californium 3.13.0: the nonce of its answer is that of the request, under `ID1`.
#[test]
fn an_answer_without_a_number_has_the_nonce_of_the_request_under_the_keys_before() {
    let secret = MasterSecret {
        secret: &0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10_u128.to_be_bytes(),
        salt: &0x9e7c_a922_2378_6340_u64.to_be_bytes(),
        ..SECRET
    };
    let client = |id_context: &[u8]| {
        SecurityContext::renewed(&secret, b"client", b"server", id_context, Volatile).unwrap()
    };
    let id1 = 0x18cf_8161_485f_e2a7_u64.to_be_bytes();
    let r2 = 0xf7de_fd24_bbd6_b6cc_6c59_c2f4_7f19_6833_u128.to_be_bytes();
    let (mut asked, mut out, mut buf) = (client(&id1), [0; 64], [0; 10]);
    let (_, number) = asked.protect_request(&GET, &mut out).unwrap();
    let answers = client(renewal::join(&r2, &id1).unwrap().as_slice());
    let value = [&b"\x10\x11\x50"[..], &r2].concat();
    let payload = b"\x17\x13\xe8\xb9\x86\xa0\xb4\xde\xea\xb4";
    let opened = answers.open_renewal(&asked, number, Some(&value), payload, &mut buf).unwrap();
    assert_eq!(opened.code, Code::UNAUTHORIZED);
}

#[test]
fn a_request_names_the_new_context_encoded_or_not() {
    let (mut out, mut plain) = ([0; 64], [0; 256]);
    let whole = [5; ANSWERED + DRAWN];
    let mut accepting = server(&whole);
    let mut table = ContextTable::default();
    let (kid, kid_context) = (*accepting.recipient_id(), accepting.id_context().copied());
    table.add(ContextName { kid, kid_context }, ()).unwrap();
    let mut asking = client(&whole);
    let (encoded, _) = asking.protect_request(&GET, &mut out).unwrap();
    let option = OscoreOption::decode(encoded.value.as_slice()).unwrap();
    let bare = OscoreOption { kid_context: Some(&whole), ..option };
    for option in [option, bare] {
        assert_eq!(table.find(&option), Some(0), "{option:?}");
        let request = encode(encoded.code, option.encode().as_slice(), encoded.payload);
        let opened = accepting.unprotect_request(&Message::parse(&request).unwrap(), &mut plain);
        // The same request under its other name is a copy.
        assert_eq!(opened.is_ok(), option.kid_context != Some(&whole[..]), "{option:?}");
        assert!(!matches!(opened, Err(Refusal::NoContext)));
    }
}

#[test]
fn an_answer_holds_for_one_client_one_time_and_one_life_of_the_server() {
    let (key, now) = (AnswerKey::new([9; 16]), Renewed { kid: b"c", count: 3 });
    let mut id_context = key.answer(&now, &[1; DRAWN]).to_vec();
    assert_eq!(key.recognise(&now, &id_context), None, "the client has drawn nothing");
    id_context.extend([3; DRAWN]);
    assert!(key.recognise(&now, &id_context).is_some());
    for (what, key, of) in [
        ("after it was used", &key, Renewed { count: 4, ..now }),
        ("another client", &key, Renewed { kid: b"d", ..now }),
        ("after a restart", &AnswerKey::new([8; 16]), now),
    ] {
        assert_eq!(key.recognise(&of, &id_context), None, "{what}");
    }
    id_context[ANSWERED - 1] ^= 1;
    assert_eq!(key.recognise(&now, &id_context), None);
}

#[test]
fn parts_are_byte_strings_of_cbor_and_nothing_else() {
    for len in 0..=30 {
        let sent = renewal::encode_part(&vec![7; len]).unwrap();
        assert_eq!(renewal::decode_part(sent.as_slice()), Some(&vec![7; len][..]), "{len}");
    }
    assert!(renewal::encode_part(&[7; 31]).is_none());
    for wrong in [&b""[..], b"\x41", b"\x41ab", b"\x08", b"\x58", b"\x58\x02a", b"\x59\0\x01a"] {
        assert_eq!(renewal::decode_part(wrong), None, "{wrong:?}");
    }
}
