//! Numbers in four bits that up to two bytes extend: deltas and lengths of options (RFC 7252 section 3.1), and lengths
//! of tokens (RFC 8974 section 2.1).

/// The number of bytes that extend `value`.
#[inline]
pub(super) const fn extension_len(value: usize) -> usize {
    match value {
        0..13 => 0,
        13..269 => 1,
        _ => 2,
    }
}

/// Returns the nibble for `value` (at most [`MAX_OPTION_LEN`](super::MAX_OPTION_LEN)), writes its extension to
/// `header[at..]`, and returns where that ends.
#[inline]
pub(super) fn extend(header: &mut [u8], at: usize, value: usize) -> (u8, usize) {
    let (nibble, extension, len) = match value {
        0..13 => (value as u8, [0; 2], 0),
        13..269 => (13, [(value - 13) as u8, 0], 1),
        _ => (14, ((value - 269) as u16).to_be_bytes(), 2),
    };
    for (to, from) in header.iter_mut().skip(at).zip(extension) {
        *to = from;
    }
    (nibble, at + len)
}
