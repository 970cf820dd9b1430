//! The ClientHello of DTLS 1.3 (RFC 9147 section 5.3), as far as a server without state reads it.
//!
//! A HelloRetryRequest without state needs the first ClientHello again when the second one arrives, since
//! the transcript of the handshake begins with its hash (RFC 8446 section 4.4.1). The second one repeats
//! the first, but for the cookie, the length of the padding, and a key share that there was none of
//! (RFC 8446 section 4.1.2). The cookie therefore carries [`Replaced`], and [`Hello::first`] puts the rest together. Clients
//! that change more are [`Retry`](crate::retry::Retry)'s task.

use crate::reader::{COOKIE, Extensions, KEY_SHARE, PADDING, Reader, SUPPORTED_VERSIONS};

/// A ClientHello that offers DTLS 1.3.
#[derive(Clone, Copy)]
pub(crate) struct Hello<'a> {
    /// All of it.
    pub(crate) body: &'a [u8],
    /// From legacy_version to legacy_session_id, and from cipher_suites to legacy_compression_methods.
    pub(crate) fields: [&'a [u8]; 2],
    pub(crate) extensions: &'a [u8],
    /// The cookie of a HelloRetryRequest.
    pub(crate) cookie: Option<&'a [u8]>,
    /// Whether it has the cookie of a HelloVerifyRequest, by which a server answers that takes DTLS 1.2.
    pub(crate) has_cookie_of_1_2: bool,
}

/// The parts of a first ClientHello that the second one replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replaced(u16);

const DTLS_1_3: [u8; 2] = [0xfe, 0xfc];

/// The longest datagram that a handshake takes, above Ethernet's 1500 bytes.
pub(crate) const MAX_HANDSHAKE_DATAGRAM: usize = 2048;

const RECORD_HEADER: usize = 13;
const MESSAGE_HEADER: usize = 12;
const CLIENT_HELLO: u8 = 1;
/// The contents of a key_share extension that asks the server for its choice of a group (RFC 8446 section 4.2.8).
const NO_SHARES: &[u8] = &[0, 0];
/// A padding (RFC 7685 section 3).
static ZEROS: [u8; MAX_HANDSHAKE_DATAGRAM] = [0; MAX_HANDSHAKE_DATAGRAM];

impl Replaced {
    /// Whether [`NO_SHARES`] were in the first hello.
    const EMPTY_KEY_SHARE: u16 = 0x8000;
    /// The length of its padding, which is shorter than a datagram. All ones stand for "no padding extension".
    const PADDING: u16 = 0x0fff;

    pub(crate) const fn to_be_bytes(self) -> [u8; 2] {
        self.0.to_be_bytes()
    }

    pub(crate) const fn from_be_bytes(bytes: [u8; 2]) -> Self {
        Self(u16::from_be_bytes(bytes))
    }

