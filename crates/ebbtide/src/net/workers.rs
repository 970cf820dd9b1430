//! Several sockets at one address over DTLS. The kernel divides datagrams among them by the peer's
//! address; a record with a connection ID belongs to the worker that has issued it, wherever its
//! peer is now (RFC 9146).

use std::sync::{Arc, Weak};

/// The content type of a record with a connection ID (RFC 9146 section 4).
const TLS12_CID: u8 = 25;
/// Where the connection ID of such a record begins: after type, version, epoch and sequence number.
const CID: usize = 11;

/// The workers at an address, in the order of the byte that connection IDs have for them.
#[derive(Debug)]
pub(crate) struct Workers<S> {
    pub(crate) sockets: Vec<Weak<S>>,
    /// The place of that byte in connection IDs.
    pub(crate) position: usize,
    /// The one that these belong to.
    pub(crate) own: usize,
}

impl<S> Workers<S> {
    /// Another worker, if the first record of a datagram is for it.
    pub(super) fn other(&self, datagram: &[u8]) -> Option<Arc<S>> {
        if datagram.first() != Some(&TLS12_CID) {
            return None;
        }
        let number = usize::from(*datagram.get(CID + self.position)?);
        let other = self.sockets.get(number).filter(|_| number != self.own)?;
        other.upgrade()
    }
}
