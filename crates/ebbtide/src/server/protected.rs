//! Requests that OSCORE protects (RFC 8613): verified before the session's stages, which see the
//! requests that they were.

use super::carrier::Carrier;
use super::inner::Service;
use crate::config::AllSettings;
use crate::message::Response;
use crate::net::beside::served;
use crate::net::clock::secret_bytes;
use crate::net::peer::PeerInfo;
use crate::net::shared::{ArrivedRequest, Shared};
use crate::net::trace;
use crate::oscore::{
    ClientContext, MAX_PROTECTED, OscoreContexts, Unopened, VerifiedRequest, with_buffer,
};
use crate::refusals::Reason;
use crate::stream::Link;
use ebbtide_core::PeerId;
use ebbtide_core::session::server::{Outgoing, Received, RequestSlot};
use ebbtide_core::session::{BlockSizes, Finished, SecuredRequest};
use ebbtide_core::stream::Incoming;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Message, OptionNumber};
use std::sync::Arc;
use tracing::Span;

/// The answer to a request that is not protected.
pub(super) fn oscore_is_required() -> Response {
    Response::error(Code::UNAUTHORIZED, "OSCORE is required")
}

/// RFC 7252 section 5.4.1: the option is critical.
fn edhoc_is_unknown() -> Response {
    Response::error(Code::BAD_OPTION, "option 21")
}

/// A verified request.
struct Opened<'b> {
    /// The request that it would have been without OSCORE.
    plain: Message<'b>,
    request: SecuredRequest,
    /// The context that protects it.
    context: ClientContext,
    /// Whether it is known not to be a copy of a request from before a restart.
    is_new: bool,
}

impl Service {
    /// Whether a request says that it is protected.
    pub(super) fn claims_protection(&self, message: &Message<'_>) -> bool {
        let has = |number| message.option(number).is_some();
        // One for a proxy is for the server that it names.
        (has(OptionNumber::OSCORE) || has(OptionNumber::EDHOC))
            && self.inner.router.forward_route(message).is_none()
    }

    /// Answers a datagram with an OSCORE option, or one without it where it is required.
    pub(super) fn serve_protected(
        &self,
        shared: &Arc<Shared>,
        now: Instant,
        request: &ArrivedRequest<'_>,
    ) {
        let &ArrivedRequest { ref incoming, message, from, to, .. } = request;
        let (local, sizes) = (shared.reply_from(to), self.session().datagram_sizes());
        let group = incoming.is_to_group();
        if group {
            // The messages of a group have another protocol.
            return;
        }
        if message.option(OptionNumber::EDHOC).is_none() {
            // One that ends a handshake is part of that, not other work.
            served(now);
        }
        with_buffer(2 * message.as_bytes().len(), |buffer| {
            let mut place = RequestSlot::new();
            let opened = self.open(incoming.remote, &message, buffer);
            let message = opened.as_ref().map_or(message, |opened| opened.plain);
            let incoming = incoming.clone();
            let received = place.datagram(incoming, message, sizes, shared.number, local, group);
            let verified = self.verified(shared, now, request.incoming.remote, received, opened);
            let Some((received, opened)) = verified else { return };
            // Only now: what anyone can send takes no place, and a challenged request is a new one
            // when it comes with its Echo.
            shared.lock().endpoint.remember_verified(now, &request.incoming);
            let span = trace::serve(from, &opened.plain);
            span.in_scope(|| self.serve_opened(shared, now, received, &opened, &span))
        });
    }

    /// Answers a request over a connection with an OSCORE option, or one without it where it is required.
    pub(super) fn serve_protected_over(
        &self,
        link: &Arc<Link>,
        now: Instant,
        incoming: Incoming,
        message: Message<'_>,
        sizes: BlockSizes,
    ) {
        let from = PeerId::Connection(link.remote);
        with_buffer(2 * message.as_bytes().len(), |buffer| {
            let mut place = RequestSlot::new();
            let opened = self.open(from, &message, buffer);
            let message = opened.as_ref().map_or(message, |opened| opened.plain);
            let sizes = sizes.within(MAX_PROTECTED);
            let received = place.stream(incoming, link.remote, message, sizes);
            if let Some((received, opened)) = self.verified(link, now, from, received, opened) {
                self.serve_opened(link, now, received, &opened, &Span::none());
            }
        });
    }

