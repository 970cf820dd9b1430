//! The transports that send answers.

use super::requester::{IncomingRequest, SecuredRequest};
use crate::exchange::ExchangeId;
use crate::time::Instant;
use crate::wire::{Code, Content, Opt, OptionNumber};
use crate::{endpoint, stream};
use core::fmt;

/// A transport that sends answers to requests: an endpoint or a connection.
pub trait Transport {
    /// Answers a request. Returns the exchange if the answer is a separate response.
    ///
    /// # Errors
    ///
    /// See [`NotSent`]; nothing was sent, and the request can still be answered.
    fn respond(
        &mut self,
        now: Instant,
        incoming: &IncomingRequest,
        content: &Content<'_>,
    ) -> Result<Option<ExchangeId>, NotSent>;

    /// Answers a request that OSCORE protected. By default it is not answered, since its answer must not be readable.
    ///
    /// # Errors
    ///
    /// See [`NotSent`]; nothing was sent.
    fn respond_secured(
        &mut self,
        _now: Instant,
        _incoming: &IncomingRequest,
        _request: SecuredRequest,
        _content: &Content<'_>,
    ) -> Result<Option<ExchangeId>, NotSent> {
        Err(NotSent::NotProtected)
    }

    /// Records that the request is answered later: until then its copies are duplicates.
    fn defer(&mut self, now: Instant, incoming: &mut IncomingRequest);

    /// Acknowledges the request, if the transport has acknowledgements. A response may follow.
    fn acknowledge(&mut self, now: Instant, incoming: &mut IncomingRequest);

    /// Records that no response follows.
    fn dismiss(&mut self, now: Instant, incoming: &IncomingRequest);
}

impl Transport for endpoint::Endpoint {
    fn respond(
        &mut self,
        now: Instant,
        incoming: &IncomingRequest,
        content: &Content<'_>,
    ) -> Result<Option<ExchangeId>, NotSent> {
        let IncomingRequest::Datagram(incoming) = incoming else {
            return Err(NotSent::OtherTransport);
        };
        let responded = if incoming.acknowledged && is_challenge(content) {
            // RFC 9175 section 2.4: it must not be repeated to an address that may be forged.
            self.respond_once(now, incoming, content).map(|()| None)
        } else {
            Self::respond(self, now, incoming, content)
        };
        responded.map_err(NotSent::Datagram)
    }

    fn defer(&mut self, now: Instant, incoming: &mut IncomingRequest) {
        if let IncomingRequest::Datagram(incoming) = incoming {
            Self::defer(self, now, incoming);
        }
    }

    fn acknowledge(&mut self, now: Instant, incoming: &mut IncomingRequest) {
        if let IncomingRequest::Datagram(incoming) = incoming {
            Self::acknowledge(self, now, incoming);
        }
    }

    fn dismiss(&mut self, now: Instant, incoming: &IncomingRequest) {
        if let IncomingRequest::Datagram(incoming) = incoming {
            Self::dismiss(self, now, incoming);
        }
    }
}

fn is_challenge(content: &Content<'_>) -> bool {
    let echo = |opt: &Opt<'_>| opt.number == OptionNumber::ECHO;
    content.code == Code::UNAUTHORIZED && content.options.iter().any(echo)
}

impl Transport for stream::Connection {
    fn respond(
        &mut self,
        now: Instant,
        incoming: &IncomingRequest,
        content: &Content<'_>,
    ) -> Result<Option<ExchangeId>, NotSent> {
        let IncomingRequest::Stream(incoming, _) = incoming else {
            return Err(NotSent::OtherTransport);
        };
        Self::respond(self, now, incoming, content).map_err(NotSent::Stream)?;
        Ok(None)
    }

    /// Over a connection there are no copies.
    fn defer(&mut self, _: Instant, _: &mut IncomingRequest) {}

    fn acknowledge(&mut self, _: Instant, _: &mut IncomingRequest) {}

    fn dismiss(&mut self, now: Instant, incoming: &IncomingRequest) {
        if let IncomingRequest::Stream(incoming, _) = incoming {
            Self::dismiss(self, now, incoming);
        }
    }
}

/// The reason for which an answer was not sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// The endpoint refused it.
    Datagram(endpoint::SendError),
    /// The connection refused it.
    Stream(stream::SendError),
    /// The request arrived at another transport.
    OtherTransport,
    /// The answer could not be protected.
    NotProtected,
}

impl NotSent {
    /// Whether the same answer may be sent later: after the end of an exchange, or when the driver
    /// has sent waiting messages.
    #[must_use]
    pub fn is_for_want_of_room(self) -> bool {
        use endpoint::SendError;
        matches!(
            self,
            Self::Datagram(
                SendError::QueueFull
                    | SendError::TooManyExchanges
                    | SendError::TooManyPeers
                    | SendError::TooManyControls
                    | SendError::OutboxFull
            )
        )
    }
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Datagram(error) => error.fmt(f),
            Self::Stream(error) => error.fmt(f),
            Self::OtherTransport => f.write_str("the request came by another transport"),
            Self::NotProtected => f.write_str("the answer could not be protected"),
        }
    }
}

impl core::error::Error for NotSent {}
