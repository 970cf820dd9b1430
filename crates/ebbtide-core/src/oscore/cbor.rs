//! The four CBOR structures of OSCORE (RFC 8949), written into arrays on the stack.

use super::option::PartialIv;
use super::short::PeerId;

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
pub(super) fn additional_data(algorithm: u8, kid: &PeerId, partial_iv: &PartialIv) -> Cbor {
    const VERSION: u8 = 1;
    let (kid, partial_iv) = (kid.as_slice(), partial_iv.as_slice());
    // Written for each message: the heads around the array are constant, and its length is known before.
    let array_len = ARRAY_WITHOUT_VALUES + kid.len() + partial_iv.len();
    let cbor = Cbor::new().raw(ENCRYPT0).head(2, array_len);
    let array = cbor.raw(&[0x85, VERSION, 0x81, algorithm]);
    // No option of Class I is defined.
    array.bytes(kid).bytes(partial_iv).bytes(&[])
}

/// An array of three, the text "Encrypt0" and an empty byte string.
const ENCRYPT0: &[u8] = b"\x83\x68Encrypt0\x40";
/// The bytes of the `aad_array` apart from those of `kid` and `partial_iv`, each of which has a head of one byte.
const ARRAY_WITHOUT_VALUES: usize = 7;
