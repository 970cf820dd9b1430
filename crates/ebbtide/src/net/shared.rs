//! One socket and the endpoint behind it, shared by the driver, the application's calls and the
//! server's handlers.

use super::clock::{Clock, seeded};
use super::device::DatagramSocket;
#[cfg(feature = "dtls")]
use super::dtls::Side;
#[cfg(feature = "dtls")]
use super::dtls::config::DtlsConfig;
use super::dtls::{OpenedMessages, Queued, Sessions};
use super::network::DatagramNetwork;
use super::peer::PeerInfo;
use super::pending::{Answer, Open, Owner, Pending};
use super::room::Waiting;
use super::socket::{Inbox, Outbound, SocketOptions};
use super::trace;
use crate::error::BindError;
use crate::message::Response;
use crate::oscore::OscoreContexts;
use crate::refusals::Reason;
use ebbtide_core::cc::{ConfigError, Sample};
use ebbtide_core::endpoint::{
    Endpoint, EndpointConfig, Event, Failure, Incoming, Output, Received, Remember, Sent,
};
use ebbtide_core::session::{Due, Observers};
use ebbtide_core::time::{Instant, Micros};
use ebbtide_core::wire::Message;
use ebbtide_core::{ExchangeId, PeerId};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;

/// How a socket behaves.
#[derive(Debug)]
pub(crate) struct SocketConfig {
    pub(crate) endpoint: EndpointConfig,
    /// How long it goes on asking for datagrams after the last ones before it sleeps.
    pub(crate) busy_poll: Duration,
    pub(crate) options: SocketOptions,
    pub(crate) oscore: Option<OscoreContexts>,
    /// The network; by default the system's.
    pub(crate) network: Option<Arc<dyn DatagramNetwork>>,
}

/// A request that arrived at a socket.
pub(crate) struct ArrivedRequest<'d> {
    pub(crate) incoming: Incoming,
    pub(crate) message: Message<'d>,
    /// The sender's address.
    pub(crate) from: SocketAddr,
    /// Our address to which it was sent.
    pub(crate) to: Option<IpAddr>,
    /// Whether it is remembered, if it has to be; otherwise it must not be processed.
    pub(crate) vouched: bool,
}

/// Answers the requests that arrive at a socket.
pub(crate) trait Serve: core::fmt::Debug + Send + Sync {
    /// A socket was opened, perhaps in place of an earlier one with its number.
    fn opened(&self, shared: &Arc<Shared>);

    /// How a request that must not be processed twice is remembered; `much` states whether many messages
    /// are remembered already.
    fn remember(&self, now: Instant, remote: PeerId, message: &Message<'_>, much: bool)
    -> Remember;

    /// Counts a refusal of the message layer.
    fn refused(&self, now: Instant, why: Reason, remote: PeerId);

    /// Answers a request, or begins to. The state is not locked.
    fn serve(&self, shared: &Arc<Shared>, now: Instant, request: &ArrivedRequest<'_>);

    /// Creates and sends a notification, or begins to. The state is not locked.
    fn notify(&self, shared: &Arc<Shared>, now: Instant, due: Due);
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) device: DatagramSocket,
    pub(crate) clock: Clock,
    /// Answers requests; a client's socket has none.
    pub(crate) service: Option<Arc<dyn Serve>>,
    /// The socket's number within its server.
    pub(crate) number: u32,
    /// Whether the socket is bound to all addresses, so that a response must be sent from the
    /// address to which the request was sent.
    wildcard: bool,
    /// Set before the socket is driven.
    pub(super) speaks_dtls: AtomicBool,
    /// See [`SocketConfig::busy_poll`].
    pub(crate) busy_poll: Duration,
    /// The buffers for receiving, used by one task at a time.
    pub(super) inbox: Mutex<Inbox>,
    state: Mutex<SocketState>,
}

/// The mutable state.
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

impl Shared {
    /// A socket of its own, for tests.
    #[cfg(test)]
    pub(crate) fn new(
        address: SocketAddr,
        config: SocketConfig,
        service: Option<Arc<dyn Serve>>,
    ) -> Result<Arc<Self>, BindError> {
        Self::serving(address, config, service, Clock::start(), 0, false)
    }

