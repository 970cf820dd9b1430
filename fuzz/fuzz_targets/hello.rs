//! The ClientHello of DTLS 1.3 that a server restores from its successor is one that the server would have read,
//! and it is not longer than a datagram. `seeds/hello` has ClientHellos to begin with.
#![no_main]

use hello::{MAX_HANDSHAKE_DATAGRAM, Replaced};
use libfuzzer_sys::fuzz_target;

/// The parser is not public.
#[path = "../../crates/ebbtide-dtls13/src/hello.rs"]
#[allow(dead_code, reason = "the server reads more of it")]
mod hello;
#[path = "../../crates/ebbtide-dtls13/src/reader.rs"]
#[allow(dead_code, reason = "the server reads more with it")]
mod reader;

fuzz_target!(|input: &[u8]| {
    let Some((claimed, datagram)) = input.split_first_chunk() else { return };
    let Some(hello) = hello::Hello::parse(datagram) else { return };
    for replaced in [hello.replaced(), Replaced::from_be_bytes(*claimed)] {
        let Some(first) = hello.first(replaced) else { continue };
        assert!(first.len() <= MAX_HANDSHAKE_DATAGRAM);
        let record = hello::record(&first);
        let restored = hello::Hello::parse(&record).expect("it would have been read");
        assert!(restored.cookie.is_none());
        assert_eq!(restored.first(replaced).expect("the same parts"), first);
    }
});
