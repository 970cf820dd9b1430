//! The messages of both sides (RFC 9528 section 5), without a network.

use super::credentials::{EdhocCredentials, EdhocPeer};
use super::crypto::Cryptography;
use crate::oscore::MadeContext;
use ebbtide_core::oscore::MAX_PEER_ID;
use lakers::{
    ConnId, CredentialTransfer, EADItem, EDHOCError, EDHOCMethod, EDHOCSuite, EdhocInitiator,
    EdhocInitiatorWaitM2, EdhocInitiatorWaitM4, EdhocMessageBuffer, EdhocResponder,
    EdhocResponderProcessedM1, EdhocResponderWaitM3, IdCred, MAX_BUFFER_LEN,
};
use zeroize::Zeroizing;

/// The reason why a handshake failed. Of those of the library, only what the peer may learn.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeFault {
    /// A message cannot be decoded, or has what is not supported.
    Malformed,
    /// The peer selected another cipher suite.
    Suite,
    /// The credential is not known, or not the peer's.
    NotAuthentic,
    /// The system provides no randomness.
    NoRandomness,
}

impl From<EDHOCError> for HandshakeFault {
    fn from(error: EDHOCError) -> Self {
        match error {
            EDHOCError::UnsupportedCipherSuite => Self::Suite,
            EDHOCError::MacVerificationFailed
            | EDHOCError::UnexpectedCredential
            | EDHOCError::AccessDenied => Self::NotAuthentic,
            _ => Self::Malformed,
        }
    }
}

impl HandshakeFault {
    /// The error message (RFC 9528 section 6).
    pub(crate) const fn message(self) -> &'static [u8] {
        match self {
            // ERR_CODE 2, and the suite that is supported.
            Self::Suite => &[0x02, 0x02],
            // ERR_CODE 1, and an empty text.
            Self::Malformed | Self::NotAuthentic | Self::NoRandomness => &[0x01, 0x60],
        }
    }
}

fn buffer(message: &[u8]) -> Result<EdhocMessageBuffer, HandshakeFault> {
    EdhocMessageBuffer::new_from_slice(message).map_err(|_| HandshakeFault::Malformed)
}

/// Refuses what must be understood (RFC 9528 section 3.8): no item is.
fn without_critical(item: Option<EADItem>) -> Result<(), HandshakeFault> {
    if item.is_some_and(|item| item.is_critical) { Err(HandshakeFault::Malformed) } else { Ok(()) }
}

fn transfer(credentials: &EdhocCredentials) -> CredentialTransfer {
    match credentials.own().kid {
        Some(_) => CredentialTransfer::ByReference,
        None => CredentialTransfer::ByValue,
    }
}

fn known<'c>(
    credentials: &'c EdhocCredentials,
    id: &IdCred,
) -> Result<&'c EdhocPeer, HandshakeFault> {
    credentials.find(id.as_full_value()).ok_or(HandshakeFault::NotAuthentic)
}

fn identifier(id: &[u8]) -> Result<ConnId, HandshakeFault> {
    ConnId::from_slice(id).ok_or(HandshakeFault::Malformed)
}

/// A client that has sent message 1.
pub(crate) struct Initiator {
    waiting: EdhocInitiatorWaitM2<Cryptography>,
    id: Vec<u8>,
}

impl Initiator {
    /// Begins a handshake with an ephemeral private key and an identifier, which becomes the
    /// server's `kid`. Returns message 1.
    pub(super) fn begin(
        crypto: Cryptography,
        credentials: &EdhocCredentials,
        id: &[u8],
    ) -> Result<(Self, Vec<u8>), HandshakeFault> {
        let method = (EDHOCMethod::StatStat, EDHOCSuite::CipherSuite2);
        let mut initiator = EdhocInitiator::new(crypto, method.0, method.1);
        initiator.set_identity(*credentials.private_key(), *credentials.own());
        let (waiting, message) = initiator.prepare_message_1(Some(identifier(id)?), &None)?;
        Ok((Self { waiting, id: id.to_vec() }, message.as_slice().to_vec()))
    }

    /// Verifies message 2. Returns message 3.
    pub(crate) fn finish(
        self,
        credentials: &EdhocCredentials,
        message_2: &[u8],
    ) -> Result<(Finishing, Vec<u8>), HandshakeFault> {
        let (parsed, theirs, id_cred, ead) = self.waiting.parse_message_2(&buffer(message_2)?)?;
        without_critical(ead)?;
        let peer = known(credentials, &id_cred)?.clone();
        let verified = parsed.verify_message_2(*peer.credential())?;
        let (waiting, message, _) = verified.prepare_message_3(transfer(credentials), &None)?;
        let ids = (theirs, self.id);
        Ok((Finishing { waiting, ids, peer }, message.as_slice().to_vec()))
    }
}

