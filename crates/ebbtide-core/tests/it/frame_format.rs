//! RFC 8323 section 3.2 and 4.2: messages on reliable transports, byte for byte.

use ebbtide_core::wire::{
    Block, BlockError, Code, Content, FormatError, Frame, FrameHeader, Framing, Message, MessageId,
    Opt, OptionNumber, Token, Type,
};

fn encode(framing: Framing, content: &Content<'_>, token: &[u8]) -> Vec<u8> {
    let token = Token::new(token).unwrap();
    let mut bytes = vec![0; content.framed_len(framing, token)];
    let encoded = content.encode_framed(&mut bytes, framing, token).unwrap();
    assert_eq!(encoded.len, bytes.len());
    bytes
}

fn parse(bytes: &[u8]) -> Result<Frame<'_>, FormatError> {
    let header = FrameHeader::parse(Framing::Stream, bytes)?.expect("a header");
    assert_eq!(header.message_len(), bytes.len() as u64);
    Frame::parse(header, bytes)
}

#[test]
fn the_length_is_that_of_options_and_payload_in_its_shortest_form() {
    // Of the payload's bytes and the marker before it.
    for (payload, header) in [
        (0, vec![0x01, 0x45]),
        (11, vec![0xc1, 0x45]),
        (12, vec![0xd1, 0x00, 0x45]),
        (267, vec![0xd1, 0xff, 0x45]),
        (268, vec![0xe1, 0x00, 0x00, 0x45]),
        (65_803, vec![0xe1, 0xff, 0xff, 0x45]),
        (65_804, vec![0xf1, 0x00, 0x00, 0x00, 0x00, 0x45]),
        (65_804 + 258, vec![0xf1, 0x00, 0x00, 0x01, 0x02, 0x45]),
    ] {
        let payload = vec![7; payload];
        let content = Content { code: Code::CONTENT, options: &[], payload: &payload };
        let bytes = encode(Framing::Stream, &content, &[0x7f]);
        assert_eq!(bytes[..header.len()], header);
        assert_eq!(bytes[header.len()], 0x7f);
        let frame = parse(&bytes).unwrap();
        assert_eq!((frame.code(), frame.payload()), (Code::CONTENT, payload.as_slice()));
        assert_eq!(frame.token_bytes(), [0x7f]);
    }
}

#[test]
fn within_a_websocket_frame_the_length_is_zero() {
    let content = Content { code: Code::CONTENT, options: &[], payload: &[7; 300] };
    let bytes = encode(Framing::WebSocket, &content, &[1, 2]);
    assert_eq!(bytes[..4], [0x02, 0x45, 1, 2]);
    let header = FrameHeader::parse(Framing::WebSocket, &bytes).unwrap().unwrap();
    assert_eq!(Frame::parse(header, &bytes).unwrap().payload(), [7; 300]);
    let wrong = FrameHeader::parse(Framing::WebSocket, &[0x10, 0x45]);
    assert_eq!(wrong, Err(FormatError::LengthInWebSocket(1)));
}

#[test]
fn a_header_that_is_not_all_there_is_waited_for() {
    for whole in [
        &[0x00, 0x45][..],
        &[0xd0, 0, 0x45],
        &[0xe0, 0, 0, 0x45],
        &[0xf0, 0xff, 0xff, 0xff, 0xff, 0x45],
    ] {
        for len in 0..whole.len() {
            assert_eq!(FrameHeader::parse(Framing::Stream, &whole[..len]), Ok(None));
        }
        assert!(FrameHeader::parse(Framing::Stream, whole).unwrap().is_some());
    }
}

#[test]
fn the_greatest_length_does_not_overflow() {
    let header = FrameHeader::parse(Framing::Stream, &[0xf8, 0xff, 0xff, 0xff, 0xff, 0x45]);
    let header = header.unwrap().unwrap();
    assert_eq!(header.message_len(), 6 + 8 + 0xffff_ffff + 65_805);
}

#[test]
fn reserved_token_lengths_and_code_classes_are_errors() {
    let wrong = FrameHeader::parse(Framing::Stream, &[15]);
    assert_eq!(wrong, Err(FormatError::TokenLength15));
    assert_eq!(parse(&[0x00, 0x20]).unwrap_err(), FormatError::ReservedCodeClass(Code::new(1, 0)));
    assert!(parse(&[0x00, 0xe1]).is_ok(), "signals are no error here");
}

#[test]
fn the_same_message_over_udp_has_another_header_and_the_same_rest() {
    let options = [Opt { number: OptionNumber::URI_PATH, value: b"temperature" }];
    let content = Content { code: Code::PUT, options: &options, payload: b"22.3 C" };
    let bytes = encode(Framing::Stream, &content, &[1, 2, 3]);
    let (header, rest) =
        parse(&bytes).unwrap().as_datagram(Type::NonConfirmable, MessageId(0x1234));
    let mut expected = [0; 64];
    let token = Token::new(&[1, 2, 3]).unwrap();
    let encoded =
        content.encode(&mut expected, Type::NonConfirmable, MessageId(0x1234), token).unwrap();
    let datagram = [&header, rest].concat();
    assert_eq!(datagram, expected[..encoded.len]);
    assert_eq!(Message::parse(&datagram).unwrap().payload(), b"22.3 C");
}

#[test]
fn a_block_of_size_exponent_7_counts_in_1024_bytes_where_it_is_allowed() {
    let value = [0x00, 0x3f];
    let option = Opt { number: OptionNumber::BLOCK2, value: &value };
    assert_eq!(Block::from_option(&option), Err(BlockError::Szx(7)));
    let block = Block::from_reliable(&option).unwrap();
    assert_eq!(block, Block::bert(3, true).unwrap());
    assert_eq!((block.num(), block.offset(), block.size()), (3, 3072, 1024));
    assert!(block.is_full(1024) && block.is_full(5120));
    assert!(!block.is_full(0) && !block.is_full(1500));
    assert_eq!(block.to_uint(), 0x3f);
    assert_eq!(block.to_string(), "3/1/BERT");
    let small = Opt { number: OptionNumber::BLOCK2, value: &[0x3a] };
    assert_eq!(Block::from_reliable(&small), Block::from_option(&small));
}
