//! AES-128-GCM.

use aes::Aes128Enc;
use aes::cipher::KeyInit as _;
use aes::cipher::consts::{U12, U16};
use aes_gcm::AesGcm;
use aes_gcm::aead::AeadInOut as _;
use aes_gcm::aead::inout::InOutBuf;

type Aes128Gcm = AesGcm<Aes128Enc, U12, U16>;

/// Encrypts `data` in place and writes the tag of 16 bytes. Returns false if that is not possible.
pub(crate) fn seal(
    key: &[u8; 16],
    nonce: &[u8; 12],
    aad: &[u8],
    data: &mut [u8],
    tag: &mut [u8],
) -> bool {
    let cipher = Aes128Gcm::new(key.into());
    let made = cipher.encrypt_inout_detached(nonce.into(), aad, InOutBuf::from(data));
    made.is_ok_and(|made| {
        tag.copy_from_slice(&made);
        true
    })
}

/// Verifies the tag and decrypts `data` in place.
pub(crate) fn open(
    key: &[u8; 16],
    nonce: &[u8; 12],
    aad: &[u8],
    data: &mut [u8],
    tag: &[u8],
) -> bool {
    let cipher = Aes128Gcm::new(key.into());
    let data = InOutBuf::from(data);
    tag.try_into()
        .is_ok_and(|tag| cipher.decrypt_inout_detached(nonce.into(), aad, data, tag).is_ok())
}
