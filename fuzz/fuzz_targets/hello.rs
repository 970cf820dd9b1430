//! The ClientHello of DTLS 1.3 that a server restores from its successor is one that the server would have read,
//! and it is not longer than its successor and a padding. `seeds/hello` has ClientHellos to begin with.
#![no_main]

use hello::MAX_HANDSHAKE_DATAGRAM;
use libfuzzer_sys::fuzz_target;

/// The parser is not public.
#[path = "../../crates/ebbtide-dtls13/src/hello.rs"]
#[allow(dead_code, reason = "the server reads more of it")]
mod hello;

fuzz_target!(|input: &[u8]| {
    let Some((padding, datagram)) = input.split_first_chunk() else { return };
    let Some(hello) = hello::Hello::parse(datagram) else { return };
    for padding in [hello.padding(), u16::from_be_bytes(*padding), u16::MAX] {
        let Some(first) = hello.first(padding) else {
            assert!(usize::from(padding) > MAX_HANDSHAKE_DATAGRAM);
            continue;
        };
        if datagram.len() > MAX_HANDSHAKE_DATAGRAM {
            // The server refuses it before it restores anything.
            continue;
        }
        let record = hello::record(&first);
        let restored = hello::Hello::parse(&record).expect("it would have been read");
        assert!(restored.cookie.is_none());
        assert_eq!(restored.key_agreement, hello.key_agreement);
        assert_eq!(restored.padding(), padding);
        assert_eq!(restored.first(padding).expect("the same padding"), first);
    }
});
