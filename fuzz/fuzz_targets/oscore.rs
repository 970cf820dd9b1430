//! Arbitrary datagrams at an OSCORE context, and arbitrary messages through a pair of them. Nothing
//! that was not made with the key is accepted, and every message that can be protected arrives as
//! the one that it was.
#![no_main]

use ebbtide_core::oscore::{
    Algorithm, MasterSecret, NotificationOrder, OscoreOption, SecurityContext, Volatile,
};
use ebbtide_core::wire::{Content, Message, Opt, OptionNumber};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|datagram: &[u8]| {
    if let Some(option) = OscoreOption::decode(datagram)
        && option.kid.is_none_or(|kid| kid.len() <= 7)
        && option.kid_context.is_none_or(|id| id.len() <= 32)
    {
        assert_eq!(option.encode().as_slice(), datagram, "a value has one form");
    }
    let Ok(message) = Message::parse(datagram) else { return };
    let algorithm = Algorithm::ALL[datagram.len() % 2];
    let secret = MasterSecret { secret: &[7; 16], salt: &[], id_context: None, algorithm };
    let context = |sender: &[u8], recipient: &[u8]| {
        SecurityContext::new(&secret, sender, recipient, Volatile).expect("good parameters")
    };
    let (mut client, mut server) = (context(b"", b"s"), context(b"s", b""));
    let mut buf = vec![0; 2 * datagram.len() + 64];
    let mut order = NotificationOrder::default();
    assert!(server.unprotect_request(&message, &mut buf).is_err(), "nobody has the key");

    let options: Vec<Opt<'_>> = message.options().collect();
    let content = Content { code: message.code(), options: &options, payload: message.payload() };
    let mut ciphertext = vec![0; content.encoded_len() + 17];
    let Ok((outer, number)) = client.protect_request(&content, &mut ciphertext) else {
        let bad =
            |opt: &Opt<'_>| matches!(opt.number, OptionNumber::OSCORE | OptionNumber::PROXY_URI);
        assert!(options.iter().any(bad), "only these cannot be protected");
        return;
    };
    assert!(client.unprotect_response(number, &mut order, &message, &mut buf).is_err());
    let outer_options: Vec<_> = outer.options(&content).collect();
    let sealed = Content { code: outer.code, options: &outer_options, payload: outer.payload };
    // Header, and a token with what extends its length.
    let mut sent = vec![0; 6 + message.token_bytes().len() + sealed.encoded_len()];
    let encoded = sealed
        .encode(&mut sent, message.kind(), message.message_id(), message.token_bytes())
        .expect("there is room");
    // An acknowledgement carries no request.
    let Ok(received) = Message::parse(&sent[..encoded.len]) else { return };
    let mut buf = vec![0; 2 * encoded.len];
    match server.unprotect_request(&received, &mut buf) {
        Ok(opened) => {
            let observes = options.iter().filter(|opt| opt.number == OptionNumber::OBSERVE).count();
            assert!(message.code().is_request());
            if observes == 0 {
                let plain = Message::parse(&buf[..opened.len]).expect("a message");
                let without = |opt: &Opt<'_>| opt.number != OptionNumber::OSCORE;
                assert!(plain.options().filter(without).eq(options.iter().copied()));
                assert_eq!((plain.code(), plain.payload()), (message.code(), message.payload()));
            }
            assert!(server.unprotect_request(&received, &mut buf).is_err(), "a replay");
        }
        Err(_) => {
            assert!(!message.code().is_request() || options.iter().any(|opt| opt.number.0 == 0))
        }
    }
});
