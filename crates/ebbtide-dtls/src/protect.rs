//! Protected records: numbering, encryption and replay protection.

use crate::cid::OwnCid;
use crate::keys::{ConnectionKeys, DirectionKeys};
use crate::record::{ContentType, DTLS_1_2, HEADER, MAX_SEQUENCE, RecordHeader};
use crate::replay::ReplayWindow;
use crate::suite::CipherSuite;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use zeroize::Zeroizing;

/// The explicit part of the nonce (RFC 6655 section 3, RFC 5288 section 3).
const EXPLICIT_NONCE: usize = 8;
/// The only epoch of protected records, since there is no renegotiation.
const EPOCH: u16 = 1;

/// Both directions of a session after its handshake has derived keys. An idle session consists of
/// little else.
#[derive(Debug)]
pub(crate) struct Protection {
    suite: CipherSuite,
    write: DirectionKeys,
    read: DirectionKeys,
    next_sequence: u64,
    window: ReplayWindow,
    /// The connection ID in the peer's records.
    own_cid: OwnCid,
    /// The connection ID in our records.
    peer_cid: Box<[u8]>,
}

/// An authentic and new record.
#[derive(Debug)]
pub(crate) struct OpenedRecord {
    pub(crate) content: ContentType,
    /// The position of the plaintext in the record.
    pub(crate) plaintext: Range<usize>,
    /// Whether it is the latest record received so far.
    pub(crate) newest: bool,
}

/// The reason why a record was discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discarded {
    /// It belongs to another epoch, lacks the negotiated connection ID, or is too short.
    Malformed,
    /// It was received before, or is too old to check.
    Replayed,
    /// Its authentication tag is wrong.
    NotAuthentic,
}

impl Protection {
    pub(crate) fn new(
        suite: CipherSuite,
        keys: ConnectionKeys,
        own_cid: OwnCid,
        peer_cid: &[u8],
    ) -> Self {
        Self {
            suite,
            write: keys.write,
            read: keys.read,
            next_sequence: 0,
            window: ReplayWindow::default(),
            own_cid,
            peer_cid: peer_cid.into(),
        }
    }

    pub(crate) const fn suite(&self) -> CipherSuite {
        self.suite
    }

    pub(crate) const fn own_cid(&self) -> OwnCid {
        self.own_cid
    }

    pub(crate) fn has_peer_cid(&self) -> bool {
        !self.peer_cid.is_empty()
    }

    pub(crate) fn peer_cid(&self) -> &[u8] {
        &self.peer_cid
    }

    pub(crate) const fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    pub(crate) const fn window(&self) -> ReplayWindow {
        self.window
    }

    /// The keys for writing and those for reading.
    pub(crate) fn keys(&self) -> Zeroizing<Vec<u8>> {
        let mut keys = Zeroizing::new(Vec::with_capacity(40));
        self.write.put(&mut keys);
        self.read.put(&mut keys);
        keys
    }

    /// Goes on where another program has ended.
    pub(crate) const fn go_on(&mut self, next_sequence: u64, window: ReplayWindow) {
        (self.next_sequence, self.window) = (next_sequence, window);
    }

    /// Refuses this record and those before it from now on.
    pub(crate) const fn forget_before(&mut self, sequence: u64) {
        self.window = ReplayWindow::after(sequence);
    }

    /// The difference in length between a record and its content.
    pub(crate) fn overhead(&self) -> usize {
        let cid = if self.peer_cid.is_empty() { 0 } else { self.peer_cid.len() + 1 };
        HEADER + EXPLICIT_NONCE + self.suite.tag_length() + cid
    }

    /// Appends a record. Returns false and appends nothing when the sequence numbers are used up,
    /// because they must not wrap (RFC 6347 section 4.1).
    pub(crate) fn seal(&mut self, content: ContentType, body: &[u8], out: &mut Vec<u8>) -> bool {
        let sequence = self.next_sequence;
        if sequence > MAX_SEQUENCE {
            return false;
        }
        let with_cid = !self.peer_cid.is_empty();
        let outer = if with_cid { ContentType::Tls12Cid } else { content };
        let tag_length = self.suite.tag_length();
        // The 64 bits of epoch and sequence number are the nonce (RFC 6655 section 3).
        let explicit = numbers(EPOCH, sequence);
        let fragment = EXPLICIT_NONCE + body.len() + usize::from(with_cid) + tag_length;
        let at = out.len();
        out.reserve(HEADER + self.peer_cid.len() + fragment);
        let ([v, w], [a, b, c, d, e, f, g, h]) = (DTLS_1_2.to_be_bytes(), explicit);
        out.extend_from_slice(&[outer.number(), v, w, a, b, c, d, e, f, g, h]);
        out.extend_from_slice(&self.peer_cid);
        let [high, low] = (fragment as u16).to_be_bytes();
        out.extend_from_slice(&[high, low, a, b, c, d, e, f, g, h]);
        let start = out.len();
        out.extend_from_slice(body);
        if with_cid {
            out.push(content.number());
        }
        let end = out.len();
        out.resize(end + tag_length, 0);
        let aad = Aad::new(outer, explicit, &self.peer_cid, end - start);
        let sealed = match out
            .get_mut(start..)
            .and_then(|rest| rest.split_at_mut_checked(end - start))
        {
            Some((data, tag)) => self.write.seal(self.suite, explicit, aad.as_slice(), data, tag),
            None => false,
        };
        if !sealed {
            out.truncate(at);
            return false;
        }
        self.next_sequence += 1;
        true
    }

