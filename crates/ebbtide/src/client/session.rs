//! The context of a request: its destination, its transport, its settings and a clock.

use super::equals::EqualRequest;
use super::pending::{Destination, Pending};
use super::sockets::SocketKind;
use super::{ClientInner, RequestParts, Requests};
use crate::error::{Cause, Error, OscoreFailure};
use crate::message::{Options, Request, Response, Scheme, Sizes, Uri, UriError};
use crate::net::clock::Clock;
use crate::net::shared::Shared;
use crate::oscore::{ClientContext, MAX_PROTECTED};
use crate::stream::{Link, ObservedCall};
use ebbtide_core::PeerId;
use ebbtide_core::endpoint::{Failure, Reliability, SendError};
use ebbtide_core::session::client::{Loss, Outgoing, RequestTag, TransferSettings};
use ebbtide_core::stream;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Block, Code, Content, OptionNumber};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::Context;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(super) owner: SessionOwner,
    /// The peer as the endpoint knows it.
    pub(super) id: PeerId,
    /// The peer's address.
    pub(super) address: SocketAddr,
    /// The local address to send from, if that matters.
    pub(super) local: Option<IpAddr>,
    pub(super) over: SessionTransport,
    /// The context that protects the requests.
    pub(super) security: Option<ClientContext>,
}

/// Whose session it is.
#[derive(Clone, Debug)]
pub(super) enum SessionOwner {
    /// A client's, which the session keeps alive.
    Client(Arc<ClientInner>),
    /// A peer's: a server decides how long it lives.
    Peer(Arc<Requests>),
}

#[derive(Clone, Debug)]
pub(super) enum SessionTransport {
    Datagrams(Arc<Shared>),
    Connection(Arc<Link>),
}

/// How a handshake by EDHOC ends that comes before the first request to a server.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum HandshakeEnd {
    /// With the first request, which follows at once.
    Combined,
    /// By a request of its own.
    Separate,
}

impl HandshakeEnd {
    /// The bytes of a payload that leave room for message 3, and are one message.
    const ROOM: usize = 512;

    /// The end of a handshake before this request.
    pub(super) fn before(request: &Request) -> Self {
        let is_repeated = request.reliability == Reliability::Confirmable;
        match is_repeated && request.payload.len() <= Self::ROOM {
            true => Self::Combined,
            false => Self::Separate,
        }
    }
}

/// The end that answers the requests of a session: OSCORE passes proxies, behind which there can be several.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServerEnd {
    pub(super) id: PeerId,
    /// The number of the OSCORE context.
    pub(super) context: Option<u32>,
}

impl Session {
    /// A session with whom a URI names. A connection is opened if there is none.
    pub(super) async fn open(
        inner: &Arc<ClientInner>,
        uri: &Uri,
        remote: SocketAddr,
        #[cfg_attr(not(feature = "edhoc"), expect(unused, reason = "handshakes end so"))]
        end: HandshakeEnd,
    ) -> Result<Self, Error> {
        let mut session = Self::unprotected(inner, uri, remote).await?;
        if let Some(contexts) = &inner.requests.config.oscore {
            let failed = |reason| Error::for_peer(remote, Cause::Oscore(reason));
            if remote.ip().is_multicast() {
                return Err(failed(OscoreFailure::Group));
            }
            let context = contexts.for_server(uri);
            #[cfg(feature = "oscore")]
            let context = match context {
                Some(context) => Some(context),
                None => match contexts.renewal_for(uri) {
                    Some(peer) => Some(Box::pin(session.renew(contexts, peer, uri)).await?),
                    None => None,
                },
            };
            #[cfg(feature = "edhoc")]
            let context = match &inner.requests.config.edhoc {
                Some(edhoc) if context.is_none() => {
                    Some(Box::pin(session.context_for(edhoc, contexts, uri, end)).await?)
                }
                _ => context,
            };
            session.security = Some(context.ok_or_else(|| failed(OscoreFailure::NoContext))?);
        }
        Ok(session)
    }

