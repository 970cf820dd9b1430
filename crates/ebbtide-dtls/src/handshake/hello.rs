//! ClientHello, ServerHello (RFC 5246 section 7.4.1) and HelloVerifyRequest (RFC 6347 section
//! 4.2.1), with the extensions that this implementation uses.

use crate::CipherSuite;
use crate::record::{DTLS_1_0, DTLS_1_2};
use crate::wire::{Reader, put_u16, put_vector8, put_vector16};
use alloc::vec::Vec;

/// TLS_EMPTY_RENEGOTIATION_INFO_SCSV (RFC 5746 section 3.3): shorter than the extension.
const RENEGOTIATION_SCSV: u16 = 0x00ff;

// IANA's registry "TLS ExtensionType Values": RFC 7627 section 7, RFC 9146 section 10, RFC 9853 section
// 10.2 (`rrc`) and RFC 5746 section 6.
const EXTENDED_MASTER_SECRET: u16 = 23;
const CONNECTION_ID: u16 = 54;
const RETURN_ROUTABILITY: u16 = 61;
const RENEGOTIATION_INFO: u16 = 0xff01;

/// The extensions of both hellos. Other extensions are ignored in a ClientHello and are errors in
/// a ServerHello.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is the presence of one extension")]
pub(crate) struct Extensions<'a> {
    /// RFC 7627.
    pub(crate) extended_master_secret: bool,
    /// RFC 9146: the connection ID that the sender wants to receive in records.
    pub(crate) connection_id: Option<&'a [u8]>,
    /// RFC 9853.
    pub(crate) return_routability: bool,
    /// RFC 5746, by extension or by SCSV.
    pub(crate) renegotiation_info: bool,
    /// An extension that this implementation never requests.
    pub(crate) unknown: bool,
}

impl<'a> Extensions<'a> {
    fn parse(reader: &mut Reader<'a>) -> Option<Self> {
        let mut found = Self::default();
        if reader.is_empty() {
            return Some(found);
        }
        let mut list = Reader::new(reader.vector16()?);
        while !list.is_empty() {
            let kind = list.u16()?;
            let data = list.vector16()?;
            match kind {
                EXTENDED_MASTER_SECRET if data.is_empty() => found.extended_master_secret = true,
                RETURN_ROUTABILITY if data.is_empty() => found.return_routability = true,
                EXTENDED_MASTER_SECRET | RETURN_ROUTABILITY => return None,
                CONNECTION_ID => {
                    let mut inner = Reader::new(data);
                    found.connection_id = Some(inner.vector8()?);
                    if !inner.is_empty() {
                        return None;
                    }
                }
                // In an initial handshake the verify_data is empty (RFC 5746 section 3.4, 3.6).
                RENEGOTIATION_INFO if data == [0] => found.renegotiation_info = true,
                RENEGOTIATION_INFO => return None,
                _ => found.unknown = true,
            }
        }
        Some(found)
    }

    /// Appends the extensions, if there are any.
    fn put(&self, out: &mut Vec<u8>) {
        let mut list = Vec::new();
        if self.renegotiation_info {
            put_u16(&mut list, RENEGOTIATION_INFO);
            put_vector16(&mut list, &[0]);
        }
        if self.extended_master_secret {
            put_u16(&mut list, EXTENDED_MASTER_SECRET);
            put_vector16(&mut list, &[]);
        }
        if let Some(cid) = self.connection_id {
            put_u16(&mut list, CONNECTION_ID);
            let mut data = Vec::with_capacity(1 + cid.len());
            put_vector8(&mut data, cid);
            put_vector16(&mut list, &data);
        }
        if self.return_routability {
            put_u16(&mut list, RETURN_ROUTABILITY);
            put_vector16(&mut list, &[]);
        }
        if !list.is_empty() {
            put_vector16(out, &list);
        }
    }
}

/// A parsed ClientHello.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientHello<'a> {
    pub(crate) version: u16,
    pub(crate) random: [u8; 32],
    pub(crate) session_id: &'a [u8],
    pub(crate) cookie: &'a [u8],
    /// Pairs of bytes.
    suites: &'a [u8],
    compressions: &'a [u8],
    extensions_bytes: &'a [u8],
    pub(crate) extensions: Extensions<'a>,
}

