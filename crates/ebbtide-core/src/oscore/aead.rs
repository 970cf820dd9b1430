//! The AEAD algorithms, with keys of 16 bytes.

use crate::aes_ccm;
use aes::Aes128Enc;
use aes::cipher::KeyInit as _;
use aes::cipher::consts::U12;
use aes_gcm::AesGcm;
use aes_gcm::aead::AeadInOut as _;
use aes_gcm::aead::inout::InOutBuf;

/// The length of all keys in bytes.
pub(super) const KEY: usize = 16;
/// The longest nonce in bytes.
pub(super) const MAX_NONCE: usize = 13;

type Aes128Gcm = AesGcm<Aes128Enc, U12>;

/// An AEAD algorithm of the COSE registry.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// AES-CCM-16-64-128, which every implementation has (RFC 8613 section 3.2): a tag of 8 bytes.
    #[default]
    AesCcm16_64_128,
    /// AES-GCM with a key of 128 bits: a tag of 16 bytes.
    AesGcm128,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 2] = [Self::AesCcm16_64_128, Self::AesGcm128];

    /// The number in the registry.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::AesCcm16_64_128 => 10,
            Self::AesGcm128 => 1,
        }
    }

    /// The name in the registry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AesCcm16_64_128 => "AES-CCM-16-64-128",
            Self::AesGcm128 => "A128GCM",
        }
    }

    /// The length of a nonce in bytes.
    pub(super) const fn nonce_len(self) -> usize {
        match self {
            Self::AesCcm16_64_128 => 13,
            Self::AesGcm128 => 12,
        }
    }

    /// The length of an authentication tag in bytes.
    #[must_use]
    pub const fn tag_len(self) -> usize {
        match self {
            Self::AesCcm16_64_128 => 8,
            Self::AesGcm128 => 16,
        }
    }

    /// Encrypts `data` in place and writes the tag. Returns false if that is not possible: CCM with
    /// this nonce ends at 64 KiB.
    pub(super) fn seal(
        self,
        key: &[u8; KEY],
        nonce: &[u8; MAX_NONCE],
        aad: &[u8],
        data: &mut [u8],
        tag: &mut [u8],
    ) -> bool {
        match self {
            Self::AesCcm16_64_128 => aes_ccm::seal(key, nonce, aad, data, tag),
            Self::AesGcm128 => {
                let (cipher, data) = (Aes128Gcm::new(key.into()), InOutBuf::from(data));
                let sealed = cipher.encrypt_inout_detached(gcm_nonce(nonce).into(), aad, data);
                sealed.map(|made| tag.copy_from_slice(&made)).is_ok()
            }
        }
    }

    /// Verifies the tag and decrypts `data` in place. After false the contents of `data` are unspecified.
    pub(super) fn open(
        self,
        key: &[u8; KEY],
        nonce: &[u8; MAX_NONCE],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8],
    ) -> bool {
        match self {
            Self::AesCcm16_64_128 => aes_ccm::open(key, nonce, aad, data, tag),
            Self::AesGcm128 => tag.try_into().is_ok_and(|tag| {
                let (cipher, data) = (Aes128Gcm::new(key.into()), InOutBuf::from(data));
                cipher.decrypt_inout_detached(gcm_nonce(nonce).into(), aad, data, tag).is_ok()
            }),
        }
    }
}

/// The nonce of GCM, which is shorter.
const fn gcm_nonce(nonce: &[u8; MAX_NONCE]) -> &[u8; 12] {
    let [gcm @ .., _] = nonce;
    gcm
}
