//! The seal of a file: a hash of its content, stored within the file. It reveals a change of any
//! one byte, however the file was transferred.

use crate::random::fnv1a_128;

/// The name under which a file has its seal.
pub(super) const NAME: &str = "ebbtide.seal";

/// The text before the digits of the hash.
const MARK: &[u8] = b"content-";

/// Hexadecimal digits of the hash.
const DIGITS: usize = 32;

/// A seal that is not closed: it goes into the file once, as it stands.
pub(super) fn open() -> String {
    format!("{}{}", String::from_utf8_lossy(MARK), "0".repeat(DIGITS))
}

/// Closes the seal of a complete file.
pub(super) fn close(bytes: &mut [u8]) {
    if let Some(place) = place(bytes) {
        let hash = format!("{:032x}", fnv1a_128(bytes));
        bytes[place..place + DIGITS].copy_from_slice(hash.as_bytes());
    }
}

/// Whether a file is as it was when its seal was closed. A change of one byte is always noticed: each
/// step of the hash maps different states to different ones.
pub(super) fn holds(bytes: &[u8]) -> bool {
    let Some(place) = place(bytes) else { return false };
    let mut plain = bytes.to_vec();
    plain[place..place + DIGITS].fill(b'0');
    bytes[place..place + DIGITS] == *format!("{:032x}", fnv1a_128(&plain)).as_bytes()
}

/// Where the digits of the last seal begin.
fn place(bytes: &[u8]) -> Option<usize> {
    let end = bytes.len().checked_sub(MARK.len() + DIGITS)?;
    let found = (0..=end).rev().find(|start| bytes[*start..].starts_with(MARK))?;
    Some(found + MARK.len())
}