impl<'a> ClientHello<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let version = reader.u16()?;
        let random = reader.array()?;
        let session_id = reader.vector8()?;
        let cookie = reader.vector8()?;
        let suites = reader.vector16()?;
        let compressions = reader.vector8()?;
        let extensions_bytes = reader.rest();
        let mut extensions = Extensions::parse(&mut reader)?;
        let well_formed = session_id.len() <= 32 && suites.len().is_multiple_of(2);
        // Only the null compression is still in use, and it must be offered.
        if !well_formed || !compressions.contains(&0) || !reader.is_empty() {
            return None;
        }
        let signals = numbers(suites).any(|number| number == RENEGOTIATION_SCSV);
        extensions.renegotiation_info |= signals;
        Some(Self {
            version,
            random,
            session_id,
            cookie,
            suites,
            compressions,
            extensions_bytes,
            extensions,
        })
    }

    /// Whether the client speaks DTLS 1.2 or later; version numbers count down.
    pub(crate) const fn speaks_dtls_1_2(&self) -> bool {
        self.version <= DTLS_1_2 && self.version >> 8 == 0xfe
    }

    /// The first suite of ours that the client offers.
    pub(crate) fn choose(&self, ours: &[CipherSuite]) -> Option<CipherSuite> {
        let offered = |suite: &CipherSuite| numbers(self.suites).any(|n| n == suite.number());
        ours.iter().copied().find(offered)
    }

    /// Whether this suite is offered.
    pub(crate) fn offers(&self, suite: CipherSuite) -> bool {
        numbers(self.suites).any(|number| number == suite.number())
    }

    /// The fields that must be unchanged when the client returns with the cookie.
    pub(crate) fn parameters(&self) -> [&[u8]; 5] {
        let Self { random, session_id, suites, compressions, extensions_bytes, .. } = self;
        [random, session_id, suites, compressions, extensions_bytes]
    }
}

fn numbers(suites: &[u8]) -> impl Iterator<Item = u16> {
    suites.as_chunks::<2>().0.iter().map(|pair| u16::from_be_bytes(*pair))
}

/// A client's offer, the same in both of its hellos except for the cookie.
#[derive(Debug)]
pub(crate) struct Offer<'a> {
    pub(crate) random: [u8; 32],
    pub(crate) session_id: &'a [u8],
    pub(crate) suites: &'a [CipherSuite],
    pub(crate) connection_id: Option<&'a [u8]>,
    pub(crate) return_routability: bool,
}

impl Offer<'_> {
    /// The body of a ClientHello.
    pub(crate) fn encode(&self, cookie: &[u8]) -> Vec<u8> {
        let mut body = Vec::with_capacity(96);
        put_u16(&mut body, DTLS_1_2);
        body.extend_from_slice(&self.random);
        put_vector8(&mut body, self.session_id);
        put_vector8(&mut body, cookie);
        put_u16(&mut body, 2 * (self.suites.len() as u16 + 1));
        for suite in self.suites {
            put_u16(&mut body, suite.number());
        }
        put_u16(&mut body, RENEGOTIATION_SCSV);
        put_vector8(&mut body, &[0]);
        let extensions = Extensions {
            extended_master_secret: true,
            connection_id: self.connection_id,
            return_routability: self.return_routability,
            ..Extensions::default()
        };
        extensions.put(&mut body);
        body
    }
}

/// A ServerHello.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerHello<'a> {
    pub(crate) random: [u8; 32],
    pub(crate) session_id: &'a [u8],
    pub(crate) suite: u16,
    pub(crate) extensions: Extensions<'a>,
}

impl<'a> ServerHello<'a> {
    /// `None` if it is malformed; the caller must check the version.
    pub(crate) fn parse(body: &'a [u8]) -> Option<(u16, Self)> {
        let mut reader = Reader::new(body);
        let version = reader.u16()?;
        let random = reader.array()?;
        let session_id = reader.vector8()?;
        let suite = reader.u16()?;
        let compression = reader.u8()?;
        let extensions = Extensions::parse(&mut reader)?;
        let well_formed = session_id.len() <= 32 && compression == 0 && reader.is_empty();
        well_formed.then_some((version, Self { random, session_id, suite, extensions }))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(80);
        put_u16(&mut body, DTLS_1_2);
        body.extend_from_slice(&self.random);
        put_vector8(&mut body, self.session_id);
        put_u16(&mut body, self.suite);
        body.push(0);
        self.extensions.put(&mut body);
        body
    }
}

/// The cookie of a HelloVerifyRequest.
pub(crate) fn parse_verify_request(body: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(body);
    // This version is not used for negotiation (RFC 6347 section 4.2.1).
    reader.u16()?;
    let cookie = reader.vector8()?;
    reader.is_empty().then_some(cookie)
}

/// The body of a HelloVerifyRequest, which always states DTLS 1.0 (RFC 6347 section 4.2.1).
pub(crate) fn verify_request(cookie: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(3 + cookie.len());
    put_u16(&mut body, DTLS_1_0);
    put_vector8(&mut body, cookie);
    body
}
