//! The ClientHello of DTLS 1.3 (RFC 9147 section 5.3), as far as a server without state reads it.
//!
//! A HelloRetryRequest without state needs the first ClientHello again when the second one arrives, since
//! the transcript of the handshake begins with its hash (RFC 8446 section 4.4.1). The second one repeats
//! the first, but for the cookie and the length of the padding (RFC 8446 section 4.1.2). The cookie
//! therefore carries the length of the first padding, and [`Hello::first`] puts the rest together. Clients that
//! change more are [`Retry`](crate::retry::Retry)'s task.

/// A ClientHello that offers DTLS 1.3.
pub(crate) struct Hello<'a> {
    /// From legacy_version to legacy_compression_methods.
    fields: [&'a [u8]; 2],
    extensions: &'a [u8],
    /// The cookie of a HelloRetryRequest.
    pub(crate) cookie: Option<&'a [u8]>,
    /// The cipher suites, as pairs of bytes.
    suites: &'a [u8],
    pub(crate) key_agreement: KeyAgreement,
    /// Whether it has the cookie of a HelloVerifyRequest, by which a server answers that takes DTLS 1.2.
    pub(crate) has_cookie_of_1_2: bool,
}

/// The way to a key agreement with a client in one of our groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyAgreement {
    /// A key share.
    Share,
    /// Only the name of the group: a HelloRetryRequest asks for the key share.
    Group,
    /// None of our groups.
    Impossible,
}

const COOKIE: u16 = 44;
const KEY_SHARE: u16 = 51;
const PADDING: u16 = 21;
const SUPPORTED_GROUPS: u16 = 10;
const SUPPORTED_VERSIONS: u16 = 43;

/// X25519, P-256 and P-384.
const GROUPS: [u16; 3] = [0x001d, 0x0017, 0x0018];
/// The suites of `dimpl`.
const SUITES: [u16; 3] = [0x1301, 0x1302, 0x1303];
const DTLS_1_3: [u8; 2] = [0xfe, 0xfc];

/// The longest datagram that a handshake takes, above Ethernet's 1500 bytes.
pub(crate) const MAX_HANDSHAKE_DATAGRAM: usize = 2048;

const RECORD_HEADER: usize = 13;
const MESSAGE_HEADER: usize = 12;

/// The length that stands for "no padding extension".
const NO_PADDING: u16 = u16::MAX;

impl<'a> Hello<'a> {
    /// Reads the ClientHello at the beginning of a datagram. `None` if there is none, if it does not offer
    /// DTLS 1.3, or if it is a fragment: a server without state cannot reassemble it.
    pub(crate) fn parse(datagram: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(datagram);
        let (kind, _version, epoch) = (reader.u8()?, reader.u16()?, reader.u16()?);
        reader.take(6)?;
        if (kind, epoch) != (22, 0) {
            return None;
        }
        let mut message = Reader(reader.vector16()?);
        let (kind, length) = (message.u8()?, message.u24()?);
        let (_sequence, offset, here) = (message.u16()?, message.u24()?, message.u24()?);
        if (kind, offset) != (1, 0) || here != length || message.0.len() != length {
            return None;
        }
        let mut body = Reader(message.0);
        body.take(2 + 32)?;
        body.vector8()?;
        let before = message.0.get(..length.checked_sub(body.0.len())?)?;
        let has_cookie_of_1_2 = !body.vector8()?.is_empty();
        let after = body.0;
        let suites = body.vector16()?;
        body.vector8()?;
        let fields = [before, after.get(..after.len().checked_sub(body.0.len())?)?];
        let extensions = body.vector16()?;
        if !body.0.is_empty() {
            return None;
        }
        let (mut cookie, mut offers, mut has_share, mut has_group) = (None, false, false, false);
        for (kind, content) in Extensions(Reader(extensions)) {
            let mut content = Reader(content?);
            match kind {
                SUPPORTED_VERSIONS => {
                    offers = content.vector8()?.chunks_exact(2).any(|version| version == DTLS_1_3);
                }
                COOKIE => cookie = Some(content.vector16()?),
                KEY_SHARE => {
                    let mut shares = Reader(content.vector16()?);
                    while let Some(group) = shares.u16() {
                        shares.vector16()?;
                        has_share |= GROUPS.contains(&group);
                    }
                }
                SUPPORTED_GROUPS => {
                    let mut groups = Reader(content.vector16()?);
                    while let Some(group) = groups.u16() {
                        has_group |= GROUPS.contains(&group);
                    }
                }
                _ => {}
            }
        }
        let key_agreement = match (has_share, has_group) {
            (true, _) => KeyAgreement::Share,
            (false, true) => KeyAgreement::Group,
            (false, false) => KeyAgreement::Impossible,
        };
        let hello = Self { fields, extensions, cookie, suites, key_agreement, has_cookie_of_1_2 };
        offers.then_some(hello)
    }

