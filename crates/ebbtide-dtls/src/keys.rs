//! The secrets derived from a pre-shared key or a key exchange: premaster and master secret, the
//! keys of both directions, Finished.

use crate::prf::prf;
use crate::suite::CipherSuite;
use alloc::vec::Vec;
use core::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A pre-shared key. Its bytes are wiped when it is dropped, and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Psk(Zeroizing<Vec<u8>>);

impl Psk {
    /// The longest key, in bytes.
    pub const MAX: usize = 64;

    /// Creates a key of 1 to [`Self::MAX`] bytes.
    ///
    /// # Errors
    ///
    /// Returns an error for other lengths.
    pub fn new(key: &[u8]) -> Result<Self, PskError> {
        match key.len() {
            0 => Err(PskError::Empty),
            length if length > Self::MAX => Err(PskError::TooLong { length }),
            _ => Ok(Self(Zeroizing::new(key.to_vec()))),
        }
    }

    /// A key that no peer has, from random bytes.
    pub(crate) fn of_nobody(random: [u8; 16]) -> Self {
        Self(Zeroizing::new(random.to_vec()))
    }

    /// The premaster secret of a plain PSK exchange (RFC 4279 section 2).
    pub(crate) fn premaster(&self) -> Zeroizing<Vec<u8>> {
        let length = (self.0.len() as u16).to_be_bytes();
        let mut secret = Zeroizing::new(Vec::with_capacity(4 + 2 * self.0.len()));
        secret.extend_from_slice(&length);
        secret.resize(2 + self.0.len(), 0);
        secret.extend_from_slice(&length);
        secret.extend_from_slice(&self.0);
        secret
    }
}

impl fmt::Debug for Psk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Psk(..)")
    }
}

/// The reason why bytes cannot be a pre-shared key. It does not contain the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PskError {
    /// The key has no bytes.
    Empty,
    /// The key has more than [`Psk::MAX`] bytes.
    TooLong {
        /// The number of its bytes.
        length: usize,
    },
}

impl fmt::Display for PskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = Psk::MAX;
        match self {
            Self::Empty => write!(
                f,
                "a key has 1 to {most} bytes, not 0: set the key that the peer has, such as 16 random bytes"
            ),
            Self::TooLong { length } => write!(
                f,
                "a key has 1 to {most} bytes, not {length}: set a shorter one on both sides, such as 16 random bytes"
            ),
        }
    }
}

impl core::error::Error for PskError {}

/// Both sides' random values of a handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Randoms {
    pub(crate) client: [u8; 32],
    pub(crate) server: [u8; 32],
}

/// The secret from which keys and Finished messages are derived.
#[derive(Clone)]
pub(crate) struct MasterSecret(Zeroizing<[u8; 48]>);

impl MasterSecret {
    pub(crate) fn from_bytes(bytes: [u8; 48]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 48] {
        &self.0
    }

    /// RFC 5246 section 8.1.
    pub(crate) fn classic(premaster: &[u8], randoms: &Randoms) -> Self {
        Self::derive(premaster, b"master secret", &[&randoms.client, &randoms.server])
    }

    /// RFC 7627 section 4: bound to the hash of the handshake up to the ClientKeyExchange.
    pub(crate) fn extended(premaster: &[u8], session_hash: &[u8; 32]) -> Self {
        Self::derive(premaster, b"extended master secret", &[session_hash])
    }

    fn derive(premaster: &[u8], label: &[u8], seed: &[&[u8]]) -> Self {
        let mut master = Zeroizing::new([0; 48]);
        prf(premaster, label, seed, &mut *master);
        Self(master)
    }

    /// The contents of a Finished message (RFC 5246 section 7.4.9).
    pub(crate) fn finished(&self, sender: Role, transcript: &[u8; 32]) -> [u8; 12] {
        let label: &[u8] = match sender {
            Role::Client => b"client finished",
            Role::Server => b"server finished",
        };
        let mut data = [0; 12];
        prf(&*self.0, label, &[transcript], &mut data);
        data
    }

