//! Handshakes by EDHOC: a request before the first one that OSCORE protects, and another one unless
//! both are combined (RFC 9668).

use super::session::{HandshakeEnd, Session};
use crate::edhoc::{Edhoc, FIRST, HandshakeFault};
use crate::error::{Cause, Error, OscoreFailure};
use crate::message::{Options, Response, Uri};
use crate::net::pending::Answer;
use crate::oscore::{ClientContext, OscoreContexts};
use bytes::Bytes;
use ebbtide_core::endpoint::Reliability;
use ebbtide_core::session::client::Outgoing;
use ebbtide_core::wire::{Code, OptionNumber};

/// The Content-Format `application/cid-edhoc+cbor-seq` (RFC 9528 section 10.11).
const MESSAGES: u32 = 65;

impl Session {
    /// Whether the server does not know the combined request, which has failed for this reason.
    /// Then the next handshake with it has another end.
    pub(super) fn refuses_combined(&self, error: &Error) -> bool {
        let is_combined = self.security.as_ref().is_some_and(ClientContext::ends_handshake);
        // RFC 9668 section 3.2: the option is critical.
        let refused = is_combined && error.oscore_refusal() == Some(Code::BAD_OPTION);
        if let Some(edhoc) = self.requests().config.edhoc.as_ref().filter(|_| refused) {
            edhoc.refuses_combined(self.address);
        }
        refused
    }

    /// The context for the requests to a server, after a handshake with it if there is none.
    pub(super) async fn context_for(
        &self,
        edhoc: &Edhoc,
        contexts: &OscoreContexts,
        uri: &Uri,
        end: HandshakeEnd,
    ) -> Result<ClientContext, Error> {
        let turn = edhoc.turn(self.address).await;
        if let Some(context) = contexts.for_server(uri) {
            return Ok(context);
        }
        let failed = |why: &'static str| {
            let reason = OscoreFailure::Handshake(why.into());
            Error::for_peer(self.address, Cause::Oscore(reason))
        };
        let fault = |fault: HandshakeFault| {
            failed(match fault {
                HandshakeFault::Malformed => "a message of the server cannot be decoded",
                HandshakeFault::Suite => "the server has no cipher suite that is supported",
                HandshakeFault::NotAuthentic => {
                    "the server has none of the credentials that are accepted"
                }
                HandshakeFault::NoRandomness => "the system provides no randomness",
            })
        };
        let (initiator, message_1) = edhoc.begin(contexts).map_err(fault)?;
        let message_2 = self.post(&[&[FIRST], &*message_1]).await?;
        let (finishing, message_3) =
            initiator.finish(edhoc.credentials(), message_2.body()).map_err(fault)?;
        let added = if end == HandshakeEnd::Combined && edhoc.may_combine(self.address) {
            // Its answer shows that the server has the context, as message 4 does (RFC 9528 section 5.4.3).
            let made = finishing.finish(&[]).map_err(fault)?;
            contexts.add_ending(made, uri, message_3, turn)
        } else {
            let message_4 = self.post(&[finishing.server_id(), &message_3]).await?;
            contexts.add_of_server(finishing.finish(message_4.body()).map_err(fault)?, uri)
        };
        added.ok_or_else(|| failed("the identifiers of both sides are the same"))
    }

    /// Sends a message to `/.well-known/edhoc`, again with the value of an Echo option if the server asks for it.
    async fn post(&self, parts: &[&[u8]]) -> Result<Response, Error> {
        let payload = Bytes::from(parts.concat());
        let mut options = Options::new();
        for segment in [".well-known", "edhoc"] {
            options.push(OptionNumber::URI_PATH, segment.as_bytes());
        }
        options.push_uint(OptionNumber::CONTENT_FORMAT, MESSAGES);
        let mut has_echoed = false;
        loop {
            let (options, payload) = (options.clone(), payload.clone());
            let mut outgoing =
                Outgoing { id: 0, code: Code::POST, options, payload, q_block: false };
            if let Some(echo) = self.requests().echoes.take(self.id) {
                outgoing.options.push(OptionNumber::ECHO, &echo);
            }
            let pending = self.start_when_room(&outgoing, Reliability::Confirmable).await?;
            let response = match pending.answer().await {
                Some(Answer::Response { response, .. }) => response,
                Some(other) => return Err(pending.error(other)),
                None => return Err(Cause::Closed.into()),
            };
            match response.echo() {
                Some(echo) if response.code() == Code::UNAUTHORIZED && !has_echoed => {
                    self.requests().echoes.remember(self.id, echo);
                    has_echoed = true;
                }
                _ if response.is_success() => return Ok(response),
                _ => {
                    let (code, diagnostic) = (response.code(), "".into());
                    let reason = OscoreFailure::Refused { code, diagnostic };
                    return Err(Error::for_peer(self.address, Cause::Oscore(reason)));
                }
            }
        }
    }
}
