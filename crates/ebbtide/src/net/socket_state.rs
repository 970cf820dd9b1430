//! The endpoint behind a socket: what goes to it from the network, and where its output goes.

use super::brief::BriefWorks;
use super::dtls::{OpenedMessages, Queued, Sessions};
use super::pending::{Answer, Open, Owner, Pending};
use super::room::{RoomFor, Waiting};
use super::socket::Outbound;
use super::trace;
use crate::message::Response;
use crate::oscore::OscoreContexts;
use ebbtide_core::cc::Sample;
use ebbtide_core::endpoint::{Endpoint, Event, Failure, Output, Received, Sent};
use ebbtide_core::session::Observers;
use ebbtide_core::time::{Instant, Micros};
use ebbtide_core::{ExchangeId, PeerId};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::Waker;

/// The mutable state of a socket.
#[derive(Debug)]
pub(crate) struct SocketState {
    pub(crate) endpoint: Endpoint,
    pub(crate) pending: Pending,
    pub(crate) out: Outbound<Sent>,
    /// Present on a socket that speaks DTLS.
    pub(crate) dtls: Option<Box<Sessions>>,
    /// Bytes that may wait for the socket. Beyond that nothing is taken from the endpoint, whose
    /// own queue holds as many again.
    max_unsent: usize,
    /// Whether that limit is reached.
    pub(crate) is_full: bool,
    pub(crate) observers: Observers,
    /// The contexts that protect a server's answers.
    pub(crate) oscore: Option<OscoreContexts>,
    /// Tasks that wait for room in a queue.
    pub(crate) waiting: Waiting,
    /// The work of the driver beside its own.
    pub(super) brief: BriefWorks,
    /// The next instant at which to call the endpoint.
    pub(crate) deadline: Option<Instant>,
    /// When the driver's timer fires, if it is armed.
    pub(super) armed: Option<Instant>,
    /// Wakes the driver.
    pub(crate) driver: Option<Waker>,
    pub(crate) closed: bool,
    /// Wakers to call once the lock is released.
    pub(super) wake: Vec<Waker>,
}

impl SocketState {
    /// The state of a socket at which nothing has happened yet.
    pub(super) fn new(
        endpoint: Endpoint,
        observers: Observers,
        oscore: Option<OscoreContexts>,
        max_unsent: usize,
    ) -> Self {
        Self {
            endpoint,
            pending: Pending::default(),
            out: Outbound::default(),
            dtls: None,
            max_unsent,
            is_full: false,
            observers,
            oscore,
            waiting: Waiting::default(),
            brief: BriefWorks::default(),
            deadline: None,
            armed: None,
            driver: None,
            closed: false,
            wake: Vec::new(),
        }
    }

    /// Whether the driver has something to do before its timer fires or a datagram arrives.
    pub(super) fn concerns_the_driver(&self) -> bool {
        let is_earlier = |at| self.armed.is_none_or(|armed| at < armed);
        !self.out.is_empty()
            || self.is_full
            || self.closed
            || self.observers.any_due()
            || self.deadline.is_some_and(is_earlier)
    }

    /// Sets the instant of the present call.
    #[inline]
    pub(super) fn advance(&mut self, now: Instant) {
        if let Some(sessions) = &mut self.dtls {
            sessions.advance(now);
        }
    }

