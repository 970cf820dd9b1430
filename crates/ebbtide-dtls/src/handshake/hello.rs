//! ClientHello, ServerHello (RFC 5246 section 7.4.1) and HelloVerifyRequest (RFC 6347 section
//! 4.2.1), with the extensions that this implementation uses.

use crate::certificate::CertificateType;
use crate::config::Config;
use crate::key_exchange::{ECDSA_SHA256, OFFERED_SIGNATURES, SECP256R1, contains};
use crate::message::Fragment;
use crate::record::{DTLS_1_0, DTLS_1_2};
use crate::suite::CipherSuite;
use crate::wire::{Reader, put_u16, put_vector8, put_vector16};
use alloc::vec::Vec;

/// TLS_EMPTY_RENEGOTIATION_INFO_SCSV (RFC 5746 section 3.3): shorter than the extension.
const RENEGOTIATION_SCSV: u16 = 0x00ff;

/// The uncompressed point format (RFC 8422 section 5.1.2).
const UNCOMPRESSED: u8 = 0;

// IANA's registry "TLS ExtensionType Values": RFC 6066 section 1.1, RFC 8422 section 5.1, RFC 5246
// section 7.4.1.4.1, RFC 7250 section 8, RFC 7627 section 7, RFC 9146 section 10, RFC 9853 section
// 10.2 (`rrc`) and RFC 5746 section 6.
const SERVER_NAME: u16 = 0;
const SUPPORTED_GROUPS: u16 = 10;
const POINT_FORMATS: u16 = 11;
const SIGNATURE_ALGORITHMS: u16 = 13;
const CLIENT_CERTIFICATE_TYPE: u16 = 19;
const SERVER_CERTIFICATE_TYPE: u16 = 20;
const EXTENDED_MASTER_SECRET: u16 = 23;
const SUPPORTED_VERSIONS: u16 = 43;
const CONNECTION_ID: u16 = 54;
const RETURN_ROUTABILITY: u16 = 61;
const RENEGOTIATION_INFO: u16 = 0xff01;

const DTLS_1_3: [u8; 2] = [0xfe, 0xfc];

/// A ClientHello as it arrived, in one fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedHello<'a> {
    pub(crate) fragment: Fragment<'a>,
    pub(crate) hello: ClientHello<'a>,
    /// The sequence number of its record, with which the answer continues (RFC 6347 section 4.2.1).
    pub(crate) record_sequence: u64,
}

impl<'a> ReceivedHello<'a> {
    /// Reads the contents of a record. `None` if they are malformed or only a part of a hello.
    pub(crate) fn parse(body: &'a [u8], record_sequence: u64) -> Option<Self> {
        let fragment = Fragment::parse(&mut Reader::new(body)).filter(Fragment::is_whole)?;
        let hello = ClientHello::parse(fragment.bytes)?;
        Some(Self { fragment, hello, record_sequence })
    }
}

/// The sender of a hello: some extensions have a list in the client's and a choice in the server's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Client,
    Server,
}

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
    /// RFC 6066 section 3: the server's name, in a client's offer.
    pub(crate) server_name: Option<&'a str>,
    /// RFC 8422 section 5.1.1: groups, as pairs of bytes.
    pub(crate) groups: Option<&'a [u8]>,
    /// RFC 8422 section 5.1.2.
    pub(crate) point_formats: Option<&'a [u8]>,
    /// RFC 5246 section 7.4.1.4.1: pairs of bytes.
    pub(crate) signatures: Option<&'a [u8]>,
    /// RFC 7250: the types of certificates that a client has, or the one that the server has chosen.
    pub(crate) client_types: Option<&'a [u8]>,
    /// RFC 7250: those that a client accepts of the server, or the one that the server has chosen.
    pub(crate) server_types: Option<&'a [u8]>,
    /// RFC 8446 section 4.2.1: whether a client offers DTLS 1.3.
    pub(crate) offers_dtls13: bool,
    /// An extension that this implementation never requests.
    pub(crate) unknown: bool,
}

