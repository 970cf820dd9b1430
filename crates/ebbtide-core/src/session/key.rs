//! The keys that distinguish transfers.

use crate::wire::{Message, OptionNumber};
use core::hash::Hasher;
use core::net::SocketAddr;
use siphasher::sip::SipHasher13;

/// The key of the transfer to which a request belongs: the client's address, a hash of the code and
/// options, and a hash of the body. The options are those that identify the request (RFC 7959
/// section 2.3), including Request-Tag (RFC 9175 section 3.3). A body that fits into one message is
/// hashed because it may name the requested resource (RFC 8132 section 2.1); 0 stands for no body,
/// or one in blocks. The hashes have no secret: a client that finds two requests with the same hash
/// confuses only its own transfers.
pub(super) type TransferKey = (SocketAddr, u64, u64);

/// The key of all blocks of a transfer.
pub(super) fn transfer_key(remote: SocketAddr, message: &Message<'_>) -> TransferKey {
    let left_out = |number| number == OptionNumber::OBSERVE || is_of_blocks(number);
    (remote, hash(message, left_out).finish(), body_hash(message))
}

fn body_hash(message: &Message<'_>) -> u64 {
    let in_blocks = |number| matches!(number, OptionNumber::BLOCK1 | OptionNumber::Q_BLOCK1);
    if message.payload().is_empty() || message.options().any(|opt| in_blocks(opt.number)) {
        return 0;
    }
    let mut hasher = SipHasher13::new();
    hasher.write(message.payload());
    hasher.finish()
}

/// A hash that distinguishes a request from others of the same client. It does not depend on the
/// Echo option, nor on the Request-Tag, since a body that is sent again after a challenge has a new
/// one.
pub(super) fn fingerprint(message: &Message<'_>) -> u32 {
    let mut hasher = hash(message, |number| number == OptionNumber::REQUEST_TAG);
    hasher.write(message.payload());
    hasher.finish() as u32
}

fn is_of_blocks(number: OptionNumber) -> bool {
    matches!(
        number,
        OptionNumber::BLOCK1
            | OptionNumber::BLOCK2
            | OptionNumber::Q_BLOCK1
            | OptionNumber::Q_BLOCK2
            | OptionNumber::SIZE1
            | OptionNumber::SIZE2
    )
}

fn hash(message: &Message<'_>, leave_out: impl Fn(OptionNumber) -> bool) -> SipHasher13 {
    let mut hasher = SipHasher13::new();
    hasher.write_u8(message.code().0);
    for opt in message.options() {
        let number = opt.number;
        let no_cache_key = number.is_no_cache_key() && number != OptionNumber::REQUEST_TAG;
        if number != OptionNumber::ECHO && !no_cache_key && !leave_out(number) {
            hasher.write_u16(number.0);
            hasher.write_usize(opt.value.len());
            hasher.write(opt.value);
        }
    }
    hasher
}
