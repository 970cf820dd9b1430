//! Incoming connections of a server.

use super::budget::{OF_A_CONNECTION, OF_A_WEBSOCKET, OF_TLS};
use super::config::Listen;
use super::config::{StreamConfig, StreamLimits};
use super::counters::{StreamCounters, Tally};
use super::link::{Answerer, Link};
use super::member::Member;
use super::socket::{ListeningSocket, StreamSocket};
use super::task::{Held, Task};
use super::wire::{Bytes, Wire};
#[cfg(feature = "ws")]
use super::ws_server;
use crate::error::BindError;
use crate::message::Scheme;
use crate::net::beside::TURN;
use crate::net::handed_over::HandedOver;
use crate::net::peer::PeerInfo;
#[cfg(any(feature = "tls", feature = "ws"))]
use crate::refusals::Reason;
use futures_util::future::{Either, select};
use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle};

/// How long nothing is accepted after an error of the system, which most often has no descriptors
/// left.
const PAUSE: Duration = Duration::from_millis(100);

/// A listening socket and the connections that it has accepted.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) scheme: Scheme,
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    pub(crate) task: JoinHandle<()>,
}

struct Shared {
    serving: Serving,
    tally: Arc<Tally>,
    secure: bool,
    websocket: bool,
    links: Mutex<BTreeMap<SocketAddr, Weak<Link>>>,
    /// Signals that no connection is accepted any more.
    stopped: Notify,
    #[cfg(feature = "tls")]
    tls: Option<super::tls_server::Acceptor>,
}

/// The service of the accepted connections, and their settings.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    pub(crate) answerer: Answerer,
    pub(crate) config: StreamConfig,
    pub(crate) limits: StreamLimits,
    pub(crate) handed_over: HandedOver,
}

impl core::fmt::Debug for Shared {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shared").field("links", &self.links().len()).finish_non_exhaustive()
    }
}

impl Listener {
    /// Binds and starts to accept. `tally` is shared by all listeners of a server.
    pub(crate) fn start(
        listen: Listen,
        serving: Serving,
        tally: Arc<Tally>,
    ) -> Result<Self, BindError> {
        let (scheme, address) = (listen.scheme(), listen.address());
        let failed = |source| BindError::new(address, source);
        if !cfg!(feature = "tcp") {
            let why = "it needs the feature 'tcp' of ebbtide";
            return Err(failed(io::Error::new(io::ErrorKind::Unsupported, why)));
        }
        #[cfg(feature = "tls")]
        let tls = {
            let tls = listen
                .tls()
                .map(|tls| tls.acceptor(serving.answerer.clock).map_err(io::Error::other));
            tls.transpose().map_err(failed)?
        };
        let network = serving.config.network.as_deref();
        let opened = ListeningSocket::open(network, &serving.handed_over, address);
        let listener = opened.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let websocket = scheme.is_websocket();
        let links = Mutex::default();
        let shared = Arc::new(Shared {
            serving,
            tally,
            secure: scheme.is_secure(),
            websocket,
            links,
            stopped: Notify::new(),
            #[cfg(feature = "tls")]
            tls,
        });
        let task = tokio::spawn(accept(listener, shared.clone()));
        Ok(Self { scheme, address, shared, task })
    }

    /// Stops accepting and releases the open connections.
    pub(crate) fn close(&self) {
        self.handle().close();
    }

    /// A handle for callers that do not have the listener.
    pub(crate) fn handle(&self) -> ListenerHandle {
        ListenerHandle { shared: self.shared.clone(), task: self.task.abort_handle() }
    }

    /// Its open connections.
    pub(crate) fn open_links(&self) -> OpenLinks {
        OpenLinks(Arc::downgrade(&self.shared))
    }
}

/// Ends a listener from elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct ListenerHandle {
    shared: Arc<Shared>,
    task: AbortHandle,
}

impl ListenerHandle {
    /// Accepts no connections from now on.
    pub(crate) fn stop_accepting(&self) {
        self.shared.stopped.notify_one();
    }

    /// Stops accepting and releases the open connections.
    pub(crate) fn close(&self) {
        self.task.abort();
        self.release(|_| true);
    }

    /// Releases the open connections with these peers.
    pub(crate) fn release(&self, is_to_end: impl Fn(Option<&PeerInfo>) -> bool) {
        let links: Vec<_> = self.shared.links().values().filter_map(Weak::upgrade).collect();
        let ended = links.iter().filter(|link| is_to_end(link.peer.as_ref()));
        ended.for_each(|link| link.release());
    }
}

/// The open connections of a listener, which it outlives.
#[derive(Clone, Debug)]
pub(crate) struct OpenLinks(Weak<Shared>);

impl OpenLinks {
    /// Adds their observers, and the counters of their messages.
    pub(crate) fn add_to(&self, counters: &mut StreamCounters) {
        let Some(shared) = self.0.upgrade() else { return };
        let links: Vec<_> = shared.links().values().filter_map(Weak::upgrade).collect();
        for link in links {
            let state = link.lock();
            if state.over.is_none() {
                counters.observers += state.observers.len();
                counters.messages += state.connection.counters();
            }
        }
    }
}

/// The maximum number of descriptors of this process.
fn descriptors() -> u64 {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, getrlimit};
        getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
    }
    #[cfg(not(target_os = "linux"))]
    u64::MAX
}

