//! The server: a router of handlers behind any number of sockets.

mod arriving;
mod awaited;
mod bind;
mod body_stream;
mod call;
mod carrier;
#[cfg(feature = "edhoc")]
mod edhoc;
mod extract;
mod file;
mod gate;
mod group;
mod handler;
mod handler_future;
mod in_order;
mod inner;
mod into_response;
mod last_write;
mod late_methods;
mod later;
mod layer;
mod lifecycle;
mod locked;
mod node;
mod observe;
mod origin;
mod over_streams;
mod pace;
mod panics;
mod protected;
mod reply;
mod report;
mod resource;
mod rest_of_path;
mod route;
mod router;
mod service;
mod state;
mod streaming;
mod test_server;
mod well_known;
mod worker;

pub use crate::state_store::{StateFile, StateStore};
pub use body_stream::BodyStream;
pub use call::Call;
pub use extract::{Accept, Body, ETags, FromCall, Rejection, Remote, State};
#[cfg(feature = "serde")]
pub use extract::{Cbor, Data, Json, Path, Query};
pub use file::{FileHandler, file, one_block};
pub use group::{ALL_COAP_NODES, interface_index};
pub use handler::Handler;
pub use in_order::{Delivery, in_order};
pub use into_response::{HandlerError, IntoResponse};
pub use layer::{AccessLog, Authorize, ConcurrencyLimit, Layer, Next, Timeout};
pub use lifecycle::ServerHandle;
pub use observe::Subject;
pub use reply::Reply;
pub use resource::{Resource, delete, fetch, get, ipatch, patch, post, put};
pub use router::Router;
pub use state::StoredMap;
pub use test_server::TestServer;

pub use ebbtide_core::endpoint::Reliability;
pub use ebbtide_core::session::Verify;
pub use ebbtide_core::session::server::Refusals;

use crate::client::Client;
use crate::config::ServerConfig;
use crate::error::{BindError, Cause, Error};
use crate::message::Scheme;
use crate::metrics::{Meter, Reports, Snapshot};
use crate::net::driver::Driver;
use crate::net::shared::Shared;
use crate::stream::{Answerer, Listen, Listener, Serving, Tally};
use bind::{Binder, BoundSocket};
use ebbtide_core::cc::ControlConfig;
use ebbtide_core::endpoint::{Measured, MessageIdStart};
use inner::Service;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};
use std::task::Poll;
use tokio::task::JoinHandle;

/// A CoAP server. Dropping it closes its sockets.
#[derive(Debug)]
pub struct Server {
    service: Service,
    sockets: Vec<(Arc<Shared>, JoinHandle<()>)>,
    listeners: Vec<Listener>,
    tally: Arc<Tally>,
    /// See [`Self::client`].
    client: OnceLock<Client>,
}

impl Server {
    /// Serves `router` at these addresses, with the default settings.
    ///
    /// # Errors
    ///
    /// Returns an error if one of the addresses cannot be resolved or bound, or if the system
    /// provides no randomness.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime with IO and time enabled.
    pub fn bind(
        router: Router,
        addresses: impl IntoIterator<Item = impl ToSocketAddrs>,
    ) -> Result<Self, BindError> {
        Self::with_config(router, ServerConfig::new(), addresses)
    }

