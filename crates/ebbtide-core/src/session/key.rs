//! The keys that distinguish transfers.

use crate::peer::PeerId;
use crate::wire::{Message, OptionNumber};
use core::hash::Hasher;
use core::ops::RangeInclusive;
use siphasher::sip::SipHasher13;

/// The key of the transfer that a request belongs to. Keys are in the order of their fields, so that those
/// of one request with different bodies are neighbours. The hashes have no secret: a client that finds two
/// requests with the same hash confuses only its own transfers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransferKey {
    /// The client.
    pub(super) remote: PeerId,
    /// A hash of the code and of the options that identify the request (RFC 7959 section 2.3), Request-Tag
    /// among them (RFC 9175 section 3.3).
    request: u64,
    /// A hash of the body, if it fits into one message: it may name what is requested (RFC 8132 section
    /// 2.1). 0 stands for no body, or one in blocks.
    body: u64,
}

impl TransferKey {
    /// Whether the key names no body.
    pub(super) const fn has_no_body(&self) -> bool {
        self.body == 0
    }

    /// The keys of the same request with this body and with all that follow it.
    pub(super) fn with_later_bodies(self) -> RangeInclusive<Self> {
        self..=Self { body: u64::MAX, ..self }
    }
}

/// The key of all blocks of a transfer. If-None-Match is an option of its first block alone (RFC 7959
/// section 2.10).
pub(super) fn transfer_key(remote: PeerId, message: &Message<'_>) -> TransferKey {
    let left_out = |number| {
        matches!(number, OptionNumber::OBSERVE | OptionNumber::IF_NONE_MATCH)
            || is_of_blocks(number)
    };
    let request = hash(message, left_out).finish();
    TransferKey { remote, request, body: body_hash(message) }
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
        // PM differs in the messages of one transfer.
        let is_of_message = matches!(number, OptionNumber::ECHO | OptionNumber::PM);
        if !is_of_message && !no_cache_key && !leave_out(number) {
            let value =
                if number == OptionNumber::OSCORE { context_of(opt.value) } else { opt.value };
            hasher.write_u16(number.0);
            hasher.write_usize(value.len());
            hasher.write(value);
        }
    }
    hasher
}

/// The part of an OSCORE option that is the same in all requests of a context: the names after the
/// Partial IV, whose length is in the low three bits of the first byte (RFC 8613 section 6.1).
fn context_of(value: &[u8]) -> &[u8] {
    let names = value.split_first().and_then(|(flags, rest)| rest.get(usize::from(flags & 7)..));
    names.unwrap_or(value)
}
