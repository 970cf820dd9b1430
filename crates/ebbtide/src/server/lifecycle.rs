//! The end of a server: at once, or gracefully.

use super::inner::Service;
use super::{Listener, Resource, Server};
#[cfg(feature = "dtls")]
use crate::dtls::SessionPeer;
use crate::message::Response;
use crate::net::shared::Shared;
#[cfg(feature = "dtls")]
use crate::proved_identity::ProvedIdentity;
use crate::stream::ListenerHandle;
use core::fmt;
use ebbtide_core::wire::Code;
use futures_util::future::{Either, join, select};
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How often to check whether all work is finished.
const POLL: Duration = Duration::from_millis(5);
/// How long the last state may take to be stored afterwards.
const STORING: Duration = Duration::from_secs(3);
/// How long the sockets may take to close afterwards.
const CLOSING: Duration = Duration::from_millis(200);

/// Ends a [`Server`] from elsewhere. Clones end the same server.
#[derive(Clone)]
pub struct ServerHandle {
    service: Service,
    sockets: Vec<Weak<Shared>>,
    listeners: Vec<ListenerHandle>,
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandle").field("sockets", &self.sockets.len()).finish_non_exhaustive()
    }
}

impl ServerHandle {
    /// Ends the server gracefully. New requests are answered 5.03 with Max-Age, observers over UDP
    /// and DTLS receive a 5.03 that ends their observations, running handlers finish, and
    /// acknowledged requests are answered. After that, but at the latest after `grace`, the server
    /// releases its connections and closes its sockets. [`Server::run`] then returns, and the
    /// addresses can be bound again. Returns true if all work was finished within `grace`. A server
    /// with a [state](crate::ServerConfig::state) keeps its observers and its sessions, for the
    /// process that reads it next. One with [sockets that were handed
    /// over](crate::ServerConfig::sockets) refuses nothing: it receives and accepts no more, and
    /// what arrives meanwhile waits for the process that has these sockets next.
    ///
    /// Not cancel safe: if dropped, the server stays open and answers every new request with 5.03.
    pub async fn shutdown(&self, grace: Duration) -> bool {
        let seconds = u32::try_from(grace.as_secs()).unwrap_or(u32::MAX).max(1);
        if self.is_followed() {
            self.stop_receiving();
        } else {
            self.service.inner.refuses_for.store(seconds, Ordering::SeqCst);
        }
        if !self.keeps_observers() {
            let goodbye = Response::new(Code::SERVICE_UNAVAILABLE).max_age(seconds);
            for shared in self.sockets.iter().filter_map(Weak::upgrade) {
                shared.with(|state, _| state.observers.end_all(&goodbye));
            }
        }
        #[expect(clippy::disallowed_methods, reason = "the grace is a span of real time")]
        let end = Instant::now() + grace;
        let done = timeout_at(end, async {
            while !self.is_idle() {
                sleep(POLL).await;
            }
        });
        let done = done.await.is_ok();
        if self.keeps_observers() {
            // What arrives from now on is not in the state.
            self.stop_receiving();
            let stored = tokio::time::timeout(STORING, self.service.store_last());
            let _ = stored.await;
        }
        self.close();
        let closed = async {
            while self.sockets.iter().any(|shared| shared.strong_count() > 0) {
                sleep(POLL).await;
            }
        };
        // A server that is neither running nor dropped keeps its sockets.
        let _ = tokio::time::timeout(CLOSING, closed).await;
        done
    }

    /// Adds a resource while the server runs, at a path such as `/devices/7`. Of two at one path,
    /// the later one remains. Routes of the initial router take precedence.
    ///
    /// ```no_run
    /// # use ebbtide::server::{Router, Server, get};
    /// # async fn example(router: Router) -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::bind(router, ["0.0.0.0:5683"])?;
    /// let handle = server.handle();
    /// tokio::spawn(server.run());
    /// handle.add_route("/devices/7", get(|| "on"));
    /// handle.remove_route("/devices/7");
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if the path has more than four parameters.
    pub fn add_route(&self, path: &str, resource: Resource) {
        self.service
            .inner
            .added
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(path, resource);
    }

