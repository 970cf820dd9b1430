//! A common interface to the transports of a server: a socket or a connection delivers requests and
//! sends answers.

use super::observe::Observed;
use crate::answered::AnswerTally;
use crate::client::Reachable;
use crate::net::clock::Clock;
use crate::net::peer::PeerInfo;
use crate::net::pending::{Open, Owner};
use crate::net::room::RoomFor;
use crate::net::shared::Shared;
use crate::net::socket_state::{SocketState, shown};
use crate::oscore::{MAX_PROTECTED, OscoreContexts};
use crate::stream::{self, Link};
use ebbtide_core::endpoint::Reliability;
use ebbtide_core::session::server::{Assembled, PendingRequest};
use ebbtide_core::session::{
    BlockSizes, Due, FinishedRef, IncomingRequest, NotSent, Observers, Requester, Response, Room,
    SecuredRequest, Transport,
};
use ebbtide_core::stream::SendError;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Message, Opt, OptionNumber, encode_uint};
use ebbtide_core::{ExchangeId, PeerId};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use tokio::sync::oneshot;

/// One of so many exchanges may be a separate response. Notifications wait while half of all are taken.
const RESPONSES: usize = 4;

/// A socket or a connection.
pub(super) trait Carrier: Observed + 'static {
    /// Locks the state.
    type State: Sink;

    fn lock(&self) -> MutexGuard<'_, Self::State>;

    /// Changes the state from outside the driver, which then sends the result.
    fn with<R>(&self, change: impl FnOnce(&mut Self::State, Instant) -> R) -> R;

    fn clock(&self) -> Clock;

    /// A handler has answered a request that arrived at this instant.
    fn answered(&self, tally: &AnswerTally, arrived: Instant);

    /// A requester, if its transport knows more than the address.
    fn peer(&self, remote: PeerId) -> Option<PeerInfo>;

    /// How the peer can be asked.
    fn way_back(self: &Arc<Self>) -> &dyn Reachable;

    /// The socket, whose task can poll what handlers wait for.
    fn socket(self: &Arc<Self>) -> Option<&Arc<Shared>>;
}

/// The locked state of a carrier: it sends answers and notifications.
pub(super) trait Sink {
    fn observers(&mut self) -> &mut Observers;

    /// A peer for logs.
    fn shown(&self, peer: PeerId) -> PeerId;

    /// The sizes that fit into one message.
    fn sizes(&self, datagrams: BlockSizes) -> BlockSizes;

    /// Defers a request that is answered later, and recognizes copies of it until then.
    fn defer(&mut self, now: Instant, request: Assembled<'_, '_>) -> PendingRequest;

    /// Sends an answer.
    fn send(&mut self, now: Instant, finished: FinishedRef<'_>) -> Result<(), NotSent>;

    /// Gives up an answer that cannot be sent, not even as an error in its place.
    fn give_up(&mut self, now: Instant);

    /// Waits until there may be room for an answer to this requester.
    fn wait_for_room(&mut self, requester: &Requester) -> Option<oneshot::Receiver<()>>;

    /// Sends a notification. `allowance` limits its transmissions, given its length.
    fn notify(
        &mut self,
        now: Instant,
        due: &Due,
        response: &Response,
        allowance: impl FnOnce(usize) -> u8,
    );
}

impl Carrier for Shared {
    type State = SocketState;

    fn lock(&self) -> MutexGuard<'_, SocketState> {
        Self::lock(self)
    }

    fn with<R>(&self, change: impl FnOnce(&mut SocketState, Instant) -> R) -> R {
        Self::with(self, change)
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn answered(&self, _: &AnswerTally, _: Instant) {
        // The driver looks at the clock for several answers at once.
        self.untimed.fetch_add(1, Ordering::Relaxed);
    }

    fn peer(&self, remote: PeerId) -> Option<PeerInfo> {
        Self::peer(self, remote)
    }

    fn way_back(self: &Arc<Self>) -> &dyn Reachable {
        self
    }

    fn socket(self: &Arc<Self>) -> Option<&Arc<Shared>> {
        Some(self)
    }
}

impl Carrier for Link {
    type State = stream::LinkState;

    fn lock(&self) -> MutexGuard<'_, stream::LinkState> {
        Self::lock(self)
    }

    fn with<R>(&self, change: impl FnOnce(&mut stream::LinkState, Instant) -> R) -> R {
        Self::with(self, change)
    }

    fn clock(&self) -> Clock {
        self.clock
    }

    fn answered(&self, tally: &AnswerTally, arrived: Instant) {
        tally.record(1, arrived, self.clock.now());
    }

    fn peer(&self, _: PeerId) -> Option<PeerInfo> {
        self.peer.clone()
    }

