//! The part of a handshake in which certificates are shown and verified and keys are agreed on (RFC 5246
//! section 7.4, RFC 8422), at both sides.
//!
//! ```text
//! client                          server
//!   ClientHello + cookie   ──►
//!                          ◄──    ServerHello Certificate ServerKeyExchange [CertificateRequest]
//!                                 ServerHelloDone
//!   [Certificate] ClientKeyExchange [CertificateVerify]
//!   [CCS] Finished         ──►
//!                          ◄──    [CCS] Finished
//! ```

use super::hello::{Extensions, certificate_types};
use super::reassembly::Message;
use super::{Context, ExpectedMessage, Handshake};
use crate::certificate::{
    CertificateError, CertificateType, CertificateVerifier, CertifiedKey, Identity,
    PeerCertificate, Verified, encode_chain, parse_chain, parse_key,
};
use crate::ec::{Ephemeral, VerificationKey};
use crate::failure::Failure;
use crate::key_exchange::{self, ServerKeyExchange};
use crate::keys::Role;
use crate::message::HandshakeType;
use crate::session::SavedSession;
use crate::shared::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use sha2::{Digest, Sha256};

/// A client's side of handshakes with certificates.
#[derive(Clone)]
pub struct CertificateCredentials {
    /// Verifies the server's certificate.
    pub verifier: Arc<dyn CertificateVerifier>,
    /// The server's name or address, for which its certificate must be valid.
    pub server_name: Option<Arc<str>>,
    /// Our certificate, for servers that request one.
    pub own: Option<Arc<CertifiedKey>>,
    /// A session to resume. If the server does not know it any more, a full handshake follows.
    pub saved: Option<SavedSession>,
}

impl fmt::Debug for CertificateCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server_name, own, saved, .. } = self;
        f.debug_struct("CertificateCredentials")
            .field("server_name", server_name)
            .field("own", own)
            .field("saved", saved)
            .finish_non_exhaustive()
    }
}

/// The state of a handshake with certificates, until there is a master secret and the peer has proved
/// that it has its certificate's key.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    /// At the client.
    pub(super) credentials: Option<CertificateCredentials>,
    /// At the client: the server's name in the hello.
    pub(super) offered_name: Option<Arc<str>>,
    /// At the client: the types of certificates that it has and accepts, where they are not certificates alone.
    pub(super) client_types: Option<Vec<u8>>,
    pub(super) server_types: Option<Vec<u8>>,
    /// The types that were agreed on.
    own_type: CertificateType,
    peer_type: CertificateType,
    /// At the client: the server has requested a certificate, and accepts keys like ours.
    requested: Option<bool>,
    /// At the client: the server's public value.
    point: Vec<u8>,
    /// At the server.
    ephemeral: Option<Ephemeral>,
    /// The key in the peer's certificate.
    peer_key: Option<VerificationKey>,
}

impl Certificates {
    pub(super) fn of_client(credentials: CertificateCredentials) -> Self {
        // Addresses are not names (RFC 6066 section 3).
        let is_name = |name: &Arc<str>| name.len() <= 255 && name.parse::<IpAddr>().is_err();
        let offered_name = credentials.server_name.clone().filter(is_name);
        // RFC 7250 section 4.1: what is not offered is a certificate.
        let is_raw = |own: &Arc<CertifiedKey>| !own.has(CertificateType::X509);
        let raw = || alloc::vec![CertificateType::RawPublicKey.number()];
        let client_types = credentials.own.as_ref().filter(|own| is_raw(own)).map(|_| raw());
        let accepted = credentials.verifier.types();
        let server_types = (accepted != [CertificateType::X509])
            .then(|| accepted.iter().map(|kind| kind.number()).collect());
        Self {
            credentials: Some(credentials),
            offered_name,
            client_types,
            server_types,
            ..Self::default()
        }
    }
}

