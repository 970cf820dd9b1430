//! What is no message, why, and whether a Reset is due (RFC 7252 sections 3, 4.1 to 4.3).

use ebbtide_core::wire::{Code, FormatError, Message, MessageId, ParseError, Token, Type};

/// The format error of a CON GET with no token and these bytes after the header.
fn reason(after_header: &[u8]) -> FormatError {
    error(&[&[0x40, 0x01, 0x12, 0x34], after_header].concat())
}

fn error(datagram: &[u8]) -> FormatError {
    match Message::parse(datagram) {
        Err(ParseError::Format { reason, message_id: MessageId(0x1234), .. }) => reason,
        other => panic!("{datagram:02x?} gives {other:?}"),
    }
}

#[test]
fn less_than_a_header_is_too_short_whatever_it_says() {
    for len in 0..4 {
        assert_eq!(Message::parse(&[0x40; 4][..len]).err(), Some(ParseError::TooShort));
        assert_eq!(Message::parse(&[0x80; 4][..len]).err(), Some(ParseError::TooShort));
    }
}

#[test]
fn a_message_of_another_version_is_ignored() {
    for version in [0, 2, 3] {
        let datagram = [version << 6, 0x01, 0x12, 0x34];
        assert_eq!(Message::parse(&datagram).err(), Some(ParseError::Version(version)));
    }
}

#[test]
fn the_error_says_whether_a_reset_is_due_and_with_which_message_id() {
    for (first, kind) in
        [(0x4f, Type::Confirmable), (0x5f, Type::NonConfirmable), (0x6f, Type::Acknowledgement)]
    {
        let expected = ParseError::Format {
            reason: FormatError::TokenLength15,
            kind,
            message_id: MessageId(0xabcd),
        };
        assert_eq!(Message::parse(&[first, 0x45, 0xab, 0xcd]).err(), Some(expected));
    }
}

#[test]
fn a_token_of_zero_to_eight_bytes_is_read() {
    for len in 0..=8_u8 {
        let token = &[1, 2, 3, 4, 5, 6, 7, 8][..len.into()];
        let datagram = [&[0x40 | len, 0x01, 0x12, 0x34], token].concat();
        let message = Message::parse(&datagram).unwrap();
        assert_eq!(message.token(), Token::new(token));
        assert_eq!(message.token_bytes(), token);
    }
}

#[test]
fn a_token_length_of_fifteen_is_a_format_error() {
    let mut datagram = [0x11; 32];
    datagram[..4].copy_from_slice(&[0x4f, 0x01, 0x12, 0x34]);
    assert_eq!(error(&datagram), FormatError::TokenLength15);
}

#[test]
fn a_token_that_is_cut_off_is_a_format_error() {
    assert_eq!(error(&[0x44, 0x01, 0x12, 0x34, 1, 2, 3]), FormatError::TokenTruncated);
    assert_eq!(error(&[0x41, 0x01, 0x12, 0x34]), FormatError::TokenTruncated);
}

#[test]
fn a_payload_marker_without_a_payload_is_a_format_error() {
    assert_eq!(reason(&[0xff]), FormatError::PayloadMarkerWithoutPayload);
    assert_eq!(reason(&[0xb1, b'a', 0xff]), FormatError::PayloadMarkerWithoutPayload);
}

#[test]
fn a_payload_may_begin_with_a_payload_marker() {
    let message = Message::parse(&[0x40, 0x02, 0x12, 0x34, 0xff, 0xff]).unwrap();
    assert_eq!(message.payload(), [0xff]);
}

#[test]
fn an_option_delta_of_fifteen_is_a_format_error() {
    for length in 0..15 {
        assert_eq!(reason(&[0xf0 | length, 0, 0, 0]), FormatError::OptionDelta15);
    }
}

#[test]
fn an_option_length_of_fifteen_is_a_format_error() {
    for delta in 0..15 {
        assert_eq!(reason(&[(delta << 4) | 0xf, 0, 0, 0]), FormatError::OptionLength15);
    }
}