    /// Creates a socket of a server or client, which numbers its sockets. Those with a service share its clock. Others may be
    /// bound to the same address if it is `shared` by workers.
    pub(crate) fn serving(
        address: SocketAddr,
        config: SocketConfig,
        service: Option<Arc<dyn Serve>>,
        clock: Clock,
        number: u32,
        shared: bool,
    ) -> Result<Arc<Self>, BindError> {
        let failed = |source| BindError::new(address, source);
        let invalid = |error| failed(io::Error::new(io::ErrorKind::InvalidInput, error));
        config.endpoint.params.check_spans().map_err(invalid)?;
        let contradicts = |error: ConfigError<'static>| {
            failed(io::Error::new(io::ErrorKind::InvalidInput, error))
        };
        let control = &config.endpoint.control;
        control.check_bound("ACK_TIMEOUT", &config.endpoint.params).map_err(contradicts)?;
        let options = SocketOptions { shared, ..config.options };
        let device = DatagramSocket::open(address, &options, config.network.as_deref())?;
        // The client chooses the length of a response's blocks (RFC 7959 section 2.4) and does not
        // know this side's path. A client chooses its own blocks, and receives an error if one is
        // too long.
        if service.is_some() {
            device.allow_fragments();
        }
        let wildcard = device.local_addr().ip().is_unspecified();
        let answers = service.is_some();
        let mut rng = seeded().map_err(failed)?;
        let observers = Observers::new(rng.next_u64());
        let max_unsent = config.endpoint.limits.outbox_bytes;
        let endpoint = Endpoint::new(config.endpoint, rng);
        let shared = Arc::new(Self {
            device,
            clock,
            service,
            number,
            wildcard,
            speaks_dtls: AtomicBool::new(false),
            busy_poll: config.busy_poll,
            inbox: Mutex::default(),
            state: Mutex::new(SocketState {
                endpoint,
                pending: Pending::default(),
                out: Outbound::default(),
                dtls: None,
                max_unsent,
                is_full: false,
                observers,
                oscore: config.oscore.filter(|_| answers),
                waiting: Waiting::default(),
                deadline: None,
                armed: None,
                driver: None,
                closed: false,
                wake: Vec::new(),
            }),
        });
        if let Some(service) = &shared.service {
            service.opened(&shared);
        }
        Ok(shared)
    }

    /// Makes the socket speak DTLS, before anything is sent or received.
    #[cfg(feature = "dtls")]
    pub(crate) fn secure(&self, side: Side, config: &DtlsConfig) -> io::Result<()> {
        let sessions = Sessions::new(side, config, self.number, self.clock)?;
        self.lock().dtls = Some(Box::new(sessions));
        self.speaks_dtls.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The peer of a session, on a socket that speaks DTLS.
    pub(crate) fn peer(&self, session: PeerId) -> Option<PeerInfo> {
        if !self.speaks_dtls.load(Ordering::Relaxed) {
            return None;
        }
        self.lock().dtls.as_ref()?.peer(session)
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.device.local_addr()
    }

    /// The address from which an answer to a datagram must leave.
    #[inline]
    pub(crate) fn reply_from(&self, to: Option<IpAddr>) -> Option<IpAddr> {
        to.filter(|to| self.wildcard && !to.is_multicast())
    }

    /// Locks the state. A thread that panicked while it held the lock (a bug of ours, since no
    /// handler runs under the lock) does not affect the others.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, SocketState> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Locks the state in order to give the endpoint something. Answers leave from the address `from`.
    #[inline]
    pub(super) fn draining(&self, from: Option<IpAddr>) -> DrainGuard<'_> {
        DrainGuard { state: self.lock(), from }
    }