async fn accept(listener: ListeningSocket, shared: Arc<Shared>) {
    let spare = u64::from(shared.serving.limits.spare_descriptors);
    let last = descriptors().saturating_sub(spare);
    let mut turn = shared.serving.answerer.clock.now();
    loop {
        let (stopped, next) = (pin!(shared.stopped.notified()), pin!(listener.accept()));
        let (stream, from) = match select(stopped, next).await {
            Either::Left(_) => break,
            Either::Right((Ok(accepted), _)) => accepted,
            Either::Right((Err(error), _)) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        // A crowd of connections leaves turns to others.
        let now = shared.serving.answerer.clock.now();
        if now >= turn + TURN {
            tokio::task::yield_now().await;
            turn = shared.serving.answerer.clock.now();
        }
        #[cfg(feature = "tls")]
        if shared.tls.as_ref().is_some_and(|tls| !tls.has_room(from.ip())) {
            shared.tally.handshake_failed();
            shared.serving.answerer.service.refused(Reason::Handshake, from.ip());
            continue;
        }
        let limits = &shared.serving.limits;
        let scarce = stream.descriptor() >= last;
        match shared.tally.admit(from.ip(), limits, shared.bytes_of_each(), scarce) {
            Ok(member) => {
                tokio::spawn(Admitted { shared: shared.clone(), from, member }.serve(stream));
            }
            Err(why) => shared.serving.answerer.service.refused(why, from.ip()),
        }
    }
    drop(listener);
    // The task ends with the server.
    pending::<()>().await;
}

/// An admitted connection, which is removed from the count when it is dropped.
struct Admitted {
    shared: Arc<Shared>,
    from: SocketAddr,
    member: Arc<Member>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.shared.tally.leave(&self.member);
        self.shared.links().remove(&self.from);
    }
}

impl Shared {
    fn links(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Weak<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that a connection counts for, in addition to its buffers.
    fn bytes_of_each(&self) -> usize {
        let tls = if self.secure { OF_TLS } else { 0 };
        let websocket = if self.websocket { OF_A_WEBSOCKET } else { 0 };
        OF_A_CONNECTION + tls + websocket
    }
}

impl Admitted {
    async fn serve(self, stream: StreamSocket) {
        // Without it responses would wait for each other; a failure to set it is not a reason to
        // close the connection.
        let _ = stream.set_nodelay(self.shared.serving.config.nodelay);
        if self.shared.secure || self.shared.websocket {
            self.shared.tally.start(&self.member, &self.shared.serving.limits);
        }
        // Each way is an allocation of its own, so that a connection without TLS and WebSocket does
        // not hold the room that these need.
        #[cfg(feature = "tls")]
        if let Some(acceptor) = &self.shared.tls {
            let handshake = acceptor.accept(stream, self.from.ip());
            if let Some(stream) = Box::pin(self.timely(handshake)).await {
                let peer = super::tls_server::peer(self.from, &stream);
                Box::pin(self.over(stream, Some(peer))).await;
            }
            return;
        }
        Box::pin(self.over(stream, None)).await;
    }

    /// Runs over TCP or TLS, either directly or as a WebSocket.
    async fn over<T>(&self, stream: T, peer: Option<PeerInfo>)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        #[cfg(feature = "ws")]
        if self.shared.websocket {
            let config = &self.shared.serving.config;
            let max = config.connection.max_message_size;
            let opened = ws_server::accept(stream, &config.origins, max);
            if let Some(frames) = Box::pin(self.timely(opened)).await {
                Box::pin(self.drive(frames, peer)).await;
            }
            return;
        }
        Box::pin(self.drive(Bytes(stream), peer)).await;
    }

    /// The result of a handshake; `None` if it fails or takes too long.
    #[cfg(any(feature = "tls", feature = "ws"))]
    async fn timely<R>(&self, handshake: impl Future<Output = io::Result<R>>) -> Option<R> {
        let span = self.shared.serving.config.handshake_timeout;
        let handshake = pin!(tokio::time::timeout(span, handshake));
        let dismissed = pin!(self.member.dismissed());
        let done = match select(handshake, dismissed).await {
            Either::Left((Ok(Ok(done)), _)) => return Some(done),
            Either::Left((Ok(Err(error)), _)) => error.to_string(),
            Either::Left((Err(_), _)) => "it took too long".to_owned(),
            Either::Right(_) => "it made room for others".to_owned(),
        };
        tracing::debug!(target: "ebbtide::stream", peer = %self.from, reason = done, "no handshake");
        self.shared.tally.handshake_failed();
        self.shared.serving.answerer.service.refused(Reason::Handshake, self.from.ip());
        None
    }

    async fn drive<W: Wire>(&self, wire: W, peer: Option<PeerInfo>) {
        let Serving { answerer, config, limits, .. } = &self.shared.serving;
        let mut connection = config.connection;
        connection.idle_timeout = limits.idle_timeout;
        let link = Link::new(self.from, W::FRAMING, connection, Some(answerer.clone()), peer);
        self.shared.links().insert(self.from, Arc::downgrade(&link));
        self.member.establish(&link);
        self.shared.tally.started(&self.member);
        self.shared.tally.established();
        let held = Held::new(self.member.clone(), self.shared.bytes_of_each(), limits.bytes);
        Box::pin(Task::new(link, wire, self.shared.tally.clone(), Some(held))).await;
    }
}