    async fn unprotected(
        inner: &Arc<ClientInner>,
        uri: &Uri,
        remote: SocketAddr,
    ) -> Result<Self, Error> {
        if let Some(feature) = uri.scheme().missing_feature() {
            return Err(UriError::Feature { scheme: uri.scheme().name(), feature }.into());
        }
        match uri.scheme() {
            Scheme::Coap => return Self::of_datagrams(inner, remote),
            #[cfg(feature = "dtls")]
            Scheme::Coaps => {
                return match super::dtls::established(inner, remote, uri.host()) {
                    Some((shared, id)) => Ok(Self::of_session(inner, remote, shared, id)),
                    None => Box::pin(Self::over_dtls(inner, remote, uri.host())).await,
                };
            }
            _ => {}
        }
        let link =
            Box::pin(inner.connections.link(&inner.requests.config.stream, uri, remote)).await?;
        let over = SessionTransport::Connection(link);
        Ok(Self {
            owner: SessionOwner::Client(inner.clone()),
            id: PeerId::Connection(remote),
            address: remote,
            local: None,
            over,
            security: None,
        })
    }

    /// A session over DTLS, once its handshake is complete.
    #[cfg(feature = "dtls")]
    async fn over_dtls(
        inner: &Arc<ClientInner>,
        address: SocketAddr,
        name: &str,
    ) -> Result<Self, Error> {
        let (shared, id) = super::dtls::session(inner, address, name).await?;
        Ok(Self::of_session(inner, address, shared, id))
    }

    /// An established session over DTLS.
    #[cfg(feature = "dtls")]
    fn of_session(
        inner: &Arc<ClientInner>,
        address: SocketAddr,
        shared: Arc<Shared>,
        id: PeerId,
    ) -> Self {
        let over = SessionTransport::Datagrams(shared);
        let owner = SessionOwner::Client(inner.clone());
        Self { owner, id, address, local: None, over, security: None }
    }

    /// A session over UDP.
    pub(super) fn of_datagrams(
        inner: &Arc<ClientInner>,
        remote: SocketAddr,
    ) -> Result<Self, Error> {
        let over = SessionTransport::Datagrams(inner.socket(SocketKind::plain(remote))?);
        Ok(Self {
            owner: SessionOwner::Client(inner.clone()),
            id: PeerId::Address(remote),
            address: remote,
            local: None,
            over,
            security: None,
        })
    }

    /// Whether OSCORE protects the requests.
    pub(super) const fn is_protected(&self) -> bool {
        self.security.is_some()
    }

    /// The end that answers the requests.
    pub(super) fn server(&self) -> ServerEnd {
        ServerEnd { id: self.id, context: self.security.as_ref().map(ClientContext::number) }
    }

    fn sizes_over(&self, link: &Link, options: &Options) -> Sizes {
        /// The bytes by which OSCORE makes a request longer at most: its option, a code and a tag.
        const PROTECTION: usize = 80;
        match self.is_protected() {
            true => link.sizes(options, PROTECTION).within(MAX_PROTECTED),
            false => link.sizes(options, 0),
        }
    }

    /// The requests among which are those of this session.
    pub(super) fn requests(&self) -> &Arc<Requests> {
        match &self.owner {
            SessionOwner::Client(inner) => &inner.requests,
            SessionOwner::Peer(requests) => requests,
        }
    }

    /// The peer's address.
    pub(super) const fn peer(&self) -> SocketAddr {
        self.address
    }

    const fn destination(&self) -> Destination {
        Destination { peer: self.id, address: self.address, local: self.local }
    }

    /// The socket, unless it is a connection.
    pub(super) fn socket(&self) -> Option<&Arc<Shared>> {
        match &self.over {
            SessionTransport::Datagrams(shared) => Some(shared),
            SessionTransport::Connection(_) => None,
        }
    }

    /// Whether it is a DTLS session.
    pub(super) fn is_secured(&self) -> bool {
        matches!(self.id, PeerId::Session(_))
    }

    /// How often its DTLS session was replaced; wakes the task when that changes.
    pub(super) fn replaced(&self, cx: &Context<'_>) -> u64 {
        let Some(shared) = self.socket().filter(|_| self.is_secured()) else { return 0 };
        let mut state = shared.lock();
        state.dtls.as_mut().map_or(0, |sessions| sessions.replaced(self.id, cx.waker()))
    }