    /// Removes the resource that was added with this path by [`Self::add_route`]; its observers
    /// receive a 4.04. Returns false if there is none.
    pub fn remove_route(&self, path: &str) -> bool {
        let mut added = self.service.inner.added.write().unwrap_or_else(PoisonError::into_inner);
        let removed = added.remove(path);
        // Other handlers may look routes up meanwhile.
        drop(added);
        if let Some(subject) = removed.as_ref().and_then(|route| route.resource.subject.as_ref()) {
            subject.changed();
        }
        removed.is_some()
    }

    /// Ends the sessions over DTLS and the connections over TLS of peers that are not to be served
    /// any more, such as those whose key was removed: `keeps` decides for each. Sessions cannot be
    /// resumed.
    #[cfg(feature = "dtls")]
    pub fn end_sessions(&self, keeps: impl Fn(SessionPeer<'_>) -> bool) {
        for listener in &self.listeners {
            listener.release(|peer| {
                peer.is_some_and(|peer| {
                    let identity = peer.identity.as_ref().map(ProvedIdentity::as_bytes);
                    let identity = identity.unwrap_or_default();
                    !keeps(SessionPeer::new(identity, peer.certificate.as_deref()))
                })
            });
        }
        for shared in self.sockets.iter().filter_map(Weak::upgrade) {
            shared.with(|state, _| {
                if let Some(sessions) = &mut state.dtls {
                    sessions.end_sessions(&mut |peer| keeps(peer));
                }
            });
        }
    }

    /// Stops serving at once. Requests whose handlers are still running are not answered.
    pub fn close(&self) {
        self.sockets.iter().filter_map(Weak::upgrade).for_each(|shared| shared.close());
        self.listeners.iter().for_each(ListenerHandle::close);
    }

    /// Whether another process goes on with its sockets.
    fn is_followed(&self) -> bool {
        self.service.config().handed_over.is_any()
    }

    fn stop_receiving(&self) {
        self.sockets.iter().filter_map(Weak::upgrade).for_each(|shared| shared.stop_receiving());
        self.listeners.iter().for_each(ListenerHandle::stop_accepting);
    }

    /// Whether the observers are stored.
    fn keeps_observers(&self) -> bool {
        self.service.config().state.is_some()
    }

    /// Whether all acknowledged requests are answered and all observers are notified of the end.
    fn is_idle(&self) -> bool {
        let sockets = self.sockets.iter().filter_map(Weak::upgrade);
        let (keeps_observers, is_followed) = (self.keeps_observers(), self.is_followed());
        self.service.inner.working.load(Ordering::SeqCst) == 0
            && sockets.into_iter().all(|shared| {
                if is_followed {
                    // Acknowledgements go to the successor.
                    return shared.is_drained();
                }
                let state = shared.lock();
                state.endpoint.open_exchanges() == 0
                    && (keeps_observers || state.observers.is_empty())
            })
    }
}

impl Server {
    /// Returns a handle that ends this server from elsewhere, also while [`Self::run`] owns it. It
    /// ends the connections of those listeners that were added before.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        ServerHandle {
            service: self.service.clone(),
            sockets: self.sockets.iter().map(|(shared, _)| Arc::downgrade(shared)).collect(),
            listeners: self.listeners.iter().map(Listener::handle).collect(),
        }
    }

    /// Serves until `signal` is ready, and then shuts down gracefully; see
    /// [`ServerHandle::shutdown`].
    ///
    /// ```no_run
    /// # use ebbtide::server::{Router, Server, get};
    /// # use std::time::Duration;
    /// # async fn example(stop: tokio::sync::oneshot::Receiver<()>) -> Result<(), Box<dyn std::error::Error>> {
    /// let server = Server::bind(Router::new().route("/hello", get(|| "hello")), ["0.0.0.0:5683"])?;
    /// let stopped = async { stop.await.unwrap_or_default() };
    /// server.run_until(stopped, Duration::from_secs(10)).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// See [`Self::run`].
    pub async fn run_until(
        self,
        signal: impl Future<Output = ()>,
        grace: Duration,
    ) -> io::Result<()> {
        let handle = self.handle();
        let (running, signal) = (pin!(self.run()), pin!(signal));
        match select(running, signal).await {
            Either::Left((ended, _)) => ended,
            Either::Right(((), running)) => join(running, handle.shutdown(grace)).await.0,
        }
    }
}
