//! RFC 7252 appendix A, byte for byte: each example is read, and written again.

use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};

const TEMPERATURE: &[Opt<'_>] = &[Opt { number: OptionNumber::URI_PATH, value: b"temperature" }];

struct Example {
    bytes: &'static [u8],
    kind: Type,
    id: u16,
    token: &'static [u8],
    content: Content<'static>,
}

fn get() -> Content<'static> {
    Content { code: Code::GET, options: TEMPERATURE, payload: b"" }
}

fn content() -> Content<'static> {
    Content { code: Code::CONTENT, options: &[], payload: b"22.3 C" }
}

fn empty() -> Content<'static> {
    Content { code: Code::EMPTY, options: &[], payload: b"" }
}

fn check(Example { bytes, kind, id, token, content }: Example) {
    let token = Token::new(token).unwrap();
    let message = Message::parse(bytes).unwrap();
    assert_eq!(message.kind(), kind);
    assert_eq!(message.code(), content.code);
    assert_eq!(message.message_id(), MessageId(id));
    assert_eq!(message.token(), Some(token));
    assert!(message.options().eq(content.options.iter().copied()));
    assert_eq!(message.payload(), content.payload);
    assert_eq!(message.as_bytes(), bytes);
    assert_eq!(message.first_unknown_critical(), None);

    let mut buf = [0; 32];
    let encoded = content.encode(&mut buf, kind, MessageId(id), token).unwrap();
    assert_eq!(&buf[..encoded.len], bytes);
    assert_eq!(content.encoded_len(), bytes.len() - 4 - token.len());
}

#[test]
fn figure_16_a_request_and_its_piggybacked_response() {
    check(Example {
        bytes: b"\x40\x01\x7d\x34\xbbtemperature",
        kind: Type::Confirmable,
        id: 0x7d34,
        token: &[],
        content: get(),
    });
    check(Example {
        bytes: b"\x60\x45\x7d\x34\xff22.3 C",
        kind: Type::Acknowledgement,
        id: 0x7d34,
        token: &[],
        content: content(),
    });
}

#[test]
fn figure_17_the_same_with_a_token() {
    check(Example {
        bytes: b"\x41\x01\x7d\x35\x20\xbbtemperature",
        kind: Type::Confirmable,
        id: 0x7d35,
        token: &[0x20],
        content: get(),
    });
    check(Example {
        bytes: b"\x61\x45\x7d\x35\x20\xff22.3 C",
        kind: Type::Acknowledgement,
        id: 0x7d35,
        token: &[0x20],
        content: content(),
    });
}

#[test]
fn figure_20_a_separate_response() {
    check(Example {
        bytes: b"\x41\x01\x7d\x38\x53\xbbtemperature",
        kind: Type::Confirmable,
        id: 0x7d38,
        token: &[0x53],
        content: get(),
    });
    check(Example {
        bytes: b"\x60\x00\x7d\x38",
        kind: Type::Acknowledgement,
        id: 0x7d38,
        token: &[],
        content: empty(),
    });
    check(Example {
        bytes: b"\x41\x45\xad\x7b\x53\xff22.3 C",
        kind: Type::Confirmable,
        id: 0xad7b,
        token: &[0x53],
        content: content(),
    });
    check(Example {
        bytes: b"\x60\x00\xad\x7b",
        kind: Type::Acknowledgement,
        id: 0xad7b,
        token: &[],
        content: empty(),
    });
}

#[test]
fn figure_21_an_unexpected_response_is_reset() {
    check(Example {
        bytes: b"\x70\x00\xad\x7c",
        kind: Type::Reset,
        id: 0xad7c,
        token: &[],
        content: empty(),
    });
}

#[test]
fn figure_22_a_non_confirmable_request_and_response() {
    check(Example {
        bytes: b"\x51\x01\x7d\x40\x75\xbbtemperature",
        kind: Type::NonConfirmable,
        id: 0x7d40,
        token: &[0x75],
        content: get(),
    });
    check(Example {
        bytes: b"\x51\x45\xad\x7d\x75\xff22.3 C",
        kind: Type::NonConfirmable,
        id: 0xad7d,
        token: &[0x75],
        content: content(),
    });
}
