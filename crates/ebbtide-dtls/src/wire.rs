//! Reads and writes the integers and vectors of TLS's presentation language (RFC 5246 section 4).

use alloc::vec::Vec;

/// A cursor over unchecked bytes. Every read past the end returns `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u24(&mut self) -> Option<u32> {
        self.array().map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    pub(crate) fn u48(&mut self) -> Option<u64> {
        self.array().map(|[a, b, c, d, e, f]| u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// A vector with a length of one byte.
    pub(crate) fn vector8(&mut self) -> Option<&'a [u8]> {
        let length = self.u8()?;
        self.take(length.into())
    }

    /// A vector with a length of two bytes.
    pub(crate) fn vector16(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(length.into())
    }
}

pub(crate) fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// The low 24 bits.
pub(crate) fn put_u24(out: &mut Vec<u8>, value: u32) {
    let [_, a, b, c] = value.to_be_bytes();
    out.extend_from_slice(&[a, b, c]);
}

/// The low 48 bits.
pub(crate) fn put_u48(out: &mut Vec<u8>, value: u64) {
    let [_, _, bytes @ ..] = value.to_be_bytes();
    out.extend_from_slice(&bytes);
}

/// Appends a vector of at most 255 bytes. Callers check the length; longer input is cut.
pub(crate) fn put_vector8(out: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = bytes.get(..255).unwrap_or(bytes);
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

/// Appends a vector of at most 65535 bytes. Callers check the length; longer input is cut.
pub(crate) fn put_vector16(out: &mut Vec<u8>, bytes: &[u8]) {
    let bytes = bytes.get(..0xffff).unwrap_or(bytes);
    put_u16(out, bytes.len() as u16);
    out.extend_from_slice(bytes);
}