    /// Carries out the endpoint's output; called after each call that changed the endpoint.
    /// Datagrams that the socket does not take stay in the endpoint's own queue, which is bounded
    /// ([`Limits::outbox_bytes`](ebbtide_core::endpoint::Limits)).
    #[inline]
    pub(crate) fn drain(&mut self, from: Option<IpAddr>) {
        self.is_full = self.out.len_bytes() >= self.max_unsent;
        while !self.is_full {
            match self.endpoint.poll_output() {
                Output::Transmit(transmit) => {
                    trace::sent(&transmit, || shown(self.dtls.as_deref(), transmit.to));
                    let (to, mut left) = (transmit.to, false);
                    let local = match transmit.what {
                        Sent::Reply => from,
                        Sent::Exchange { exchange, timeout, ordinal } => {
                            let open = self.pending.get(exchange);
                            left = ordinal == 0;
                            if timeout == Micros::ZERO
                                && let Some(&Open { owner: Owner::Notification(index), .. }) = open
                            {
                                // A Non-confirmable notification waits only for a Reset, no longer
                                // for congestion control, so the next one may be queued.
                                self.observers.arrived(index);
                            }
                            // The first transmission leaves before the exchange is recorded.
                            let local = open.map_or(from, |open| open.local);
                            if ordinal > 0 {
                                self.pending.repeat(exchange);
                            }
                            local
                        }
                        Sent::Probe { exchange, .. } => {
                            self.pending.get(exchange).map_or(from, |open| open.local)
                        }
                    };
                    let (datagram, what) = (transmit.datagram, transmit.what);
                    match (&mut self.dtls, to) {
                        (Some(sessions), PeerId::Session(to)) => {
                            sessions.send(&mut self.out, to, Queued { local, datagram, what });
                        }
                        (_, PeerId::Address(to)) => self.out.push(to, local, datagram, what),
                        // A socket has neither connections nor, without DTLS, sessions.
                        (_, PeerId::Connection(_)) | (None, PeerId::Session(_)) => {}
                    }
                    self.is_full = self.out.len_bytes() >= self.max_unsent;
                    if left {
                        // A queued message has left the queue.
                        self.room(to);
                    }
                }
                Output::Event(Event::Failed { exchange, reason }) => {
                    trace::failed(exchange, reason);
                    let open = self.pending.get(exchange).copied();
                    if reason == Failure::GaveUp
                        && let Some(sessions) = &mut self.dtls
                        && let Some(open) = open
                    {
                        sessions.suspect(open.remote);
                    }
                    self.end(exchange, given_up(open, reason));
                }
                Output::Event(Event::NoMessageId { remote, wait }) => {
                    trace::no_message_id(shown(self.dtls.as_deref(), remote), wait);
                }
                Output::Event(_) => {}
                Output::Timeout(at) => {
                    // The output of the sessions may change that of the endpoint.
                    if self.dtls.is_some() && self.pump(from) {
                        continue;
                    }
                    let sessions = self.dtls.as_ref().and_then(|sessions| sessions.deadline());
                    self.deadline = at.into_iter().chain(sessions).min();
                    return;
                }
            }
        }
    }

    /// Without DTLS there are no sessions with output.
    #[cfg(not(feature = "dtls"))]
    fn pump(&mut self, _: Option<IpAddr>) -> bool {
        false
    }

    /// Processes everything that is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(sessions) = &mut self.dtls {
            sessions.handle_timeout(now);
        }
        self.endpoint.handle_timeout(now);
        self.drain(None);
    }

    /// Fills `opened` with the messages in a datagram; on a socket that does not speak DTLS there are none.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        opened: &mut OpenedMessages,
    ) {
        opened.clear();
        if let Some(sessions) = &mut self.dtls {
            sessions.receive(now, from, datagram, opened);
        }
    }

    /// Passes on the meaning of a datagram, except for requests.
    pub(crate) fn dispatch(&mut self, peer: PeerId, from: SocketAddr, received: Received<'_>) {
        if !matches!(received, Received::Ignored(_)) {
            self.room(peer);
        }
        match received {
            Received::Response { exchange, sample, message } => {
                self.learnt(peer, from, exchange, sample.as_ref());
                let repeated = self.pending.get(exchange).is_some_and(|open| open.is_repeated);
                let response = Response::from_message(&message).with_repeated(repeated);
                self.end(exchange, Answer::Response { from, response });
            }
            Received::Notification { exchange, sample, message } => {
                self.learnt(peer, from, exchange, sample.as_ref());
                if let Some(&Open { owner: Owner::Call(index), .. }) = self.pending.get(exchange)
                    && let Some(call) = self.pending.call(index)
                {
                    let response = Response::from_message(&message);
                    self.wake.extend(call.push(Answer::More { from, response }));
                }
            }
            Received::Acknowledged { exchange, sample } => {
                self.learnt(peer, from, exchange, Some(&sample));
                // A request continues to wait for its separate response; every other message has
                // arrived.
                match self.pending.get(exchange).map(|open| open.owner) {
                    Some(Owner::Notification(observer)) => {
                        self.pending.ended(exchange);
                        self.observers.acknowledged(observer);
                    }
                    Some(Owner::Response) => {
                        self.pending.ended(exchange);
                        self.waiting.room(RoomFor::Response(peer.source().sharing()));
                    }
                    // Some peers acknowledge a ping instead of resetting it (RFC 7252 section
                    // 4.3). Either answer shows that the peer is alive.
                    Some(Owner::Call(_)) if self.endpoint.has_ended(exchange) => {
                        self.end(exchange, Answer::Reset { sample: Some(sample) });
                    }
                    Some(Owner::Call(_)) | None => {}
                }
            }
            Received::Reset { exchange, sample } => {
                self.learnt(peer, from, exchange, sample.as_ref());
                self.end(exchange, Answer::Reset { sample });
            }
            Received::Request(..) | Received::Ignored(_) => {}
        }
    }

    /// An exchange has ended.
    pub(super) fn end(&mut self, exchange: ExchangeId, answer: Answer) {
        let Some(open) = self.pending.ended(exchange) else { return };
        self.room(open.remote);
        match open.owner {
            Owner::Call(index) => {
                if let Some(call) = self.pending.call(index) {
                    call.exchange = None;
                    self.wake.extend(call.push(answer));
                }
            }
            Owner::Notification(observer) => match answer {
                // A Non-confirmable notification was not reset.
                Answer::Failed(Failure::NoResponse) => {}
                Answer::Reset { .. } => self.observers.remove(observer),
                _ => self.observers.lost(observer),
            },
            Owner::Response => {
                self.waiting.room(RoomFor::Response(open.remote.source().sharing()));
            }
        }
    }

    /// An exchange with a remote has ended or left the queue, so another message may find room.
    pub(super) fn room(&mut self, remote: PeerId) {
        room(&self.endpoint, &mut self.observers, &mut self.waiting, remote);
    }

    /// Wakers to call once the lock is released.
    pub(crate) fn take_wakers(&mut self) -> Vec<Waker> {
        core::mem::take(&mut self.wake)
    }

    fn learnt(
        &mut self,
        peer: PeerId,
        from: SocketAddr,
        exchange: ExchangeId,
        sample: Option<&Sample>,
    ) {
        trace::learnt(from, exchange, sample, || self.endpoint.metrics(peer));
        if let (Some(sessions), Some(sample)) = (&mut self.dtls, sample) {
            sessions.answered(peer, sample.since_first);
        }
    }
}

