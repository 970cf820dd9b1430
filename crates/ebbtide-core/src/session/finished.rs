//! The last stage of a request: an answer that is sent as it is.

use super::message::Response;
use super::requester::{IncomingRequest, Requester};
use super::transport::{NotSent, Transport};
use crate::exchange::ExchangeId;
use crate::time::Instant;
use crate::wire::OptionNumber;

/// An answer that has passed all stages, or that was stored after it had. It does not change any
/// more.
#[derive(Clone, Debug)]
pub struct Finished {
    requester: Requester,
    /// The response; `None` for an acknowledgement that a response may follow.
    response: Option<Response>,
}

impl Finished {
    #[inline]
    pub(super) fn response(requester: Requester, response: Response) -> Self {
        Self { requester, response: Some(response) }
    }

    /// An empty ACK, and the requester in its state after it: the response is then separate.
    pub(super) fn acknowledgement(requester: &Requester) -> (Self, Requester) {
        let mut after = requester.clone();
        if let IncomingRequest::Datagram(incoming) = &mut after.incoming {
            *incoming = incoming.clone().after_acknowledgement();
        }
        (Self { requester: requester.clone(), response: None }, after)
    }

    /// The requester that receives the answer.
    #[inline]
    #[must_use]
    pub const fn requester(&self) -> &Requester {
        &self.requester
    }

    /// The answer, borrowed.
    #[inline]
    #[must_use]
    pub const fn as_borrowed(&self) -> FinishedRef<'_> {
        FinishedRef { requester: &self.requester, response: self.response.as_ref() }
    }
}

/// A [`Finished`] answer that is borrowed. That of a handler stays where the handler's response was
/// put: sending it copies nothing but its bytes.
#[derive(Copy, Clone, Debug)]
pub struct FinishedRef<'a> {
    requester: &'a Requester,
    response: Option<&'a Response>,
}

impl<'a> FinishedRef<'a> {
    #[inline]
    pub(super) const fn response(requester: &'a Requester, response: &'a Response) -> Self {
        Self { requester, response: Some(response) }
    }

    /// The requester that receives the answer.
    #[inline]
    #[must_use]
    pub const fn requester(self) -> &'a Requester {
        self.requester
    }

    /// The response; `None` for an acknowledgement without one.
    #[inline]
    #[must_use]
    pub const fn get(self) -> Option<&'a Response> {
        self.response
    }

    /// RFC 7252 section 8.2: a server should not answer a group's request if it has nothing useful to
    /// say, as with an error or an empty payload. A challenge is useful: the client repeats its request
    /// with the Echo option (RFC 9175 section 2.3) and receives the response.
    #[inline]
    #[must_use]
    pub fn is_useful(self) -> bool {
        self.response.is_some_and(|response| {
            response.is_success() && !response.payload.is_empty()
                || response.options.get(OptionNumber::ECHO).is_some()
        })
    }

    /// Sends the answer. Returns the exchange if the answer is a separate response, which the caller
    /// limits to [`Requester::allowance`] transmissions.
    ///
    /// # Errors
    ///
    /// See [`NotSent`]; it can be sent later then.
    #[inline]
    pub fn send(
        self,
        now: Instant,
        transport: &mut impl Transport,
    ) -> Result<Option<ExchangeId>, NotSent> {
        let incoming = &self.requester.incoming;
        let Some(response) = self.response else {
            transport.acknowledge(now, &mut incoming.clone());
            return Ok(None);
        };
        if !self.requester.wants(response.code) {
            transport.dismiss(now, incoming);
            return Ok(None);
        }
        response.with_content(None, |content| match self.requester.secured {
            None => transport.respond(now, incoming, content),
            Some(request) => transport.respond_secured(now, incoming, request, content),
        })
    }

    /// The same requester with another response, for an answer that cannot be sent.
    #[must_use]
    pub fn instead(self, response: Response) -> Finished {
        Finished::response(self.requester.clone(), response)
    }

    /// A copy, for an answer that is sent later.
    #[must_use]
    pub fn to_owned(self) -> Finished {
        Finished { requester: self.requester.clone(), response: self.response.cloned() }
    }
}