/// A client that has sent message 3.
pub(crate) struct Finishing {
    waiting: EdhocInitiatorWaitM4<Cryptography>,
    /// Our Sender ID, and our Recipient ID.
    ids: (ConnId, Vec<u8>),
    peer: EdhocPeer,
}

impl Finishing {
    /// The server's identifier in CBOR, which goes in front of message 3.
    pub(crate) fn server_id(&self) -> &[u8] {
        self.ids.0.as_cbor()
    }

    /// Verifies message 4 if the server has sent it. Otherwise its first answer by OSCORE shows that it has the secret.
    pub(crate) fn finish(self, message_4: &[u8]) -> Result<MadeContext, HandshakeFault> {
        let (sender_id, recipient_id) = (self.ids.0.as_slice().to_vec(), self.ids.1);
        let (secret, salt) = if message_4.is_empty() {
            let mut done = self.waiting.completed_without_message_4()?;
            export(|label, len| done.edhoc_exporter(label, &[], len))
        } else {
            let (mut done, ead) = self.waiting.process_message_4(&buffer(message_4)?)?;
            without_critical(ead)?;
            export(|label, len| done.edhoc_exporter(label, &[], len))
        };
        Ok(MadeContext { secret, salt, sender_id, recipient_id, identity: self.peer.name })
    }
}

/// The Master Secret has label 0, the Master Salt label 1 (RFC 9528 appendix A.1).
fn export(
    mut exporter: impl FnMut(u8, usize) -> [u8; MAX_BUFFER_LEN],
) -> (Zeroizing<[u8; 16]>, [u8; 8]) {
    let (mut secret, mut salt) = (Zeroizing::new([0; 16]), [0; 8]);
    let exported = Zeroizing::new(exporter(0, secret.len()));
    secret.iter_mut().zip(&*exported).for_each(|(to, from)| *to = *from);
    salt.iter_mut().zip(exporter(1, 8)).for_each(|(to, from)| *to = from);
    (secret, salt)
}

/// A server that has received message 1.
pub(crate) struct Responder {
    processed: EdhocResponderProcessedM1<Cryptography>,
    client_id: ConnId,
}

impl Responder {
    /// Reads message 1.
    pub(super) fn begin(
        crypto: Cryptography,
        credentials: &EdhocCredentials,
        message_1: &[u8],
    ) -> Result<Self, HandshakeFault> {
        let (key, own) = (*credentials.private_key(), *credentials.own());
        let responder = EdhocResponder::new(crypto, EDHOCMethod::StatStat, key, own);
        let (processed, client_id, ead) = responder.process_message_1(&buffer(message_1)?)?;
        without_critical(ead)?;
        // It becomes our Sender ID.
        if client_id.as_slice().len() > MAX_PEER_ID {
            return Err(HandshakeFault::Malformed);
        }
        Ok(Self { processed, client_id })
    }

    /// The client's identifier, from which the server's must differ.
    pub(crate) fn client_id(&self) -> &[u8] {
        self.client_id.as_slice()
    }

    /// Answers with message 2 and an identifier, which becomes the client's `kid`.
    pub(crate) fn answer(
        self,
        credentials: &EdhocCredentials,
        id: &[u8],
    ) -> Result<(WaitingResponder, Vec<u8>), HandshakeFault> {
        let id = identifier(id)?;
        let (waiting, message) =
            self.processed.prepare_message_2(transfer(credentials), Some(id), &None)?;
        let ids = (self.client_id.as_slice().to_vec(), id.as_slice().to_vec());
        Ok((WaitingResponder { waiting, ids }, message.as_slice().to_vec()))
    }
}

/// A server that has sent message 2.
pub(crate) struct WaitingResponder {
    waiting: EdhocResponderWaitM3<Cryptography>,
    /// Our Sender ID, and our Recipient ID.
    ids: (Vec<u8>, Vec<u8>),
}

impl WaitingResponder {
    /// Verifies message 3. Returns message 4 as well.
    pub(crate) fn finish(
        self,
        credentials: &EdhocCredentials,
        message_3: &[u8],
    ) -> Result<(MadeContext, Vec<u8>), HandshakeFault> {
        let (parsed, id_cred, ead) = self.waiting.parse_message_3(&buffer(message_3)?)?;
        without_critical(ead)?;
        let peer = known(credentials, &id_cred)?.clone();
        let (verified, _) = parsed.verify_message_3(*peer.credential())?;
        let (mut done, message) = verified.prepare_message_4(&None)?;
        let (secret, salt) = export(|label, len| done.edhoc_exporter(label, &[], len));
        let (sender_id, recipient_id) = self.ids;
        let identity = peer.name;
        let made = MadeContext { secret, salt, sender_id, recipient_id, identity };
        Ok((made, message.as_slice().to_vec()))
    }
}
