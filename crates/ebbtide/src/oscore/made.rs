//! Contexts that a handshake by EDHOC has made (RFC 9528 appendix A.1).

use super::ending::EndingHandshake;
use super::{ClientContext, ContextOrigin, NumberStore, OscoreContext, OscoreContexts, Servers};
use crate::message::Uri;
use crate::proved_identity::ProvedIdentity;
use ebbtide_core::oscore::{PeerId, SecurityContext};
use std::sync::Arc;
use tokio::sync::OwnedMutexGuard;
use zeroize::Zeroizing;

/// Contexts that are kept for one peer: the latest, and one before it, which the peer uses until it
/// has completed the handshake.
const KEPT: usize = 2;

/// The result of a handshake.
pub(crate) struct MadeContext {
    pub(crate) secret: Zeroizing<[u8; 16]>,
    pub(crate) salt: [u8; 8],
    pub(crate) sender_id: Vec<u8>,
    pub(crate) recipient_id: Vec<u8>,
    /// The peer's identity for handlers.
    pub(crate) identity: Arc<[u8]>,
}

impl OscoreContexts {
    /// Whether a peer has this ID.
    pub(crate) fn has(&self, id: &[u8]) -> bool {
        PeerId::new(id).is_none_or(|id| self.table().has(&id))
    }

    /// Adds the context that a client has made. `None` if both sides have the same ID, or its ID is taken.
    pub(crate) fn add_of_client(&self, made: MadeContext) -> Option<()> {
        self.add_made(made, Servers::None, ContextOrigin::Handshake).map(|_| ())
    }

    /// Adds the context for the requests to the server of this URI.
    pub(crate) fn add_of_server(&self, made: MadeContext, uri: &Uri) -> Option<ClientContext> {
        self.client_context(self.add_made(made, Servers::of(uri), ContextOrigin::Handshake)?)
    }

    /// As [`Self::add_of_server`], with a handshake that ends with the first request. Others to
    /// this server have the context when that has been answered, and wait for their `turn` until
    /// then.
    pub(crate) fn add_ending(
        &self,
        made: MadeContext,
        uri: &Uri,
        message_3: Vec<u8>,
        turn: OwnedMutexGuard<()>,
    ) -> Option<ClientContext> {
        let number = self.add_made(made, Servers::of(uri), ContextOrigin::EndingHandshake)?;
        let handshake = EndingHandshake::new(self.clone(), number, message_3, turn);
        Some(self.client_context(number)?.ending(handshake))
    }

    fn add_made(&self, made: MadeContext, servers: Servers, origin: ContextOrigin) -> Option<u32> {
        let identity = ProvedIdentity::Shared(made.identity.clone());
        let mut context =
            OscoreContext::new(&*made.secret, &made.sender_id, &made.recipient_id).salt(&made.salt);
        context.identity = Some(made.identity);
        context.origin = origin;
        context.servers = servers.clone();
        let (ours, theirs) = (&made.sender_id, &made.recipient_id);
        let keys =
            SecurityContext::new(&context.master_secret(), ours, theirs, NumberStore::Volatile);
        let keys = keys.ok()?;
        let added = self.insert(0, context, keys).ok()?;
        let earlier: Vec<u32> = {
            let table = self.table();
            let same = table.iter().rev().filter(|(_, entry)| {
                entry.made.is_some() && entry.identity == identity && entry.servers == servers
            });
            same.skip(KEPT).map(|(number, _)| number).collect()
        };
        let mut table = self.table_mut();
        earlier.into_iter().for_each(|number| drop(table.remove(number)));
        Some(added)
    }
}
