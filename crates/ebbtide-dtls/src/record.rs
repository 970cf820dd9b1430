//! Records: the header of DTLS 1.2 (RFC 6347 section 4.1) and its form with a connection ID
//! (RFC 9146 section 4).

use crate::cid::OwnCid;
use crate::wire::{Reader, put_u16, put_u48};
use alloc::vec::Vec;

/// DTLS 1.0, as stated in a HelloVerifyRequest (RFC 6347 section 4.2.1).
pub(crate) const DTLS_1_0: u16 = 0xfeff;
/// DTLS 1.2.
pub(crate) const DTLS_1_2: u16 = 0xfefd;
/// Sequence numbers have 48 bits and must not wrap (RFC 6347 section 4.1).
pub(crate) const MAX_SEQUENCE: u64 = (1 << 48) - 1;
/// The longest plaintext of a record (RFC 5246 section 6.2.1).
pub(crate) const MAX_PLAINTEXT: usize = 1 << 14;
/// A record's header without a connection ID.
pub(crate) const HEADER: usize = 13;

/// The content type of a record: IANA's registry "TLS ContentType", where RFC 6347 section 4.1 takes over
/// 20 to 23 from TLS, 25 is of RFC 9146 section 10 and 27 of RFC 9853 section 10.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentType {
    ChangeCipherSpec,
    Alert,
    Handshake,
    ApplicationData,
    /// The real type is encrypted (RFC 9146).
    Tls12Cid,
    /// RFC 9853.
    ReturnRoutabilityCheck,
}

impl ContentType {
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::ChangeCipherSpec => 20,
            Self::Alert => 21,
            Self::Handshake => 22,
            Self::ApplicationData => 23,
            Self::Tls12Cid => 25,
            Self::ReturnRoutabilityCheck => 27,
        }
    }

    pub(crate) const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            20 => Self::ChangeCipherSpec,
            21 => Self::Alert,
            22 => Self::Handshake,
            23 => Self::ApplicationData,
            25 => Self::Tls12Cid,
            27 => Self::ReturnRoutabilityCheck,
            _ => return None,
        })
    }
}

/// A parsed header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) content: ContentType,
    pub(crate) epoch: u16,
    /// The sequence number, 48 bits.
    pub(crate) sequence: u64,
    /// Empty unless the type is `tls12_cid`.
    pub(crate) cid: OwnCid,
    /// The start of the fragment, which ends with the record.
    pub(crate) start: usize,
    /// The record's length, including the header.
    pub(crate) length: usize,
}

impl RecordHeader {
    /// Parses the first record of `bytes`. A connection ID has the length `cid_length` that the
    /// receiver issues; a receiver without connection IDs ignores records that carry one.
    ///
    /// `None` if the rest of the datagram is not a record and is to be dropped silently (RFC 6347
    /// section 4.1.2.7).
    pub(crate) fn parse(bytes: &[u8], cid_length: usize) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let content = ContentType::from_number(reader.u8()?)?;
        // An initial ClientHello may state DTLS 1.0 (RFC 6347 section 4.1).
        if !matches!(reader.u16()?, DTLS_1_0 | DTLS_1_2) {
            return None;
        }
        let epoch = reader.u16()?;
        let sequence = reader.u48()?;
        let cid = match content {
            ContentType::Tls12Cid if cid_length == 0 => return None,
            ContentType::Tls12Cid => reader.take(cid_length)?,
            _ => &[],
        };
        let start = HEADER + cid.len();
        let fragment = usize::from(reader.u16()?);
        (reader.rest().len() >= fragment).then_some(Self {
            content,
            epoch,
            sequence,
            cid: OwnCid::new(cid),
            start,
            length: start + fragment,
        })
    }
}

/// Appends an unprotected record.
pub(crate) fn plain(
    out: &mut Vec<u8>,
    content: ContentType,
    version: u16,
    sequence: u64,
    body: &[u8],
) {
    out.push(content.number());
    put_u16(out, version);
    // The epoch.
    put_u16(out, 0);
    put_u48(out, sequence);
    put_u16(out, body.len() as u16);
    out.extend_from_slice(body);
}