    /// Serves `router` at these addresses. Names are resolved, and the stored state is loaded, in
    /// the calling thread, which they may block.
    ///
    /// # Errors
    ///
    /// Returns an error if one of the addresses cannot be resolved or bound, if the stored state
    /// cannot be loaded, if a worker cannot be started, or if the system provides no randomness.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime with IO and time enabled.
    pub fn with_config(
        router: Router,
        config: ServerConfig,
        addresses: impl IntoIterator<Item = impl ToSocketAddrs>,
    ) -> Result<Self, BindError> {
        let mut config = config.0.for_its_path();
        if router.is_forward_proxy() {
            config.leave_safe_options();
        }
        let mut net = config.clone();
        let store = config.state.clone();
        let unread = BindError::of_state;
        let saved = store.as_deref().map(state::SavedState::load).transpose().map_err(unread)?;
        net.endpoint.message_id_start = saved.as_ref().map(|saved| {
            let (key, restarts) = (saved.key, saved.restarts);
            MessageIdStart { key, restarts }
        });
        let no_randomness = BindError::unprepared;
        let service = Service::new(router, config).map_err(no_randomness)?;
        let mut binder = Binder::new(&service, &net);
        for address in addresses {
            for address in resolve(address)? {
                binder.bind(address)?;
            }
        }
        #[cfg(feature = "dtls")]
        for bind in &net.dtls_binds {
            binder.bind_dtls(bind)?;
        }
        let bound = binder.bound;
        if let (Some(store), Some(saved)) = (store, saved) {
            let sockets: Vec<_> = bound.iter().map(|socket| socket.shared.clone()).collect();
            let saved = state::restore(&service, &sockets, saved);
            let sockets = sockets.iter().map(Arc::downgrade).collect();
            tokio::spawn(state::store_changes(service.clone(), sockets, store, saved));
        }
        let start = |BoundSocket { shared, worker }| {
            let driver = match worker {
                Some(worker) => worker.drive(Arc::clone(&shared)),
                None => Driver::spawn(Arc::clone(&shared)),
            };
            (shared, driver)
        };
        let sockets = bound.into_iter().map(start).collect();
        tokio::spawn(report::report(Arc::downgrade(&service.inner)));
        Ok(Self {
            service,
            sockets,
            listeners: Vec::new(),
            tally: Arc::default(),
            client: OnceLock::new(),
        })
    }

    /// Serves `router` without a UDP socket of plain CoAP: over DTLS, at the addresses that `config` binds, and over
    /// the connections that [`Self::listen`] accepts.
    ///
    /// # Errors
    ///
    /// As [`Self::with_config`].
    ///
    /// # Panics
    ///
    /// As [`Self::with_config`].
    pub fn without_plain_sockets(router: Router, config: ServerConfig) -> Result<Self, BindError> {
        let none: [SocketAddr; 0] = [];
        Self::with_config(router, config, none)
    }

    /// Serves the same resources over TCP, TLS or WebSockets as well.
    ///
    /// ```no_run
    /// # async fn example(router: ebbtide::server::Router) -> Result<(), Box<dyn std::error::Error>> {
    /// use ebbtide::{Server, stream::Listen};
    ///
    /// let server = Server::bind(router, ["0.0.0.0:5683"])?
    ///     .listen(Listen::Tcp(([0, 0, 0, 0], 5683).into()))?;
    /// # server.run().await?; Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the address cannot be bound or the certificate cannot be used.
    pub fn listen(mut self, at: Listen) -> Result<Self, BindError> {
        let config = self.service.config();
        let serving = Serving {
            answerer: Answerer {
                service: Arc::new(self.service.clone()),
                clock: self.service.clock(),
                oscore: config.oscore.clone(),
            },
            config: config.stream.clone(),
            limits: config.stream_limits,
            handed_over: config.handed_over.clone(),
        };
        self.listeners.push(Listener::start(at, serving, self.tally.clone())?);
        Ok(self)
    }

    /// Joins a multicast group at the sockets that are bound to all addresses of its family. A
    /// request to the group's address is answered after a random part of DEFAULT_LEISURE, unless
    /// there is nothing to report (RFC 7252 section 8.2). `interface` is the index of an interface
    /// ([`interface_index`]), or 0 for the system's choice.
    ///
    /// # Errors
    ///
    /// Returns an error if `group` is not a multicast address, or if there is no such interface or
    /// socket.
    pub fn join(&self, group: IpAddr, interface: u32) -> io::Result<()> {
        if group::join(self.sockets.iter().map(|(shared, _)| shared), group, interface)? {
            return Ok(());
        }
        let why = format!("group {group}: no socket is bound to all addresses (0.0.0.0 or [::])");
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }

    /// Joins [`ALL_COAP_NODES`] of the families for which there are sockets, and returns the joined
    /// groups.
    ///
    /// # Errors
    ///
    /// As [`Self::join`].
    pub fn join_all_coap_nodes(&self, interface: u32) -> io::Result<Vec<IpAddr>> {
        let mut joined = Vec::new();
        for group in ALL_COAP_NODES {
            if group::join(self.sockets.iter().map(|(shared, _)| shared), group, interface)? {
                joined.push(group);
            }
        }
        if joined.is_empty() {
            let why = "no socket is bound to all addresses (0.0.0.0 or [::])";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(joined)
    }

    /// Sets the congestion control of separate responses and notifications to one peer. It takes
    /// effect at once, and starts without measurements.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no room for another peer's state, or for another control: a
    /// socket has at most 256 different ones.
    pub fn set_control(&self, remote: SocketAddr, control: ControlConfig) -> Result<(), Error> {
        let same_family = |shared: &Shared| shared.local_addr().is_ipv4() == remote.is_ipv4();
        let sockets = self.sockets.iter().map(|(shared, _)| shared);
        let set = |shared: &Arc<Shared>| {
            shared
                .with(|state, now| state.endpoint.set_control(now, remote.into(), control.clone()))
        };
        sockets
            .filter(|shared| same_family(shared))
            .try_for_each(set)
            .map_err(|error| Cause::Send(error).into())
    }

    /// The losses of a client's messages over UDP, by the option PM; `None` without
    /// [`measurement`](ServerConfig::measurement), or if the client has not sent the option.
    #[must_use]
    pub fn measured(&self, remote: SocketAddr) -> Option<Measured> {
        let mut sockets = self.sockets.iter().map(|(shared, _)| shared);
        sockets.find_map(|shared| shared.lock().endpoint.measured(remote.into()))
    }

    /// The addresses of the sockets for `coap`.
    #[must_use]
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.addresses(false)
    }

    /// The addresses of the sockets for `coaps`.
    #[cfg(feature = "dtls")]
    #[must_use]
    pub fn dtls_addrs(&self) -> Vec<SocketAddr> {
        self.addresses(true)
    }

    fn addresses(&self, dtls: bool) -> Vec<SocketAddr> {
        let sockets = self.sockets.iter().map(|(shared, _)| shared);
        let sockets = sockets.filter(|shared| shared.lock().dtls.is_some() == dtls);
        let mut addresses: Vec<_> = sockets.map(|shared| shared.local_addr()).collect();
        // Workers share one address.
        addresses.dedup();
        addresses
    }

    /// The schemes and addresses at which it accepts connections.
    #[must_use]
    pub fn listeners(&self) -> Vec<(Scheme, SocketAddr)> {
        self.listeners.iter().map(|listener| (listener.scheme, listener.address)).collect()
    }

    /// The addresses of [sockets that were handed over](ServerConfig::sockets) and at which it does not serve.
    #[must_use]
    pub fn unused_sockets(&self) -> Vec<SocketAddr> {
        self.service.config().handed_over.unused()
    }

    /// A snapshot of the server's metrics.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.meter().snapshot()
    }

    /// Returns a reader of its metrics, which also works while [`Self::run`] owns the server.
    #[must_use]
    pub fn meter(&self) -> Meter {
        let inner: Arc<dyn Reports> = self.service.inner.clone();
        let report: Weak<dyn Reports> = Arc::downgrade(&inner);
        let listeners = self.listeners.iter().map(Listener::open_links).collect();
        Meter::new(self.sockets.iter().map(|(shared, _)| shared), &self.tally, listeners, report)
    }

    /// Serves until this future is dropped, which closes the sockets, or until the server is ended
    /// by its [`Self::handle`].
    ///
    /// # Errors
    ///
    /// Returns an error if a task that drives a socket or accepts connections has panicked, because
    /// the server then no longer serves all its addresses. A panic of a handler does not cause this
    /// error: its request is answered 5.00 (Internal Server Error), and the panic is counted and
    /// logged. Also returns an error of kind `InvalidInput`, at once, if nothing was bound.
    pub async fn run(mut self) -> io::Result<()> {
        if self.sockets.is_empty() && self.listeners.is_empty() {
            let what = "the server has no address: name one in `Server::bind`, or call `listen`";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        // The first task to end decides, since none of them ends by itself.
        let ended = poll_fn(|cx| {
            let sockets = self.sockets.iter_mut().map(|(_, driver)| driver);
            let listeners = self.listeners.iter_mut().map(|listener| &mut listener.task);
            for task in sockets.chain(listeners) {
                if let Poll::Ready(ended) = Pin::new(task).poll(cx) {
                    return Poll::Ready(ended);
                }
            }
            Poll::Pending
        });
        match ended.await {
            // The server was closed.
            Err(error) if error.is_cancelled() => Ok(()),
            ended => ended.map_err(io::Error::other),
        }
    }

    /// Stops serving at once.
    pub fn close(&self) {
        for (shared, _) in &self.sockets {
            shared.close();
        }
        self.listeners.iter().for_each(Listener::close);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

fn resolve(address: impl ToSocketAddrs) -> Result<Vec<SocketAddr>, BindError> {
    Ok(address.to_socket_addrs().map_err(BindError::unresolved)?.collect())
}