    fn way_back(self: &Arc<Self>) -> &dyn Reachable {
        self
    }

    fn socket(self: &Arc<Self>) -> Option<&Arc<Shared>> {
        None
    }
}

/// Calls `with` with the Observe option of a notification. An error ends the observation and does
/// not carry the option (RFC 7641 section 4.2). Over a connection clients ignore the number, but
/// the option must be present (RFC 8323 section 7.1).
fn with_sequence<R>(due: &Due, code: Code, with: impl FnOnce(Option<Opt<'_>>) -> R) -> R {
    let mut value = [0; 4];
    let value = encode_uint(due.sequence, &mut value);
    with((code.class() == 2).then_some(Opt { number: OptionNumber::OBSERVE, value }))
}

/// A transport that protects the answers to protected requests.
struct Protecting<'s, T> {
    transport: &'s mut T,
    contexts: &'s OscoreContexts,
}

impl<T: Transport> Transport for Protecting<'_, T> {
    fn respond(
        &mut self,
        now: Instant,
        incoming: &IncomingRequest,
        content: &Content<'_>,
    ) -> Result<Option<ExchangeId>, NotSent> {
        self.transport.respond(now, incoming, content)
    }

    fn respond_secured(
        &mut self,
        now: Instant,
        incoming: &IncomingRequest,
        request: SecuredRequest,
        content: &Content<'_>,
    ) -> Result<Option<ExchangeId>, NotSent> {
        let respond = |outer: &Content<'_>| self.transport.respond(now, incoming, outer);
        self.contexts.seal(request, content, respond).ok_or(NotSent::NotProtected)?
    }

    fn defer(&mut self, now: Instant, incoming: &mut IncomingRequest) {
        self.transport.defer(now, incoming);
    }

    fn acknowledge(&mut self, now: Instant, incoming: &mut IncomingRequest) {
        self.transport.acknowledge(now, incoming);
    }

    fn dismiss(&mut self, now: Instant, incoming: &IncomingRequest) {
        self.transport.dismiss(now, incoming);
    }
}

/// Sends an answer, protected if its request was.
fn send_by<T: Transport>(
    transport: &mut T,
    contexts: Option<&OscoreContexts>,
    now: Instant,
    finished: FinishedRef<'_>,
) -> Result<Option<ExchangeId>, NotSent> {
    match contexts {
        Some(contexts) => finished.send(now, &mut Protecting { transport, contexts }),
        None => finished.send(now, transport),
    }
}

