//! The client: requests out, responses in.

mod addresses;
mod burst;
mod controls;
mod direct;
mod drive;
#[cfg(feature = "dtls")]
mod dtls;
mod echoes;
#[cfg(feature = "edhoc")]
mod edhoc;
mod equals;
mod exchange;
mod group;
mod keep_alive;
mod observe;
mod peer;
mod pending;
mod q_block;
mod registration;
#[cfg(feature = "oscore")]
mod renewal;
mod rooms;
mod running;
mod session;
mod shared_registration;
mod sockets;
mod streamed;
mod weak_session;

pub use burst::{Burst, NotAccepted, Reason, Report, Summary, Unacknowledged, Upload};
pub use direct::DirectRequest;
pub use ebbtide_core::session::client::RequestParts;
pub use observe::{Observation, Observed};
pub use peer::Peer;
pub(crate) use sockets::ServerSockets;
pub use streamed::{Download, StreamedUpload};
pub(crate) use weak_session::{Reachable, WeakSession, WeakTransport};

use crate::config::{AllSettings, ClientConfig};
use crate::error::{Cause, Error};
use crate::message::{Request, Response, Uri, UriError};
use crate::metrics::Snapshot;
use crate::net::clock::Clock;
use crate::net::shared::{Serve, Shared};
use crate::net::trace;
use crate::stream;
use crate::stream::{Answerer, Pool};
use bytes::Bytes;
use ebbtide_core::cc::{ControlConfig, Metrics, Sample};
use ebbtide_core::endpoint::{Measured, Reliability};
use ebbtide_core::session::Arrival;
#[cfg(feature = "dtls")]
use ebbtide_dtls::SavedSession;
use exchange::Extent;
use registration::Home;
use rooms::Rooms;
use session::{HandshakeEnd, Session};
use sockets::SocketKind;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tracing::Instrument;

/// A CoAP client for any number of peers and concurrent requests. It has one socket per address
/// family, opened when it is first needed, and for URIs such as `coap+tcp://` one connection per
/// server, which all requests share and which is opened again when it is lost.
///
/// Cloning it is cheap; all clones share the sockets and the measurements of congestion control. The
/// sockets close when the last clone is dropped. Requests must be made within a tokio runtime with IO
/// and time enabled; outside of one they panic. If that runtime ends, open requests fail with
/// [`ErrorKind::Closed`](crate::ErrorKind::Closed); used in another runtime, the client opens new sockets.
///
/// ```no_run
/// use ebbtide::{Client, ContentFormat, Request};
///
/// # async fn example() -> Result<(), ebbtide::Error> {
/// let client = Client::new();
/// let lamp = Request::put("coap://192.0.2.7/lamp")?
///     .payload("{\"on\":true}")
///     .format(ContentFormat::JSON);
/// let response = client.request(lamp).await?;
/// assert!(response.is_success(), "{}", response.text());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<ClientInner>,
}

/// The services for the requests that arrive at a client, and the clock of their state.
#[derive(Debug)]
pub(crate) struct Responders {
    pub(crate) datagrams: Arc<dyn Serve>,
    pub(crate) connections: Arc<dyn stream::Serve>,
    pub(crate) clock: Clock,
    /// The server's sockets, if it is a server's client.
    pub(crate) sockets: Option<ServerSockets>,
}

/// State that the requests of one client or server share, with their settings.
#[derive(Debug)]
pub(crate) struct Requests {
    config: AllSettings,
    /// Which servers support the Q-Block options (RFC 9177).
    q_block: q_block::Support,
    rooms: Arc<Rooms>,
    equals: Arc<equals::Equals>,
    echoes: echoes::Echoes,
    registrations: shared_registration::Registrations,
}

#[derive(Debug)]
struct ClientInner {
    requests: Arc<Requests>,
    /// Answers the servers' requests.
    responders: Option<Responders>,
    v4: Mutex<Option<Arc<Shared>>>,
    v6: Mutex<Option<Arc<Shared>>>,
    /// The sockets that speak DTLS.
    dtls_v4: Mutex<Option<Arc<Shared>>>,
    dtls_v6: Mutex<Option<Arc<Shared>>>,
    /// Controls for addresses to which no socket is open yet.
    chosen: controls::Chosen,
    /// The controls that were chosen for addresses, for sessions over DTLS that begin later.
    #[cfg(feature = "dtls")]
    controls: Mutex<std::collections::BTreeMap<SocketAddr, ControlConfig>>,
    connections: Pool,
    found: addresses::KnownAddresses,
}

