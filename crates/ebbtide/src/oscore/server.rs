//! A server's requests, and their responses.

use super::{ClientContext, OscoreContexts, SEAL, with_buffer, with_protected};
use crate::message::Response;
use ebbtide_core::oscore::{Freshness, OscoreOption, Refusal, RequestNumber};
use ebbtide_core::session::SecuredRequest;
use ebbtide_core::wire::{Content, Message, OptionNumber};

/// A verified request.
pub(crate) struct VerifiedRequest {
    pub(crate) request: SecuredRequest,
    /// The context that protects its answers, for requests to its sender.
    pub(crate) context: ClientContext,
    /// The length of the datagram that it would have been without OSCORE.
    pub(crate) length: usize,
    /// Whether it is known not to be a copy of a request from before a restart.
    pub(crate) is_new: bool,
}

/// The reason why a request was not opened.
pub(crate) enum Unopened {
    /// It is refused.
    Refused(Refusal),
    /// It asks for new keys, and has this answer, which is protected.
    NewKeys(Response),
}

impl From<Refusal> for Unopened {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl OscoreContexts {
    /// Verifies a request, and writes the datagram that it would have been without OSCORE to the
    /// start of `plain`, for which twice its length suffices. Nothing is decrypted before its
    /// context is found. `draw` gives random bytes for an exchange of new keys.
    pub(crate) fn open(
        &self,
        outer: &Message<'_>,
        plain: &mut [u8],
        draw: impl FnOnce() -> Option<[u8; 16]>,
    ) -> Result<VerifiedRequest, Unopened> {
        let option = outer.option(OptionNumber::OSCORE).ok_or(Refusal::Malformed)?;
        let option = OscoreOption::decode(option.value).ok_or(Refusal::Malformed)?;
        if option.kid.is_none() || option.partial_iv.is_none() {
            return Err(Refusal::Malformed.into());
        }
        let found = {
            let table = self.table();
            let found = table.find(&option).and_then(|number| Some((number, table.get(number)?)));
            found.map(|(number, entry)| (number, entry.clone()))
        };
        let Some((number, entry)) = found else { return self.renew(outer, &option, plain, draw) };
        let opened = entry.lock().unprotect_request(outer, plain)?;
        let request = SecuredRequest::new(number, opened.number.get()).ok_or(Refusal::NoContext)?;
        let is_new = opened.freshness == Freshness::New;
        let context = ClientContext::new(number, entry);
        Ok(VerifiedRequest { request, context, length: opened.len, is_new })
    }

    /// Records that a request is new, since it has echoed. Returns false if it was accepted meanwhile.
    pub(crate) fn accept(&self, request: SecuredRequest) -> bool {
        let number = RequestNumber::from_stored(request.number());
        let entry = self.get(request.context());
        entry.zip(number).is_some_and(|(entry, number)| entry.lock().accept(number))
    }

    /// The protected request that a verified message was.
    pub(crate) fn request(&self, plain: &Message<'_>) -> Option<SecuredRequest> {
        let option = OscoreOption::decode(plain.option(OptionNumber::OSCORE)?.value)?;
        let context = self.table().find(&option)?;
        SecuredRequest::new(context, option.partial_iv?)
    }

    /// The context of a request, for requests to its sender.
    pub(crate) fn for_peer(&self, request: SecuredRequest) -> Option<ClientContext> {
        self.client_context(request.context())
    }

    /// Calls `send` with the protected form of a response; `None` if it cannot be protected.
    pub(crate) fn seal<R>(
        &self,
        request: SecuredRequest,
        content: &Content<'_>,
        send: impl FnOnce(&Content<'_>) -> R,
    ) -> Option<R> {
        let number = RequestNumber::from_stored(request.number())?;
        let context = self.get(request.context())?;
        with_buffer(content.encoded_len() + SEAL, |sealed| {
            let outer = match context.lock().protect_response(number, content, sealed) {
                Ok(outer) => outer,
                Err(error) => {
                    tracing::error!(%error, "a response cannot be protected");
                    return None;
                }
            };
            Some(with_protected(&outer, content, send))
        })
    }
}