/// Calls `notify` with a notification, protected if the registration was.
fn protected<R, E>(
    contexts: Option<&OscoreContexts>,
    due: &Due,
    content: &Content<'_>,
    notify: impl FnOnce(&Content<'_>) -> Result<R, E>,
    error: impl FnOnce(E) -> NotSent,
) -> Result<R, NotSent> {
    let sender = contexts.and_then(|contexts| {
        let request = Message::parse(&due.request).ok()?;
        Some((contexts, contexts.request(&request)?))
    });
    let notified = match sender {
        None => notify(content),
        Some((contexts, request)) => {
            contexts.seal(request, content, notify).ok_or(NotSent::NotProtected)?
        }
    };
    notified.map_err(error)
}

/// Whether the source of a requester has its share of separate responses left, if it needs one.
fn has_share(state: &SocketState, requester: &Requester) -> bool {
    let max = state.endpoint.max_exchanges().div_ceil(RESPONSES);
    !requester.is_answered_separately()
        || state.pending.admits_response(requester.peer().source(), max)
}

impl Sink for SocketState {
    fn observers(&mut self) -> &mut Observers {
        &mut self.observers
    }

    fn shown(&self, peer: PeerId) -> PeerId {
        shown(self.dtls.as_deref(), peer)
    }

    fn sizes(&self, datagrams: BlockSizes) -> BlockSizes {
        datagrams
    }

    fn defer(&mut self, now: Instant, request: Assembled<'_, '_>) -> PendingRequest {
        request.into_pending(now, &mut self.endpoint)
    }

    fn send(&mut self, now: Instant, finished: FinishedRef<'_>) -> Result<(), NotSent> {
        while let Some(superseded) = self.observers.pop_superseded() {
            self.endpoint.cancel(now, superseded);
            self.pending.ended(superseded);
        }
        let requester = finished.requester();
        let local = requester.local;
        if !has_share(self, requester) {
            return Err(NotSent::Datagram(ebbtide_core::endpoint::SendError::TooManyExchanges));
        }
        let exchange = send_by(&mut self.endpoint, self.oscore.as_ref(), now, finished)?;
        if let Some(exchange) = exchange {
            if requester.allowance < u8::MAX {
                self.endpoint.limit_transmissions(exchange, requester.allowance.max(1));
            }
            let (owner, remote) = (Owner::Response, requester.peer());
            self.pending.opened(Open::new(exchange, owner, remote, local));
        }
        self.drain(local);
        Ok(())
    }

    /// Does nothing: the endpoint has counted the failure.
    fn give_up(&mut self, _: Instant) {}

    fn wait_for_room(&mut self, requester: &Requester) -> Option<oneshot::Receiver<()>> {
        let peer = requester.peer();
        let room = match has_share(self, requester) {
            true => RoomFor::Scope(self.endpoint.scope_of(peer)),
            false => RoomFor::Response(peer.source().sharing()),
        };
        Some(self.waiting.wait(room))
    }

    fn notify(
        &mut self,
        now: Instant,
        due: &Due,
        response: &Response,
        allowance: impl FnOnce(usize) -> u8,
    ) {
        let is_last = !response.is_success();
        let reliability = if (due.confirmable || is_last) && !response.is_challenge() {
            Reliability::Confirmable
        } else {
            Reliability::NonConfirmable
        };
        let (remote, local) = (due.remote, due.local);
        let mut length = 0;
        let sent = with_sequence(due, response.code(), |sequence| {
            response.with_content(sequence, |content| {
                length = 4 + due.token.encoded_len() + content.encoded_len();
                let notify = |content: &Content<'_>| {
                    self.endpoint.notify(now, remote, &due.token, content, reliability)
                };
                protected(self.oscore.as_ref(), due, content, notify, NotSent::Datagram)
            })
        });
        match sent {
            Ok(exchange) => {
                if !due.proven {
                    self.endpoint.limit_transmissions(exchange, allowance(length));
                }
                let owner = if response.is_success() {
                    self.observers.sent(due, exchange);
                    Owner::Notification(due.observer)
                } else {
                    self.observers.remove(due.observer);
                    Owner::Response
                };
                self.pending.opened(Open::new(exchange, owner, remote, local));
            }
            Err(error) if error.is_for_want_of_room() => {
                let peer = self.shown(remote);
                tracing::debug!(%peer, %error, "notification postponed");
                let full = ebbtide_core::endpoint::SendError::QueueFull;
                let room = if error == NotSent::Datagram(full) {
                    Room::Scope(self.endpoint.scope_of(remote))
                } else {
                    Room::Any
                };
                self.observers.postponed(due.observer, due.event.clone(), room);
            }
            Err(error) => {
                let peer = self.shown(remote);
                tracing::warn!(%peer, %error, "notification not sent");
                self.observers.remove(due.observer);
            }
        }
        self.drain(local);
    }
}

impl Sink for stream::LinkState {
    fn observers(&mut self) -> &mut Observers {
        &mut self.observers
    }

    fn shown(&self, peer: PeerId) -> PeerId {
        peer
    }

    fn sizes(&self, _: BlockSizes) -> BlockSizes {
        let sizes = BlockSizes::of_connection(&self.connection, 0);
        if self.oscore.is_some() { sizes.within(MAX_PROTECTED) } else { sizes }
    }

    fn defer(&mut self, now: Instant, request: Assembled<'_, '_>) -> PendingRequest {
        request.into_pending(now, &mut self.connection)
    }

    fn send(&mut self, now: Instant, finished: FinishedRef<'_>) -> Result<(), NotSent> {
        match send_by(&mut self.connection, self.oscore.as_ref(), now, finished) {
            Ok(_) | Err(NotSent::Stream(SendError::Closed)) => Ok(()),
            Err(NotSent::Stream(SendError::OutputFull)) => {
                self.connection.abort(now, "too many answers wait to be taken");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn give_up(&mut self, now: Instant) {
        self.connection.abort(now, "no answer can be sent");
    }

    fn wait_for_room(&mut self, _: &Requester) -> Option<oneshot::Receiver<()>> {
        None
    }

    fn notify(
        &mut self,
        now: Instant,
        due: &Due,
        response: &Response,
        _: impl FnOnce(usize) -> u8,
    ) {
        let sent = with_sequence(due, response.code(), |sequence| {
            response.with_content(sequence, |content| {
                let notify =
                    |content: &Content<'_>| self.connection.notify(now, &due.token, content);
                protected(self.oscore.as_ref(), due, content, notify, NotSent::Stream)
            })
        });
        match sent {
            Ok(()) if response.is_success() => self.observers.arrived(due.observer),
            Ok(()) => self.observers.remove(due.observer),
            Err(NotSent::Stream(SendError::Closed)) => self.observers.lost(due.observer),
            Err(error) => {
                // There is no room; the next change tries again.
                tracing::warn!(peer = %due.remote, %error, "notification not sent");
                self.observers.arrived(due.observer);
            }
        }
    }
}
