//! A client's requests, and their responses.

#[cfg(feature = "edhoc")]
use super::ending::{EndingHandshake, combined};
use super::lookup::IdContext;
use super::{ContextInUse, OscoreContexts, SEAL, with_buffer, with_protected};
use crate::error::OscoreFailure;
use crate::message::Response;
use crate::proved_identity::ProvedIdentity;
use bytes::Bytes;
use core::fmt;
use ebbtide_core::oscore::{NotificationOrder, RequestNumber, ResponseFault};
use ebbtide_core::wire::{Code, Content, OptionNumber};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The context for the requests to one server.
#[derive(Clone)]
pub(crate) struct ClientContext {
    number: u32,
    context: Arc<ContextInUse>,
    /// The handshake that ends with the first request.
    #[cfg(feature = "edhoc")]
    ending: Option<Arc<EndingHandshake>>,
}

impl fmt::Debug for ClientContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientContext").field(&self.number).finish()
    }
}

/// Verifies the responses to a request.
#[derive(Debug)]
pub(crate) struct ResponseOpener {
    context: ClientContext,
    request: RequestNumber,
    /// Whether it named the ID Context, if keys were made anew.
    id_context: Option<IdContext>,
    /// The request before, under the same token.
    earlier: Option<RequestNumber>,
    order: Mutex<NotificationOrder>,
    answered: AtomicBool,
}

impl ClientContext {
    pub(super) const fn new(number: u32, context: Arc<ContextInUse>) -> Self {
        Self {
            number,
            context,
            #[cfg(feature = "edhoc")]
            ending: None,
        }
    }

    /// The same context, which is for no other requests until the server has answered the one that ends its handshake.
    #[cfg(feature = "edhoc")]
    pub(super) fn ending(mut self, handshake: EndingHandshake) -> Self {
        self.ending = Some(Arc::new(handshake));
        self
    }

    /// Whether a handshake ends with the first request.
    #[cfg(feature = "edhoc")]
    pub(crate) const fn ends_handshake(&self) -> bool {
        self.ending.is_some()
    }

    /// The number of the context, which no other one has had.
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    /// Forgets the context if it was made with the server, since the server does not know it any more.
    fn forget_made(&self) {
        if let Some(made) = &self.context.made
            && let Some(contexts) = made.contexts.upgrade()
        {
            OscoreContexts(contexts).forget_made(self.number);
        }
    }

    /// The peer's identity.
    pub(crate) fn identity(&self) -> &ProvedIdentity {
        &self.context.identity
    }

    /// Calls `send` with the protected form of a request. `before` verifies the responses to the
    /// request before it, if it goes on with an observation under the same token: notifications
    /// that were under way answer that one.
    pub(crate) fn seal<R>(
        &self,
        plain: &Content<'_>,
        before: Option<&ResponseOpener>,
        send: impl FnOnce(&Content<'_>) -> R,
    ) -> Result<(R, ResponseOpener), OscoreFailure> {
        with_buffer(plain.encoded_len() + SEAL, |sealed| {
            let id_context = self.context.lookup().map(|lookup| lookup.wanted(plain));
            let mut context = self.context.lock();
            match id_context {
                Some(IdContext::Named) => context.send_id_context(),
                Some(IdContext::LeftOut) => context.omit_id_context(),
                None => {}
            }
            let protected = context.protect_request(plain, sealed);
            drop(context);
            let (outer, request) =
                protected.map_err(|error| OscoreFailure::NotProtected(error.to_string().into()))?;
            #[cfg(feature = "edhoc")]
            let sent = match self.ending.as_ref().and_then(|handshake| handshake.message_3()) {
                Some(message_3) => combined(&outer, plain, &message_3, send),
                None => with_protected(&outer, plain, send),
            };
            #[cfg(not(feature = "edhoc"))]
            let sent = with_protected(&outer, plain, send);
            let opener = ResponseOpener {
                context: self.clone(),
                request,
                id_context,
                earlier: before.map(|before| before.request),
                order: Mutex::new(before.map(|before| *before.order()).unwrap_or_default()),
                answered: AtomicBool::new(false),
            };
            Ok((sent, opener))
        })
    }
}

impl ResponseOpener {
    fn order(&self) -> MutexGuard<'_, NotificationOrder> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request was accepted for sending.
    #[cfg(feature = "edhoc")]
    pub(crate) fn sent(&self) {
        if let Some(handshake) = &self.context.ending {
            handshake.sent();
        }
    }

    /// Whether a response was accepted.
    pub(crate) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// The response as it would have been without OSCORE.
    ///
    /// # Errors
    ///
    /// Returns the reason why it is not accepted. A notification that is not a newer one is not accepted either.
    pub(crate) fn open(&self, response: &Response) -> Result<Response, OscoreFailure> {
        let opened = self.opened(response);
        self.answered.fetch_or(opened.is_ok(), Ordering::Relaxed);
        #[cfg(feature = "edhoc")]
        if let (Ok(_), Some(handshake)) = (&opened, &self.context.ending) {
            handshake.complete();
        }
        opened.map_err(|fault| match fault {
            // The code by which a replay is refused (RFC 8613 section 8.2).
            ResponseFault::Unprotected
                if response.code() == Code::UNAUTHORIZED && response.is_repeated() =>
            {
                let answer = format!("{} {}", response.code(), response.text());
                OscoreFailure::CopyRefused(answer.trim_end().into())
            }
            ResponseFault::Unprotected if !response.is_success() && self.lacks_id_context() => {
                OscoreFailure::IdContextWanted
            }
            ResponseFault::Unprotected if !response.is_success() => {
                if response.code() == Code::UNAUTHORIZED {
                    // A server that was restarted does not know it: the next request begins with a
                    // handshake, or with new keys.
                    self.context.forget_made();
                }
                let diagnostic = response.text().into();
                OscoreFailure::Refused { code: response.code(), diagnostic }
            }
            fault => OscoreFailure::NotVerified(fault.to_string().into()),
        })
    }

