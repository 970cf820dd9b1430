//! The client's side of a handshake.

use super::certificates::{CertificateCredentials, Certificates};
use super::hello::{Offer, ServerHello, parse_verify_request};
use super::reassembly::Message;
use super::{Context, ExpectedMessage, Handshake, MessageSequences};
use crate::certificate::Identity;
use crate::cid::OwnCid;
use crate::config::{Config, Timing};
use crate::failure::Failure;
use crate::keys::{MasterSecret, Psk, Randoms, Role};
use crate::message::{HandshakeType, psk_exchange};
use crate::record::DTLS_1_2;
use crate::session::SavedSession;
use crate::shared::Arc;
use crate::suite::CipherSuite;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// A client's credentials: its identity and key, and an earlier session if there is one to resume.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The identity by which the server finds the key, at most 128 bytes.
    pub identity: Arc<[u8]>,
    /// The key.
    pub psk: Psk,
    /// A session to resume. If the server does not know it any more, a full handshake follows.
    pub saved: Option<SavedSession>,
}

impl Credentials {
    /// Credentials with an identity and its key, without an earlier session.
    #[must_use]
    pub fn new(identity: impl AsRef<[u8]>, psk: Psk) -> Self {
        Self { identity: Arc::from(identity.as_ref()), psk, saved: None }
    }
}

/// How a client authenticates itself and its server.
#[derive(Clone, Debug)]
pub enum ClientCredentials {
    /// By a pre-shared key.
    Key(Credentials),
    /// By certificates.
    Certificate(CertificateCredentials),
}

impl From<Credentials> for ClientCredentials {
    fn from(credentials: Credentials) -> Self {
        Self::Key(credentials)
    }
}

impl From<CertificateCredentials> for ClientCredentials {
    fn from(credentials: CertificateCredentials) -> Self {
        Self::Certificate(credentials)
    }
}

impl Handshake {
    /// Sends the first ClientHello.
    pub(crate) fn connect(
        cx: &mut Context<'_>,
        credentials: ClientCredentials,
        timing: Timing,
        own_cid: OwnCid,
    ) -> Box<Self> {
        let mut random = [0; 32];
        cx.rng.fill_bytes(&mut random);
        let randoms = Randoms { client: random, server: [0; 32] };
        let sequences = MessageSequences { next_receive: 0, next_send: 0 };
        let mut handshake = Self::new(Role::Client, timing, randoms, sequences, own_cid);
        let saved = match credentials {
            ClientCredentials::Key(credentials) => {
                handshake.identity = Identity::Key(credentials.identity);
                handshake.psk = Some(credentials.psk);
                credentials.saved
            }
            ClientCredentials::Certificate(mut credentials) => {
                let saved = credentials.saved.take();
                handshake.certificates = Some(Certificates::of_client(credentials).into());
                saved
            }
        };
        handshake.saved = saved.filter(|saved| handshake.offers(cx.config, saved.suite));
        handshake.say_hello(cx, &[]);
        handshake
    }

    /// Whether a client offers this suite.
    fn offers(&self, config: &Config, suite: CipherSuite) -> bool {
        let with_key = self.psk.is_some();
        config.suites.contains(&suite) && suite.has_certificates() != with_key
    }

    fn say_hello(&mut self, cx: &mut Context<'_>, cookie: &[u8]) {
        let config: &Config = cx.config;
        let suites: Vec<CipherSuite> =
            config.suites.iter().copied().filter(|suite| self.offers(config, *suite)).collect();
        let certificates = self.certificates.as_ref();
        let offer = Offer {
            random: self.randoms.client,
            session_id: self.saved.as_ref().map_or(&[], |saved| &saved.id),
            suites: &suites,
            server_name: certificates.and_then(|state| state.offered_name.as_deref()),
            connection_id: config.cid_length.map(|_| self.own_cid.as_slice()),
            return_routability: config.cid_length.is_some() && config.return_routability,
            client_types: certificates.and_then(|state| state.client_types.as_deref()),
            server_types: certificates.and_then(|state| state.server_types.as_deref()),
        };
        let body = offer.encode(cookie);
        // The transcript begins with the hello that is not answered by a HelloVerifyRequest.
        self.transcript = super::Transcript::default();
        self.flight.clear();
        self.push(HandshakeType::ClientHello, body, false);
        self.start(cx, Some(self.timing));
    }

