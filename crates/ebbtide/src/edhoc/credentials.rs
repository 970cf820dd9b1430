//! Our credential, and those of the peers that are accepted.

use core::fmt;
use lakers::{Credential, CredentialKey};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Our private key and credential, and the credentials of the peers that we accept. A credential is
/// a CWT Claims Set with a public key on the curve P-256, in CBOR (RFC 9528 section 3.5.2); both
/// sides must have the same bytes. One with a `kid` is sent by that reference, any other by value.
#[derive(Clone)]
pub struct EdhocCredentials {
    private_key: Zeroizing<[u8; 32]>,
    own: Credential,
    peers: Vec<EdhocPeer>,
}

/// A peer.
#[derive(Clone)]
pub(crate) struct EdhocPeer {
    credential: Credential,
    /// The identity for handlers.
    pub(crate) name: Arc<[u8]>,
}

impl EdhocPeer {
    pub(super) const fn credential(&self) -> &Credential {
        &self.credential
    }
}

/// The reason why a credential cannot be used.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CredentialError {
    /// The private key is not one of P-256: 32 bytes.
    PrivateKey,
    /// The credential is not a CWT Claims Set in CBOR with a public key on P-256, of at most 190 bytes.
    Credential,
    /// The private key is not that of the credential.
    OtherKey,
}

impl fmt::Display for CredentialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PrivateKey => "the private key is not 32 bytes of a key on P-256",
            Self::Credential => "the credential is no CWT Claims Set with a public key on P-256",
            Self::OtherKey => "the private key is not that of the credential",
        })
    }
}

impl core::error::Error for CredentialError {}

fn parse(credential: &[u8]) -> Result<(Credential, [u8; 32]), CredentialError> {
    // By value it has two bytes more.
    let short = Some(credential).filter(|credential| credential.len() <= 190);
    let parsed = short.and_then(|credential| Credential::parse_ccs(credential).ok());
    match parsed {
        Some(credential @ Credential { key: CredentialKey::EC2Compact(key), .. }) => {
            Ok((credential, key))
        }
        _ => Err(CredentialError::Credential),
    }
}

impl EdhocCredentials {
    /// Our private key, and our credential.
    ///
    /// # Errors
    ///
    /// See [`CredentialError`].
    pub fn new(private_key: &[u8], credential: &[u8]) -> Result<Self, CredentialError> {
        let private_key: [u8; 32] =
            private_key.try_into().map_err(|_| CredentialError::PrivateKey)?;
        let private_key = Zeroizing::new(private_key);
        let (own, public) = parse(credential)?;
        match super::crypto::public_key(&private_key) {
            None => Err(CredentialError::PrivateKey),
            Some(ours) if ours != public => Err(CredentialError::OtherKey),
            Some(_) => Ok(Self { private_key, own, peers: Vec::new() }),
        }
    }

    /// Accepts a peer with this credential. `name` is its identity for
    /// [`Call::identity`](crate::server::Call::identity).
    ///
    /// # Errors
    ///
    /// Returns [`CredentialError::Credential`].
    pub fn peer(mut self, credential: &[u8], name: &str) -> Result<Self, CredentialError> {
        let (credential, _) = parse(credential)?;
        self.peers.push(EdhocPeer { credential, name: name.as_bytes().into() });
        Ok(self)
    }

    pub(super) const fn own(&self) -> &Credential {
        &self.own
    }

    pub(super) fn private_key(&self) -> &[u8; 32] {
        &self.private_key
    }

    /// The peer whose credential has this ID_CRED.
    pub(super) fn find(&self, id_cred: &[u8]) -> Option<&EdhocPeer> {
        self.peers.iter().find(|peer| {
            let ids = [peer.credential.by_kid(), peer.credential.by_value()];
            ids.into_iter().flatten().any(|id| id.as_full_value() == id_cred)
        })
    }
}

/// Shows no key.
impl fmt::Debug for EdhocCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EdhocCredentials").field("peers", &self.peers.len()).finish_non_exhaustive()
    }
}
