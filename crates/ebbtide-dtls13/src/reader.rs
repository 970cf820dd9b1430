//! Reads the fields of a ClientHello (RFC 8446 section 3).

/// Numbers of extensions (RFC 8446 section 4.2, RFC 5764 section 4.1.1, RFC 7685).
pub(crate) const SUPPORTED_GROUPS: u16 = 10;
pub(crate) const SIGNATURE_ALGORITHMS: u16 = 13;
pub(crate) const USE_SRTP: u16 = 14;
pub(crate) const PADDING: u16 = 21;
pub(crate) const SUPPORTED_VERSIONS: u16 = 43;
pub(crate) const COOKIE: u16 = 44;
pub(crate) const KEY_SHARE: u16 = 51;

/// The bytes that are left. All methods return `None` if that is too short.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        Some(*self.take(1)?.first()?)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    pub(crate) fn u24(&mut self) -> Option<usize> {
        Some(usize::from(self.u8()?) << 16 | usize::from(self.u16()?))
    }

    /// A vector whose length is one byte.
    pub(crate) fn vector8(&mut self) -> Option<&'a [u8]> {
        let length = self.u8()?;
        self.take(length.into())
    }

    /// A vector whose length is two bytes.
    pub(crate) fn vector16(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(length.into())
    }

    /// The same, if nothing follows it.
    pub(crate) fn last_vector16(mut self) -> Option<&'a [u8]> {
        self.vector16().filter(|_| self.0.is_empty())
    }
}

/// The extensions of a hello: their numbers and contents. The last one is `None` if it is cut off.
pub(crate) struct Extensions<'a>(pub(crate) Reader<'a>);

impl<'a> Iterator for Extensions<'a> {
    type Item = Option<(u16, &'a [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.0.is_empty() {
            return None;
        }
        let extension = self.0.u16().zip(self.0.vector16());
        if extension.is_none() {
            self.0 = Reader(&[]);
        }
        Some(extension)
    }
}