    /// The request, if it is to be processed. Otherwise it is answered: refused, or challenged,
    /// since a copy may have arrived before, also over another connection.
    fn verified<'p, 'm, 'b, C: Carrier>(
        &self,
        carrier: &Arc<C>,
        now: Instant,
        from: PeerId,
        received: Received<'p, 'm>,
        opened: Result<Opened<'b>, Response>,
    ) -> Option<(Received<'p, 'm>, Opened<'b>)> {
        let answer = match opened {
            Ok(opened) => {
                let received = received.secured(opened.request);
                match self.challenge_unknown(now, &received, &opened) {
                    None => return Some((received, opened)),
                    Some(challenge) => challenge,
                }
            }
            Err(refusal) => {
                self.refused(now, Reason::Oscore, from);
                received.refuse(refusal)
            }
        };
        self.send(carrier, now, Outgoing::One(answer));
        None
    }

    /// Verifies a request, and writes the datagram that it would have been without OSCORE into `buffer`.
    fn open<'b>(
        &self,
        from: PeerId,
        message: &Message<'_>,
        buffer: &'b mut [u8],
    ) -> Result<Opened<'b>, Response> {
        let AllSettings { oscore, oscore_required, .. } = self.config();
        // One that does not is here only if it has to.
        let claims = !oscore_required || self.claims_protection(message);
        let contexts = oscore.as_ref().filter(|_| claims);
        let Some(contexts) = contexts else { return Err(oscore_is_required()) };
        let joined = message.option(OptionNumber::EDHOC).is_some();
        let separated = match joined {
            true => Some(self.complete_handshake(contexts, from, message)?),
            false => None,
        };
        // It was written by an encoder of messages.
        let separated = separated.as_deref().and_then(|bytes| Message::parse(bytes).ok());
        // RFC 8613 section 8.2: Max-Age 0 keeps caches from the refusal.
        let refuse = |unopened: Unopened| match unopened {
            Unopened::Refused(refusal) => {
                Response::error(refusal.code(), refusal.diagnostic()).max_age(0)
            }
            Unopened::NewKeys(answer) => answer,
        };
        let opened = contexts.open(separated.as_ref().unwrap_or(message), buffer, secret_bytes);
        let VerifiedRequest { request, context, length, is_new } = opened.map_err(refuse)?;
        let plain = buffer.get(..length).and_then(|plain| Message::parse(plain).ok());
        // It was written by an encoder of messages.
        let plain = plain.ok_or_else(|| Response::new(Code::INTERNAL_SERVER_ERROR))?;
        Ok(Opened { plain, request, context, is_new })
    }

    /// The challenge for a request that may be a copy of one from before a restart (RFC 8613 appendix B.1.2).
    fn challenge_unknown(
        &self,
        now: Instant,
        received: &Received<'_, '_>,
        opened: &Opened<'_>,
    ) -> Option<Finished> {
        let accepted = |contexts: &OscoreContexts| contexts.accept(opened.request);
        let is_new = opened.is_new
            || self.session().is_fresh(now, received)
                && self.config().oscore.as_ref().is_some_and(accepted);
        (!is_new).then(|| self.session().challenge_received(now, received))
    }

    /// Takes a verified request to its handler.
    fn serve_opened<C: Carrier>(
        &self,
        carrier: &Arc<C>,
        now: Instant,
        received: Received<'_, '_>,
        Opened { plain, context, .. }: &Opened<'_>,
        span: &Span,
    ) {
        let code = plain.code();
        let unknown = plain.body().first_critical_unless(|number| {
            number.is_known_in(code) || number.is_q_block() || number == OptionNumber::OSCORE
        });
        if let Some(number) = unknown {
            let refusal = Response::error(Code::BAD_OPTION, format!("option {}", number.0));
            return self.send(carrier, now, Outgoing::One(received.refuse(refusal)));
        }
        self.process(carrier, now, received, Some(context), span);
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

    /// The context that protects the request of an observer.
    pub(super) fn context_of(&self, registration: &Message<'_>) -> Option<ClientContext> {
        let contexts = self.config().oscore.as_ref()?;
        contexts.for_peer(contexts.request(registration)?)
    }
}

/// The peer that sent a request, which this context protects.
pub(super) fn sender<C: Carrier>(
    carrier: &C,
    remote: PeerId,
    security: Option<&ClientContext>,
) -> Option<PeerInfo> {
    let info = carrier.peer(remote);
    let Some(security) = security else { return info };
    let info = info.unwrap_or_else(|| PeerInfo::unproved(remote));
    Some(PeerInfo { identity: Some(security.identity().clone()), ..info })
}
