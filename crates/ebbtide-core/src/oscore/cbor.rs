//! The four CBOR structures of OSCORE (RFC 8949), written into arrays on the stack.

use super::option::OscoreValue;

/// The longest structure: that of a key's derivation with the longest ID Context.
const MAX: usize = 64;

/// CBOR that is being written. All structures have a bound below `MAX`, so nothing is ever left out.
pub(super) struct Cbor {
    bytes: [u8; MAX],
    len: usize,
}

impl Cbor {
    const fn new() -> Self {
        Self { bytes: [0; MAX], len: 0 }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        debug_assert!(self.len + bytes.len() <= MAX, "every structure has a bound");
        if let Some(room) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len();
        }
        self
    }

    /// The head of an item with an argument below 256 (RFC 8949 section 3).
    fn head(self, major: u8, argument: usize) -> Self {
        match argument as u8 {
            short @ 0..24 => self.raw(&[major << 5 | short]),
            long => self.raw(&[major << 5 | 24, long]),
        }
    }

    fn uint(self, value: u8) -> Self {
        self.head(0, value.into())
    }

    fn bytes(self, value: &[u8]) -> Self {
        self.head(2, value.len()).raw(value)
    }

    fn text(self, value: &str) -> Self {
        self.head(3, value.len()).raw(value.as_bytes())
    }

    fn array(self, items: usize) -> Self {
        self.head(4, items)
    }

    fn null(self) -> Self {
        self.raw(&[0xf6])
    }
}

/// HKDF's `info` for a value that is derived (RFC 8613 section 3.2.1).
pub(super) struct Derived<'a> {
    pub(super) id: &'a [u8],
    pub(super) id_context: Option<&'a [u8]>,
    pub(super) algorithm: u8,
    /// `Key` or `IV`.
    pub(super) kind: &'static str,
    pub(super) len: usize,
}

impl Derived<'_> {
    pub(super) fn info(&self) -> Cbor {
        let cbor = Cbor::new().array(5).bytes(self.id);
        let cbor = match self.id_context {
            Some(id_context) => cbor.bytes(id_context),
            None => cbor.null(),
        };
        cbor.uint(self.algorithm).text(self.kind).head(0, self.len)
    }
}

/// The additional authenticated data: COSE's `Enc_structure` around the `aad_array` (RFC 8613 section 5.4). `kid` and
/// `partial_iv` are those of the request, also for a response.
pub(super) fn additional_data(algorithm: u8, kid: &[u8], partial_iv: &OscoreValue) -> Cbor {
    const VERSION: u8 = 1;
    let array = Cbor::new().array(5).uint(VERSION).array(1).uint(algorithm);
    // No option of Class I is defined.
    let array = array.bytes(kid).bytes(partial_iv.as_slice()).bytes(&[]);
    Cbor::new().array(3).text("Encrypt0").bytes(&[]).bytes(array.as_slice())
}
