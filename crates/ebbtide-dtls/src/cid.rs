//! Connection IDs (RFC 9146).

use core::fmt;

/// A connection ID of ours, which the peer puts into each record, so that the session is found
/// whatever the source address of the record. It has at most eight bytes; all connection IDs of an
/// endpoint have the same length.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct OwnCid {
    bytes: [u8; Self::MAX],
    length: u8,
}

impl OwnCid {
    /// The longest connection ID that this implementation issues.
    pub(crate) const MAX: usize = 8;
    /// The empty connection ID: records come without one.
    pub(crate) const EMPTY: Self = Self { bytes: [0; Self::MAX], length: 0 };

    /// The connection ID with these bytes, or with the first eight if there are more.
    pub(crate) fn new(cid: &[u8]) -> Self {
        let cid = cid.get(..Self::MAX).unwrap_or(cid);
        let mut bytes = [0; Self::MAX];
        if let Some(bytes) = bytes.get_mut(..cid.len()) {
            bytes.copy_from_slice(cid);
        }
        Self { bytes, length: cid.len() as u8 }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or_default()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl fmt::Debug for OwnCid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.as_slice() {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}
