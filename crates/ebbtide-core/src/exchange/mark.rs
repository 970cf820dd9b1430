//! Marks and options written into an encoded message.

use crate::wire::{
    Body, HEADER_LEN, MAX_OPTION_HEADER, Message, OptionNumber, PAYLOAD_MARKER, encode_option,
    encoded_token_len,
};
use alloc::vec::Vec;

/// The value of Rexmit-Cnt in the first request to an unknown peer (fasor-02).
pub(crate) const COUNT_PROBE: u8 = 255;

/// Appends `message` to `out` with `mark` in front of its token, which must be shorter than the
/// maximum.
pub(crate) fn with_marked_token(message: &[u8], mark: u8, out: &mut Vec<u8>) {
    let (header, rest) = message.split_at(HEADER_LEN.min(message.len()));
    let start = out.len();
    out.extend_from_slice(header);
    // The length of the token is the low half of the first byte (RFC 7252 section 3).
    if let Some(first) = out.get_mut(start) {
        *first += 1;
    }
    out.push(mark);
    out.extend_from_slice(rest);
}

/// Where the options of an encoded message end.
#[derive(Copy, Clone)]
pub(crate) struct OptionsEnd {
    pub(crate) offset: usize,
    /// The number of the last one, to which the delta of the next one is added (RFC 7252 section 3.1).
    pub(crate) last_option: OptionNumber,
}

impl OptionsEnd {
    /// That of options and payload without a token.
    pub(crate) fn of(rest: &[u8]) -> Option<Self> {
        let body = Body::parse(0, rest).ok()?;
        let payload = body.payload().len();
        let offset = rest.len() - payload - usize::from(payload > 0);
        let last_option = body.options().last().map_or(OptionNumber(0), |last| last.number);
        Some(Self { offset, last_option })
    }
}

/// Appends `message` to `out` with the option Rexmit-Cnt, which has this number, of value `count`
/// as its last option, at `end`. Appends it unchanged if it has an option
/// with a higher number, since that option would have to be re-encoded.
pub(crate) fn with_count_option(
    message: &[u8],
    end: OptionsEnd,
    number: OptionNumber,
    count: u8,
    out: &mut Vec<u8>,
) -> bool {
    let mut option = [0; 8];
    // RFC 7252 section 3.2: zero is the empty value.
    let value = if count == 0 { &[][..] } else { core::slice::from_ref(&count) };
    let encoded = encode_option(&mut option, end.last_option, number, value);
    match (encoded, message.get(..end.offset), message.get(end.offset..)) {
        (Ok(len), Some(head), Some(tail)) => {
            out.extend_from_slice(head);
            out.extend_from_slice(&option[..len]);
            out.extend_from_slice(tail);
            true
        }
        _ => {
            out.extend_from_slice(message);
            false
        }
    }
}

/// Appends an encoded message to `out` with the option `number` of this value, in place of one that it has.
pub(crate) fn with_option(datagram: &[u8], number: OptionNumber, value: &[u8], out: &mut Vec<u8>) {
    let Ok(message) = Message::parse(datagram) else { return out.extend_from_slice(datagram) };
    let head = HEADER_LEN + encoded_token_len(message.token_bytes().len());
    out.extend_from_slice(datagram.get(..head).unwrap_or_default());
    let mut last = OptionNumber(0);
    let mut append = |number: OptionNumber, value: &[u8]| {
        let start = out.len();
        out.resize(start + MAX_OPTION_HEADER + value.len(), 0);
        // In order, and no longer than they were.
        let len = out.get_mut(start..).and_then(|buf| encode_option(buf, last, number, value).ok());
        out.truncate(start + len.unwrap_or(0));
        last = number;
    };
    let others = || message.options().filter(|option| option.number != number);
    others().filter(|option| option.number < number).for_each(|o| append(o.number, o.value));
    append(number, value);
    others().filter(|option| option.number > number).for_each(|o| append(o.number, o.value));
    if !message.payload().is_empty() {
        out.push(PAYLOAD_MARKER);
        out.extend_from_slice(message.payload());
    }
}