    /// Changes the state from outside the driver, and sends the result. A client's single datagram leaves at once.
    /// If there is more to do, the driver is woken: it sends what several callers have in batches.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut SocketState, Instant) -> R) -> R {
        let now = self.clock.now();
        let mut state = self.lock();
        state.advance(now);
        let result = change(&mut state, now);
        state.drain(None);
        // A server's answers are no exchanges, so their number does not tell whether others follow.
        let is_only = self.service.is_none() && state.endpoint.open_exchanges() <= 1;
        if state.out.len() == 1 && is_only {
            // If the socket is full, the datagram stays queued, and the driver tries again.
            let _ = self.flush(&mut state, now);
        }
        let driver = if state.concerns_the_driver() { state.driver.take() } else { None };
        let woken = core::mem::take(&mut state.wake);
        drop(state);
        woken.into_iter().chain(driver).for_each(Waker::wake);
        result
    }

    /// Sends the waiting datagrams.
    pub(super) fn flush(&self, state: &mut SocketState, now: Instant) -> io::Result<()> {
        if state.out.is_empty() {
            return Ok(());
        }
        let mut unsent = Vec::new();
        let mut out = core::mem::take(&mut state.out);
        let result = self.device.flush(&mut out, |_, what, error| unsent.push((what, error)));
        state.out = out;
        for (what, error) in unsent {
            state.unsendable(now, what, error);
        }
        result
    }

    /// Closes the socket: calls fail, and the driver ends.
    pub(crate) fn close(&self) {
        self.with(|state, _| {
            state.closed = true;
            let woken = state.pending.wake_all();
            state.wake.extend(woken);
            let woken = state.dtls.as_mut().map(|sessions| sessions.wake_all());
            state.wake.extend(woken.unwrap_or_default());
        });
    }
}

/// The locked state while the endpoint is given something. Dropping it takes from the endpoint what it then has to send, so that
/// no code can forget to.
#[derive(Debug)]
pub(super) struct DrainGuard<'s> {
    state: MutexGuard<'s, SocketState>,
    from: Option<IpAddr>,
}

impl Deref for DrainGuard<'_> {
    type Target = SocketState;

    #[inline]
    fn deref(&self) -> &SocketState {
        &self.state
    }
}

impl DerefMut for DrainGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut SocketState {
        &mut self.state
    }
}

impl Drop for DrainGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.state.drain(self.from);
    }
}

impl SocketState {
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
                                self.pending.report(exchange, None);
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

    /// Processes everything that is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(sessions) = &mut self.dtls {
            sessions.handle_timeout(now);
        }
        self.endpoint.handle_timeout(now);
        self.drain(None);
    }

    /// The messages in a datagram, on a socket that speaks DTLS; `None` on another socket, whose
    /// datagrams are messages.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Option<OpenedMessages> {
        self.dtls.as_mut().map(|sessions| sessions.receive(now, from, datagram))
    }

    /// Passes on the meaning of a datagram, except for requests.
    pub(crate) fn dispatch(&mut self, peer: PeerId, from: SocketAddr, received: Received<'_>) {
        if !matches!(received, Received::Ignored(_)) {
            self.room(peer);
        }
        match received {
            Received::Response { exchange, sample, message } => {
                self.learnt(peer, from, exchange, sample.as_ref());
                let repeated = sample.is_none_or(|sample| sample.transmissions > 1);
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
            Owner::Response => {}
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
    waiting.room(scope);
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
    use super::*;
    use ebbtide_core::endpoint::{Reliability, SendError};
    use ebbtide_core::wire::{Code, Content};

    #[tokio::test]
    async fn the_queue_of_a_socket_is_bounded_and_refused_datagrams_are_counted() {
        const LIMIT: usize = 2000;
        let mut endpoint = EndpointConfig::default();
        endpoint.limits.outbox_bytes = LIMIT;
        let options = SocketOptions::default();
        let busy_poll = Duration::ZERO;
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
