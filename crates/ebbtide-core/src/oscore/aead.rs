//! The AEAD algorithms, with keys of 16 bytes.

use aes::Aes128;
use aes::cipher::KeyInit as _;
use aes::cipher::consts::{U8, U12, U13};
use aes_gcm::AesGcm;
use aes_gcm::aead::AeadInOut;
use aes_gcm::aead::inout::InOutBuf;
use ccm::Ccm;

/// The length of all keys in bytes.
pub(super) const KEY: usize = 16;
/// The longest nonce in bytes.
pub(super) const MAX_NONCE: usize = 13;

type AesCcm8 = Ccm<Aes128, U8, U13>;
type Aes128Gcm = AesGcm<Aes128, U12>;

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

    /// Encrypts `data` in place and writes the tag. Returns false if that is not possible: CCM with this nonce ends at 64 KiB.
    ///
    /// The cipher is created for each message: its key schedule is longer than the rest of a context.
    pub(super) fn seal(
        self,
        key: &[u8; KEY],
        nonce: &[u8],
        aad: &[u8],
        data: &mut [u8],
        tag: &mut [u8],
    ) -> bool {
        fn with<A: AeadInOut>(
            cipher: &A,
            nonce: &[u8],
            aad: &[u8],
            data: &mut [u8],
            tag: &mut [u8],
        ) -> bool {
            let Ok(nonce) = nonce.try_into() else { return false };
            let Ok(made) = cipher.encrypt_inout_detached(nonce, aad, InOutBuf::from(data)) else {
                return false;
            };
            tag.copy_from_slice(made.as_slice());
            true
        }
        match self {
            Self::AesCcm16_64_128 => with(&AesCcm8::new(key.into()), nonce, aad, data, tag),
            Self::AesGcm128 => with(&Aes128Gcm::new(key.into()), nonce, aad, data, tag),
        }
    }

    /// Verifies the tag and decrypts `data` in place. After false the contents of `data` are unspecified.
    pub(super) fn open(
        self,
        key: &[u8; KEY],
        nonce: &[u8],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8],
    ) -> bool {
        fn with<A: AeadInOut>(
            cipher: &A,
            nonce: &[u8],
            aad: &[u8],
            data: &mut [u8],
            tag: &[u8],
        ) -> bool {
            let (Ok(nonce), Ok(tag)) = (nonce.try_into(), tag.try_into()) else { return false };
            cipher.decrypt_inout_detached(nonce, aad, InOutBuf::from(data), tag).is_ok()
        }
        match self {
            Self::AesCcm16_64_128 => with(&AesCcm8::new(key.into()), nonce, aad, data, tag),
            Self::AesGcm128 => with(&Aes128Gcm::new(key.into()), nonce, aad, data, tag),
        }
    }
}
