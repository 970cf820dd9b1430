//! One socket, shared by the driver, the application's calls and the server's handlers, and the lock on its state.

use super::clock::{Clock, seeded};
use super::device::DatagramSocket;
#[cfg(feature = "dtls")]
use super::dtls::Sessions;
#[cfg(feature = "dtls")]
use super::dtls::Side;
#[cfg(feature = "dtls")]
use super::dtls::config::DtlsConfig;
use super::network::DatagramNetwork;
use super::peer::PeerInfo;
use super::receive_buffers::ReceiveBuffers;
use super::socket::{Binding, SocketOptions};
use super::socket_state::SocketState;
use super::workers::Workers;
use crate::error::BindError;
use crate::oscore::OscoreContexts;
use crate::refusals::Reason;
use ebbtide_core::PeerId;
use ebbtide_core::cc::ConfigError;
use ebbtide_core::endpoint::{Endpoint, EndpointConfig, Incoming, Remember};
use ebbtide_core::session::{Due, Observers};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Message;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
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

    /// Handlers have given so many answers between these instants.
    fn answered(&self, answers: u32, arrived: Instant, now: Instant);

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
    /// Whether its requests are those of others: what several of them send leaves in one batch.
    forwards: bool,
    /// Set before the socket is driven.
    pub(super) speaks_dtls: AtomicBool,
    /// Set at the end: what arrives waits in the kernel, for another process with this socket.
    pub(super) is_deaf: AtomicBool,
    /// The sockets of all workers at this address over DTLS, this one among them; set before they are driven.
    pub(crate) workers: OnceLock<Workers<Self>>,
    /// See [`SocketConfig::busy_poll`].
    pub(crate) busy_poll: Duration,
    /// Answers of handlers since the last look at the clock, which costs as much as a tenth of an answer.
    pub(crate) untimed: AtomicU32,
    /// Used by one task at a time.
    pub(super) receiving: Mutex<ReceiveBuffers>,
    state: Mutex<SocketState>,
}

impl Shared {
    /// A socket of its own, for tests.
    #[cfg(test)]
    pub(crate) fn new(
        address: SocketAddr,
        config: SocketConfig,
        service: Option<Arc<dyn Serve>>,
    ) -> Result<Arc<Self>, BindError> {
        Self::serving(address, Binding::Alone, config, service, Clock::start(), 0)
    }

    /// Creates a socket of a server or client, which numbers its sockets. Those with a service share its clock.
    pub(crate) fn serving(
        address: SocketAddr,
        binding: Binding,
        config: SocketConfig,
        service: Option<Arc<dyn Serve>>,
        clock: Clock,
        number: u32,
    ) -> Result<Arc<Self>, BindError> {
        let failed = |source| BindError::new(address, source);
        let invalid = |error| failed(io::Error::new(io::ErrorKind::InvalidInput, error));
        config.endpoint.params.check_spans().map_err(invalid)?;
        let contradicts = |error: ConfigError<'static>| {
            failed(io::Error::new(io::ErrorKind::InvalidInput, error))
        };
        let control = &config.endpoint.control;
        control.check_bound("ACK_TIMEOUT", &config.endpoint.params).map_err(contradicts)?;
        let network = config.network.as_deref();
        let device = DatagramSocket::open(address, binding, config.options, network)?;
        // The client chooses the length of a response's blocks (RFC 7959 section 2.4) and does not
        // know this side's path. A client chooses its own blocks, and receives an error if one is
        // too long.
        if service.is_some() {
            device.allow_fragments();
        }
        let forwards = config.endpoint.forwards;
        let wildcard = device.local_addr().ip().is_unspecified();
        let oscore = config.oscore.filter(|_| service.is_some());
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
            forwards,
            speaks_dtls: AtomicBool::new(false),
            is_deaf: AtomicBool::new(false),
            workers: OnceLock::new(),
            busy_poll: config.busy_poll,
            untimed: AtomicU32::new(0),
            receiving: Mutex::default(),
            state: Mutex::new(SocketState::new(endpoint, observers, oscore, max_unsent)),
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

    /// Receives nothing from now on.
    pub(crate) fn stop_receiving(&self) {
        self.is_deaf.store(true, Ordering::SeqCst);
    }

    /// Whether everything that was received before [`Self::stop_receiving`] is handled and sent.
    pub(crate) fn is_drained(&self) -> bool {
        let buffers = self.receiving.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        !buffers.inbox.has_left() && self.lock().out.is_empty()
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
        // Calls whose answers have come, but were not fetched yet, are likely to be followed by
        // others, which leave in one batch. A server's answers are no calls, so their number does
        // not tell whether others follow; nor does that of a proxy, whose calls begin with what one
        // batch of its clients' requests brought.
        let is_only = self.service.is_none() && !self.forwards && state.pending.calls() <= 1;
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

    /// Wakes the driver if it has something to do.
    pub(super) fn wake_driver(&self) {
        let mut state = self.lock();
        let driver = if state.concerns_the_driver() { state.driver.take() } else { None };
        let woken = state.take_wakers();
        drop(state);
        woken.into_iter().chain(driver).for_each(Waker::wake);
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
        let brief = self.with(|state, _| {
            state.closed = true;
            let woken = state.pending.wake_all();
            state.wake.extend(woken);
            let woken = state.dtls.as_mut().map(|sessions| sessions.wake_all());
            state.wake.extend(woken.unwrap_or_default());
            state.brief.take_all()
        });
        brief.into_iter().for_each(|task| task.cancel());
    }
}

/// The locked state while the endpoint is given something. Dropping it takes from the endpoint what
/// it then has to send, so that no code can forget to.
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
