//! The four CBOR structures of OSCORE (RFC 8949), written into arrays on the stack.

use super::option::{MAX_PARTIAL_IV, PartialIv};
use super::short::{MAX_PEER_ID, PeerId, ShortBytes};

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

    fn raw(&mut self, bytes: &[u8]) {
        debug_assert!(self.len + bytes.len() <= MAX, "every structure has a bound");
        if let Some(room) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            room.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    /// The head of an item with an argument below 256 (RFC 8949 section 3).
    fn head(&mut self, major: u8, argument: usize) {
        match argument as u8 {
            short @ 0..24 => self.raw(&[major << 5 | short]),
            long => self.raw(&[major << 5 | 24, long]),
        }
    }

    fn bytes(&mut self, value: &[u8]) {
        self.head(2, value.len());
        self.raw(value);
    }

    /// So many bytes, of which the first `len` count: copying a number of them that is known takes no call, and what
    /// follows is written over the rest.
    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        let room = self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut);
        debug_assert!(room.is_some() && len <= N, "every structure has a bound");
        if let Some(room) = room {
            *room = bytes;
            self.len += len;
        }
    }

    /// A byte string of less than 24 bytes.
    #[inline(always)]
    fn short<const N: usize>(&mut self, value: &ShortBytes<N>) {
        const { assert!(N < 24) };
        let len = value.as_slice().len();
        self.put([2 << 5 | len as u8], 1);
        self.put(*value.padded(), len);
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
        let mut cbor = Cbor::new();
        cbor.head(4, 5);
        cbor.bytes(self.id);
        match self.id_context {
            Some(id_context) => cbor.bytes(id_context),
            None => cbor.raw(&[0xf6]),
        }
        cbor.head(0, self.algorithm.into());
        cbor.head(3, self.kind.len());
        cbor.raw(self.kind.as_bytes());
        cbor.head(0, self.len);
        cbor
    }
}

/// The additional authenticated data: COSE's `Enc_structure` around the `aad_array` (RFC 8613 section 5.4). `kid` and
/// `partial_iv` are those of the request, also for a response.
pub(super) fn additional_data(algorithm: u8, kid: &PeerId, partial_iv: &PartialIv) -> Cbor {
    const VERSION: u8 = 1;
    // It is written for each message: its beginning has a constant length.
    let [e0, e1, e2, e3, e4, e5, e6, e7] = *b"Encrypt0";
    let array_len = ARRAY_WITHOUT_VALUES + kid.as_slice().len() + partial_iv.as_slice().len();
    let array = 2 << 5 | array_len as u8;
    let mut cbor = Cbor::new();
    // An array of three: that text, an empty byte string, and the array in a byte string.
    let head = [0x83, 0x68, e0, e1, e2, e3, e4, e5, e6, e7, 0x40, array];
    cbor.put(head, head.len());
    cbor.put([0x85, VERSION, 0x81, algorithm], 4);
    cbor.short(kid);
    cbor.short(partial_iv);
    // No option of Class I is defined.
    cbor.put([0x40], 1);
    cbor
}

/// The bytes of the `aad_array` apart from those of `kid` and `partial_iv`, each of which has a head of one byte.
const ARRAY_WITHOUT_VALUES: usize = 7;
const _: () =
    assert!(ARRAY_WITHOUT_VALUES + MAX_PEER_ID + MAX_PARTIAL_IV < 24, "its head is a byte");