    const fn padding(self) -> Option<u16> {
        match self.0 & Self::PADDING {
            Self::PADDING => None,
            length => Some(length),
        }
    }
}

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
        let body = message.0;
        if (kind, offset) != (CLIENT_HELLO, 0) || here != length || body.len() != length {
            return None;
        }
        let mut rest = Reader(body);
        rest.take(2 + 32)?;
        rest.vector8()?;
        let before = body.get(..length.checked_sub(rest.0.len())?)?;
        let has_cookie_of_1_2 = !rest.vector8()?.is_empty();
        let after = rest.0;
        rest.vector16()?;
        rest.vector8()?;
        let fields = [before, after.get(..after.len().checked_sub(rest.0.len())?)?];
        let extensions = rest.last_vector16()?;
        let (mut cookie, mut offers) = (None, false);
        for extension in Extensions(Reader(extensions)) {
            let (kind, content) = extension?;
            let mut content = Reader(content);
            match kind {
                SUPPORTED_VERSIONS => {
                    offers = content.vector8()?.chunks_exact(2).any(|version| version == DTLS_1_3);
                }
                COOKIE => cookie = Some(content.vector16()?),
                _ => {}
            }
        }
        offers.then_some(Self { body, fields, extensions, cookie, has_cookie_of_1_2 })
    }

    /// Whether it offers one of these cipher suites.
    pub(crate) fn offers_any(&self, suites: &[u16]) -> bool {
        let [_, after] = self.fields;
        let mut offered = Reader(Reader(after).vector16().unwrap_or_default());
        core::iter::from_fn(|| offered.u16()).any(|suite| suites.contains(&suite))
    }

    /// Whether another hello of the same client has the same fields but for cookie and extensions.
    pub(crate) fn has_fields_of(&self, other: &Self) -> bool {
        self.fields == other.fields
    }

    fn content_of(&self, wanted: u16) -> Option<&'a [u8]> {
        let mut extensions = Extensions(Reader(self.extensions)).flatten();
        extensions.find_map(|(kind, content)| (kind == wanted).then_some(content))
    }

    /// Whether it has a key_share extension without shares.
    pub(crate) fn has_empty_key_share(&self) -> bool {
        self.content_of(KEY_SHARE) == Some(NO_SHARES)
    }

    /// The parts of this hello that a second one replaces, for [`Self::first`].
    pub(crate) fn replaced(&self) -> Replaced {
        let padding = self.content_of(PADDING).map(|padding| padding.len() as u16);
        let padding = padding.filter(|length| *length < Replaced::PADDING);
        let share = if self.has_empty_key_share() { Replaced::EMPTY_KEY_SHARE } else { 0 };
        Replaced(padding.unwrap_or(Replaced::PADDING) | share)
    }

    /// The body of the ClientHello that preceded this one: without a cookie, and with what this one replaced. The tag in the
    /// cookie decides whether it really was like this. `None` if it would have been too long, so that a forged cookie
    /// cannot make the server hash more than a datagram.
    pub(crate) fn first(&self, replaced: Replaced) -> Option<Vec<u8>> {
        let mut extensions = Vec::with_capacity(self.body.len());
        let mut put = |kind: u16, content: &[u8]| {
            extensions.extend_from_slice(&kind.to_be_bytes());
            extensions.extend_from_slice(&(content.len() as u16).to_be_bytes());
            extensions.extend_from_slice(content);
        };
        let padding = match replaced.padding() {
            Some(length) => Some(ZEROS.get(..usize::from(length))?),
            None => None,
        };
        let mut padded = false;
        for (kind, content) in Extensions(Reader(self.extensions)).flatten() {
            match kind {
                COOKIE => {}
                PADDING => {
                    padding.into_iter().for_each(|padding| put(PADDING, padding));
                    padded = true;
                }
                KEY_SHARE if replaced.0 & Replaced::EMPTY_KEY_SHARE != 0 => put(kind, NO_SHARES),
                _ => put(kind, content),
            }
        }
        padding.filter(|_| !padded).into_iter().for_each(|padding| put(PADDING, padding));
        let [before, after] = self.fields;
        let length = (extensions.len() as u16).to_be_bytes();
        // DTLS 1.3 has no cookie there (RFC 9147 section 5.3).
        let body = [before, &[0], after, &length, &extensions].concat();
        (body.len() <= MAX_HANDSHAKE_DATAGRAM).then_some(body)
    }
}

/// The record with a ClientHello of this body, as a client sends its first one.
pub(crate) fn record(body: &[u8]) -> Vec<u8> {
    let mut record = headers(CLIENT_HELLO, body.len());
    record.extend_from_slice(body);
    record
}

/// The headers of the first record of a handshake and of the only message in it, with room for its body.
pub(crate) fn headers(kind: u8, length: usize) -> Vec<u8> {
    let mut record = Vec::with_capacity(RECORD_HEADER + MESSAGE_HEADER + length);
    record.extend_from_slice(&[22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0]);
    record.extend_from_slice(&((MESSAGE_HEADER + length) as u16).to_be_bytes());
    let [_, length @ ..] = (length as u32).to_be_bytes();
    record.push(kind);
    record.extend_from_slice(&length);
    record.extend_from_slice(&[0; 5]);
    record.extend_from_slice(&length);
    record
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
        let (no_shares, share): (_, &[u8]) = ((51, NO_SHARES), SHARE.1);
        for (padding, first_share) in
            [(None, SHARE), (Some(0_u16), SHARE), (Some(900), SHARE), (Some(900), no_shares)]
        {
            let zeros = vec![0; padding.unwrap_or(0).into()];
            let mut extensions = vec![VERSIONS, first_share];
            if padding.is_some() {
                extensions.push((21, &zeros));
            }
            let first = body(&extensions);
            let record_of_first = record(&first);
            let parsed = Hello::parse(&record_of_first).unwrap();
            assert!(parsed.cookie.is_none());
            let replaced = parsed.replaced();
            assert_eq!(replaced, Replaced::from_be_bytes(replaced.to_be_bytes()));
            assert_eq!(padding, replaced.padding());
            assert_eq!(parsed.first(replaced).unwrap(), first, "without a cookie nothing changes");

            // The cookie takes bytes of the padding, or the padding is new, or gone.
            for left in [None, Some(3)] {
                let zeros = vec![0; left.unwrap_or(0)];
                let mut extensions = vec![VERSIONS, (51, share), (44, &[0, 2, 0xaa, 0xbb])];
                if left.is_some() {
                    extensions.push((21, &zeros));
                }
                let second = record(&body(&extensions));
                let second = Hello::parse(&second).unwrap();
                assert_eq!(second.cookie, Some(&[0xaa, 0xbb][..]));
                assert_eq!(second.first(replaced).unwrap(), first);
            }
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
            for replaced in [hello.replaced(), Replaced(random.next_u32() as u16)] {
                let first = hello.first(replaced).map_or(0, |first| first.len());
                assert!(first <= MAX_HANDSHAKE_DATAGRAM, "{first} bytes");
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