    /// Decrypts a record in place. Only an authentic record changes the state.
    pub(crate) fn open(
        &mut self,
        record: &mut [u8],
        header: &RecordHeader,
    ) -> Result<OpenedRecord, Discarded> {
        // If a connection ID was negotiated, encrypted records without it are discarded (RFC 9146
        // section 3).
        if header.epoch != EPOCH || header.cid != self.own_cid {
            return Err(Discarded::Malformed);
        }
        if !self.window.may_accept(header.sequence) {
            return Err(Discarded::Replayed);
        }
        let tag_length = self.suite.tag_length();
        let start = header.start + EXPLICIT_NONCE;
        let end = header.length.checked_sub(tag_length).ok_or(Discarded::Malformed)?;
        let length = end.checked_sub(start).ok_or(Discarded::Malformed)?;
        let (head, rest) = record.split_at_mut_checked(start).ok_or(Discarded::Malformed)?;
        let (data, rest) = rest.split_at_mut_checked(length).ok_or(Discarded::Malformed)?;
        let tag = rest.get(..tag_length).ok_or(Discarded::Malformed)?;
        let explicit = head.last_chunk().copied().ok_or(Discarded::Malformed)?;
        let numbers = numbers(EPOCH, header.sequence);
        let aad = Aad::new(header.content, numbers, header.cid.as_slice(), length);
        if !self.read.open(self.suite, explicit, aad.as_slice(), data, tag) {
            return Err(Discarded::NotAuthentic);
        }
        let (content, length) = if header.content == ContentType::Tls12Cid {
            // DTLSInnerPlaintext: content, type, zeros (RFC 9146 section 4).
            let last = data.iter().rposition(|byte| *byte != 0).ok_or(Discarded::Malformed)?;
            let number = data.get(last).copied().unwrap_or_default();
            (ContentType::from_number(number).ok_or(Discarded::Malformed)?, last)
        } else {
            (header.content, length)
        };
        let newest = self.window.is_newest(header.sequence);
        self.window.accept(header.sequence);
        Ok(OpenedRecord { content, plaintext: start..start + length, newest })
    }

    /// Whether a record belongs to this session. Changes nothing except `record`, whose contents
    /// are unspecified afterwards.
    pub(crate) fn authenticates(&mut self, record: &mut [u8], header: &RecordHeader) -> bool {
        let window = self.window;
        let opened = self.open(record, header).is_ok();
        self.window = window;
        opened
    }
}

/// Epoch and sequence number as 64 bits.
fn numbers(epoch: u16, sequence: u64) -> [u8; 8] {
    (u64::from(epoch) << 48 | sequence).to_be_bytes()
}

/// The additional data of the AEAD: RFC 5246 section 6.2.3.3, with a connection ID
/// RFC 9146 section 5.3.
struct Aad {
    bytes: [u8; Self::MAX],
    length: usize,
}

impl Aad {
    const MAX: usize = 23 + 255;

