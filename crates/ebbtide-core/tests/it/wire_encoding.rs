//! Writing messages: option by option, and all at once from options in any order.

use ebbtide_core::wire::{
    Code, Content, EncodeError, Encoder, MAX_HEADER, Message, MessageId, Opt, OptionNumber, Token,
    Type,
};

const ID: MessageId = MessageId(0x1234);

fn encoder(buf: &mut [u8]) -> Encoder<'_> {
    Encoder::new(buf, Type::Confirmable, Code::GET, ID, Token::EMPTY).unwrap()
}

fn opt(number: u16, value: &[u8]) -> Opt<'_> {
    Opt { number: OptionNumber(number), value }
}

#[test]
fn options_in_any_order_are_written_in_theirs_equals_as_given() {
    let orders: [&[Opt<'_>]; 4] = [
        &[opt(3, b"h"), opt(11, b"a"), opt(11, b"b"), opt(60, b"")],
        &[opt(60, b""), opt(11, b"a"), opt(11, b"b"), opt(3, b"h")],
        &[opt(11, b"a"), opt(3, b"h"), opt(60, b""), opt(11, b"b")],
        &[opt(11, b"a"), opt(60, b""), opt(11, b"b"), opt(3, b"h")],
    ];
    for options in orders {
        let content = Content { code: Code::GET, options, payload: b"p" };
        let mut buf = [0; 32];
        let encoded = content.encode(&mut buf, Type::Confirmable, ID, Token::EMPTY).unwrap();
        assert_eq!(&buf[..encoded.len], b"\x40\x01\x12\x34\x31h\x81a\x01b\xd0\x24\xffp");
        assert_eq!(encoded.options_end, encoded.len - 2);
        assert_eq!(encoded.last_option, OptionNumber::SIZE1);
        assert_eq!(content.encoded_len(), encoded.len - 4);
    }
}

#[test]
fn an_option_of_number_zero_is_not_lost() {
    let options = [opt(1, b"b"), opt(0, b"a")];
    let content = Content { code: Code::GET, options: &options, payload: b"" };
    let mut buf = [0; 32];
    let encoded = content.encode(&mut buf, Type::Confirmable, ID, Token::EMPTY).unwrap();
    assert_eq!(&buf[4..encoded.len], b"\x01a\x11b");
}

#[test]
fn another_option_can_be_put_where_the_options_end() {
    let content = Content { code: Code::CONTENT, options: &[opt(12, b"")], payload: b"payload" };
    let mut buf = [0; 64];
    let encoded = content.encode(&mut buf, Type::Confirmable, ID, Token::EMPTY).unwrap();
    assert_eq!(encoded.last_option, OptionNumber::CONTENT_FORMAT);
    assert_eq!(buf[encoded.options_end], 0xff);
    let empty = Content { payload: b"", ..content };
    let encoded = empty.encode(&mut buf, Type::Confirmable, ID, Token::EMPTY).unwrap();
    assert_eq!(encoded.options_end, encoded.len);
}

#[test]
fn an_empty_payload_has_no_marker() {
    let mut buf = [0; 16];
    let mut message = encoder(&mut buf);
    message.payload(b"").unwrap();
    assert_eq!(message.finish(), [0x40, 0x01, 0x12, 0x34]);
}

#[test]
fn a_payload_in_pieces_has_one_marker() {
    let mut buf = [0; 16];
    let mut message = encoder(&mut buf);
    message.payload(b"22.").unwrap().payload(b"").unwrap().payload(b"3 C").unwrap();
    assert_eq!(message.options_end(), 4);
    assert_eq!(message.finish(), b"\x40\x01\x12\x34\xff22.3 C");
}

#[test]
fn an_option_after_a_greater_one_or_a_payload_is_an_error() {
    let mut buf = [0; 32];
    let mut message = encoder(&mut buf);
    message.option(OptionNumber::URI_PATH, b"a").unwrap();
    let error = message.option(OptionNumber::URI_HOST, b"h").unwrap_err();
    let previous = OptionNumber::URI_PATH;
    assert_eq!(error, EncodeError::OptionOrder { previous, number: OptionNumber::URI_HOST });
    message.payload(b"p").unwrap();
    let error = message.uint_option(OptionNumber::SIZE1, 5).unwrap_err();
    assert_eq!(error, EncodeError::OptionOrder { previous, number: OptionNumber::SIZE1 });
    assert_eq!(message.finish(), b"\x40\x01\x12\x34\xb1a\xffp");
}

#[test]
fn a_message_fits_exactly_or_not_at_all() {
    let token = Token::new(b"12345678").unwrap();
    let options = [opt(11, b"segment"), opt(300, &[7; 20])];
    let content = Content { code: Code::POST, options: &options, payload: b"payload" };
    let len = MAX_HEADER + content.encoded_len();
    for size in 0..len + 3 {
        let mut buf = vec![0; size];
        let result = content.encode(&mut buf, Type::NonConfirmable, ID, token);
        if size < len {
            assert_eq!(result, Err(EncodeError::BufferTooSmall), "{size}");
        } else {
            assert_eq!(result.unwrap().len, len);
            assert_eq!(Message::parse(&buf[..len]).unwrap().token(), Some(token));
        }
    }
}

#[test]
fn an_option_that_did_not_fit_leaves_the_message_unchanged() {
    let mut buf = [0; 8];
    let mut message = encoder(&mut buf);
    message.option(OptionNumber::URI_PATH, b"a").unwrap();
    assert_eq!(
        message.option(OptionNumber::URI_PATH, b"long").err(),
        Some(EncodeError::BufferTooSmall)
    );
    assert_eq!(message.payload(b"long").err(), Some(EncodeError::BufferTooSmall));
    message.payload(b"p").unwrap();
    assert_eq!(message.finish(), b"\x40\x01\x12\x34\xb1a\xffp");
}
