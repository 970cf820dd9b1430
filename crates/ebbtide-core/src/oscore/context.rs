//! A security context (RFC 8613 section 3.1).

use super::aead::Algorithm;
use super::derive::{ContextKeys, MasterSecret, ParameterError};
use super::numbers::{MAX_SEQUENCE_NUMBER, Numbering, SenderNumbers, SequenceStore};
use super::renewal;
use super::short::{ContextId, PeerId};
use super::window::RequestWindow;
use core::fmt;

/// Whether a verified request is known to be new.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It was never accepted before.
    New,
    /// It may have been accepted before the context was [resumed](Numbering::Resumed). It must not
    /// be processed unless it contains an Echo option with a value that this server has made since;
    /// otherwise it is answered with 4.01 and such a value (RFC 8613 appendix B.1.2). See
    /// [`SecurityContext::accept`].
    Unknown,
}

/// The sequence number of a request, to which its responses are bound.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestNumber(pub(super) u64);

impl RequestNumber {
    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of a request that was stored, if it is one. Its responses have numbers of their own.
    #[must_use]
    pub const fn from_stored(number: u64) -> Option<Self> {
        if number <= MAX_SEQUENCE_NUMBER { Some(Self(number)) } else { None }
    }
}

/// The security context that this endpoint shares with one peer. It is both a client's and a server's.
pub struct SecurityContext<S> {
    pub(super) keys: ContextKeys,
    pub(super) numbers: SenderNumbers,
    pub(super) window: RequestWindow,
    pub(super) store: S,
    pub(super) naming: Naming,
}

/// Whether our requests contain the ID Context.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Naming {
    Whole,
    /// They do, as [`renewal::encode_part`] has it.
    Encoded,
    /// The peer finds the context by our ID.
    ById,
}

// Keys, names and the replay window. A key schedule is made for each message.
const _: () = assert!(size_of::<SecurityContext<()>>() <= 168);

impl<S: SequenceStore> SecurityContext<S> {
    /// Derives a context that was never used. It must not be derived again after a restart: see [`Self::resume`].
    ///
    /// # Errors
    ///
    /// See [`ParameterError`].
    pub fn new(
        secret: &MasterSecret<'_>,
        sender_id: &[u8],
        recipient_id: &[u8],
        store: S,
    ) -> Result<Self, ParameterError> {
        Self::resume(secret, sender_id, recipient_id, Numbering::Fresh, store)
    }

    /// Derives a context that may have been used before.
    ///
    /// # Errors
    ///
    /// See [`ParameterError`].
    pub fn resume(
        secret: &MasterSecret<'_>,
        sender_id: &[u8],
        recipient_id: &[u8],
        numbering: Numbering,
        store: S,
    ) -> Result<Self, ParameterError> {
        let window = match numbering {
            Numbering::Fresh => RequestWindow::FRESH,
            Numbering::Resumed(_) => RequestWindow::LOST,
        };
        let keys = ContextKeys::derive(secret, sender_id, recipient_id)?;
        let (numbers, naming) = (SenderNumbers::new(numbering), Naming::Whole);
        Ok(Self { keys, numbers, window, store, naming })
    }

    /// Derives a context in an exchange of new keys, with an ID Context that is sent as
    /// [`renewal::encode_part`] has it. It was never used, since a peer drew a part of it.
    ///
    /// # Errors
    ///
    /// See [`ParameterError`].
    pub fn renewed(
        secret: &MasterSecret<'_>,
        sender_id: &[u8],
        recipient_id: &[u8],
        id_context: &[u8],
        store: S,
    ) -> Result<Self, ParameterError> {
        let secret = MasterSecret { id_context: Some(id_context), ..*secret };
        renewal::encode_part(id_context).ok_or(ParameterError::IdContextTooLong)?;
        let mut context = Self::new(&secret, sender_id, recipient_id, store)?;
        context.naming = Naming::Encoded;
        Ok(context)
    }

    /// Records that an authentic request is new: it has [`Freshness::Unknown`], and the value of
    /// its Echo option was made by this server since the context was resumed. All later requests of
    /// the client are new then as well.
    ///
    /// Returns false if it was accepted meanwhile.
    #[must_use]
    pub fn accept(&mut self, request: RequestNumber) -> bool {
        let is_new = self.window.novelty(request.0) != super::window::Novelty::Replayed;
        if is_new {
            self.window.accept(request.0);
        }
        is_new
    }
}

impl<S> SecurityContext<S> {
    /// Our ID.
    #[must_use]
    pub const fn sender_id(&self) -> &PeerId {
        &self.keys.sender.id
    }

    /// The peer's ID.
    #[must_use]
    pub const fn recipient_id(&self) -> &PeerId {
        &self.keys.recipient.id
    }

    /// The ID Context.
    #[must_use]
    pub const fn id_context(&self) -> Option<&ContextId> {
        self.keys.id_context.as_ref()
    }

    /// Whether this is its ID Context in a message. Some peers send one of an exchange of new keys
    /// as it is, others encoded.
    pub(super) fn is_named(&self, sent: &[u8]) -> bool {
        self.keys.id_context.as_ref().is_some_and(|ours| {
            ours.as_slice() == sent || renewal::decode_part(sent) == Some(ours.as_slice())
        })
    }

    /// Leaves the ID Context out of our requests from now on: the peer finds the context by our ID.
    pub const fn omit_id_context(&mut self) {
        self.naming = Naming::ById;
    }

    /// Sends the ID Context in our requests from now on, as [`renewal::encode_part`] has it.
    pub const fn send_id_context(&mut self) {
        self.naming = Naming::Encoded;
    }

    /// The AEAD algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.keys.algorithm
    }
}

/// Shows no key.
impl<S> fmt::Debug for SecurityContext<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecurityContext")
            .field("sender_id", &self.keys.sender.id)
            .field("recipient_id", &self.keys.recipient.id)
            .field("id_context", &self.keys.id_context)
            .field("algorithm", &self.keys.algorithm)
            .field("numbers", &self.numbers)
            .finish_non_exhaustive()
    }
}