    /// Sends a CoAP ping (RFC 7252 section 4.3, RFC 8323 section 5.4).
    pub(super) fn ping(&self) -> Result<Pending, Error> {
        match &self.over {
            SessionTransport::Connection(link) => Pending::over_connection(link, Link::ping),
            SessionTransport::Datagrams(shared) => {
                Pending::over_datagrams(shared, self.destination(), |endpoint, now| {
                    endpoint.ping(now, self.id)
                })
            }
        }
    }

    /// The connection, if it is one.
    pub(super) fn link(&self) -> Option<&Arc<Link>> {
        match &self.over {
            SessionTransport::Datagrams(_) => None,
            SessionTransport::Connection(link) => Some(link),
        }
    }

    pub(super) fn clock(&self) -> Clock {
        match &self.over {
            SessionTransport::Datagrams(shared) => shared.clock,
            SessionTransport::Connection(link) => link.clock,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock().now()
    }

    /// How long messages and blocks of a request may be.
    pub(super) fn sizes(&self, options: &Options, block_size: Option<usize>) -> Sizes {
        match (&self.over, block_size) {
            (SessionTransport::Datagrams(_), wanted) => {
                Sizes::of_datagrams(wanted.unwrap_or(self.requests().config.block_size))
            }
            // RFC 8323 section 6: BERT, too, unless the caller wants smaller blocks.
            (SessionTransport::Connection(link), Some(wanted)) => {
                self.sizes_over(link, options).at_most(Block::szx_of(wanted))
            }
            (SessionTransport::Connection(link), None) => self.sizes_over(link, options),
        }
    }

    /// How a request is to be transferred.
    pub(super) fn settings(&self, request: &Request, parts: &RequestParts) -> TransferSettings {
        let mut settings = self.default_settings(parts);
        settings.max_body = request.max_body.unwrap_or(settings.max_body);
        settings.repeat = request.reliability == Reliability::Confirmable;
        if self.socket().is_some() {
            let limit = self.requests().timeout(request);
            settings.patience.until = limit.map(|span| self.now() + span);
        }
        settings
    }

    /// How a Confirmable request without settings and a time limit of its own is to be transferred.
    pub(super) fn default_settings(&self, parts: &RequestParts) -> TransferSettings {
        let sizes = self.sizes(&parts.options, parts.block_size);
        let mut settings = TransferSettings::new(sizes, self.requests().config.max_body);
        if self.socket().is_some() {
            settings.patience.silence = self.requests().config.endpoint.params.max_transmit_wait();
        }
        settings
    }

    /// A request begins. While one that changes something is under way, an equal one has a Request-Tag.
    pub(super) fn begin(
        &self,
        parts: &RequestParts,
        settings: &mut TransferSettings,
    ) -> Option<EqualRequest> {
        if parts.is_idempotent() {
            return None;
        }
        let (begun, is_equal) = self.requests().equals.begin(self.id, parts);
        if is_equal {
            settings.request_tag = RequestTag::Always;
        }
        Some(begun)
    }

    /// Adds the Echo value that the server gave with its last response, if there is one. Over a connection
    /// there is none: the server knows that its client is there.
    pub(super) fn echo(&self, parts: &mut RequestParts) {
        if self.socket().is_some()
            && parts.options.get(OptionNumber::ECHO).is_none()
            && let Some(value) = self.requests().echoes.take(self.id)
        {
            parts.options.push(OptionNumber::ECHO, &value);
        }
    }

    /// Keeps the Echo value of a response for the next request (RFC 9175 section 2.3).
    pub(super) fn keep_echo(&self, response: &Response) {
        if self.socket().is_some()
            && response.code() != Code::UNAUTHORIZED
            && let Some(echo) = response.echo()
        {
            self.requests().echoes.remember(self.id, echo);
        }
    }

    /// Messages that wait until congestion control lets them leave for this peer.
    pub(super) fn waiting(&self) -> usize {
        self.socket().map_or(0, |shared| shared.lock().endpoint.waiting(self.id))
    }

    /// Starts the exchange of a Confirmable request over UDP that nothing protects.
    pub(super) fn start_message(&self, content: &Content<'_>) -> Result<Pending, Error> {
        let SessionTransport::Datagrams(shared) = &self.over else {
            return Err(Cause::Closed.into());
        };
        let pending = Pending::over_datagrams(shared, self.destination(), |endpoint, now| {
            endpoint.request(now, self.id, content, Reliability::Confirmable)
        })?;
        Ok(pending.in_rooms(self.requests().rooms.clone()))
    }

    /// Starts one exchange. If the exchange `old` is still open, the new one replaces it and has its token.
    pub(super) fn start(
        &self,
        old: Option<&Pending>,
        outgoing: &Outgoing,
        reliability: Reliability,
    ) -> Result<Pending, Error> {
        let Outgoing { code, options, payload, q_block, .. } = outgoing;
        let again = old.and_then(Pending::exchange);
        let send = |content: &Content<'_>| match &self.over {
            SessionTransport::Connection(link) => {
                let observed = observed(outgoing, self.security.as_ref());
                Pending::over_connection(link, |link| link.call(content, observed))
            }
            SessionTransport::Datagrams(shared) => {
                Pending::over_datagrams(shared, self.destination(), |endpoint, now| match again {
                    Some(old) => endpoint.request_again(now, old, content, reliability),
                    None if *q_block => endpoint.request_block(now, self.id, content),
                    None => endpoint.request(now, self.id, content, reliability),
                })
            }
        };
        let pending = options.with_slice(None, |options| {
            let content = Content { code: *code, options, payload };
            let Some(context) = &self.security else { return send(&content) };
            let before = old.and_then(Pending::opener).filter(|_| again.is_some());
            // Retransmissions repeat the protected bytes, so they need no number of their own.
            let sealed = context.seal(&content, before, send);
            let failed = |reason| Error::for_peer(self.address, Cause::Oscore(reason));
            let (pending, opener) = sealed.map_err(failed)?;
            Ok(pending?.opened_by(opener))
        })?;
        Ok(pending.in_rooms(self.requests().rooms.clone()))
    }

