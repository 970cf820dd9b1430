//! The server's side of a handshake, from a ClientHello with a correct cookie on.

use super::hello::{ClientHello, Extensions, ReceivedHello, ServerHello};
use super::reassembly::Message;
use super::{Context, ExpectedMessage, Handshake, MessageSequences};
use crate::certificate::{CertificateError, CertificateType, Identity};
use crate::cid::OwnCid;
use crate::failure::Failure;
use crate::keys::{Psk, Randoms, Role};
use crate::message::{HandshakeType, parse_identity};
use crate::session::Resumable;
use crate::shared::Arc;
use crate::suite::CipherSuite;
use alloc::boxed::Box;

impl Handshake {
    /// Answers a ClientHello whose cookie was correct.
    pub(crate) fn accept(
        cx: &mut Context<'_>,
        received: &ReceivedHello<'_>,
        own_cid: OwnCid,
    ) -> Result<Box<Self>, Failure> {
        let ReceivedHello { fragment, hello, record_sequence } = received;
        let own = cx.certificates.and_then(|certificates| (certificates.own)());
        let shown = own.as_ref().and_then(|own| hello.accepts().find(|kind| own.has(*kind)));
        let suite = hello.choose(suites(cx, shown.is_some())).ok_or({
            let has_other_type = own.is_some() && shown.is_none() && hello.is_ecdsa(cx.config);
            match has_other_type {
                true => Failure::Certificate(CertificateError::UnsupportedType),
                false => Failure::NoCommonSuite,
            }
        })?;
        let mut random = [0; 32];
        cx.rng.fill_bytes(&mut random);
        // A client whose hello offers DTLS 1.3, but in a form that cannot be served, would refuse the mark.
        let declined = hello.extensions.offers_dtls13 && cx.dtls13_declined;
        if cx.config.serves_dtls13 && !declined {
            random[24..].copy_from_slice(b"DOWNGRD\x01");
        }
        // Our messages continue after the HelloVerifyRequest, which had the first hello's number.
        let sequences = MessageSequences {
            next_receive: fragment.sequence.saturating_add(1),
            next_send: fragment.sequence,
        };
        let randoms = Randoms { client: hello.random, server: random };
        let mut handshake =
            Self::new(Role::Server, cx.config.timing, randoms, sequences, OwnCid::EMPTY);
        handshake.suite = suite;
        handshake.plain_sequence = *record_sequence;
        handshake.transcript.add(HandshakeType::ClientHello, fragment.sequence, fragment.bytes);
        handshake.extended_master_secret = hello.extensions.extended_master_secret;
        let peer_cid = hello.extensions.connection_id.filter(|_| cx.config.cid_length.is_some());
        if let Some(cid) = peer_cid {
            handshake.peer_cid = cid.to_vec();
            handshake.own_cid = own_cid;
        }
        handshake.return_routability = hello.extensions.return_routability
            && peer_cid.is_some()
            && cx.config.return_routability;

        let known = handshake.resumable(cx, hello);
        let allows_resumption = cx.cache.as_ref().is_some_and(|cache| cache.is_enabled());
        if known.is_none() && handshake.extended_master_secret && allows_resumption {
            let mut id = [0; 16];
            cx.rng.fill_bytes(&mut id);
            handshake.session_id = id.to_vec();
        }
        let shows = known.is_none() && suite.has_certificates();
        let requested = if shows { requested(cx, hello)? } else { None };
        let number = |kind: Option<CertificateType>| kind.map(|kind| [kind.number()]);
        let (client_type, server_type) = (number(requested), number(shown.filter(|_| shows)));
        let answer = ServerHello {
            random,
            session_id: &handshake.session_id,
            suite: handshake.suite.number(),
            extensions: Extensions {
                extended_master_secret: handshake.extended_master_secret,
                connection_id: peer_cid.map(|_| own_cid.as_slice()),
                return_routability: handshake.return_routability,
                renegotiation_info: hello.extensions.renegotiation_info,
                point_formats: hello.extensions.point_formats.filter(|_| suite.has_certificates()),
                client_types: hello
                    .extensions
                    .client_types
                    .and(client_type.as_ref())
                    .map(|kind| &kind[..]),
                server_types: hello
                    .extensions
                    .server_types
                    .and(server_type.as_ref())
                    .map(|kind| &kind[..]),
                ..Extensions::default()
            },
        };
        let answer = answer.encode();
        handshake.push(HandshakeType::ServerHello, answer, false);
        if let Some(master) = known {
            handshake.resumed = true;
            handshake.expected = ExpectedMessage::Finished;
            handshake.install(cx, master);
            handshake.finish_flight();
        } else {
            if let Some((own, kind)) = own.zip(shown).filter(|_| shows) {
                let shown = handshake.show_certificate(cx, &own, kind, requested);
                shown.ok_or(Failure::NoCommonSuite)?;
            }
            // With a key there is no ServerKeyExchange, since there is no hint to send (RFC 4279 section 2).
            handshake.push(HandshakeType::ServerHelloDone, alloc::vec::Vec::new(), false);
        }
        let timing = handshake.timing;
        handshake.start(cx, Some(timing));
        Ok(handshake)
    }

