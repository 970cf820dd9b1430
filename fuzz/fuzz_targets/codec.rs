//! Decoding, encoding and decoding again gives the same message, so messages that are accepted
//! from the network could have been sent by this endpoint. Another implementation, coap-lite, reads
//! the same in it, and takes no more than this one but for the rules that it does not check.
//! `seeds/codec` has messages to begin with.
#![no_main]

use coap_lite::{MessageType, Packet};
use ebbtide_core::wire::{
    Block, Content, Encoder, FormatError, Message, Opt, OptionNumber, ParseError, Type,
    encoded_token_len,
};
use libfuzzer_sys::fuzz_target;

/// What coap-lite 0.13 takes although RFC 7252 does not (`FormatError` has the clauses).
fn is_lenient_about(error: ParseError) -> bool {
    match error {
        ParseError::Version(_) => true,
        ParseError::Format { reason, .. } => matches!(
            reason,
            FormatError::PayloadMarkerWithoutPayload
                | FormatError::EmptyMessageWithContent
                | FormatError::ReservedCodeClass(_)
                | FormatError::CodeNotForType(_)
        ),
        ParseError::TooShort => false,
    }
}

fn assert_read_alike(message: &Message<'_>, other: Packet) {
    let kind = match other.header.get_type() {
        MessageType::Confirmable => Type::Confirmable,
        MessageType::NonConfirmable => Type::NonConfirmable,
        MessageType::Acknowledgement => Type::Acknowledgement,
        MessageType::Reset => Type::Reset,
    };
    assert_eq!((kind, other.header.message_id), (message.kind(), message.message_id().0));
    assert_eq!(other.get_token(), message.token_bytes());
    assert_eq!(other.payload, message.payload());
    let options =
        other.options().flat_map(|(number, values)| values.iter().map(|v| (*number, &v[..])));
    assert!(options.eq(message.options().map(|opt| (opt.number.0, opt.value))));
}

fuzz_target!(|datagram: &[u8]| {
    let other = Packet::from_bytes(datagram);
    let message = match Message::parse(datagram) {
        Ok(message) => message,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(other.is_err() || is_lenient_about(error), "coap-lite reads it: {error}");
            return;
        }
    };
    match other {
        Ok(other) => assert_read_alike(&message, other),
        // It has not heard of RFC 8974.
        Err(error) => assert!(message.token_bytes().len() > 8, "coap-lite: {error}"),
    }
    let options: Vec<Opt<'_>> = message.options().collect();
    assert!(options.is_sorted_by_key(|opt| opt.number));

    // All at once, from options in another order: descending numbers, with options of the same
    // number as they were. This is skipped for very many options, since sorting takes time that
    // grows with the square of their number.
    let mut shuffled = options.clone();
    if shuffled.len() <= 24 {
        shuffled.sort_by_key(|opt| core::cmp::Reverse(opt.number));
    }
    let content = Content { code: message.code(), options: &shuffled, payload: message.payload() };
    let (kind, id, token) = (message.kind(), message.message_id(), message.token_bytes());
    let len = 4 + encoded_token_len(token.len()) + content.encoded_len();
    let mut buf = vec![0xaa; len];
    let encoded = content.encode(&mut buf, kind, id, token).expect("the length was computed");
    assert_eq!(encoded.len, len);
    assert_eq!(buf, datagram, "a message has one form");
    assert_eq!(
        encoded.options_end + message.payload().len() + usize::from(!message.payload().is_empty()),
        len
    );

    // Option by option.
    let mut buf = vec![0xaa; len];
    let mut encoder =
        Encoder::new(&mut buf, kind, message.code(), id, token).expect("it fitted before");
    for opt in &options {
        encoder.option(opt.number, opt.value).expect("they are in order");
    }
    encoder.payload(message.payload()).expect("it fitted before");
    assert_eq!(encoder.finish(), datagram);

    // One byte less is too short.
    let mut short = vec![0; len - 1];
    assert!(content.encode(&mut short, kind, id, token).is_err());

    // The accessors agree with the options one by one.
    assert!(message.path().eq(
        options.iter().filter(|opt| opt.number == OptionNumber::URI_PATH).map(|opt| opt.value)
    ));
    if let Some(number) = message.first_unknown_critical() {
        assert!(number.is_critical());
        assert!(options.iter().any(|opt| opt.number == number));
    }
    for opt in &options {
        let found = message.option(opt.number);
        assert!(found.is_none_or(|found| options.contains(&found) && found.is_well_formed()));
        let _ = (opt.as_uint(), opt.as_str());
        if let Ok(block) = Block::from_option(opt) {
            assert_eq!(Block::from_uint(block.to_uint()), Ok(block));
        }
    }
    assert!(!format!("{message:?}").is_empty());
});
