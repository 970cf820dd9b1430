//! The header of handshake messages (RFC 6347 section 4.2.2) and the messages that are not hellos.

use crate::certificate::MAX_CHAIN;
use crate::wire::{Reader, put_u16, put_u24, put_vector16};
use alloc::vec::Vec;

/// Bytes of a handshake message's header.
pub(crate) const HEADER: usize = 12;
/// The longest message that is reassembled, except Certificate. The hellos of other implementations have
/// at most 500 bytes.
const MAX_MESSAGE: usize = 2048;
/// The longest identity; RFC 4279 section 5.3 requires at least 128 bytes.
pub(crate) const MAX_IDENTITY: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeType {
    HelloRequest,
    ClientHello,
    ServerHello,
    HelloVerifyRequest,
    Certificate,
    ServerKeyExchange,
    CertificateRequest,
    ServerHelloDone,
    CertificateVerify,
    ClientKeyExchange,
    Finished,
}

impl HandshakeType {
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::HelloRequest => 0,
            Self::ClientHello => 1,
            Self::ServerHello => 2,
            Self::HelloVerifyRequest => 3,
            Self::Certificate => 11,
            Self::ServerKeyExchange => 12,
            Self::CertificateRequest => 13,
            Self::ServerHelloDone => 14,
            Self::CertificateVerify => 15,
            Self::ClientKeyExchange => 16,
            Self::Finished => 20,
        }
    }

    pub(crate) const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::HelloRequest,
            1 => Self::ClientHello,
            2 => Self::ServerHello,
            3 => Self::HelloVerifyRequest,
            11 => Self::Certificate,
            12 => Self::ServerKeyExchange,
            13 => Self::CertificateRequest,
            14 => Self::ServerHelloDone,
            15 => Self::CertificateVerify,
            16 => Self::ClientKeyExchange,
            20 => Self::Finished,
            _ => return None,
        })
    }

    /// The length of the longest message of this type that is reassembled.
    const fn max_length(self) -> usize {
        match self {
            Self::Certificate => MAX_CHAIN,
            _ => MAX_MESSAGE,
        }
    }
}

/// A fragment of a message, or all of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'a> {
    pub(crate) kind: HandshakeType,
    /// The message's length.
    pub(crate) total: usize,
    pub(crate) sequence: u16,
    pub(crate) offset: usize,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// The next fragment of a record. `None` if it is malformed, of an unknown type, or of a message
    /// that is too long.
    pub(crate) fn parse(reader: &mut Reader<'a>) -> Option<Self> {
        let kind = HandshakeType::from_number(reader.u8()?)?;
        let total = reader.u24()? as usize;
        let sequence = reader.u16()?;
        let offset = reader.u24()? as usize;
        let length = reader.u24()? as usize;
        let bytes = reader.take(length)?;
        let fits = total <= kind.max_length() && offset.checked_add(length)? <= total;
        // An empty fragment of a non-empty message carries nothing.
        let useful = length > 0 || total == 0;
        (fits && useful).then_some(Self { kind, total, sequence, offset, bytes })
    }

    pub(crate) const fn is_whole(&self) -> bool {
        self.bytes.len() == self.total
    }

    /// Appends its header and its bytes.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind.number());
        put_u24(out, self.total as u32);
        put_u16(out, self.sequence);
        put_u24(out, self.offset as u32);
        put_u24(out, self.bytes.len() as u32);
        out.extend_from_slice(self.bytes);
    }
}

/// The header of an unfragmented message, which enters the transcript whatever the fragmentation
/// (RFC 6347 section 4.2.6).
pub(crate) fn whole_header(kind: HandshakeType, length: usize, sequence: u16) -> [u8; HEADER] {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    let [s, t] = sequence.to_be_bytes();
    [kind.number(), a, b, c, s, t, 0, 0, 0, a, b, c]
}

/// A ServerKeyExchange's identity hint, which RFC 4279 section 5.2 allows a client to ignore.
pub(crate) fn parse_hint(body: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(body);
    let hint = reader.vector16()?;
    reader.is_empty().then_some(hint)
}

/// A ClientKeyExchange's identity (RFC 4279 section 2).
pub(crate) fn parse_identity(body: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(body);
    let identity = reader.vector16()?;
    (reader.is_empty() && identity.len() <= MAX_IDENTITY).then_some(identity)
}

/// The body of a ServerKeyExchange or ClientKeyExchange.
pub(crate) fn psk_exchange(hint_or_identity: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(2 + hint_or_identity.len());
    put_vector16(&mut body, hint_or_identity);
    body
}