/// The contents of a Certificate message: a chain of certificates, or a public key.
enum ShownKey<'m> {
    Chain(Vec<&'m [u8]>),
    Raw(&'m [u8]),
}

impl<'m> ShownKey<'m> {
    fn parse(kind: CertificateType, body: &'m [u8]) -> Option<Self> {
        match kind {
            CertificateType::X509 => parse_chain(body).map(Self::Chain),
            CertificateType::RawPublicKey => parse_key(body).map(Self::Raw),
        }
    }

    /// The peer's own certificate or key; `None` if it has shown none.
    fn der(&self) -> Option<&'m [u8]> {
        match self {
            Self::Chain(chain) => chain.first().copied(),
            Self::Raw(key) => Some(*key).filter(|key| !key.is_empty()),
        }
    }

    fn verify(
        &self,
        verifier: &dyn CertificateVerifier,
        name: Option<&str>,
    ) -> Result<Verified, CertificateError> {
        match self {
            Self::Chain(chain) if verifier.types().contains(&CertificateType::X509) => {
                verifier.verify(chain, name)
            }
            // A server that does not know the extension shows a certificate unasked.
            Self::Chain(_) => Err(CertificateError::UnsupportedType),
            Self::Raw(key) => verifier.verify_key(key, name),
        }
    }
}

impl Handshake {
    /// The server's messages between ServerHello and ServerHelloDone.
    pub(super) fn show_certificate(
        &mut self,
        cx: &mut Context<'_>,
        own: &CertifiedKey,
        kind: CertificateType,
        requested: Option<CertificateType>,
    ) -> Option<()> {
        let ephemeral = Ephemeral::new(cx.rng)?;
        let parameters = key_exchange::parameters(&ephemeral.public());
        let signature = own.key.sign(&self.signed_hash(&parameters))?;
        self.push(HandshakeType::Certificate, own.message(kind)?, false);
        let body = key_exchange::server_key_exchange(&parameters, &signature);
        self.push(HandshakeType::ServerKeyExchange, body, false);
        if requested.is_some() {
            let body = key_exchange::certificate_request();
            self.push(HandshakeType::CertificateRequest, body, false);
            self.expected = ExpectedMessage::Certificate;
        }
        let peer_type = requested.unwrap_or_default();
        let state =
            Certificates { ephemeral: Some(ephemeral), peer_type, ..Certificates::default() };
        self.certificates = Some(state.into());
        Some(())
    }

    /// At the client: notes the types that the server has chosen, which must be offered ones.
    pub(super) fn agree_on_types(&mut self, chosen: &Extensions<'_>) -> Result<(), Failure> {
        let Some(state) = &mut self.certificates else {
            let none = chosen.client_types.is_none() && chosen.server_types.is_none();
            return if none { Ok(()) } else { Err(Failure::IllegalParameter) };
        };
        let choice = |chosen: Option<&[u8]>, offered: &Option<Vec<u8>>| match (chosen, offered) {
            (None, _) => Ok(CertificateType::X509),
            (Some([number]), Some(offered)) if offered.contains(number) => {
                certificate_types(chosen).next().ok_or(Failure::IllegalParameter)
            }
            _ => Err(Failure::IllegalParameter),
        };
        state.own_type = choice(chosen.client_types, &state.client_types)?;
        state.peer_type = choice(chosen.server_types, &state.server_types)?;
        Ok(())
    }

    /// The hash that a ServerKeyExchange signs (RFC 8422 section 5.4).
    fn signed_hash(&self, parameters: &[u8]) -> [u8; 32] {
        let hash = Sha256::new().chain_update(self.randoms.client);
        hash.chain_update(self.randoms.server).chain_update(parameters).finalize().into()
    }

    pub(super) fn on_certificate(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
    ) -> Result<bool, Failure> {
        let Some(state) = &mut self.certificates else { return Ok(false) };
        let Some(shown) = ShownKey::parse(state.peer_type, &message.body) else { return Ok(false) };
        let clients = cx.certificates.map(|ours| &ours.clients);
        let (verifier, name, required) = match &state.credentials {
            Some(server) => (Some(&server.verifier), server.server_name.as_deref(), true),
            None => {
                let verifier = clients.and_then(|clients| clients.verifier());
                (verifier, None, clients.is_some_and(|clients| clients.is_required()))
            }
        };
        match (shown.der(), verifier) {
            (Some(own), Some(verifier)) => {
                let verified = shown.verify(&**verifier, name).map_err(Failure::Certificate)?;
                let key = VerificationKey::from_der(&verified.public_key);
                let unsupported = Failure::Certificate(CertificateError::UnsupportedKey);
                state.peer_key = Some(key.ok_or(unsupported)?);
                let identity = Arc::from(verified.identity);
                let certificate =
                    PeerCertificate { identity, kind: state.peer_type, der: Arc::from(own) };
                self.identity = Identity::Certificate(Arc::new(certificate));
            }
            _ if required => return Err(Failure::Certificate(CertificateError::Missing)),
            _ => {}
        }
        self.answered(cx);
        self.note(message);
        self.expected = match self.role {
            Role::Client => ExpectedMessage::ServerKeyExchange,
            Role::Server => ExpectedMessage::ClientKeyExchange,
        };
        Ok(true)
    }