    pub(super) fn on_verify_request(&mut self, cx: &mut Context<'_>, message: &Message) -> bool {
        let Some(cookie) = parse_verify_request(&message.body) else { return false };
        // A second one is answered, too, since its cookie may belong to a newer key, but no
        // further ones.
        if message.sequence > 2 {
            return false;
        }
        self.answered(cx);
        self.say_hello(cx, cookie);
        true
    }

    pub(super) fn on_server_hello(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
    ) -> Result<bool, Failure> {
        let Some((version, hello)) = ServerHello::parse(&message.body) else { return Ok(false) };
        if version != DTLS_1_2 {
            return Err(Failure::NoCommonVersion);
        }
        let suite = CipherSuite::from_number(hello.suite);
        let suite = suite.filter(|suite| self.offers(cx.config, *suite));
        self.suite = suite.ok_or(Failure::IllegalParameter)?;
        let extensions = hello.extensions;
        // The server must not send extensions that were not requested (RFC 5246 section 7.4.1.4).
        let offered_cid = cx.config.cid_length.is_some();
        let offered_check = offered_cid && cx.config.return_routability;
        if extensions.unknown
            || extensions.connection_id.is_some() && !offered_cid
            || extensions.return_routability && !offered_check
        {
            return Err(Failure::IllegalParameter);
        }
        self.agree_on_types(&extensions)?;
        self.randoms.server = hello.random;
        self.extended_master_secret = extensions.extended_master_secret;
        match extensions.connection_id {
            Some(cid) => self.peer_cid = cid.to_vec(),
            None => self.own_cid = OwnCid::EMPTY,
        }
        self.return_routability = extensions.return_routability;
        self.answered(cx);
        self.note(message);
        let saved = self.saved.take().filter(|saved| saved.id == hello.session_id);
        self.session_id = hello.session_id.to_vec();
        if let Some(saved) = saved {
            // RFC 7627 section 5.3, RFC 5246 section 7.4.1.3.
            if !self.extended_master_secret || saved.suite != self.suite {
                return Err(Failure::IllegalParameter);
            }
            self.resumed = true;
            self.install(cx, saved.master);
            self.expected = ExpectedMessage::Finished;
        } else if self.suite.has_certificates() {
            self.expected = ExpectedMessage::Certificate;
        } else {
            self.expected = ExpectedMessage::ServerHelloDone;
        }
        Ok(true)
    }

    pub(super) fn on_server_hello_done(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
        answer: impl FnOnce(&mut Self, &mut Context<'_>) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        if !message.body.is_empty() {
            return Ok(false);
        }
        self.note(message);
        self.flight.clear();
        answer(self, cx)?;
        self.finish_flight();
        self.start(cx, Some(self.timing));
        self.expected = ExpectedMessage::Finished;
        Ok(true)
    }

    /// The messages before Finished of a client with a key.
    pub(super) fn answer_with_key(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        let Some(psk) = self.psk.take() else { return Err(Failure::IllegalParameter) };
        let identity: Vec<u8> = psk_exchange(self.identity.name());
        self.push(HandshakeType::ClientKeyExchange, identity, false);
        let master = self.new_master(&psk.premaster());
        self.install(cx, master);
        Ok(())
    }

    /// The master secret of a full handshake, after the ClientKeyExchange was added to the
    /// transcript.
    pub(super) fn new_master(&self, premaster: &[u8]) -> MasterSecret {
        if self.extended_master_secret {
            MasterSecret::extended(premaster, &self.transcript.hash())
        } else {
            MasterSecret::classic(premaster, &self.randoms)
        }
    }
}
