//! A client's requests, and their responses.

use super::OscoreContexts;
use crate::error::OscoreFailure;
use crate::message::{Options, Response};
use bytes::Bytes;
use ebbtide_core::oscore::{NotificationOrder, RequestNumber, ResponseFault};
use ebbtide_core::wire::{Code, Content, Message, MessageId, OptionNumber, Token, Type};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bytes that a header and the value of Observe take beyond the content of a response.
const HEADER: usize = 8;
/// The bytes that the protection of a message adds at most: a code and a tag.
const SEAL: usize = 17;

/// The context for the requests to one server.
#[derive(Clone, Debug)]
pub(crate) struct ClientContext {
    contexts: OscoreContexts,
    number: u32,
}

/// A protected request.
#[derive(Debug)]
pub(crate) struct SealedRequest {
    pub(crate) code: Code,
    pub(crate) options: Options,
    pub(crate) payload: Bytes,
    pub(crate) opener: ResponseOpener,
}

/// Verifies the responses to a request.
#[derive(Debug)]
pub(crate) struct ResponseOpener {
    context: ClientContext,
    request: RequestNumber,
    /// The request before, under the same token.
    earlier: Option<RequestNumber>,
    order: Mutex<NotificationOrder>,
}

impl ClientContext {
    pub(super) const fn new(contexts: OscoreContexts, number: u32) -> Self {
        Self { contexts, number }
    }

    /// The peer's identity.
    pub(crate) fn identity(&self) -> Option<Arc<[u8]>> {
        Some(self.contexts.get(self.number)?.identity.clone())
    }

    /// Protects a request. `before` verifies the responses to the request before it, if it goes on with an observation under the same
    /// token: notifications that were under way answer that one.
    pub(crate) fn seal(
        &self,
        code: Code,
        options: &Options,
        payload: &[u8],
        before: Option<&ResponseOpener>,
    ) -> Result<SealedRequest, OscoreFailure> {
        let entry = self.contexts.get(self.number).ok_or(OscoreFailure::NoContext)?;
        options.with_slice(None, |options| {
            let content = Content { code, options, payload };
            let mut sealed = vec![0; content.encoded_len() + SEAL];
            let protected = entry.lock().protect_request(&content, &mut sealed);
            let (outer, request) =
                protected.map_err(|error| OscoreFailure::NotProtected(error.to_string().into()))?;
            let (code, options) = (outer.code, outer.options(&content).collect());
            let payload = Bytes::copy_from_slice(outer.payload);
            let opener = ResponseOpener {
                context: self.clone(),
                request,
                earlier: before.map(|before| before.request),
                order: Mutex::new(before.map(|before| *before.order()).unwrap_or_default()),
            };
            Ok(SealedRequest { code, options, payload, opener })
        })
    }
}

impl ResponseOpener {
    fn order(&self) -> MutexGuard<'_, NotificationOrder> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The response as it would have been without OSCORE.
    ///
    /// # Errors
    ///
    /// Returns the reason why it is not accepted. A notification that is not a newer one is not accepted either.
    pub(crate) fn open(&self, response: &Response) -> Result<Response, OscoreFailure> {
        self.opened(response).map_err(|fault| match fault {
            ResponseFault::Unprotected if !response.is_success() => {
                #[cfg(feature = "edhoc")]
                if response.code() == Code::UNAUTHORIZED {
                    // A server that was restarted does not know it: the next request begins with a handshake.
                    self.context.contexts.forget_made(self.context.number);
                }
                let diagnostic = response.text().into();
                OscoreFailure::Refused { code: response.code(), diagnostic }
            }
            fault => OscoreFailure::NotVerified(fault.to_string().into()),
        })
    }

    fn opened(&self, response: &Response) -> Result<Response, ResponseFault> {
        let mut outer = Vec::new();
        response.with_content(None, |content| {
            outer.resize(content.encoded_len() + HEADER, 0);
            let encoded =
                content.encode(&mut outer, Type::NonConfirmable, MessageId(0), Token::EMPTY);
            outer.truncate(encoded.map_or(0, |encoded| encoded.len));
        });
        let outer = Message::parse(&outer).map_err(|_| ResponseFault::Malformed)?;
        let entry =
            self.context.contexts.get(self.context.number).ok_or(ResponseFault::Malformed)?;
        let mut plain = vec![0; 2 * outer.as_bytes().len() + HEADER];
        let mut order = self.order();
        let context = entry.lock();
        let mut open =
            |request| context.unprotect_response(request, &mut order, &outer, &mut plain);
        let len = match (open(self.request), self.earlier) {
            (Err(ResponseFault::NotAuthentic), Some(earlier)) => {
                let len = open(earlier)?;
                // Anything else answers that request and not this one.
                let observes = |plain: Message<'_>| plain.option(OptionNumber::OBSERVE).is_some();
                let plain = plain.get(..len).and_then(|plain| Message::parse(plain).ok());
                plain.is_some_and(observes).then_some(len).ok_or(ResponseFault::NotAuthentic)?
            }
            (opened, _) => opened?,
        };
        drop(context);
        let plain = plain.get(..len).and_then(|plain| Message::parse(plain).ok());
        let plain = plain.ok_or(ResponseFault::Malformed)?;
        let code = plain.code();
        // RFC 7252 section 5.4.1: a response with a critical option that is not understood is rejected.
        let unknown = plain.body().first_critical_unless(|number| number.is_known_in(code));
        if unknown.is_some() {
            return Err(ResponseFault::Malformed);
        }
        Ok(Response::from_message(&plain).with_repeated(response.is_repeated()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oscore::OscoreContext;

    fn contexts(ours: &[u8], theirs: &[u8]) -> OscoreContexts {
        OscoreContexts::new([OscoreContext::new(&[7; 16], ours, theirs)]).unwrap()
    }

    /// The response of the server to a request, received.
    fn answer(server: &OscoreContexts, request: &SealedRequest, plain: &Content<'_>) -> Response {
        let mut outer = vec![0; 256];
        let len = request.options.with_slice(None, |options| {
            let content = Content { code: request.code, options, payload: &request.payload };
            content
                .encode(&mut outer, Type::NonConfirmable, MessageId(0), Token::EMPTY)
                .unwrap()
                .len
        });
        let opened = server.open(&Message::parse(&outer[..len]).unwrap()).unwrap();
        let received = |content: &Content<'_>| {
            let mut bytes = vec![0; 256];
            let encoded =
                content.encode(&mut bytes, Type::NonConfirmable, MessageId(0), Token::EMPTY);
            Response::from_message(&Message::parse(&bytes[..encoded.unwrap().len]).unwrap())
        };
        server.seal(opened.request, plain, received).unwrap()
    }

    #[test]
    fn only_notifications_of_the_request_before_are_accepted_by_the_one_that_goes_on_with_it() {
        let server = contexts(b"s", b"c");
        let client = ClientContext::new(contexts(b"c", b"s"), 0);
        let mut observe = Options::default();
        observe.push(OptionNumber::OBSERVE, &[]);
        let first = client.seal(Code::GET, &observe, &[], None).unwrap();
        let again = client.seal(Code::GET, &observe, &[], Some(&first.opener)).unwrap();
        let challenge = Content { code: Code::UNAUTHORIZED, options: &[], payload: b"old" };
        let challenged = answer(&server, &first, &challenge);
        assert!(first.opener.open(&challenged).is_ok());
        assert!(again.opener.open(&challenged).is_err(), "it answers the request before");
    }
}