/// A peer for logs: over DTLS its address, unless the session is over.
pub(crate) fn shown(dtls: Option<&Sessions>, peer: PeerId) -> PeerId {
    dtls.and_then(|sessions| sessions.address(peer)).map_or(peer, PeerId::Address)
}

#[inline]
fn room(endpoint: &Endpoint, observers: &mut Observers, waiting: &mut Waiting, remote: PeerId) {
    let scope = endpoint.scope_of(remote);
    observers.room(scope);
    waiting.room(RoomFor::Scope(scope));
}

/// The answer to a call whose exchange failed for this reason. If its last transmission did not get through,
/// the report says more than the silence.
fn given_up(open: Option<Open>, reason: Failure) -> Answer {
    match open.and_then(|open| open.reported) {
        Some(errno) if reason == Failure::GaveUp => {
            Answer::Network(io::Error::from_raw_os_error(errno))
        }
        _ => Answer::Failed(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::super::shared::{Shared, SocketConfig};
    use super::super::socket::SocketOptions;
    use super::*;
    use ebbtide_core::endpoint::{EndpointConfig, Reliability, SendError};
    use ebbtide_core::wire::{Code, Content};

    #[tokio::test]
    async fn the_queue_of_a_socket_is_bounded_and_refused_datagrams_are_counted() {
        const LIMIT: usize = 2000;
        let mut endpoint = EndpointConfig::default();
        endpoint.limits.outbox_bytes = LIMIT;
        let options = SocketOptions::default();
        let busy_poll = std::time::Duration::ZERO;
        let config = SocketConfig { endpoint, busy_poll, options, oscore: None, network: None };
        let shared = Shared::new(([127, 0, 0, 1], 0).into(), config, None).unwrap();
        let mut state = shared.lock();
        let content = Content { code: Code::GET, options: &[], payload: &[0; 100] };
        let mut refused = 0;
        for n in 0..1000_u16 {
            let remote = SocketAddr::from(([192, 0, 2, 1], 1024 + n));
            let asked = state.endpoint.request(
                Instant::ZERO,
                remote.into(),
                &content,
                Reliability::Confirmable,
            );
            // A datagram that finds no room counts as lost by the network.
            refused += usize::from(asked == Err(SendError::OutboxFull));
            state.drain(None);
            assert!(state.out.len_bytes() < LIMIT + 200, "{}", state.out.len_bytes());
        }
        assert!(state.is_full);
        let counted = state.endpoint.counters().outbox_full;
        assert!(counted > 900 && refused == 0, "{counted}, {refused}");
        // Once the socket has taken the waiting datagrams, the rest follows.
        state.out = Outbound::default();
        state.drain(None);
        assert!(!state.out.is_empty());
    }
}
