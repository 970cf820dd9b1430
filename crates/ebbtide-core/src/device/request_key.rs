//! Hashes that tell the requests of a client apart.

use crate::wire::{Message, OptionNumber};

/// The identity of a request whose body arrives in blocks (RFC 7959 section 2.3, RFC 9175 section
/// 3.3): a hash of its code and options, without a secret, because a client that finds two requests
/// with the same hash confuses only its own.
pub(super) fn key(message: &Message<'_>) -> u32 {
    let mut hash = add(0x811c_9dc5, &message.code().0);
    for option in message.options() {
        let number = option.number;
        let of_block = matches!(
            number,
            OptionNumber::BLOCK1 | OptionNumber::BLOCK2 | OptionNumber::SIZE1 | OptionNumber::SIZE2
        );
        let of_first = matches!(
            number,
            OptionNumber::OBSERVE | OptionNumber::IF_NONE_MATCH | OptionNumber::ECHO
        );
        if !of_block && !of_first {
            let length = (option.value.len() as u16).to_be_bytes();
            let number = number.0.to_be_bytes();
            hash = number.iter().chain(&length).chain(option.value).fold(hash, add);
        }
    }
    hash
}

/// Distinguishes a request from others of the same client, whose blocks and payload are part of it.
pub(super) fn request_hash(message: &Message<'_>) -> u32 {
    let block = message.option(OptionNumber::BLOCK1).map_or(&[][..], |option| option.value);
    block.iter().chain(message.payload()).fold(key(message), add)
}

/// FNV-1a.
fn add(hash: u32, byte: &u8) -> u32 {
    (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
}