    /// The keys of a connection for this side (RFC 5246 section 6.3): an AEAD has no MAC keys, and four bytes
    /// of the nonce are implicit (RFC 6655 section 3).
    pub(crate) fn keys(&self, role: Role, randoms: &Randoms) -> ConnectionKeys {
        let mut block = Zeroizing::new([0; 40]);
        prf(&*self.0, b"key expansion", &[&randoms.server, &randoms.client], &mut *block);
        let mut client = DirectionKeys::default();
        let mut server = DirectionKeys::default();
        let [a, b, c, d] = [16, 32, 36, 40];
        client.key.copy_from_slice(&block[..a]);
        server.key.copy_from_slice(&block[a..b]);
        client.salt.copy_from_slice(&block[b..c]);
        server.salt.copy_from_slice(&block[c..d]);
        match role {
            Role::Client => ConnectionKeys { write: client, read: server },
            Role::Server => ConnectionKeys { write: server, read: client },
        }
    }
}

impl fmt::Debug for MasterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterSecret(..)")
    }
}

/// The role of an endpoint in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It started the handshake.
    Client,
    /// It answered the handshake.
    Server,
}

/// The keys of both directions, seen from one side.
pub(crate) struct ConnectionKeys {
    pub(crate) write: DirectionKeys,
    pub(crate) read: DirectionKeys,
}

impl ConnectionKeys {
    /// The keys for writing and those for reading, each of 20 bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (write, read) = bytes.split_at_checked(DirectionKeys::LENGTH)?;
        Some(Self {
            write: DirectionKeys::from_bytes(write)?,
            read: DirectionKeys::from_bytes(read)?,
        })
    }
}

/// The keys of one direction.
#[derive(Default, Zeroize, ZeroizeOnDrop)]
pub(crate) struct DirectionKeys {
    key: [u8; 16],
    salt: [u8; 4],
}

impl DirectionKeys {
    const LENGTH: usize = 20;

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (key, salt) = bytes.split_first_chunk()?;
        Some(Self { key: *key, salt: salt.try_into().ok()? })
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key);
        out.extend_from_slice(&self.salt);
    }

    const fn nonce(&self, explicit: [u8; 8]) -> [u8; 12] {
        let ([a, b, c, d], [e, f, g, h, i, j, k, l]) = (self.salt, explicit);
        [a, b, c, d, e, f, g, h, i, j, k, l]
    }

    pub(crate) fn seal(
        &self,
        suite: CipherSuite,
        explicit_nonce: [u8; 8],
        aad: &[u8],
        data: &mut [u8],
        tag: &mut [u8],
    ) -> bool {
        suite.seal(&self.key, &self.nonce(explicit_nonce), aad, data, tag)
    }

    pub(crate) fn open(
        &self,
        suite: CipherSuite,
        explicit_nonce: [u8; 8],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8],
    ) -> bool {
        suite.open(&self.key, &self.nonce(explicit_nonce), aad, data, tag)
    }
}

impl fmt::Debug for DirectionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectionKeys(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    fn a_key_of_another_length_is_refused_with_the_limit_and_the_remedy() {
        for length in [1, Psk::MAX] {
            assert!(Psk::new(&alloc::vec![7; length]).is_ok());
        }
        let refused = |length: usize| Psk::new(&alloc::vec![7; length]).unwrap_err();
        assert_eq!((refused(0), refused(65)), (PskError::Empty, PskError::TooLong { length: 65 }));
        for (length, remedy) in [(0, "set the key that the peer has"), (65, "set a shorter one")] {
            let text = refused(length).to_string();
            let limit = alloc::format!("a key has 1 to 64 bytes, not {length}: {remedy}");
            assert!(text.starts_with(&limit), "{text}");
        }
    }
}