impl Client {
    /// Creates a client with the default settings. Its sockets are opened when they are needed.
    #[must_use]
    pub fn new() -> Self {
        Self::with_config(ClientConfig::new())
    }

    /// Creates a client with these settings.
    #[must_use]
    pub fn with_config(config: ClientConfig) -> Self {
        Self::with_requests(Requests::new(config.0), None)
    }

    /// A client whose requests are some of `requests`, and that answers those of servers.
    pub(crate) fn with_requests(requests: Arc<Requests>, responders: Option<Responders>) -> Self {
        let connections = responders.as_ref().map(|responders| Answerer {
            service: responders.connections.clone(),
            clock: responders.clock,
            oscore: requests.config.oscore.clone(),
        });
        let inner = ClientInner {
            requests,
            responders,
            v4: Mutex::default(),
            v6: Mutex::default(),
            dtls_v4: Mutex::default(),
            dtls_v6: Mutex::default(),
            chosen: controls::Chosen::default(),
            #[cfg(feature = "dtls")]
            controls: Mutex::default(),
            connections: Pool::new(connections),
            found: addresses::KnownAddresses::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Sends a Confirmable GET for `uri` and returns the response with its whole body.
    ///
    /// # Errors
    ///
    /// See [`Error`]. A port that the network reports as closed, or a destination without a route, is an error at
    /// once if nothing there has answered so far. A peer that has answered is tried again until the retransmissions
    /// are over. A response with an error code is not an error: see
    /// [`Response::is_success`].
    pub async fn get(
        &self,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
    ) -> Result<Response, Error> {
        self.request(Request::get(uri)?).await
    }

    /// Sends a PUT of `payload` to `uri`.
    ///
    /// # Errors
    ///
    /// See [`Self::get`].
    pub async fn put(
        &self,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
        payload: impl Into<Bytes>,
    ) -> Result<Response, Error> {
        self.request(Request::put(uri)?.payload(payload)).await
    }

    /// Sends a POST of `payload` to `uri`.
    ///
    /// # Errors
    ///
    /// See [`Self::get`].
    pub async fn post(
        &self,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
        payload: impl Into<Bytes>,
    ) -> Result<Response, Error> {
        self.request(Request::post(uri)?.payload(payload)).await
    }

    /// Sends a DELETE for `uri`.
    ///
    /// # Errors
    ///
    /// See [`Self::get`].
    pub async fn delete(
        &self,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
    ) -> Result<Response, Error> {
        self.request(Request::delete(uri)?).await
    }

    /// Sends a request and returns its response. While the queue for the peer is full
    /// ([`Limits::queue_per_peer`](ebbtide_core::endpoint::Limits::queue_per_peer)), it waits for
    /// its turn. It also waits, up to EXCHANGE_LIFETIME (247 s by default), once at least 49,152
    /// messages have left for the peer within that span: no message ID may be used twice in it (RFC
    /// 7252 section 4.4). That is logged as a warning and counted
    /// ([`Counters::id_waits`](ebbtide_core::endpoint::Counters::id_waits)). For more than 199
    /// requests a second to one peer use several clients, each of which has message IDs of its own,
    /// or a connection, which has none. Dropping the future cancels the request.
    ///
    /// # Errors
    ///
    /// See [`Self::get`].
    pub async fn request(&self, request: Request) -> Result<Response, Error> {
        let limit = self.inner.requests.limit(&request);
        let asked = OnceLock::new();
        // Awaited where it is made: moving a future costs as much as all other work on a request.
        let Some(limit) = limit else {
            return self.ask(&request, &asked, Extent::Whole).await;
        };
        tokio::time::timeout(limit, self.ask(&request, &asked, Extent::Whole))
            .await
            .unwrap_or_else(|_| Err(late(&request, &asked)))
    }

    /// Like [`Self::request`], for a request that names a block: the response has only that block.
    async fn request_block(&self, request: &Request) -> Result<Response, Error> {
        let asked = OnceLock::new();
        let work = self.ask(request, &asked, Extent::OneBlock);
        let Some(limit) = self.inner.requests.limit(request) else { return work.await };
        tokio::time::timeout(limit, work).await.unwrap_or_else(|_| Err(late(request, &asked)))
    }

    async fn ask(
        &self,
        request: &Request,
        asked: &OnceLock<SocketAddr>,
        extent: Extent,
    ) -> Result<Response, Error> {
        let addresses = addresses::all(&request.uri).await?;
        // While the session is opened, the first address stands for all of them.
        if let Some(first) = addresses.first() {
            let _ = asked.set(*first);
        }
        let end = match extent {
            Extent::Whole => HandshakeEnd::before(request),
            Extent::OneBlock => HandshakeEnd::Separate,
        };
        let session = addresses::reach(&self.inner, &request.uri, &addresses, end).await?;
        let address = session.address;
        let span = trace::request(request, address);
        let (clock, began) = (session.clock(), session.now());
        let answered = self.transfer(session, request, extent).instrument(span).await;
        let answered = answered.map(|response| {
            let round_trip = clock.now().saturating_since(began);
            response.with_arrival(Arrival { remote: address, round_trip })
        });
        if answered.is_err() {
            self.inner.found.forget(&request.uri);
        }
        answered
    }

    async fn transfer(
        &self,
        session: Session,
        request: &Request,
        extent: Extent,
    ) -> Result<Response, Error> {
        match exchange::run(&session, request, extent).await {
            // The connection ended meanwhile, most often before the request, which noticed it. An
            // idempotent request may be repeated (RFC 7252 section 5.1).
            Err(error) if error.is_lost_connection() && request.parts().is_idempotent() => {
                Box::pin(self.transfer_again(session, request, extent)).await
            }
            // It was not processed.
            #[cfg(feature = "edhoc")]
            Err(error) if session.refuses_combined(&error) => {
                Box::pin(self.transfer_again(session, request, extent)).await
            }
            answered => answered,
        }
    }

    /// Sends a request over another session with the same address.
    async fn transfer_again(
        &self,
        old: Session,
        request: &Request,
        extent: Extent,
    ) -> Result<Response, Error> {
        let address = old.address;
        drop(old);
        let end = HandshakeEnd::Separate;
        let session = Session::open(&self.inner, &request.uri, address, end).await?;
        extent.drive(&session, request).run().await
    }

    /// Opens or reuses the session with the server that `uri` names.
    async fn session(&self, uri: &Uri) -> Result<Session, Error> {
        let addresses = addresses::all(uri).await?;
        addresses::reach(&self.inner, uri, &addresses, HandshakeEnd::Separate).await
    }

    /// Observes a resource (RFC 7641): returns its state now and after each change. All observations of
    /// one target resource share a registration.
    ///
    /// # Errors
    ///
    /// See [`Self::get`].
    pub async fn observe(
        &self,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
    ) -> Result<Observation, Error> {
        self.observe_with(Request::get(uri)?).await
    }

    /// Observes the resource of a GET or FETCH; the body of a FETCH may have any length.
    ///
    /// # Errors
    ///
    /// See [`Self::get`].
    pub async fn observe_with(&self, request: Request) -> Result<Observation, Error> {
        let session = self.session(&request.uri).await?;
        let span = trace::request(&request, session.address);
        let home = Home::Name(self.clone());
        Ok(span.in_scope(|| Observation::new(home, session, request)))
    }

    /// Sends a CoAP ping (RFC 7252 section 4.3, RFC 8323 section 5.4). Returns the round-trip
    /// measurement, or `None` if the answer does not identify the ping.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn ping(
        &self,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
    ) -> Result<Option<Sample>, Error> {
        let uri = uri.try_into().map_err(Into::into)?;
        let session = self.session(&uri).await?;
        session.ping()?.reset().await
    }

    /// The address of a URI's host and port; of several addresses the one that the system
    /// prefers. A request tries the others as well: see [`Self::resolve_all`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Resolve`](crate::ErrorKind::Resolve) if the host has no address.
    pub async fn resolve(&self, uri: &Uri) -> Result<SocketAddr, Error> {
        let all = addresses::all(uri).await?;
        all.first().copied().ok_or_else(|| addresses::unresolved(uri.host(), None))
    }

    /// All addresses of a URI's host and port, in the order in which a request tries them: 250 ms
    /// apart, by a CoAP ping or a connection, until one answers (RFC 8305). The address that
    /// answered is remembered.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Resolve`](crate::ErrorKind::Resolve) if the host has no address.
    pub async fn resolve_all(&self, uri: &Uri) -> Result<Vec<SocketAddr>, Error> {
        addresses::all(uri).await
    }

    /// Sets the congestion control for one peer, over UDP and over DTLS. It takes effect at once, and
    /// starts without measurements; with the first request if there is no socket for it yet, or over DTLS
    /// no session. No socket is opened for it. Other peers have the control of the [`ClientConfig`].
    ///
    /// # Errors
    ///
    /// Returns an error if there is no room for another peer's state, or for another control: an
    /// endpoint has at most 256 different ones.
    pub fn set_control(&self, remote: SocketAddr, control: ControlConfig) -> Result<(), Error> {
        self.inner.set_control(remote, control)
    }

    /// The session with a server over DTLS, which another client can resume: set it in the
    /// [`Credentials`](crate::dtls::Credentials) or the [`Certificates`](crate::dtls::Certificates).
    /// `None` if there is no session, or if the server does not resume it. It is as secret as the key.
    #[cfg(feature = "dtls")]
    #[must_use]
    pub fn dtls_session(&self, remote: SocketAddr) -> Option<SavedSession> {
        let shared = self.inner.opened(SocketKind::dtls(remote))?;
        shared.lock().dtls.as_ref()?.saved(remote)
    }

    /// The metrics of congestion control for a peer; `None` if the client has no state for it. If there is a
    /// DTLS session with this address, they are those of the session.
    #[must_use]
    pub fn metrics(&self, remote: SocketAddr) -> Option<Metrics> {
        #[cfg(feature = "dtls")]
        if let Some(metrics) = dtls::metrics(&self.inner, remote) {
            return Some(metrics);
        }
        self.inner.opened(SocketKind::plain(remote))?.lock().endpoint.metrics(remote.into())
    }

    /// The losses of a peer's messages over UDP, by the option PM; `None` without
    /// [`measurement`](ClientConfig::measurement), or if the peer has not sent the option.
    #[must_use]
    pub fn measured(&self, remote: SocketAddr) -> Option<Measured> {
        self.inner.opened(SocketKind::plain(remote))?.lock().endpoint.measured(remote.into())
    }

    /// A snapshot of the client's metrics: the counters of all its sockets and connections
    /// together, and the exchanges that are under way. Sockets that are a server's are counted by
    /// [`Server::snapshot`](crate::Server::snapshot).
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let sockets: Vec<_> = self.inner.all_sockets().collect();
        let connections = &self.inner.connections;
        let mut snapshot = Snapshot::of_sockets(sockets.iter(), connections.counters());
        snapshot.connection_requests = connections.open_requests();
        snapshot
    }
}