    /// Starts one exchange as soon as there is room for it.
    pub(super) async fn start_when_room(
        &self,
        outgoing: &Outgoing,
        reliability: Reliability,
    ) -> Result<Pending, Error> {
        let rooms = self.requests().rooms.clone();
        rooms
            .wait(self.id, || match self.start(None, outgoing, reliability) {
                Err(error) if is_no_room(&error) => None,
                started => Some(started),
            })
            .await
    }

    /// Whether a request has to wait behind others for room.
    pub(super) fn is_crowded(&self) -> bool {
        self.requests().rooms.has(self.id)
    }
}

/// A request that observes over a connection, for the message that ends the observation.
fn observed(outgoing: &Outgoing, context: Option<&ClientContext>) -> Option<ObservedCall> {
    let observes = outgoing.options.get_uint(OptionNumber::OBSERVE) == Some(0);
    observes.then(|| ObservedCall {
        code: outgoing.code,
        options: outgoing.options.clone(),
        payload: outgoing.payload.clone(),
        context: context.cloned(),
    })
}

/// Whether there was no room for a message, and will be when something ends.
pub(super) fn is_no_room(error: &Error) -> bool {
    matches!(
        error.cause(),
        Cause::Send(SendError::QueueFull | SendError::TooManyExchanges | SendError::OutboxFull)
            | Cause::NotSent(stream::SendError::TooManyRequests | stream::SendError::OutputFull)
    )
}

/// Classifies an error for the transfer whose message it ended.
pub(super) fn loss_of(error: &Error) -> Loss {
    match error.cause() {
        _ if is_no_room(error) => Loss::NoRoom,
        Cause::Send(SendError::TooLong { .. })
        | Cause::NotSent(stream::SendError::TooLong { .. }) => Loss::TooLong,
        Cause::Failed(Failure::GaveUp | Failure::NoResponse) => Loss::Unanswered,
        Cause::Oscore(OscoreFailure::CopyRefused(_) | OscoreFailure::IdContextWanted) => {
            Loss::AnswerLost
        }
        Cause::Network(source) if is_too_long(source) => Loss::TooLong,
        // It may be said of a copy, so that nobody knows whether the original has arrived.
        Cause::Network(source) if is_no_route(source) => Loss::Unanswered,
        _ => Loss::Final,
    }
}

/// Whether a datagram was longer than the path's MTU: EMSGSIZE of Linux, of BSD and macOS, of Windows.
fn is_too_long(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(90 | 40 | 10040))
}

/// Whether there is no way to the peer at present.
fn is_no_route(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable
    )
}
