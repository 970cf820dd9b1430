//! The small types: tokens, message IDs, codes, blocks.

use ebbtide_core::wire::{Block, BlockError, Code, MessageId, Opt, OptionNumber, Token, Type};

#[test]
fn a_token_has_at_most_eight_bytes() {
    assert_eq!(Token::new(&[1; 8]).map(|token| token.len()), Some(8));
    assert_eq!(Token::new(&[1; 9]), None);
    assert_eq!(Token::new(&[]), Some(Token::EMPTY));
    assert!(Token::default().is_empty());
}

#[test]
fn tokens_of_different_lengths_differ() {
    assert_ne!(Token::new(&[0]), Token::new(&[0, 0]));
    assert_ne!(Token::new(&[0]), Token::new(&[]));
}

#[test]
fn message_ids_go_round() {
    assert_eq!(MessageId(7).next(), MessageId(8));
    assert_eq!(MessageId(0xffff).next(), MessageId(0));
}

#[test]
fn everything_prints_as_the_rfc_writes_it() {
    assert_eq!(Code::CONTENT.to_string(), "2.05");
    assert_eq!(Code::GET.to_string(), "0.01");
    assert_eq!(Code::CONTINUE.to_string(), "2.31");
    assert_eq!(Type::Confirmable.to_string(), "CON");
    assert_eq!(Type::Reset.to_string(), "RST");
    assert_eq!(MessageId(0x0a).to_string(), "0x000a");
    assert_eq!(Token::new(&[0, 0xab]).unwrap().to_string(), "00ab");
    assert_eq!(OptionNumber::URI_PATH.to_string(), "Uri-Path");
    assert_eq!(OptionNumber(65001).to_string(), "option 65001");
    assert_eq!(Block::new(3, true, 2).unwrap().to_string(), "3/1/64");
}

#[test]
fn every_code_is_of_exactly_one_kind() {
    for code in (0..=u8::MAX).map(Code) {
        let kinds = [
            code.is_empty(),
            code.is_request(),
            code.is_response(),
            code.is_signaling(),
            code.is_reserved(),
        ];
        assert_eq!(kinds.into_iter().filter(|kind| *kind).count(), 1, "{code}");
        assert_eq!(Code::new(code.class(), code.detail()), code);
    }
}

#[test]
fn only_requests_are_idempotent_and_not_all_of_them() {
    let idempotent: Vec<_> = (0..=u8::MAX).map(Code).filter(|code| code.is_idempotent()).collect();
    assert_eq!(idempotent, [Code::GET, Code::PUT, Code::DELETE, Code::FETCH, Code::IPATCH]);
}

#[test]
fn every_block_option_of_three_bytes_is_read_and_written_alike() {
    for num in [0, 1, 15, 16, 4095, 4096, Block::MAX_NUM] {
        for more in [false, true] {
            for szx in 0..=Block::MAX_SZX {
                let block = Block::new(num, more, szx).unwrap();
                assert_eq!(Block::from_uint(block.to_uint()), Ok(block));
                assert_eq!((block.num(), block.more(), block.szx()), (num, more, szx));
                assert_eq!(block.size(), 1 << (szx + 4));
                assert_eq!(u64::from(block.offset()), u64::from(num) * block.size() as u64);
            }
        }
    }
}

#[test]
fn the_reserved_size_exponent_and_numbers_of_21_bits_are_errors() {
    assert_eq!(Block::from_uint(7), Err(BlockError::Szx(7)));
    assert_eq!(Block::new(0, false, 7), Err(BlockError::Szx(7)));
    assert_eq!(Block::from_uint(0x0100_0000), Err(BlockError::TooLarge));
    let option = |value| Block::from_option(&Opt { number: OptionNumber::BLOCK2, value });
    assert_eq!(option(&[]), Block::new(0, false, 0));
    assert_eq!(option(&[0xff, 0xff, 0xfe]), Block::new(Block::MAX_NUM, true, 6));
    assert_eq!(option(&[0, 0, 0, 0]), Err(BlockError::TooLarge));
}

#[test]
fn the_value_of_an_option_is_readable_when_it_is_debugged() {
    let debugged = |number, value| format!("{:?}", Opt { number, value });
    assert_eq!(debugged(OptionNumber::URI_PATH, b"time".as_slice()), "Uri-Path: \"time\"");
    assert_eq!(debugged(OptionNumber::ETAG, &[b'"', 0xff, 0x1b]), r#"ETag: "\"\xff\x1b""#);
}