/// The error of a request whose time limit has passed; `asked` is the address that it was sent to, if it was found.
fn late(request: &Request, asked: &OnceLock<SocketAddr>) -> Error {
    match asked.get() {
        Some(remote) => Error::for_peer(*remote, Cause::TimedOut),
        None => {
            let source = Arc::new(io::ErrorKind::TimedOut.into());
            addresses::unresolved(request.uri.host(), Some(source))
        }
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Requests {
    pub(crate) fn new(config: AllSettings) -> Arc<Self> {
        Arc::new(Self {
            config: config.for_its_path(),
            q_block: q_block::Support::default(),
            rooms: Arc::default(),
            equals: Arc::default(),
            echoes: echoes::Echoes::default(),
            registrations: shared_registration::Registrations::default(),
        })
    }

    /// How long a request may take: its own limit, or the configured one.
    fn timeout(&self, request: &Request) -> Option<Duration> {
        request.timeout.or(self.config.request_timeout)
    }

    /// How long a request may take, including a Non-confirmable one without a limit: it is awaited
    /// as long as a Confirmable one would be repeated (MAX_TRANSMIT_SPAN, RFC 7252 section 4.8.2).
    fn limit(&self, request: &Request) -> Option<Duration> {
        let non = request.reliability == Reliability::NonConfirmable;
        let repeated = || self.config.endpoint.params.max_transmit_span();
        self.timeout(request).or_else(|| non.then(repeated))
    }
}

impl Request {
    /// The parts of the request that do not depend on its destination.
    fn parts(&self) -> RequestParts {
        let mut options = crate::Options::new();
        self.uri.to_options(&mut options);
        for opt in self.options.iter() {
            options.push(opt.number, opt.value);
        }
        let (code, block_size) = (self.code, self.block_size);
        // RFC 7252 section 5.5: a sender does not include one that the method does not have.
        let payload = if code.has_payload() { self.payload.clone() } else { Bytes::new() };
        RequestParts { code, options, payload, block_size }
    }
}

impl Drop for ClientInner {
    fn drop(&mut self) {
        self.connections.close();
        for shared in self.all_sockets() {
            shared.close();
        }
    }
}
