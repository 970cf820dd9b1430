//! Handshakes: the state of an association until it has keys, and shortly after. With a pre-shared key
//! (`certificates` shows the messages of the others):
//!
//! ```text
//! client                          server
//!   ClientHello            ──►
//!                          ◄──    HelloVerifyRequest        (no state: see crate::cookie)
//!   ClientHello + cookie   ──►
//!                          ◄──    ServerHello [ServerKeyExchange] ServerHelloDone
//!   ClientKeyExchange
//!   [CCS] Finished         ──►
//!                          ◄──    [CCS] Finished
//! ```
//!
//! A resumed session continues after the second ClientHello with `ServerHello [CCS] Finished` and
//! `[CCS] Finished`.

mod certificates;
mod client;
mod dispatch;
pub(crate) mod hello;
pub(crate) mod reassembly;
mod server;
mod transcript;

use crate::certificate::{Identity, ServerCertificates};
use crate::cid::OwnCid;
use crate::config::{Config, PskLookup, Timing};
use crate::failure::Failure;
use crate::flight::{Flight, FlightPath, HandshakeMessage, RoundTrip};
use crate::key_log::KeyLog;
use crate::keys::{MasterSecret, Psk, Randoms, Role};
use crate::message::{Fragment, HandshakeType};
use crate::outbox::Outbox;
use crate::protect::Protection;
use crate::session::{SavedSession, ServerSessionId, SessionCache};
use crate::suite::CipherSuite;
use crate::wire::Reader;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;
use ebbtide_core::time::{Duration, Instant};
use rand_core::CryptoRng;
use reassembly::{FragmentOutcome, Message, Reassembly};
use subtle::ConstantTimeEq;
use transcript::Transcript;

pub use certificates::CertificateCredentials;
pub use client::{ClientCredentials, Credentials};
pub(crate) use dispatch::OnMessage;

/// How long the last flight is kept for a peer that did not receive it: twice TCP's maximum segment
/// lifetime (RFC 6347 section 4.2.4).
pub(crate) const LINGER: Duration = Duration::from_secs(240);

/// The context of one step of a handshake.
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) on_message: OnMessage,
    pub(crate) rng: &'a mut dyn CryptoRng,
    pub(crate) config: &'a Config,
    pub(crate) lookup: Option<&'a mut (dyn PskLookup + Send + 'static)>,
    pub(crate) certificates: Option<&'a ServerCertificates>,
    /// At a server.
    pub(crate) cache: Option<&'a mut SessionCache>,
    pub(crate) out: &'a mut Outbox,
    pub(crate) remote: SocketAddr,
    /// The number of handshakes in progress.
    pub(crate) handshakes: usize,
    /// NSS key log lines.
    pub(crate) key_log: Option<&'a mut KeyLog>,
    pub(crate) dtls13_declined: bool,
    pub(crate) round_trips: &'a mut Vec<RoundTrip>,
    /// The keys; `None` until the handshake has derived them.
    pub(crate) protection: Option<Protection>,
}

/// The next message expected from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedMessage {
    /// At the client: ServerHello or HelloVerifyRequest.
    ServerHello,
    Certificate,
    /// At the client, with certificates.
    ServerKeyExchange,
    /// At the client: ServerHelloDone, before it with a key ServerKeyExchange, and with certificates
    /// CertificateRequest.
    ServerHelloDone,
    /// At the server.
    ClientKeyExchange,
    /// At the server, from a client with a certificate.
    CertificateVerify,
    /// The peer's Finished.
    Finished,
    /// None: both Finished messages were valid.
    Done,
}

/// The sequence numbers of messages with which a handshake begins (RFC 6347 section 4.2.2).
#[derive(Clone, Copy)]
struct MessageSequences {
    next_receive: u16,
    next_send: u16,
}

/// A handshake under way.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub(crate) struct Handshake {
    role: Role,
    expected: ExpectedMessage,
    resumed: bool,
    transcript: Transcript,
    reassembly: Reassembly,
    flight: Flight,
    timing: Timing,
    /// The number of our next handshake message.
    next_message: u16,
    /// The number of our next record of epoch 0.
    plain_sequence: u64,
    randoms: Randoms,
    suite: CipherSuite,
    extended_master_secret: bool,
    master: Option<MasterSecret>,
    own_cid: OwnCid,
    peer_cid: Vec<u8>,
    /// Whether both sides support RFC 9853.
    return_routability: bool,
    identity: Identity,
    session_id: Vec<u8>,
    /// At the client.
    psk: Option<Psk>,
    certificates: Option<Box<certificates::Certificates>>,
    saved: Option<SavedSession>,
    /// At the server: the key in use, and another one of the same identity.
    key: Option<Psk>,
    other_key: Option<Psk>,
    /// At the server: the identity is unknown, and the key is random.
    unknown_identity: bool,
    /// Encrypted records of the handshake that were not authentic.
    forgeries: u8,
    /// Encrypted records that overtook the messages from which their keys are derived.
    early: Vec<Vec<u8>>,
    linger: Option<Instant>,
}