    fn new(content: ContentType, numbers: [u8; 8], cid: &[u8], length: usize) -> Self {
        let mut aad = Self { bytes: [0; Self::MAX], length: 0 };
        let [v, w] = DTLS_1_2.to_be_bytes();
        let [a, b, c, d, e, f, g, h] = numbers;
        let (kind, [high, low]) = (content.number(), (length as u16).to_be_bytes());
        if content == ContentType::Tls12Cid {
            aad.push(&[0xff; 8]);
            aad.push(&[kind, cid.len() as u8, kind, v, w, a, b, c, d, e, f, g, h]);
            aad.push(cid);
            aad.push(&[high, low]);
        } else {
            aad.push(&[a, b, c, d, e, f, g, h, kind, v, w, high, low]);
        }
        aad
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if let Some(room) = self.bytes.get_mut(self.length..end) {
            room.copy_from_slice(bytes);
            self.length = end;
        }
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
impl Protection {
    /// As if all records before this one had been sent.
    pub(crate) const fn skip_to(&mut self, sequence: u64) {
        self.next_sequence = sequence;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{MasterSecret, Psk, Randoms, Role};
    use alloc::vec;

    fn pair(client_cid: &[u8], server_cid: &[u8]) -> (Protection, Protection) {
        let randoms = Randoms { client: [1; 32], server: [2; 32] };
        let master = MasterSecret::classic(&Psk::new(b"secret").unwrap().premaster(), &randoms);
        let make = |role, own: &[u8], peer| {
            let keys = master.keys(role, &randoms);
            Protection::new(CipherSuite::PskAes128Ccm8, keys, OwnCid::new(own), peer)
        };
        (make(Role::Client, client_cid, server_cid), make(Role::Server, server_cid, client_cid))
    }

    fn open(
        to: &mut Protection,
        record: &[u8],
        cid: usize,
    ) -> Result<(ContentType, Vec<u8>), Discarded> {
        let mut record = record.to_vec();
        let header = RecordHeader::parse(&record, cid).unwrap();
        let opened = to.open(&mut record, &header)?;
        Ok((opened.content, record[opened.plaintext].to_vec()))
    }

    #[test]
    fn a_record_with_a_connection_id_has_the_layout_of_rfc_9146_and_hides_its_type() {
        let (mut client, mut server) = pair(b"", b"server");
        let mut record = Vec::new();
        assert!(client.seal(ContentType::Alert, &[1, 0], &mut record));
        // type, version, epoch, sequence number, connection ID, length.
        assert_eq!(record[..11], [25, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(record[11..19], *b"server\x00\x13");
        // The explicit nonce is epoch and sequence number; then two bytes, the type, the tag.
        assert_eq!(record[19..27], [0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(record.len(), 27 + 3 + 8);
        assert_eq!(open(&mut server, &record, 6), Ok((ContentType::Alert, [1, 0].to_vec())));
        assert_eq!(open(&mut server, &record, 6), Err(Discarded::Replayed));
        // The other direction has no connection ID, so the record is as in RFC 6347.
        record.clear();
        assert!(server.seal(ContentType::ApplicationData, b"x", &mut record));
        assert_eq!(record[..13], [23, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 0, 0, 17]);
        let opened = open(&mut client, &record, 0);
        assert_eq!(opened, Ok((ContentType::ApplicationData, b"x".to_vec())));
    }

    #[test]
    fn where_a_connection_id_was_agreed_on_a_record_without_it_is_discarded() {
        let (mut client, _) = pair(b"", b"");
        let (_, mut server) = pair(b"", b"server");
        let mut record = Vec::new();
        assert!(client.seal(ContentType::ApplicationData, b"x", &mut record));
        assert_eq!(open(&mut server, &record, 6), Err(Discarded::Malformed));
    }

    #[test]
    fn padding_after_the_type_is_taken_off_and_a_record_of_zeros_is_discarded() {
        let (mut client, mut server) = pair(b"", b"s");
        for (inner, expected) in [
            (&b"data\x17\0\0\0"[..], Ok((ContentType::ApplicationData, b"data".to_vec()))),
            (&b"\0\0\0"[..], Err(Discarded::Malformed)),
            (&b"data\x63\0"[..], Err(Discarded::Malformed)),
        ] {
            // The bytes that a padding sender would create, built by hand.
            let sequence = client.next_sequence;
            client.next_sequence += 1;
            let explicit = numbers(1, sequence);
            let mut record = vec![25, 0xfe, 0xfd];
            record.extend_from_slice(&explicit);
            record.extend_from_slice(b"s\x00");
            record.push(8 + inner.len() as u8 + 8);
            record.extend_from_slice(&explicit);
            let aad = Aad::new(ContentType::Tls12Cid, explicit, b"s", inner.len());
            let (mut data, mut tag) = (inner.to_vec(), [0; 8]);
            assert!(client.write.seal(client.suite, explicit, aad.as_slice(), &mut data, &mut tag));
            record.extend_from_slice(&data);
            record.extend_from_slice(&tag);
            assert_eq!(open(&mut server, &record, 1), expected);
        }
    }

    #[test]
    fn sequence_numbers_end_before_they_wrap() {
        let (mut client, mut server) = pair(b"", b"");
        client.next_sequence = MAX_SEQUENCE;
        let mut record = Vec::new();
        assert!(client.seal(ContentType::ApplicationData, b"last", &mut record));
        assert!(open(&mut server, &record, 0).is_ok());
        let length = record.len();
        assert!(!client.seal(ContentType::ApplicationData, b"one too many", &mut record));
        assert_eq!(record.len(), length);
    }
}
