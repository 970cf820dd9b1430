//! The bodies of the messages with which certificates are requested and keys are exchanged (RFC 5246
//! section 7.4, RFC 8422 section 5.4 and 5.7).

use crate::wire::{Reader, put_u16, put_vector8, put_vector16};
use alloc::vec::Vec;

/// The only group: secp256r1 (RFC 8422 section 5.1.1).
pub(crate) const SECP256R1: u16 = 23;
/// The only signature: ECDSA with SHA-256 (RFC 5246 section 7.4.1.4.1).
pub(crate) const ECDSA_SHA256: u16 = 0x0403;
/// The signatures in a client's offer. The first is used in the handshake; with the others, RSA with
/// SHA-256 and SHA-384, authorities may sign certificates.
pub(crate) const OFFERED_SIGNATURES: [u8; 6] = [0x04, 0x03, 0x04, 0x01, 0x05, 0x01];
/// The type of a named curve (RFC 8422 section 5.4).
const NAMED_CURVE: u8 = 3;
/// The type of a client's certificate with an ECDSA key (RFC 8422 section 5.5).
const ECDSA_SIGN: u8 = 64;

/// Whether a list of pairs of bytes contains a number.
pub(crate) fn contains(pairs: &[u8], number: u16) -> bool {
    pairs.as_chunks::<2>().0.iter().any(|pair| u16::from_be_bytes(*pair) == number)
}

/// ServerECDHParams, the part of a ServerKeyExchange that is signed.
pub(crate) fn parameters(point: &[u8]) -> Vec<u8> {
    let mut params = Vec::with_capacity(4 + point.len());
    params.push(NAMED_CURVE);
    put_u16(&mut params, SECP256R1);
    put_vector8(&mut params, point);
    params
}

/// A ServerKeyExchange.
pub(crate) fn server_key_exchange(parameters: &[u8], signature: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(parameters.len() + 4 + signature.len());
    body.extend_from_slice(parameters);
    body.extend_from_slice(&signed(signature));
    body
}

/// A parsed ServerKeyExchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerKeyExchange<'a> {
    /// The signed part.
    pub(crate) parameters: &'a [u8],
    pub(crate) point: &'a [u8],
    pub(crate) signature: &'a [u8],
}

impl<'a> ServerKeyExchange<'a> {
    /// `None` if it is malformed, or for another curve or signature than the offered ones.
    pub(crate) fn parse(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let (kind, group) = (reader.u8()?, reader.u16()?);
        let point = reader.vector8()?;
        let parameters = body.get(..4 + point.len())?;
        let signature = parse_signed(reader.rest())?;
        let known = kind == NAMED_CURVE && group == SECP256R1;
        known.then_some(Self { parameters, point, signature })
    }
}

/// A ClientKeyExchange (RFC 8422 section 5.7).
pub(crate) fn client_key_exchange(point: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(1 + point.len());
    put_vector8(&mut body, point);
    body
}

/// The point in a ClientKeyExchange.
pub(crate) fn parse_client_key_exchange(body: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(body);
    let point = reader.vector8()?;
    (reader.is_empty() && !point.is_empty()).then_some(point)
}

/// A CertificateRequest for ECDSA keys, of any authority (RFC 5246 section 7.4.4).
pub(crate) fn certificate_request() -> Vec<u8> {
    let mut body = Vec::with_capacity(8);
    put_vector8(&mut body, &[ECDSA_SIGN]);
    put_vector16(&mut body, &ECDSA_SHA256.to_be_bytes());
    put_vector16(&mut body, &[]);
    body
}

/// Whether a CertificateRequest accepts ECDSA keys with SHA-256. `None` if it is malformed.
pub(crate) fn parse_certificate_request(body: &[u8]) -> Option<bool> {
    let mut reader = Reader::new(body);
    let types = reader.vector8()?;
    let signatures = reader.vector16()?;
    let _authorities = reader.vector16()?;
    let accepts = types.contains(&ECDSA_SIGN) && contains(signatures, ECDSA_SHA256);
    reader.is_empty().then_some(accepts)
}

/// A signature with its algorithm, the body of a CertificateVerify.
pub(crate) fn signed(signature: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(4 + signature.len());
    put_u16(&mut body, ECDSA_SHA256);
    put_vector16(&mut body, signature);
    body
}

/// The signature in the body of a CertificateVerify.
pub(crate) fn parse_signed(body: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(body);
    let algorithm = reader.u16()?;
    let signature = reader.vector16()?;
    (algorithm == ECDSA_SHA256 && reader.is_empty()).then_some(signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written_and_damaged_ones_are_refused() {
        let parameters = parameters(&[4; 65]);
        let body = server_key_exchange(&parameters, b"signature");
        let parsed = ServerKeyExchange::parse(&body).unwrap();
        assert_eq!((parsed.parameters, parsed.point), (&parameters[..], &[4; 65][..]));
        assert_eq!(parsed.signature, b"signature");
        assert!((0..body.len()).all(|length| ServerKeyExchange::parse(&body[..length]).is_none()));
        let mut other_curve = body;
        other_curve[2] = 24;
        assert!(ServerKeyExchange::parse(&other_curve).is_none());
        assert_eq!(parse_client_key_exchange(&client_key_exchange(&[4; 65])), Some(&[4; 65][..]));
        assert_eq!(parse_client_key_exchange(&[0]), None);
        assert_eq!(parse_certificate_request(&certificate_request()), Some(true));
        // rsa_sign only.
        assert_eq!(parse_certificate_request(&[1, 1, 0, 2, 4, 3, 0, 0]), Some(false));
        assert_eq!(parse_signed(&signed(b"s")), Some(&b"s"[..]));
        assert_eq!(parse_signed(&[4, 1, 0, 1, b's']), None, "RSA");
    }
}