    /// At the client: the server's public value, signed with the key in its certificate.
    pub(super) fn on_signed_key_exchange(&mut self, message: &Message) -> Result<bool, Failure> {
        let Some(exchange) = ServerKeyExchange::parse(&message.body) else { return Ok(false) };
        let hash = self.signed_hash(exchange.parameters);
        let Some(state) = &mut self.certificates else { return Ok(false) };
        let key = state.peer_key.as_ref();
        if !key.is_some_and(|key| key.verifies(&hash, exchange.signature)) {
            return Err(Failure::WrongKey);
        }
        state.point = exchange.point.to_vec();
        self.note(message);
        self.expected = ExpectedMessage::ServerHelloDone;
        Ok(true)
    }

    /// At the client.
    pub(super) fn on_certificate_request(&mut self, message: &Message) -> bool {
        let Some(accepts) = key_exchange::parse_certificate_request(&message.body) else {
            return false;
        };
        let Some(state) = self.certificates.as_mut().filter(|state| state.requested.is_none())
        else {
            return false;
        };
        state.requested = Some(accepts);
        self.note(message);
        true
    }

    /// The client's messages before Finished.
    pub(super) fn answer_certificate(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        let Some(state) = self.certificates.take() else { return Err(Failure::IllegalParameter) };
        let ephemeral = Ephemeral::new(cx.rng).ok_or(Failure::IllegalParameter)?;
        let premaster = ephemeral.agree(&state.point).ok_or(Failure::IllegalParameter)?;
        let own = state.credentials.and_then(|credentials| credentials.own);
        let own = own.filter(|own| state.requested == Some(true) && own.has(state.own_type));
        if state.requested.is_some() {
            // A client without a certificate says so (RFC 5246 section 7.4.6).
            let none = || encode_chain(core::iter::empty());
            let shown = own.as_ref().and_then(|own| own.message(state.own_type));
            let body = shown.unwrap_or_else(none);
            self.push(HandshakeType::Certificate, body, false);
        }
        let body = key_exchange::client_key_exchange(&ephemeral.public());
        self.push(HandshakeType::ClientKeyExchange, body, false);
        let master = self.new_master(&premaster);
        self.install(cx, master);
        if let Some(own) = own {
            let signature = own.key.sign(&self.transcript.hash());
            let body = key_exchange::signed(&signature.ok_or(Failure::IllegalParameter)?);
            self.push(HandshakeType::CertificateVerify, body, false);
        }
        Ok(())
    }

    /// At the server.
    pub(super) fn on_public_value(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
    ) -> Result<bool, Failure> {
        let Some(point) = key_exchange::parse_client_key_exchange(&message.body) else {
            return Ok(false);
        };
        let Some(state) = &mut self.certificates else { return Ok(false) };
        let Some(ephemeral) = state.ephemeral.take() else { return Ok(false) };
        let premaster = ephemeral.agree(point).ok_or(Failure::IllegalParameter)?;
        let proves = state.peer_key.is_some();
        self.answered(cx);
        self.note(message);
        let master = self.new_master(&premaster);
        self.install(cx, master);
        self.expected =
            if proves { ExpectedMessage::CertificateVerify } else { ExpectedMessage::Finished };
        Ok(true)
    }

    /// At the server: the client proves that it has the key in its certificate.
    pub(super) fn on_certificate_verify(&mut self, message: &Message) -> Result<bool, Failure> {
        let Some(signature) = key_exchange::parse_signed(&message.body) else { return Ok(false) };
        // It signs all messages before it (RFC 5246 section 7.4.8).
        let hash = self.transcript.hash();
        let key = self.certificates.take().and_then(|state| state.peer_key);
        if !key.is_some_and(|key| key.verifies(&hash, signature)) {
            return Err(Failure::WrongKey);
        }
        self.note(message);
        self.expected = ExpectedMessage::Finished;
        Ok(true)
    }
}