    /// Whether the answer to a hello needs a signature.
    pub(crate) fn needs_signature(cx: &mut Context<'_>, hello: &ClientHello<'_>) -> bool {
        let own = cx.certificates.and_then(|certificates| (certificates.own)());
        let shown = own.and_then(|own| hello.accepts().find(|kind| own.has(*kind)));
        let ours = suites(cx, shown.is_some());
        hello.choose(ours).is_some_and(CipherSuite::has_certificates) && known(cx, hello).is_none()
    }

    /// The master secret of the session that the client wants to resume, if that is allowed.
    fn resumable(
        &mut self,
        cx: &mut Context<'_>,
        hello: &ClientHello<'_>,
    ) -> Option<crate::keys::MasterSecret> {
        let session = known(cx, hello)?;
        self.suite = session.suite;
        self.identity = session.identity.clone();
        self.session_id = hello.session_id.to_vec();
        Some(session.master.clone())
    }

    pub(super) fn on_client_key_exchange(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
    ) -> Result<bool, Failure> {
        if self.suite.has_certificates() {
            return self.on_public_value(cx, message);
        }
        let Some(identity) = parse_identity(&message.body) else { return Ok(false) };
        self.identity = Identity::Key(Arc::from(identity));
        // An unknown identity gets a random key. Its handshake fails in the same way and at the
        // same moment as one with a wrong key (RFC 4279 section 2).
        let mut nobody = [0; 16];
        cx.rng.fill_bytes(&mut nobody);
        let found = cx.lookup.as_mut().and_then(|lookup| lookup.key(identity));
        self.unknown_identity = found.is_none();
        self.other_key = match found {
            Some(_) => cx.lookup.as_mut().and_then(|lookup| lookup.other_key(identity)),
            None => None,
        };
        let psk = found.unwrap_or_else(|| Psk::of_nobody(nobody));
        self.answered(cx);
        self.note(message);
        let master = self.new_master(&psk.premaster());
        self.install(cx, master);
        self.key = Some(psk);
        self.expected = ExpectedMessage::Finished;
        Ok(true)
    }

    /// The client's Finished, after which the session can be resumed.
    pub(super) fn on_client_finished(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
    ) -> Result<bool, Failure> {
        let is_valid = self.on_finished(cx, message)?;
        if is_valid
            && !self.resumed
            && let (Some(id), Some(master)) = (self.server_session_id(), self.master.clone())
            && let Some(cache) = &mut cx.cache
        {
            let (suite, identity) = (self.suite, self.identity.clone());
            cache.insert(id, Resumable { suite, master, identity, made: cx.now });
        }
        Ok(is_valid)
    }

    /// Whether the client may have another key than the one that is in use.
    pub(crate) const fn has_other_key(&self) -> bool {
        self.other_key.is_some() && matches!(self.expected, ExpectedMessage::Finished)
    }

    /// Uses the other key of the identity. A second call returns to the first one.
    pub(crate) fn switch_key(&mut self, cx: &mut Context<'_>) {
        core::mem::swap(&mut self.key, &mut self.other_key);
        // Nothing was noted since the ClientKeyExchange, so the transcript is the one that the secret depends on.
        if let Some(premaster) = self.key.as_ref().map(Psk::premaster) {
            let master = self.new_master(&premaster);
            self.install(cx, master);
        }
    }
}

/// The type of the certificate that is requested of a client, if one is (RFC 7250 section 4.2).
fn requested(
    cx: &Context<'_>,
    hello: &ClientHello<'_>,
) -> Result<Option<CertificateType>, Failure> {
    let Some(clients) = cx.certificates.map(|ours| &ours.clients) else { return Ok(None) };
    let Some(verifier) = clients.verifier() else { return Ok(None) };
    let common = hello.has().find(|kind| verifier.types().contains(kind));
    match common {
        None if clients.is_required() => {
            Err(Failure::Certificate(CertificateError::UnsupportedType))
        }
        common => Ok(common),
    }
}

/// Our suites for which there is what they need.
fn suites(cx: &Context<'_>, certified: bool) -> impl Iterator<Item = CipherSuite> {
    let keyed = cx.lookup.is_some();
    let usable =
        move |suite: &CipherSuite| if suite.has_certificates() { certified } else { keyed };
    cx.config.suites.iter().copied().filter(usable)
}

/// The session that the client wants to resume, if that is allowed: the session and its identity are
/// known, and the client offers the same parameters.
fn known<'c>(cx: &'c mut Context<'_>, hello: &ClientHello<'_>) -> Option<&'c Resumable> {
    let session = cx.cache.as_ref()?.get(cx.now, hello.session_id)?;
    // Kept sessions have an extended master secret; a hello without it begins a new one
    // (RFC 7627 section 5.3).
    if !hello.extensions.extended_master_secret
        || !hello.offers(session.suite)
        || !cx.config.suites.contains(&session.suite)
    {
        return None;
    }
    if session.suite.has_certificates() {
        let clients = &cx.certificates?.clients;
        match session.identity.certificate() {
            None if clients.is_required() => return None,
            // A key may have been removed since. The authorities of a certificate are not asked again: that takes the
            // chain, and the time that a resumption saves.
            Some(shown)
                if shown.kind == CertificateType::RawPublicKey && !clients.still_accepts(shown) =>
            {
                return None;
            }
            _ => {}
        }
    } else {
        cx.lookup.as_mut()?.key(session.identity.name())?;
    }
    Some(session)
}