#[test]
fn an_option_that_is_cut_off_anywhere_is_a_format_error() {
    let (delta, length) = (&[0xe1, 0, 0][..], &[0x1e, 0, 0][..]);
    let both = [&[0xee, 1, 0, 0, 1][..], &[0; 270]].concat();
    for whole in [&[0xb2, b'a', b'b'], &[0xd1, 0, b'a'], delta, length, &both] {
        for len in 1..whole.len() {
            assert_eq!(reason(&whole[..len]), FormatError::OptionTruncated, "{len} of {whole:?}");
        }
    }
}

#[test]
fn the_greatest_option_number_is_65535() {
    // 14 adds 269 to two bytes: 65535 - 269 = 0xfef2.
    let greatest = [0x40, 0x01, 0x12, 0x34, 0xe0, 0xfe, 0xf2];
    let message = Message::parse(&greatest).unwrap();
    assert_eq!(message.options().map(|opt| opt.number.0).collect::<Vec<_>>(), [65535]);
    assert_eq!(reason(&[0xe0, 0xfe, 0xf3]), FormatError::OptionNumberOverflow);
    assert_eq!(reason(&[0xe0, 0xff, 0xff]), FormatError::OptionNumberOverflow);
    assert_eq!(reason(&[0xe0, 0xfe, 0xf2, 0x10]), FormatError::OptionNumberOverflow);
}

#[test]
fn an_empty_message_is_its_header_and_nothing_else() {
    for first in [0x40, 0x60, 0x70] {
        let message = Message::parse(&[first, 0x00, 0x12, 0x34]).map(|m| m.code());
        assert_eq!(message, Ok(Code::EMPTY));
    }
    for rest in [&[0xff, 1][..], &[0xff], &[0xb1, b'a'], &[0]] {
        let datagram = [&[0x40, 0x00, 0x12, 0x34], rest].concat();
        assert_eq!(error(&datagram), FormatError::EmptyMessageWithContent);
    }
    assert_eq!(error(&[0x41, 0x00, 0x12, 0x34, 1]), FormatError::EmptyMessageWithContent);
    assert_eq!(error(&[0x41, 0x00, 0x12, 0x34]), FormatError::EmptyMessageWithContent);
}

#[test]
fn a_code_of_a_reserved_class_is_a_format_error() {
    for class in [1, 6, 7] {
        for detail in [0, 1, 31] {
            let code = Code::new(class, detail);
            let datagram = [0x40, code.0, 0x12, 0x34];
            assert_eq!(error(&datagram), FormatError::ReservedCodeClass(code));
        }
    }
}

#[test]
fn an_unregistered_code_of_any_other_class_is_read() {
    for class in [0, 2, 3, 4, 5] {
        let code = Code::new(class, 30);
        assert_eq!(code.name(), None);
        assert_eq!(Message::parse(&[0x40, code.0, 0x12, 0x34]).map(|m| m.code()), Ok(code));
    }
}

#[test]
fn a_type_carries_only_the_codes_of_table_1() {
    let forbidden = [
        (Type::NonConfirmable, Code::EMPTY),
        (Type::Acknowledgement, Code::GET),
        (Type::Reset, Code::GET),
        (Type::Reset, Code::CONTENT),
    ];
    for kind in [Type::Confirmable, Type::NonConfirmable, Type::Acknowledgement, Type::Reset] {
        for code in [Code::EMPTY, Code::GET, Code::CONTENT] {
            let datagram = [0x40 | ((kind as u8) << 4), code.0, 0x12, 0x34];
            if forbidden.contains(&(kind, code)) {
                assert_eq!(error(&datagram), FormatError::CodeNotForType(code));
            } else {
                assert!(Message::parse(&datagram).is_ok(), "{kind} {code}");
            }
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let error = Message::parse(&[0x4f, 0x01, 0x12, 0x34]).unwrap_err();
    assert_eq!(error.to_string(), "CON 0x1234: token length 15 is reserved");
    let error = Message::parse(&[0xc0, 0x01, 0x12, 0x34]).unwrap_err();
    assert_eq!(error.to_string(), "version 3, not 1");
}
