//! An identity that a peer has proved.

use std::sync::Arc;

/// The identity of a pre-shared key, of a certificate, or of an OSCORE context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProvedIdentity {
    Shared(Arc<[u8]>),
    /// The ID of an OSCORE context that has no name.
    #[cfg(feature = "oscore")]
    Id(ebbtide_core::oscore::PeerId),
}

impl ProvedIdentity {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Shared(identity) => identity,
            #[cfg(feature = "oscore")]
            Self::Id(id) => id.as_slice(),
        }
    }
}

impl From<Arc<[u8]>> for ProvedIdentity {
    fn from(identity: Arc<[u8]>) -> Self {
        Self::Shared(identity)
    }
}

impl From<ProvedIdentity> for Arc<[u8]> {
    fn from(identity: ProvedIdentity) -> Self {
        match identity {
            ProvedIdentity::Shared(identity) => identity,
            #[cfg(feature = "oscore")]
            ProvedIdentity::Id(id) => id.as_slice().into(),
        }
    }
}