    /// Whether it offers a cipher suite of DTLS 1.3.
    pub(crate) fn has_suite(&self) -> bool {
        self.offers_any(&SUITES)
    }

    /// Whether it offers one of these cipher suites.
    pub(crate) fn offers_any(&self, suites: &[u16]) -> bool {
        let mut offered = Reader(self.suites);
        core::iter::from_fn(|| offered.u16()).any(|suite| suites.contains(&suite))
    }

    /// Whether another hello of the same client has the same fields but for cookie and extensions.
    pub(crate) fn has_fields_of(&self, other: &Self) -> bool {
        self.fields == other.fields
    }

    /// The length of its padding, for [`Self::first`].
    pub(crate) fn padding(&self) -> u16 {
        let mut extensions = Extensions(Reader(self.extensions));
        let padding = extensions.find(|(kind, _)| *kind == PADDING);
        padding.and_then(|(_, content)| Some(content?.len() as u16)).unwrap_or(NO_PADDING)
    }

    /// The body of the ClientHello that preceded this one: without a cookie, and with a padding of this
    /// length. The hash in the cookie decides whether it really was like this. `None` if it would have been
    /// too long, so that a forged cookie cannot make the server hash more than it received.
    pub(crate) fn first(&self, padding: u16) -> Option<Vec<u8>> {
        if padding != NO_PADDING && usize::from(padding) > MAX_HANDSHAKE_DATAGRAM {
            return None;
        }
        let mut extensions = Vec::with_capacity(self.extensions.len());
        let pad = |extensions: &mut Vec<u8>| {
            if padding != NO_PADDING {
                extensions.extend_from_slice(&PADDING.to_be_bytes());
                extensions.extend_from_slice(&padding.to_be_bytes());
                // RFC 7685 section 3: the padding is zeros.
                extensions.resize(extensions.len() + usize::from(padding), 0);
            }
        };
        let mut padded = false;
        for (kind, content) in Extensions(Reader(self.extensions)) {
            match (kind, content) {
                (COOKIE, _) | (_, None) => {}
                (PADDING, _) => {
                    pad(&mut extensions);
                    padded = true;
                }
                (_, Some(content)) => {
                    extensions.extend_from_slice(&kind.to_be_bytes());
                    extensions.extend_from_slice(&(content.len() as u16).to_be_bytes());
                    extensions.extend_from_slice(content);
                }
            }
        }
        if !padded {
            pad(&mut extensions);
        }
        // DTLS 1.3 has no cookie there (RFC 9147 section 5.3).
        let [before, after] = self.fields;
        let mut body = [before, &[0], after].concat();
        body.extend_from_slice(&(extensions.len() as u16).to_be_bytes());
        body.extend_from_slice(&extensions);
        Some(body)
    }
}

/// The record with a ClientHello of this body, as a client sends its first one.
pub(crate) fn record(body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    let mut record = Vec::with_capacity(RECORD_HEADER + MESSAGE_HEADER + body.len());
    record.extend_from_slice(&[22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0]);
    record.extend_from_slice(&((MESSAGE_HEADER + body.len()) as u16).to_be_bytes());
    record.push(1);
    record.extend_from_slice(&length[1..]);
    record.extend_from_slice(&[0; 5]);
    record.extend_from_slice(&length[1..]);
    record.extend_from_slice(body);
    record
}

struct Extensions<'a>(Reader<'a>);

impl<'a> Iterator for Extensions<'a> {
    /// The number and, unless it is cut off, the content.
    type Item = (u16, Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let kind = self.0.u16()?;
        let content = self.0.vector16();
        if content.is_none() {
            self.0 = Reader(&[]);
        }
        Some((kind, content))
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        Some(*self.take(1)?.first()?)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u24(&mut self) -> Option<usize> {
        Some(usize::from(self.u8()?) << 16 | usize::from(self.u16()?))
    }

    fn vector8(&mut self) -> Option<&'a [u8]> {
        let length = self.u8()?;
        self.take(length.into())
    }

