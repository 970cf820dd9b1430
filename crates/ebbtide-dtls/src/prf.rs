//! TLS 1.2's pseudorandom function with SHA-256 (RFC 5246 section 5).

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// HMAC-SHA-256 of the concatenation of some pieces.
pub(crate) fn hmac_sha256(key: &[u8], pieces: &[&[u8]]) -> [u8; 32] {
    // HMAC accepts keys of any length, so this error cannot occur.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    for piece in pieces {
        mac.update(piece);
    }
    mac.finalize().into_bytes().into()
}

/// `PRF(secret, label, seed)`, as many bytes as `out` holds. The seed is passed in pieces.
pub(crate) fn prf(secret: &[u8], label: &[u8], seed: &[&[u8]], out: &mut [u8]) {
    // P_hash: A(1) = HMAC(secret, label + seed), A(i + 1) = HMAC(secret, A(i)).
    let Ok(keyed) = Hmac::<Sha256>::new_from_slice(secret) else { return };
    let absorb = |mac: &mut Hmac<Sha256>| {
        mac.update(label);
        for piece in seed {
            mac.update(piece);
        }
    };
    let mut mac = keyed.clone();
    absorb(&mut mac);
    let mut a = mac.finalize().into_bytes();
    for chunk in out.chunks_mut(32) {
        let mut mac = keyed.clone();
        mac.update(&a);
        absorb(&mut mac);
        let block = mac.finalize().into_bytes();
        chunk.copy_from_slice(&block[..chunk.len()]);
        let mut mac = keyed.clone();
        mac.update(&a);
        a = mac.finalize().into_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector for P_SHA256 that the TLS working group's mailing list published for RFC 5246.
    #[test]
    fn the_published_vector_for_sha_256_comes_out() {
        let secret = [
            0x9b, 0xbe, 0x43, 0x6b, 0xa9, 0x40, 0xf0, 0x17, 0xb1, 0x76, 0x52, 0x84, 0x9a, 0x71,
            0xdb, 0x35,
        ];
        let seed = [
            0xa0, 0xba, 0x9f, 0x93, 0x6c, 0xda, 0x31, 0x18, 0x27, 0xa6, 0xf7, 0x96, 0xff, 0xd5,
            0x19, 0x8c,
        ];
        let expected = [
            0xe3, 0xf2, 0x29, 0xba, 0x72, 0x7b, 0xe1, 0x7b, 0x8d, 0x12, 0x26, 0x20, 0x55, 0x7c,
            0xd4, 0x53, 0xc2, 0xaa, 0xb2, 0x1d, 0x07, 0xc3, 0xd4, 0x95, 0x32, 0x9b, 0x52, 0xd4,
            0xe6, 0x1e, 0xdb, 0x5a, 0x6b, 0x30, 0x17, 0x91, 0xe9, 0x0d, 0x35, 0xc9, 0xc9, 0xa4,
            0x6b, 0x4e, 0x14, 0xba, 0xf9, 0xaf, 0x0f, 0xa0, 0x22, 0xf7, 0x07, 0x7d, 0xef, 0x17,
            0xab, 0xfd, 0x37, 0x97, 0xc0, 0x56, 0x4b, 0xab, 0x4f, 0xbc, 0x91, 0x66, 0x6e, 0x9d,
            0xef, 0x9b, 0x97, 0xfc, 0xe3, 0x4f, 0x79, 0x67, 0x89, 0xba, 0xa4, 0x80, 0x82, 0xd1,
            0x22, 0xee, 0x42, 0xc5, 0xa7, 0x2e, 0x5a, 0x51, 0x10, 0xff, 0xf7, 0x01, 0x87, 0x34,
            0x7b, 0x66,
        ];
        let mut out = [0; 100];
        prf(&secret, b"test label", &[&seed], &mut out);
        assert_eq!(out, expected);
    }
}