impl<'a> Extensions<'a> {
    fn parse(reader: &mut Reader<'a>, speaker: Speaker) -> Option<Self> {
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
                CONNECTION_ID => found.connection_id = Some(vector8(data)?),
                SUPPORTED_GROUPS => found.groups = Some(vector16(data)?),
                SIGNATURE_ALGORITHMS => found.signatures = Some(vector16(data)?),
                POINT_FORMATS => found.point_formats = Some(vector8(data)?),
                CLIENT_CERTIFICATE_TYPE => found.client_types = Some(types(data, speaker)?),
                SERVER_CERTIFICATE_TYPE => found.server_types = Some(types(data, speaker)?),
                // The server has the same certificate under all names. An answer to our own is empty.
                SERVER_NAME => {}
                // In an initial handshake the verify_data is empty (RFC 5746 section 3.4, 3.6).
                RENEGOTIATION_INFO if data == [0] => found.renegotiation_info = true,
                RENEGOTIATION_INFO => return None,
                kind => {
                    found.unknown = true;
                    let mut versions = data.get(1..).unwrap_or_default().chunks_exact(2);
                    found.offers_dtls13 |=
                        kind == SUPPORTED_VERSIONS && versions.any(|version| version == DTLS_1_3);
                }
            }
        }
        Some(found)
    }

    /// Appends the extensions, if there are any.
    fn put(&self, out: &mut Vec<u8>, speaker: Speaker) {
        let mut list = Vec::new();
        if self.renegotiation_info {
            put_u16(&mut list, RENEGOTIATION_INFO);
            put_vector16(&mut list, &[0]);
        }
        if let Some(name) = self.server_name {
            // ServerNameList, NameType host_name.
            put_u16(&mut list, SERVER_NAME);
            put_u16(&mut list, name.len() as u16 + 5);
            put_u16(&mut list, name.len() as u16 + 3);
            list.push(0);
            put_vector16(&mut list, name.as_bytes());
        }
        for (kind, pairs) in
            [(SUPPORTED_GROUPS, self.groups), (SIGNATURE_ALGORITHMS, self.signatures)]
        {
            if let Some(pairs) = pairs {
                put_u16(&mut list, kind);
                put_u16(&mut list, pairs.len() as u16 + 2);
                put_vector16(&mut list, pairs);
            }
        }
        if let Some(formats) = self.point_formats {
            put_u16(&mut list, POINT_FORMATS);
            put_u16(&mut list, formats.len() as u16 + 1);
            put_vector8(&mut list, formats);
        }
        for (kind, types) in [
            (CLIENT_CERTIFICATE_TYPE, self.client_types),
            (SERVER_CERTIFICATE_TYPE, self.server_types),
        ] {
            let Some(types) = types else { continue };
            put_u16(&mut list, kind);
            match speaker {
                Speaker::Client => {
                    put_u16(&mut list, types.len() as u16 + 1);
                    put_vector8(&mut list, types);
                }
                Speaker::Server => put_vector16(&mut list, types),
            }
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

/// The types of certificates in an extension (RFC 7250 section 3): at least one, and one alone of a server.
fn types(data: &[u8], speaker: Speaker) -> Option<&[u8]> {
    match speaker {
        Speaker::Client => vector8(data).filter(|types| !types.is_empty()),
        Speaker::Server => Some(data).filter(|types| types.len() == 1),
    }
}

/// The only contents of an extension, a vector.
fn vector8(data: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(data);
    let bytes = reader.vector8()?;
    reader.is_empty().then_some(bytes)
}

fn vector16(data: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(data);
    let bytes = reader.vector16()?;
    reader.is_empty().then_some(bytes)
}

/// A parsed ClientHello.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientHello<'a> {
    version: [u8; 2],
    pub(crate) random: [u8; 32],
    pub(crate) session_id: &'a [u8],
    pub(crate) cookie: &'a [u8],
    /// Pairs of bytes.
    suites: &'a [u8],
    compressions: &'a [u8],
    pub(crate) extensions: Extensions<'a>,
}

impl<'a> ClientHello<'a> {
    pub(crate) fn parse(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let version = reader.array()?;
        let random = reader.array()?;
        let session_id = reader.vector8()?;
        let cookie = reader.vector8()?;
        let suites = reader.vector16()?;
        let compressions = reader.vector8()?;
        let mut extensions = Extensions::parse(&mut reader, Speaker::Client)?;
        let well_formed = session_id.len() <= 32 && suites.len().is_multiple_of(2);
        // Only the null compression is still in use, and it must be offered.
        if !well_formed || !compressions.contains(&0) || !reader.is_empty() {
            return None;
        }
        extensions.renegotiation_info |= contains(suites, RENEGOTIATION_SCSV);
        Some(Self { version, random, session_id, cookie, suites, compressions, extensions })
    }

    /// Whether the client speaks DTLS 1.2 or later; version numbers count down.
    pub(crate) const fn speaks_dtls_1_2(&self) -> bool {
        let version = u16::from_be_bytes(self.version);
        version <= DTLS_1_2 && version >> 8 == 0xfe
    }

    /// The first suite of ours that the client offers with everything that it requires.
    pub(crate) fn choose(&self, ours: impl Iterator<Item = CipherSuite>) -> Option<CipherSuite> {
        let mut ours = ours;
        ours.find(|suite| self.offers(*suite) && (!suite.has_certificates() || self.knows_p256()))
    }

    /// Whether the client can use our curve and our signature (RFC 8422 section 5.1; without the list of
    /// signatures it knows SHA-1 only, RFC 5246 section 7.4.1.4.1).
    fn knows_p256(&self) -> bool {
        let Extensions { groups, point_formats, signatures, .. } = self.extensions;
        groups.is_none_or(|groups| contains(groups, SECP256R1))
            && point_formats.is_none_or(|formats| formats.contains(&UNCOMPRESSED))
            && signatures.is_some_and(|signatures| contains(signatures, ECDSA_SHA256))
    }

    /// The types of certificates that the client accepts, the preferred one first (RFC 7250 section 4.1).
    pub(crate) fn accepts(&self) -> impl Iterator<Item = CertificateType> {
        certificate_types(self.extensions.server_types)
    }

    /// Those of which it has one.
    pub(crate) fn has(&self) -> impl Iterator<Item = CertificateType> {
        certificate_types(self.extensions.client_types)
    }

    /// Whether it offers a suite of ours with certificates.
    pub(crate) fn is_ecdsa(&self, config: &Config) -> bool {
        let mut ours = config.suites.iter().filter(|suite| suite.has_certificates());
        ours.any(|suite| self.offers(*suite))
    }

    /// Whether this suite is offered.
    pub(crate) fn offers(&self, suite: CipherSuite) -> bool {
        contains(self.suites, suite.number())
    }

    /// The fields that must be unchanged when the client returns with the cookie (RFC 6347 section 4.2.1).
    /// Extensions are not among them: wolfSSL has others then.
    pub(crate) fn parameters(&self) -> [&[u8]; 5] {
        let Self { version, random, session_id, suites, compressions, .. } = self;
        [version, random, session_id, suites, compressions]
    }
}

/// The known types of certificates in an extension, without which there are only certificates.
pub(crate) fn certificate_types(types: Option<&[u8]>) -> impl Iterator<Item = CertificateType> {
    const CERTIFICATES: &[u8] = &[CertificateType::X509.number()];
    let types = types.unwrap_or(CERTIFICATES);
    types.iter().filter_map(|number| CertificateType::from_number(*number))
}

/// A client's offer, the same in both of its hellos except for the cookie.
#[derive(Debug)]
pub(crate) struct Offer<'a> {
    pub(crate) random: [u8; 32],
    pub(crate) session_id: &'a [u8],
    pub(crate) suites: &'a [CipherSuite],
    pub(crate) server_name: Option<&'a str>,
    pub(crate) connection_id: Option<&'a [u8]>,
    pub(crate) return_routability: bool,
    /// RFC 7250.
    pub(crate) client_types: Option<&'a [u8]>,
    pub(crate) server_types: Option<&'a [u8]>,
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
        let certificates = self.suites.iter().any(|suite| suite.has_certificates());
        let groups = SECP256R1.to_be_bytes();
        let extensions = Extensions {
            extended_master_secret: true,
            server_name: self.server_name,
            groups: certificates.then_some(&groups),
            point_formats: certificates.then_some(&[UNCOMPRESSED]),
            signatures: certificates.then_some(&OFFERED_SIGNATURES),
            connection_id: self.connection_id,
            return_routability: self.return_routability,
            client_types: self.client_types.filter(|_| certificates),
            server_types: self.server_types.filter(|_| certificates),
            ..Extensions::default()
        };
        extensions.put(&mut body, Speaker::Client);
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
        let extensions = Extensions::parse(&mut reader, Speaker::Server)?;
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
        self.extensions.put(&mut body, Speaker::Server);
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
