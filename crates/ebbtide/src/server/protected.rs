//! Requests that OSCORE protects (RFC 8613): verified before the session's stages, which see the requests that they were.

use super::carrier::Carrier;
use super::service::Service;
use crate::message::Response;
use crate::net::peer::PeerInfo;
use crate::net::shared::{ArrivedRequest, Shared};
use crate::net::trace;
use crate::oscore::{ClientContext, OscoreContexts};
use crate::refusals::Reason;
use ebbtide_core::PeerId;
use ebbtide_core::session::server::{Outgoing, RequestSlot};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Message, OptionNumber};
use std::sync::Arc;

/// The answer to a request that is not protected.
pub(super) fn oscore_is_required() -> Response {
    Response::error(Code::UNAUTHORIZED, "OSCORE is required")
}

/// RFC 7252 section 5.4.1: the option is critical.
fn edhoc_is_unknown() -> Response {
    Response::error(Code::BAD_OPTION, "option 21")
}

impl Service {
    /// Whether a request says that it is protected.
    pub(super) fn claims_protection(message: &Message<'_>) -> bool {
        [OptionNumber::OSCORE, OptionNumber::EDHOC]
            .into_iter()
            .any(|number| message.option(number).is_some())
    }

    /// Answers a request with an OSCORE option, or one without it where it is required.
    pub(super) fn serve_protected(
        &self,
        shared: &Arc<Shared>,
        now: Instant,
        request: &ArrivedRequest<'_>,
    ) {
        let &ArrivedRequest { incoming, message, from, to, .. } = request;
        let (local, sizes) = (shared.reply_from(to), self.session().datagram_sizes());
        let group = incoming.is_to_group();
        let open = |contexts: &OscoreContexts| {
            let joined = message.option(OptionNumber::EDHOC).is_some();
            let separated = match joined {
                true => Some(self.complete_handshake(contexts, incoming.remote, &message)?),
                false => None,
            };
            // It was written by an encoder of messages.
            let separated = separated.as_deref().and_then(|bytes| Message::parse(bytes).ok());
            let opened = contexts.open(separated.as_ref().unwrap_or(&message));
            opened.map_err(|refusal| Response::error(refusal.code(), refusal.diagnostic()))
        };
        let opened = match &self.config().oscore {
            // The messages of a group have another protocol.
            _ if group => return,
            Some(contexts) if Self::claims_protection(&message) => open(contexts),
            _ => Err(oscore_is_required()),
        };
        let mut place = RequestSlot::new();
        let opened = match opened {
            Ok(opened) => opened,
            Err(refusal) => {
                let received =
                    place.datagram(incoming, message, sizes, shared.number, local, group);
                self.refused(now, Reason::Oscore, incoming.remote);
                // RFC 8613 section 8.2: Max-Age 0 keeps caches from it.
                let refusal = received.refuse(refusal.max_age(0));
                return self.send(shared, now, Outgoing::One(refusal));
            }
        };
        // It was written by an encoder of messages.
        let Ok(plain) = Message::parse(&opened.plain) else { return };
        let received = place.datagram(incoming, plain, sizes, shared.number, local, group);
        let received = received.secured(opened.request);
        if !opened.is_new {
            let is_fresh = self.session().is_fresh(now, &received);
            let accepted = |contexts: &OscoreContexts| contexts.accept(opened.request);
            if !is_fresh || !self.config().oscore.as_ref().is_some_and(accepted) {
                let challenge = self.session().challenge_received(now, &received);
                return self.send(shared, now, Outgoing::One(challenge));
            }
        }
        // Only now: what anyone can send takes no place, and a challenged request is a new one when it comes with its Echo.
        shared.lock().endpoint.remember_verified(now, &incoming);
        let code = plain.code();
        let q_block = |number| matches!(number, OptionNumber::Q_BLOCK1 | OptionNumber::Q_BLOCK2);
        let unknown = plain.body().first_critical_unless(|number| {
            number.is_known_in(code) || q_block(number) || number == OptionNumber::OSCORE
        });
        if let Some(number) = unknown {
            let refusal = Response::error(Code::BAD_OPTION, format!("option {}", number.0));
            return self.send(shared, now, Outgoing::One(received.refuse(refusal)));
        }
        let span = trace::serve(from, &plain);
        span.in_scope(|| self.process(shared, now, received, &span))
    }

    /// The protected request in a request that begins with message 3 of EDHOC (RFC 9668).
    #[cfg(feature = "edhoc")]
    fn complete_handshake(
        &self,
        contexts: &OscoreContexts,
        client: PeerId,
        message: &Message<'_>,
    ) -> Result<Vec<u8>, Response> {
        let Some(edhoc) = &self.config().edhoc else { return Err(edhoc_is_unknown()) };
        edhoc.complete(contexts, client, message).map_err(crate::edhoc::refusal)
    }

    #[cfg(not(feature = "edhoc"))]
    #[expect(clippy::unused_self, reason = "that with EDHOC needs it")]
    fn complete_handshake(
        &self,
        _: &OscoreContexts,
        _: PeerId,
        _: &Message<'_>,
    ) -> Result<Vec<u8>, Response> {
        Err(edhoc_is_unknown())
    }

    /// Answers a message of EDHOC.
    #[cfg(feature = "edhoc")]
    pub(super) fn shake_hands(
        &self,
        edhoc: &crate::edhoc::Edhoc,
        shared: &Arc<Shared>,
        now: Instant,
        request: &ArrivedRequest<'_>,
    ) {
        let &ArrivedRequest { incoming, message, to, vouched, .. } = request;
        let (local, sizes) = (shared.reply_from(to), self.session().datagram_sizes());
        let mut place = RequestSlot::new();
        let received = place.datagram(incoming, message, sizes, shared.number, local, false);
        if !vouched {
            let challenge = self.session().challenge(now, &received);
            return self.send(shared, now, Outgoing::One(challenge));
        }
        if edhoc.is_pressed() && !self.session().is_fresh(now, &received) {
            let challenge = self.session().challenge_received(now, &received);
            return self.send(shared, now, Outgoing::One(challenge));
        }
        let answer = match &self.config().oscore {
            Some(contexts) => edhoc.answer(contexts, incoming.remote, message.payload()),
            None => oscore_is_required(),
        };
        self.send(shared, now, Outgoing::One(received.refuse(answer)));
    }

    /// The peer that sent a request, and the context that protected it.
    pub(super) fn sender<C: Carrier>(
        &self,
        carrier: &C,
        remote: PeerId,
        message: &Message<'_>,
    ) -> (Option<PeerInfo>, Option<ClientContext>) {
        let info = carrier.peer(remote);
        let contexts = self.config().oscore.as_ref();
        let Some(request) = contexts.and_then(|contexts| contexts.request(message)) else {
            return (info, None);
        };
        let security = contexts.map(|contexts| contexts.for_peer(request));
        let identity = security.as_ref().and_then(ClientContext::identity);
        let info = info.unwrap_or_else(|| PeerInfo::unproved(remote));
        (Some(PeerInfo { identity, ..info }), security)
    }
}
