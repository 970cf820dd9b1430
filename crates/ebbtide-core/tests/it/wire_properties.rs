//! What holds for every message and for any bytes.

use ebbtide_core::wire::{
    Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type, encoded_token_len,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A type and a code that it can carry (RFC 7252 section 4.3, table 1), not Empty.
fn kind_and_code() -> impl Strategy<Value = (Type, Code)> {
    let request = (select(&[Type::Confirmable, Type::NonConfirmable]), 0x01..=0x1f_u8);
    let carriers = [Type::Confirmable, Type::NonConfirmable, Type::Acknowledgement];
    let response = (select(carriers.to_vec()), 0x40..=0xbf_u8);
    prop_oneof![request, response].prop_map(|(kind, code)| (kind, Code(code)))
}

/// Numbers near each other and far apart, so that every form of delta occurs.
fn number() -> impl Strategy<Value = u16> {
    prop_oneof![0..40_u16, 0..700_u16, any::<u16>()]
}

/// Lengths on both sides of every boundary between forms.
fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => vec(any::<u8>(), 0..20),
        1 => vec(any::<u8>(), 250..300),
    ]
}

/// Bytes that are nearly a message: random behind a plausible header.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![9 => 0x40..=0x68_u8, 1 => any::<u8>()];
    let nearly = (first, 0..=0x5f_u8, vec(any::<u8>(), 0..80)).prop_map(|(first, code, rest)| {
        let mut bytes = vec![first, code];
        bytes.extend(rest);
        bytes
    });
    prop_oneof![3 => nearly, 1 => vec(any::<u8>(), 0..80)]
}

/// Encodes what a message says once more, its options back to front but for equals.
fn encode_again(message: &Message<'_>) -> Vec<u8> {
    let mut options: Vec<Opt<'_>> = message.options().collect();
    options.sort_by_key(|opt| core::cmp::Reverse(opt.number));
    let content = Content { code: message.code(), options: &options, payload: message.payload() };
    let token = encoded_token_len(message.token_bytes().len());
    let mut buf = vec![0; 4 + token + content.encoded_len()];
    let encoded = content
        .encode(&mut buf, message.kind(), message.message_id(), message.token_bytes())
        .expect("the length was computed");
    assert_eq!(encoded.len, buf.len());
    buf.truncate(encoded.len);
    buf
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_written_message_is_read_back(
        (kind, code) in kind_and_code(),
        id: u16,
        token in vec(any::<u8>(), 0..=8),
        options in vec((number(), value()), 0..8),
        payload in vec(any::<u8>(), 0..40),
    ) {
        let token = Token::new(&token).unwrap();
        let mut options: Vec<Opt<'_>> = options
            .iter()
            .map(|(number, value)| Opt { number: OptionNumber(*number), value })
            .collect();
        let content = Content { code, options: &options, payload: &payload };
        let mut buf = [0; 4096];
        let encoded = content.encode(&mut buf, kind, MessageId(id), token).unwrap();
        let message = Message::parse(&buf[..encoded.len]).unwrap();

        prop_assert_eq!(encoded.len, 4 + token.len() + content.encoded_len());
        options.sort_by_key(|opt| opt.number);
        prop_assert_eq!(message.options().collect::<Vec<_>>(), options.clone());
        prop_assert_eq!(message.kind(), kind);
        prop_assert_eq!(message.code(), code);
        prop_assert_eq!(message.message_id(), MessageId(id));
        prop_assert_eq!(message.token(), Some(token));
        prop_assert_eq!(message.payload(), payload);
        prop_assert_eq!(
            encoded.last_option,
            options.last().map_or(OptionNumber(0), |opt| opt.number)
        );
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in datagram()) {
        if let Ok(message) = Message::parse(&bytes) {
            let again = encode_again(&message);
            let reread = Message::parse(&again).unwrap();
            prop_assert_eq!(message.kind(), reread.kind());
            prop_assert_eq!(message.code(), reread.code());
            prop_assert_eq!(message.message_id(), reread.message_id());
            prop_assert_eq!(message.token_bytes(), reread.token_bytes());
            prop_assert!(message.options().eq(reread.options()));
            prop_assert_eq!(message.payload(), reread.payload());
            prop_assert_eq!(message.first_unknown_critical(), reread.first_unknown_critical());
            // Ours is the only form, as the bases of the longer ones leave no second (section 3.1).
            prop_assert_eq!(bytes, again);
        }
    }

    #[test]
    fn a_message_that_is_cut_is_never_read_beyond_its_end(bytes in datagram()) {
        for len in 0..bytes.len() {
            if let Ok(message) = Message::parse(&bytes[..len]) {
                let read: usize = message.options().map(|opt| 1 + opt.value.len()).sum();
                prop_assert!(4 + message.token_bytes().len() + read + message.payload().len() <= len);
            }
        }
    }
}