impl Handshake {
    pub(crate) const fn role(&self) -> Role {
        self.role
    }

    pub(crate) fn is_done(&self) -> bool {
        self.expected == ExpectedMessage::Done
    }

    /// Sets the retransmission timing of later flights.
    pub(crate) const fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    pub(crate) const fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// Whether a client's last flight has had no answer in time: its server may have lost the handshake.
    pub(crate) fn is_unanswered(&self) -> bool {
        let waits = self.role == Role::Client && self.expected == ExpectedMessage::Finished;
        waits && !self.resumed && self.flight.is_repeated()
    }

    pub(crate) const fn return_routability(&self) -> bool {
        self.return_routability
    }

    pub(crate) const fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) const fn own_cid(&self) -> OwnCid {
        self.own_cid
    }

    pub(crate) const fn client_random(&self) -> &[u8; 32] {
        &self.randoms.client
    }

    /// The server's ID of the session, if it allows the session to be resumed.
    pub(crate) fn server_session_id(&self) -> Option<ServerSessionId> {
        self.session_id.as_slice().try_into().ok()
    }

    /// The secrets with which a client resumes the session.
    pub(crate) fn saved_session(&self) -> Option<SavedSession> {
        // Without an extended master secret a session must not be resumed (RFC 7627 section 5.3).
        let usable = self.extended_master_secret && !self.session_id.is_empty();
        let master = self.master.clone().filter(|_| usable)?;
        Some(SavedSession { id: self.session_id.clone(), suite: self.suite, master })
    }

    /// The next instant at which to call [`Self::handle_timeout`].
    pub(crate) fn due(&self) -> Option<Instant> {
        if self.is_done() { self.linger } else { self.flight.due() }
    }

    /// Retransmits the flight, or gives up.
    pub(crate) fn handle_timeout(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        let timing = self.timing;
        let (flight, mut path) = self.path(cx.out, cx.remote, cx.config.mtu, &mut cx.protection);
        if flight.expire(cx.now, &timing, &mut path) { Ok(()) } else { Err(Failure::NoAnswer) }
    }

    /// Handles the handshake messages of a record. Malformed and unexpected messages are dropped
    /// silently, because they may be forged (RFC 6347 section 4.1.2.7).
    pub(crate) fn handle_record(
        &mut self,
        cx: &mut Context<'_>,
        body: &[u8],
        encrypted: bool,
    ) -> Result<(), Failure> {
        let mut reader = Reader::new(body);
        let mut repeated = false;
        while !reader.is_empty() {
            let Some(fragment) = Fragment::parse(&mut reader) else { break };
            // Finished is the only encrypted message.
            if (fragment.kind == HandshakeType::Finished) != encrypted {
                continue;
            }
            if self.reassembly.add(&fragment) == FragmentOutcome::Repeated {
                repeated |= self.ends_a_flight(fragment.kind);
            }
        }
        while let Some(message) = self.reassembly.take() {
            if !(cx.on_message)(self, cx, &message)? {
                break;
            }
            self.reassembly.advance();
        }
        if repeated {
            self.repeat(cx);
        }
        Ok(())
    }

    /// The peer retransmits the flight that ours answers.
    pub(crate) fn repeat(&mut self, cx: &mut Context<'_>) {
        let (flight, mut path) = self.path(cx.out, cx.remote, cx.config.mtu, &mut cx.protection);
        flight.repeat(cx.now, cx.handshakes, &mut path);
    }

    /// Whether a repeated message of this type shows that the peer retransmits the flight before
    /// ours.
    fn ends_a_flight(&self, kind: HandshakeType) -> bool {
        matches!(
            (self.role, self.expected, kind),
            (Role::Client, ExpectedMessage::Finished, HandshakeType::ServerHelloDone)
                | (
                    Role::Server,
                    ExpectedMessage::Certificate
                        | ExpectedMessage::ClientKeyExchange
                        | ExpectedMessage::CertificateVerify
                        | ExpectedMessage::Finished,
                    HandshakeType::ClientHello
                )
                | (_, ExpectedMessage::Done, HandshakeType::Finished)
        )
    }

    /// An encrypted handshake record was not authentic. One such record may be an accident or a
    /// forgery; if the peer retransmits it, the keys differ.
    pub(crate) fn note_forgery(&mut self) -> Result<(), Failure> {
        self.forgeries = self.forgeries.saturating_add(1);
        match self.expected {
            ExpectedMessage::Finished if self.forgeries > 1 && self.unknown_identity => {
                Err(Failure::UnknownIdentity)
            }
            ExpectedMessage::Finished if self.forgeries > 1 => Err(Failure::WrongKey),
            _ => Ok(()),
        }
    }

    /// Keeps an encrypted record until there are keys.
    pub(crate) fn keep_early(&mut self, record: &[u8]) {
        const MAX_RECORDS: usize = 2;
        const MAX_BYTES: usize = 512;
        if self.early.len() < MAX_RECORDS && record.len() <= MAX_BYTES {
            self.early.push(record.to_vec());
        }
    }

    pub(crate) fn take_early(&mut self) -> Vec<Vec<u8>> {
        core::mem::take(&mut self.early)
    }

    /// An alert before there are keys.
    pub(crate) fn send_alert(&mut self, out: &mut Outbox, remote: SocketAddr, alert: [u8; 2]) {
        let mut datagram = Vec::new();
        let mut path = FlightPath {
            out,
            remote,
            mtu: usize::MAX,
            plain_sequence: &mut self.plain_sequence,
            protection: None,
        };
        path.plain(&mut datagram, crate::record::ContentType::Alert, &alert);
        out.push(remote, &datagram);
    }

    fn on_finished(&mut self, cx: &mut Context<'_>, message: &Message) -> Result<bool, Failure> {
        let Some(master) = &self.master else { return Ok(false) };
        let sender = match self.role {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        };
        let expected = master.finished(sender, &self.transcript.hash());
        if !bool::from(expected.as_slice().ct_eq(&message.body)) {
            return Err(Failure::WrongKey);
        }
        self.note(message);
        self.answered(cx);
        self.expected = ExpectedMessage::Done;
        // In a full handshake the server sends the last flight, in a resumed one the client does.
        if (self.role == Role::Server) != self.resumed {
            self.flight.clear();
            self.finish_flight();
            self.linger = Some(cx.now + LINGER);
            self.start(cx, None);
        }
        Ok(true)
    }

    /// Adds our messages and the peer's to the transcript.
    fn note(&mut self, message: &Message) {
        self.transcript.add(message.kind, message.sequence, &message.body);
    }

    /// Adds a message to the flight and to the transcript.
    fn push(&mut self, kind: HandshakeType, body: Vec<u8>, encrypted: bool) {
        self.transcript.add(kind, self.next_message, &body);
        self.flight.message(HandshakeMessage {
            kind,
            sequence: self.next_message,
            body,
            encrypted,
        });
        self.next_message = self.next_message.saturating_add(1);
    }

    /// Adds ChangeCipherSpec and Finished to the flight.
    fn finish_flight(&mut self) {
        let Some(master) = &self.master else { return };
        let data = master.finished(self.role, &self.transcript.hash());
        self.flight.change_cipher_spec();
        self.push(HandshakeType::Finished, data.to_vec(), true);
    }

    fn start(&mut self, cx: &mut Context<'_>, timing: Option<Timing>) {
        let (flight, mut path) = self.path(cx.out, cx.remote, cx.config.mtu, &mut cx.protection);
        flight.start(cx.now, timing, &mut path);
    }

    fn path<'p>(
        &'p mut self,
        out: &'p mut Outbox,
        remote: SocketAddr,
        mtu: usize,
        protection: &'p mut Option<Protection>,
    ) -> (&'p mut Flight, FlightPath<'p>) {
        let plain_sequence = &mut self.plain_sequence;
        let protection = protection.as_mut();
        (&mut self.flight, FlightPath { out, remote, mtu, plain_sequence, protection })
    }

    /// Our flight was answered; reports the round trip.
    fn answered(&mut self, cx: &mut Context<'_>) {
        cx.round_trips.extend(self.flight.answered(cx.now));
    }

    /// Derives the keys of both directions, once there is a master secret.
    fn install(&mut self, cx: &mut Context<'_>, master: MasterSecret) {
        let keys = master.keys(self.role, &self.randoms);
        cx.protection = Some(Protection::new(self.suite, keys, self.own_cid, &self.peer_cid));
        if let Some(log) = &mut cx.key_log {
            log(&crate::key_log::line(&self.randoms.client, &master));
        }
        self.master = Some(master);
    }

    fn new(
        role: Role,
        timing: Timing,
        randoms: Randoms,
        sequences: MessageSequences,
        own_cid: OwnCid,
    ) -> Box<Self> {
        Box::new(Self {
            role,
            expected: match role {
                Role::Client => ExpectedMessage::ServerHello,
                Role::Server => ExpectedMessage::ClientKeyExchange,
            },
            resumed: false,
            transcript: Transcript::default(),
            reassembly: Reassembly::new(sequences.next_receive),
            flight: Flight::default(),
            timing,
            next_message: sequences.next_send,
            plain_sequence: 0,
            randoms,
            suite: CipherSuite::PskAes128Ccm8,
            extended_master_secret: false,
            master: None,
            own_cid,
            peer_cid: Vec::new(),
            return_routability: false,
            identity: Identity::none(),
            session_id: Vec::new(),
            psk: None,
            certificates: None,
            saved: None,
            unknown_identity: false,
            key: None,
            other_key: None,
            forgeries: 0,
            early: Vec::new(),
            linger: None,
        })
    }
}
