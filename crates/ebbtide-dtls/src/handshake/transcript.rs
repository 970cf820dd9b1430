//! The hash over all messages of a handshake (RFC 6347 section 4.2.6), without the first
//! ClientHello and the HelloVerifyRequest, and as if no message had been fragmented.

use crate::message::{HandshakeType, whole_header};
use sha2::{Digest, Sha256};

#[derive(Clone, Debug, Default)]
pub(crate) struct Transcript(Sha256);

impl Transcript {
    pub(crate) fn add(&mut self, kind: HandshakeType, sequence: u16, body: &[u8]) {
        self.0.update(whole_header(kind, body.len(), sequence));
        self.0.update(body);
    }

    /// The hash of the messages added so far.
    pub(crate) fn hash(&self) -> [u8; 32] {
        self.0.clone().finalize().into()
    }
}
