//! The cryptography of cipher suite 2, from the crates that DTLS and OSCORE use.

use ebbtide_core::aes_ccm;
use hkdf::Hkdf;
use lakers::{
    AES_CCM_TAG_LEN, BufferCiphertext3, BufferPlaintext3, BytesCcmIvLen, BytesCcmKeyLen,
    BytesHashLen, BytesMaxBuffer, BytesMaxInfoBuffer, BytesP256ElemLen, CryptoTrait, EDHOCError,
    MAX_BUFFER_LEN,
};
use p256::elliptic_curve::point::DecompressPoint;
use p256::elliptic_curve::subtle::Choice;
use p256::{AffinePoint, SecretKey};
use sha2::{Digest, Sha256};

/// A key pair for one handshake, which was drawn before it, and the implementation of the rest.
#[derive(Clone)]
pub(super) struct Cryptography {
    ephemeral: BytesP256ElemLen,
}

/// Shows no key.
impl core::fmt::Debug for Cryptography {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Cryptography").finish_non_exhaustive()
    }
}

impl Drop for Cryptography {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.ephemeral);
    }
}

impl Cryptography {
    /// `None` if the bytes are not a private key, which random ones are but with a chance of 2^-32.
    pub(super) fn new(ephemeral: BytesP256ElemLen) -> Option<Self> {
        SecretKey::from_bytes((&ephemeral).into()).ok().map(|_| Self { ephemeral })
    }
}

/// The x coordinate of the public key; `None` if the bytes are not a private key.
pub(super) fn public_key(private: &BytesP256ElemLen) -> Option<BytesP256ElemLen> {
    use p256::elliptic_curve::point::AffineCoordinates as _;
    let secret = SecretKey::from_bytes(private.into()).ok()?;
    Some(secret.public_key().as_affine().x().into())
}

impl CryptoTrait for Cryptography {
    fn sha256_digest(&mut self, message: &BytesMaxBuffer, message_len: usize) -> BytesHashLen {
        Sha256::digest(message.get(..message_len).unwrap_or_default()).into()
    }

    fn hkdf_expand(
        &mut self,
        prk: &BytesHashLen,
        info: &BytesMaxInfoBuffer,
        info_len: usize,
        length: usize,
    ) -> BytesMaxBuffer {
        let mut out = [0; MAX_BUFFER_LEN];
        if let (Ok(hkdf), Some(info), Some(out)) =
            (Hkdf::<Sha256>::from_prk(prk), info.get(..info_len), out.get_mut(..length))
        {
            // HKDF gives up to 8,160 bytes, so this does not fail.
            let _ = hkdf.expand(info, out);
        }
        out
    }

    fn hkdf_extract(&mut self, salt: &BytesHashLen, ikm: &BytesP256ElemLen) -> BytesHashLen {
        Hkdf::<Sha256>::extract(Some(salt), ikm).0.into()
    }

    fn aes_ccm_encrypt_tag_8(
        &mut self,
        key: &BytesCcmKeyLen,
        iv: &BytesCcmIvLen,
        ad: &[u8],
        plaintext: &BufferPlaintext3,
    ) -> BufferCiphertext3 {
        let (mut out, mut tag) = (*plaintext, [0; AES_CCM_TAG_LEN]);
        let text = out.content.get_mut(..plaintext.len).unwrap_or_default();
        // Neither fails with the lengths of the messages; the peer would refuse what is sent then.
        let _ = aes_ccm::seal(key, iv, ad, text, &mut tag);
        let _ = out.extend_from_slice(&tag);
        out
    }

    fn aes_ccm_decrypt_tag_8(
        &mut self,
        key: &BytesCcmKeyLen,
        iv: &BytesCcmIvLen,
        ad: &[u8],
        ciphertext: &BufferCiphertext3,
    ) -> Result<BufferPlaintext3, EDHOCError> {
        let mut out = BufferPlaintext3::new();
        let split = ciphertext.as_slice().split_last_chunk::<AES_CCM_TAG_LEN>();
        let (text, tag) = split.ok_or(EDHOCError::ParsingError)?;
        out.fill_with_slice(text).map_err(|_| EDHOCError::ParsingError)?;
        let text = out.content.get_mut(..out.len).unwrap_or_default();
        let is_authentic = aes_ccm::open(key, iv, ad, text, tag);
        is_authentic.then_some(out).ok_or(EDHOCError::MacVerificationFailed)
    }

    fn p256_ecdh(
        &mut self,
        private_key: &BytesP256ElemLen,
        public_key: &BytesP256ElemLen,
    ) -> BytesP256ElemLen {
        let secret = SecretKey::from_bytes(private_key.into()).ok();
        // The sign of y does not matter for the x coordinate of the product.
        let point = AffinePoint::decompress(public_key.into(), Choice::from(0)).into_option();
        match secret.zip(point) {
            Some((secret, point)) => {
                let shared = p256::ecdh::diffie_hellman(secret.to_nonzero_scalar(), point);
                (*shared.raw_secret_bytes()).into()
            }
            // The peer has sent a coordinate of no point. It must not learn the secret that stands for it.
            None => Sha256::digest(private_key).into(),
        }
    }

    /// Connection identifiers are chosen outside.
    fn get_random_byte(&mut self) -> u8 {
        0
    }

    fn p256_generate_key_pair(&mut self) -> (BytesP256ElemLen, BytesP256ElemLen) {
        // It was checked when it was drawn.
        (self.ephemeral, public_key(&self.ephemeral).unwrap_or_default())
    }
}
