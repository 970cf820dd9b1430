//! The cipher suites: AES-128 with CCM or GCM, with a pre-shared key or with certificates.

use crate::gcm;
use ebbtide_core::aes_ccm;

/// A cipher suite. Without the feature `gcm` an endpoint uses only those with CCM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CipherSuite {
    /// `TLS_PSK_WITH_AES_128_CCM_8` (RFC 6655): mandatory for CoAP with pre-shared keys (RFC 7252
    /// section 9.1.3.1), with the smallest overhead.
    PskAes128Ccm8,
    /// `TLS_PSK_WITH_AES_128_CCM` (RFC 6655): a tag of 16 bytes.
    PskAes128Ccm,
    /// `TLS_PSK_WITH_AES_128_GCM_SHA256` (RFC 5487).
    PskAes128GcmSha256,
    /// `TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8` (RFC 7251): mandatory for CoAP with certificates (RFC 7252
    /// section 9.1.3.3), with the smallest overhead.
    EcdheEcdsaAes128Ccm8,
    /// `TLS_ECDHE_ECDSA_WITH_AES_128_CCM` (RFC 7251): a tag of 16 bytes.
    EcdheEcdsaAes128Ccm,
    /// `TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256` (RFC 5289).
    EcdheEcdsaAes128GcmSha256,
}

impl CipherSuite {
    /// The suites with pre-shared keys in order of preference.
    pub const PSK: [Self; 3] = [Self::PskAes128Ccm8, Self::PskAes128GcmSha256, Self::PskAes128Ccm];

    /// The suites with certificates in order of preference.
    pub const ECDHE_ECDSA: [Self; 3] =
        [Self::EcdheEcdsaAes128Ccm8, Self::EcdheEcdsaAes128GcmSha256, Self::EcdheEcdsaAes128Ccm];

    /// All suites in order of preference. Those with pre-shared keys need the fewest bytes and the least
    /// computation.
    pub const ALL: [Self; 6] = [
        Self::PskAes128Ccm8,
        Self::PskAes128GcmSha256,
        Self::PskAes128Ccm,
        Self::EcdheEcdsaAes128Ccm8,
        Self::EcdheEcdsaAes128GcmSha256,
        Self::EcdheEcdsaAes128Ccm,
    ];

    /// Whether the server, and on request the client, shows a certificate. Otherwise both have a
    /// pre-shared key.
    #[must_use]
    pub fn has_certificates(self) -> bool {
        Self::ECDHE_ECDSA.contains(&self)
    }

    /// Whether its cipher is there.
    pub(crate) const fn is_available(self) -> bool {
        cfg!(feature = "gcm") || !matches!(self.aead(), Aead::Gcm)
    }

