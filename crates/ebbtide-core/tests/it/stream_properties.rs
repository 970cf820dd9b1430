//! What holds for every stream of bytes, however the transport cuts it.

use crate::common::split::{hear, play};
use ebbtide_core::wire::{
    Block, Code, Content, Frame, FrameHeader, Framing, Opt, OptionNumber, Token,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Payloads on both sides of every boundary between forms of the length.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => vec(any::<u8>(), 0..30),
        3 => vec(any::<u8>(), 255..300),
        1 => vec(any::<u8>(), 1000..3000),
    ]
}

/// A message and its bytes on a stream.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let code = prop_oneof![4 => 0x01..=0x07_u8, 2 => 0x40..=0xa5_u8, 1 => 0xe2..=0xe3_u8];
    let token = prop_oneof![vec(any::<u8>(), 0..9), Just(vec![0, 0, 0, 0]), Just(vec![0, 1, 0, 0])];
    (code, token, vec((0..30_u16, vec(any::<u8>(), 0..20)), 0..5), payload()).prop_map(
        |(code, token, mut options, payload)| {
            options.sort();
            // Even numbers: elective everywhere, also in signals.
            let options: Vec<Opt<'_>> = options
                .iter()
                .map(|(number, value)| Opt { number: OptionNumber(number * 2), value })
                .collect();
            let content = Content { code: Code(code), options: &options, payload: &payload };
            let token = Token::new(&token).expect("at most 8");
            let mut bytes = vec![0; content.framed_len(Framing::Stream, token)];
            content
                .encode_framed(&mut bytes, Framing::Stream, token)
                .expect("the length was computed");
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_written_message_is_read_back(bytes in message()) {
        let header = FrameHeader::parse(Framing::Stream, &bytes).unwrap().unwrap();
        prop_assert_eq!(header.message_len(), bytes.len() as u64);
        let frame = Frame::parse(header, &bytes).unwrap();
        let options: Vec<Opt<'_>> = frame.options().collect();
        let content = Content { code: frame.code(), options: &options, payload: frame.payload() };
        let mut again = vec![0; content.framed_len(Framing::Stream, frame.token_bytes())];
        content.encode_framed(&mut again, Framing::Stream, frame.token_bytes()).unwrap();
        prop_assert_eq!(again, bytes);
    }

    #[test]
    fn messages_are_the_same_wherever_the_stream_is_cut(
        messages in vec(message(), 1..8),
        pieces in vec(any::<u8>(), 1..8),
    ) {
        let stream = [vec![0x00, 0xe1], messages.concat()].concat();
        let whole = hear(&stream, &[255]);
        prop_assert_eq!(&whole, &hear(&stream, &pieces));
        prop_assert_eq!(&whole, &hear(&stream, &[1]));
        let one_each = 1 + messages.len();
        prop_assert!(whole.messages.len() >= one_each, "{:?}", whole.messages);
    }

    #[test]
    fn any_bytes_are_taken_alike_however_they_are_cut(script in vec(any::<u8>(), 0..300)) {
        play(&script);
        // Behind a CSM, which random bytes rarely begin with.
        play(&[&[1, 3, 0x00, 0xe1], script.as_slice()].concat());
    }

    #[test]
    fn a_bert_block_is_what_its_option_says(num in 0..=Block::MAX_NUM, more: bool) {
        let block = Block::bert(num, more).unwrap();
        let mut value = [0; 4];
        let value = ebbtide_core::wire::encode_uint(block.to_uint(), &mut value);
        let option = Opt { number: OptionNumber::BLOCK1, value };
        prop_assert_eq!(Block::from_reliable(&option), Ok(block));
    }
}