    fn vector16(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(length.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::ChaCha8Rng;
    use rand_core::{Rng as _, SeedableRng as _};

    fn body(extensions: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![0xfe, 0xfd];
        body.extend_from_slice(&[7; 32]);
        body.extend_from_slice(&[0, 0, 0, 2, 0x13, 0x01, 1, 0]);
        let list: Vec<u8> = extensions
            .iter()
            .flat_map(|(kind, content)| {
                [&kind.to_be_bytes()[..], &(content.len() as u16).to_be_bytes(), content].concat()
            })
            .collect();
        body.extend_from_slice(&(list.len() as u16).to_be_bytes());
        body.extend_from_slice(&list);
        body
    }

    const VERSIONS: (u16, &[u8]) = (43, &[4, 0xfe, 0xfd, 0xfe, 0xfc]);
    const SHARE: (u16, &[u8]) = (51, &[0, 5, 0, 0x17, 0, 1, 9]);

    #[test]
    fn the_first_hello_is_restored_from_the_second() {
        for padding in [None, Some(0_u16), Some(900)] {
            let zeros = vec![0; padding.unwrap_or(0).into()];
            let mut extensions = vec![VERSIONS, SHARE];
            if padding.is_some() {
                extensions.push((21, &zeros));
            }
            let first = body(&extensions);
            let record_of_first = record(&first);
            let parsed = Hello::parse(&record_of_first).unwrap();
            assert!(parsed.cookie.is_none() && parsed.has_suite());
            let length = parsed.padding();
            assert_eq!(padding, (length != NO_PADDING).then_some(length));
            assert_eq!(parsed.first(length).unwrap(), first, "without a cookie nothing changes");

            // The cookie takes bytes of the padding, or the padding is new, or gone.
            for left in [None, Some(3)] {
                let zeros = vec![0; left.unwrap_or(0)];
                let mut extensions = vec![VERSIONS, SHARE, (44, &[0, 2, 0xaa, 0xbb])];
                if left.is_some() {
                    extensions.push((21, &zeros));
                }
                let second = record(&body(&extensions));
                let second = Hello::parse(&second).unwrap();
                assert_eq!(second.cookie, Some(&[0xaa, 0xbb][..]));
                assert_eq!(second.first(length).unwrap(), first);
            }
        }
    }

    #[test]
    fn a_key_agreement_takes_a_share_or_the_name_of_one_of_our_groups() {
        const OTHER_SHARE: (u16, &[u8]) = (51, &[0, 5, 0x11, 0xec, 0, 1, 9]);
        const OTHER_GROUP: (u16, &[u8]) = (10, &[0, 2, 0x11, 0xec]);
        const GROUPS: (u16, &[u8]) = (10, &[0, 4, 0x11, 0xec, 0, 0x18]);
        for (extensions, expected) in [
            (&[VERSIONS, SHARE][..], KeyAgreement::Share),
            (&[VERSIONS, OTHER_GROUP, SHARE], KeyAgreement::Share),
            (&[VERSIONS, GROUPS], KeyAgreement::Group),
            (&[VERSIONS, GROUPS, OTHER_SHARE], KeyAgreement::Group),
            (&[VERSIONS, OTHER_GROUP, OTHER_SHARE], KeyAgreement::Impossible),
            (&[VERSIONS, OTHER_GROUP], KeyAgreement::Impossible),
            (&[VERSIONS], KeyAgreement::Impossible),
        ] {
            let hello = record(&body(extensions));
            let found = Hello::parse(&hello).unwrap().key_agreement;
            assert_eq!(found, expected, "{extensions:x?}");
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic_and_restored_to_a_bounded_length() {
        let zeros = [0; 100];
        let whole = record(&body(&[VERSIONS, SHARE, (44, &[0, 2, 0xff, 0xfe]), (21, &zeros)]));
        let mut random = ChaCha8Rng::seed_from_u64(13);
        let mut read = 0;
        for round in 0..200_000 {
            let mut bytes = whole.clone();
            if round % 4 == 0 {
                bytes.truncate(random.next_u32() as usize % whole.len());
                random.fill_bytes(&mut bytes);
            }
            for _ in 0..random.next_u32() % 4 {
                let place = random.next_u32() as usize % whole.len();
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = random.next_u32() as u8;
                }
            }
            let Some(hello) = Hello::parse(&bytes) else { continue };
            read += 1;
            for padding in [hello.padding(), random.next_u32() as u16, NO_PADDING] {
                let first = hello.first(padding).map_or(0, |first| first.len());
                assert!(first <= bytes.len() + MAX_HANDSHAKE_DATAGRAM, "{first} bytes");
            }
        }
        assert!(read > 10_000, "{read}");
    }

    #[test]
    fn only_a_whole_hello_that_offers_dtls_1_3_is_read() {
        let whole = record(&body(&[VERSIONS, SHARE]));
        assert!(Hello::parse(&whole).is_some());
        for length in 0..whole.len() {
            assert!(Hello::parse(&whole[..length]).is_none(), "cut at {length}");
        }
        let older = record(&body(&[(43, &[2, 0xfe, 0xfd]), SHARE]));
        assert!(Hello::parse(&older).is_none(), "DTLS 1.2 alone");
        assert!(Hello::parse(&record(&body(&[SHARE]))).is_none(), "no versions");
        let mut fragment = whole.clone();
        fragment[24] -= 1;
        assert!(Hello::parse(&fragment).is_none(), "a fragment");
        let mut of_epoch_1 = whole.clone();
        of_epoch_1[4] = 1;
        assert!(Hello::parse(&of_epoch_1).is_none(), "encrypted");
    }
}