    /// The number in the registry.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::PskAes128Ccm8 => 0xc0a8,
            Self::PskAes128Ccm => 0xc0a4,
            Self::PskAes128GcmSha256 => 0x00a8,
            Self::EcdheEcdsaAes128Ccm8 => 0xc0ae,
            Self::EcdheEcdsaAes128Ccm => 0xc0ac,
            Self::EcdheEcdsaAes128GcmSha256 => 0xc02b,
        }
    }

    /// The suite with this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.number() == number)
    }

    /// The name in the registry.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PskAes128Ccm8 => "TLS_PSK_WITH_AES_128_CCM_8",
            Self::PskAes128Ccm => "TLS_PSK_WITH_AES_128_CCM",
            Self::PskAes128GcmSha256 => "TLS_PSK_WITH_AES_128_GCM_SHA256",
            Self::EcdheEcdsaAes128Ccm8 => "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8",
            Self::EcdheEcdsaAes128Ccm => "TLS_ECDHE_ECDSA_WITH_AES_128_CCM",
            Self::EcdheEcdsaAes128GcmSha256 => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        }
    }

    /// The length of the authentication tag in bytes.
    #[must_use]
    pub const fn tag_length(self) -> usize {
        match self.aead() {
            Aead::Ccm8 => 8,
            Aead::Ccm | Aead::Gcm => 16,
        }
    }

    const fn aead(self) -> Aead {
        match self {
            Self::PskAes128Ccm8 | Self::EcdheEcdsaAes128Ccm8 => Aead::Ccm8,
            Self::PskAes128Ccm | Self::EcdheEcdsaAes128Ccm => Aead::Ccm,
            Self::PskAes128GcmSha256 | Self::EcdheEcdsaAes128GcmSha256 => Aead::Gcm,
        }
    }

    /// Encrypts `data` in place and writes the tag of [`Self::tag_length`] bytes. Returns false if that is
    /// not possible.
    pub(crate) fn seal(
        self,
        key: &[u8; 16],
        nonce: &[u8; 12],
        aad: &[u8],
        data: &mut [u8],
        tag: &mut [u8],
    ) -> bool {
        match self.aead() {
            Aead::Ccm8 | Aead::Ccm => aes_ccm::seal(key, nonce, aad, data, tag),
            Aead::Gcm => gcm::seal(key, nonce, aad, data, tag),
        }
    }

    /// Verifies the tag and decrypts `data` in place. After false the contents of `data` are unspecified.
    pub(crate) fn open(
        self,
        key: &[u8; 16],
        nonce: &[u8; 12],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8],
    ) -> bool {
        match self.aead() {
            Aead::Ccm8 | Aead::Ccm => aes_ccm::open(key, nonce, aad, data, tag),
            Aead::Gcm => gcm::open(key, nonce, aad, data, tag),
        }
    }
}

/// The cipher of a suite. It is created for each record from the key's 16 bytes: its key schedule (176 bytes for each
/// direction, more with the tables of GCM) would be most of an idle session.
enum Aead {
    Ccm8,
    Ccm,
    Gcm,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn hex(text: &str) -> Vec<u8> {
        let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
        text.as_bytes().as_chunks::<2>().0.iter().map(|[a, b]| digit(*a) << 4 | digit(*b)).collect()
    }

    fn check(suite: CipherSuite, [key, nonce, aad, plain, cipher, tag]: [&str; 6]) {
        let key = hex(key).try_into().unwrap();
        let nonce = hex(nonce).try_into().unwrap();
        let (aad, plain) = (hex(aad), hex(plain));
        let mut data = plain.clone();
        let mut made = alloc::vec![0; suite.tag_length()];
        assert!(suite.seal(&key, &nonce, &aad, &mut data, &mut made));
        assert_eq!((&data, &made), (&hex(cipher), &hex(tag)), "{suite:?}");
        let mut wrong = data.clone();
        assert!(suite.open(&key, &nonce, &aad, &mut data, &made));
        assert_eq!(data, plain);
        made[0] ^= 1;
        assert!(!suite.open(&key, &nonce, &aad, &mut wrong, &made));
    }

    /// Example 3 of NIST SP 800-38C: a nonce of 12 bytes and a tag of 8, as RFC 6655 has them.
    #[test]
    fn ccm_8_gives_what_nist_says() {
        check(
            CipherSuite::PskAes128Ccm8,
            [
                "404142434445464748494a4b4c4d4e4f",
                "101112131415161718191a1b",
                "000102030405060708090a0b0c0d0e0f10111213",
                "202122232425262728292a2b2c2d2e2f3031323334353637",
                "e3b201a9f5b71a7a9b1ceaeccd97e70b6176aad9a4428aa5",
                "484392fbc1b09951",
            ],
        );
    }

    #[cfg(feature = "gcm")]
    /// Test case 4 of the submission of GCM to NIST.
    #[test]
    fn gcm_gives_what_its_authors_say() {
        check(
            CipherSuite::PskAes128GcmSha256,
            [
                "feffe9928665731c6d6a8f9467308308",
                "cafebabefacedbaddecaf888",
                "feedfacedeadbeeffeedfacedeadbeefabaddad2",
                "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
                "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
                "5bc94fbc3221a5db94fae95ae7121a47",
            ],
        );
    }
}