    /// Whether the request may have been refused because it did not name the ID Context.
    fn lacks_id_context(&self) -> bool {
        let lookup = self.context.context.lookup();
        lookup.zip(self.id_context).is_some_and(|(lookup, sent)| lookup.refused(sent))
    }

    fn opened(&self, response: &Response) -> Result<Response, ResponseFault> {
        match (self.opened_as_answer_to(self.request, response), self.earlier) {
            (Err(ResponseFault::NotAuthentic), Some(earlier)) => {
                let opened = self.opened_as_answer_to(earlier, response)?;
                // Anything else answers that request and not this one.
                let observes = opened.options().get(OptionNumber::OBSERVE).is_some();
                observes.then_some(opened).ok_or(ResponseFault::NotAuthentic)
            }
            (opened, _) => opened,
        }
    }

    fn opened_as_answer_to(
        &self,
        request: RequestNumber,
        response: &Response,
    ) -> Result<Response, ResponseFault> {
        let option = response.options().get(OptionNumber::OSCORE);
        let (value, payload) = (option.map(|option| option.value), response.body());
        with_buffer(payload.len(), |plain| {
            let mut order = self.order();
            let context = self.context.context.lock();
            let opened = context.open_response(request, &mut order, value, payload, plain)?;
            drop((context, order));
            if let (Some(lookup), Some(sent)) = (self.context.context.lookup(), self.id_context) {
                lookup.found(sent);
            }
            // RFC 7252 section 5.4.1: a response with a critical option that is not understood is rejected.
            if opened.unknown_critical().is_some() {
                return Err(ResponseFault::Malformed);
            }
            let payload = Bytes::copy_from_slice(opened.payload());
            let mut plain = Response::new(opened.code).payload(payload);
            let options = plain.options_mut();
            for option in opened.options() {
                options.push(option.number, option.value);
            }
            if let Some(order) = opened.observe {
                options.push_uint(OptionNumber::OBSERVE, order);
            }
            Ok(plain.with_repeated(response.is_repeated()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oscore::OscoreContext;
    use ebbtide_core::wire::{Code, Message, MessageId, Opt, Token, Type};

    fn contexts(ours: &[u8], theirs: &[u8]) -> OscoreContexts {
        OscoreContexts::new([OscoreContext::new(&[7; 16], ours, theirs)]).unwrap()
    }

    fn encoded(content: &Content<'_>) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        let encoded = content.encode(&mut bytes, Type::NonConfirmable, MessageId(0), Token::EMPTY);
        bytes.truncate(encoded.unwrap().len);
        bytes
    }

    /// The response of the server to a request, received.
    fn answer(server: &OscoreContexts, request: &[u8], plain: &Content<'_>) -> Response {
        let mut buffer = [0; 512];
        let opened = server
            .open(&Message::parse(request).unwrap(), &mut buffer, || None)
            .unwrap_or_else(|_| panic!("it is authentic"));
        let received = |content: &Content<'_>| {
            Response::from_message(&Message::parse(&encoded(content)).unwrap())
        };
        server.seal(opened.request, plain, received).unwrap()
    }

    #[test]
    fn only_notifications_of_the_request_before_are_accepted_by_the_one_that_goes_on_with_it() {
        let server = contexts(b"s", b"c");
        let client = contexts(b"c", b"s").client_context(0).unwrap();
        let observe = [Opt { number: OptionNumber::OBSERVE, value: &[] }];
        let get = Content { code: Code::GET, options: &observe, payload: &[] };
        let (first, opener) = client.seal(&get, None, encoded).unwrap();
        let (_, again) = client.seal(&get, Some(&opener), encoded).unwrap();
        let challenge = Content { code: Code::UNAUTHORIZED, options: &[], payload: b"old" };
        let challenged = answer(&server, &first, &challenge);
        assert!(opener.open(&challenged).is_ok());
        assert!(again.open(&challenged).is_err(), "it answers the request before");
    }

    #[test]
    fn a_context_whose_keys_are_not_made_anew_is_never_tried_without_its_id_context() {
        let server = contexts(b"s", b"c");
        let client = contexts(b"c", b"s").client_context(0).unwrap();
        let get = Content { code: Code::GET, options: &[], payload: &[] };
        let (request, opener) = client.seal(&get, None, encoded).unwrap();
        let found = Content { code: Code::CONTENT, options: &[], payload: b"on" };
        assert!(opener.open(&answer(&server, &request, &found)).is_ok());
        // The server was started again.
        let (_, opener) = client.seal(&get, None, encoded).unwrap();
        let refused = opener.open(&Response::new(Code::UNAUTHORIZED)).unwrap_err();
        assert!(matches!(refused, OscoreFailure::Refused { .. }), "{refused}");
    }
}
