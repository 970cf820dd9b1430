//! A server's requests, and their responses.

use super::{ClientContext, OscoreContexts};
use ebbtide_core::oscore::{Freshness, OscoreOption, Refusal, RequestNumber};
use ebbtide_core::session::SecuredRequest;
use ebbtide_core::wire::{Content, Message, Opt, OptionNumber};

/// The bytes that the protection of a message adds at most: a code and a tag.
const SEAL: usize = 17;

/// A verified request.
pub(crate) struct VerifiedRequest {
    pub(crate) request: SecuredRequest,
    /// The datagram that it would have been without OSCORE.
    pub(crate) plain: Vec<u8>,
    /// Whether it is known not to be a copy of a request from before a restart.
    pub(crate) is_new: bool,
}

impl OscoreContexts {
    /// Verifies a request. Nothing is decrypted before its context is found.
    pub(crate) fn open(&self, outer: &Message<'_>) -> Result<VerifiedRequest, Refusal> {
        let option = outer.option(OptionNumber::OSCORE).ok_or(Refusal::Malformed)?;
        let option = OscoreOption::decode(option.value).ok_or(Refusal::Malformed)?;
        if option.kid.is_none() || option.partial_iv.is_none() {
            return Err(Refusal::Malformed);
        }
        let context = self.table().find(&option).ok_or(Refusal::NoContext)?;
        let entry = self.get(context).ok_or(Refusal::NoContext)?;
        let mut plain = vec![0; 2 * outer.as_bytes().len()];
        let opened = entry.lock().unprotect_request(outer, &mut plain)?;
        plain.truncate(opened.len);
        let request =
            SecuredRequest::new(context, opened.number.get()).ok_or(Refusal::NoContext)?;
        Ok(VerifiedRequest { request, plain, is_new: opened.freshness == Freshness::New })
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
    pub(crate) fn for_peer(&self, request: SecuredRequest) -> ClientContext {
        ClientContext::new(self.clone(), request.context())
    }

    /// Calls `send` with the protected form of a response; `None` if it cannot be protected.
    pub(crate) fn seal<R>(
        &self,
        request: SecuredRequest,
        content: &Content<'_>,
        send: impl FnOnce(&Content<'_>) -> R,
    ) -> Option<R> {
        let number = RequestNumber::from_stored(request.number())?;
        let mut sealed = vec![0; content.encoded_len() + SEAL];
        let protected =
            self.get(request.context())?.lock().protect_response(number, content, &mut sealed);
        let outer = match protected {
            Ok(outer) => outer,
            Err(error) => {
                tracing::error!(%error, "a response cannot be protected");
                return None;
            }
        };
        let options: Vec<Opt<'_>> = outer.options(content).collect();
        Some(send(&Content { code: outer.code, options: &options, payload: outer.payload }))
    }
}
