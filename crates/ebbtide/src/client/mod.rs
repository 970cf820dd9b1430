//! The client: requests out, responses in.

mod burst;
mod dtls;
mod observe;
mod pending;
mod quick;
mod transfer;

pub use burst::{Burst, NotAccepted, Reason, Report, Summary, Unacknowledged, Upload};
pub use observe::Observation;

pub(crate) use pending::{Exchanges, Pending};

use crate::error::{BindError, Error};
use crate::message::{Options, Request, Response, Scheme, Uri, UriError};
use crate::metrics::Snapshot;
use crate::net::config::Config;
use crate::net::driver::Driver;
use crate::net::dtls::address;
use crate::net::pending::Answer;
use crate::net::shared::{Shared, State};
use crate::net::trace;
use crate::stream::{Link, Pool, StreamCounters};
use bytes::Bytes;
use ebbtide_core::cc::{Config as Control, Metrics, Sample};
use ebbtide_core::endpoint::Counters;
use ebbtide_core::wire::{Code, Content};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use tracing::Instrument;

/// A CoAP client: one socket per address family, opened when it is first needed, for any number
/// of peers and requests at once; and for URIs such as `coap+tcp://` one connection per server,
/// which all requests share and which is opened again when it is lost.
///
/// Cloning it is cheap; all clones share the sockets and what congestion control has learnt. The
/// sockets close when the last clone is dropped. It must be used within a tokio runtime.
///
/// ```no_run
/// use ebbtide::{Client, ContentFormat, Request};
///
/// # async fn example() -> Result<(), ebbtide::Error> {
/// let client = Client::new()?;
/// let lamp = Request::put("coap://192.0.2.7/lamp")?
///     .payload("{\"on\":true}")
///     .format(ContentFormat::JSON);
/// let response = client.request(lamp).await?;
/// assert!(response.is_success(), "{}", response.text());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

/// Bytes of a body that every peer on a connection takes in one message (RFC 8323 section 5.3.1:
/// 1152 with header and options). A longer one waits for its CSM.
const SURE: usize = 512;

#[derive(Debug)]
struct Inner {
    config: Config,
    v4: OnceLock<Arc<Shared>>,
    v6: OnceLock<Arc<Shared>>,
    /// The same for sockets that speak DTLS.
    dtls_v4: OnceLock<Arc<Shared>>,
    dtls_v6: OnceLock<Arc<Shared>>,
    connections: Pool,
    /// Who understands the blocks of RFC 9177.
    quick: quick::Support,
}

/// Where a request goes, and what it goes over.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) remote: SocketAddr,
    /// The connection, unless it goes by datagrams.
    pub(crate) link: Option<Arc<Link>>,
}

impl Client {
    /// A client with the default settings.
    ///
    /// # Errors
    ///
    /// None now; sockets are opened when they are needed.
    pub fn new() -> Result<Self, Error> {
        Ok(Self::with_config(Config::default()))
    }

    /// A client with these settings.
    #[must_use]
    pub fn with_config(config: Config) -> Self {
        let inner = Inner {
            config,
            v4: OnceLock::new(),
            v6: OnceLock::new(),
            dtls_v4: OnceLock::new(),
            dtls_v6: OnceLock::new(),
            connections: Pool::default(),
            quick: quick::Support::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// A GET for `uri`, Confirmable, its whole body however many blocks it takes.
    ///
    /// # Errors
    ///
    /// See [`Error`]. A response with an error code is not an error: see
    /// [`Response::is_success`].
    pub async fn get(
        &self,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
    ) -> Result<Response, Error> {
        self.request(Request::get(uri)?).await
    }

    /// A PUT of `payload` to `uri`.
    ///
    /// # Errors
    ///
    /// As [`Self::get`].
    pub async fn put(
        &self,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
        payload: impl Into<Bytes>,
    ) -> Result<Response, Error> {
        self.request(Request::put(uri)?.payload(payload)).await
    }

    /// A POST of `payload` to `uri`.
    ///
    /// # Errors
    ///
    /// As [`Self::get`].
    pub async fn post(
        &self,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
        payload: impl Into<Bytes>,
    ) -> Result<Response, Error> {
        self.request(Request::post(uri)?.payload(payload)).await
    }

    /// A DELETE of `uri`.
    ///
    /// # Errors
    ///
    /// As [`Self::get`].
    pub async fn delete(
        &self,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
    ) -> Result<Response, Error> {
        self.request(Request::delete(uri)?).await
    }

    /// Sends a request and waits for its response. Dropping the future cancels the request.
    ///
    /// # Errors
    ///
    /// As [`Self::get`].
    pub async fn request(&self, request: Request) -> Result<Response, Error> {
        let remote = self.resolve(&request.uri).await?;
        let span = trace::request(&request, remote);
        let exchange = self.transfer(remote, &request).instrument(span);
        match request.timeout {
            None => exchange.await,
            Some(span) => tokio::time::timeout(span, exchange)
                .await
                .unwrap_or(Err(Error::TimedOut { remote })),
        }
    }

    async fn transfer(&self, remote: SocketAddr, request: &Request) -> Result<Response, Error> {
        let route = self.route(&request.uri, remote).await?;
        if let Some(link) = &route.link
            && request.payload.len() > SURE
        {
            // How long its messages, or its blocks, may be.
            link.established().await;
        }
        let answered = transfer::run(self, &route, request).await;
        let answered = answered.map_err(|error| error.of(remote));
        match &answered {
            // The connection ended under way, most often before the request, which found out. To
            // ask once more is safe if doing it twice is doing it once (RFC 7252 section 5.1).
            Err(error) if error.is_lost_connection() && request.code.is_idempotent() => {
                let route = self.route(&request.uri, remote).await?;
                transfer::run(self, &route, request).await
            }
            _ => answered,
        }
    }

    /// What a request to a URI goes over: a connection is opened if there is none.
    async fn route(&self, uri: &Uri, remote: SocketAddr) -> Result<Route, Error> {
        let link = match uri.scheme() {
            Scheme::Coap => None,
            Scheme::Coaps => {
                let remote = dtls::session(self, remote).await?;
                return Ok(Route { remote, link: None });
            }
            _ => {
                let config = &self.inner.config.stream;
                Some(self.inner.connections.link(config, uri, remote).await?)
            }
        };
        Ok(Route { remote, link })
    }

    /// Observes a resource (RFC 7641): its state now, and again whenever it changes.
    ///
    /// # Errors
    ///
    /// As [`Self::get`].
    pub async fn observe(
        &self,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
    ) -> Result<Observation, Error> {
        self.observe_with(Request::get(uri)?).await
    }

    /// Observes what a GET or FETCH asks for.
    ///
    /// # Errors
    ///
    /// As [`Self::get`].
    pub async fn observe_with(&self, request: Request) -> Result<Observation, Error> {
        let remote = self.resolve(&request.uri).await?;
        let route = self.route(&request.uri, remote).await?;
        let span = trace::request(&request, remote);
        span.in_scope(|| Observation::start(self.clone(), route, request))
    }

    /// Sends a request to a group and collects what its members answer within `wait`, which should
    /// be longer than DEFAULT_LEISURE, 5 s (RFC 7252 section 8). A unicast address is a group of
    /// one. Then each member whose answer is longer than a block, or that wants an Echo first, is
    /// asked for the rest by itself (RFC 7959 section 2.8, RFC 9175 section 2.3); one that does not
    /// give it within `wait` again is left out.
    ///
    /// # Errors
    ///
    /// If the request cannot be sent. No answer is none.
    pub async fn request_group(
        &self,
        request: Request,
        wait: std::time::Duration,
    ) -> Result<Vec<(SocketAddr, Response)>, Error> {
        let remote = self.resolve(&request.uri).await?;
        if !remote.ip().is_multicast() {
            return Ok(vec![(remote, self.request(request.timeout(wait)).await?)]);
        }
        let mut answers = Vec::new();
        for (from, first) in self.first_of_each(remote, &request, wait).await? {
            let rest = transfer::complete_member(self, from, &request, first);
            match tokio::time::timeout(wait, rest).await {
                Ok(Ok(response)) => answers.push((from, response)),
                Ok(Err(error)) => tracing::warn!(%from, %error, "a member gave half an answer"),
                Err(_) => tracing::warn!(%from, "a member gave half an answer"),
            }
        }
        Ok(answers)
    }

    /// What the members of a group say to a request within `wait`: the first answer of each.
    async fn first_of_each(
        &self,
        group: SocketAddr,
        request: &Request,
        wait: std::time::Duration,
    ) -> Result<Vec<(SocketAddr, Response)>, Error> {
        let options = transfer::base_options(request);
        let route = Route { remote: group, link: None };
        let pending = self.start(&route, request, &options, &request.payload)?;
        let mut answers: Vec<(SocketAddr, Response)> = Vec::new();
        let collect = async {
            while let Some(answer) = pending.answer().await {
                match answer {
                    Answer::Response { from, response } | Answer::More { from, response } => {
                        if answers.iter().all(|(known, _)| *known != from) {
                            answers.push((from, response));
                        }
                    }
                    Answer::Failed(_) | Answer::Reset { .. } => return Ok(()),
                    other @ (Answer::Network(_) | Answer::Ended { .. }) => {
                        return Err(pending.error(other));
                    }
                }
            }
            Ok(())
        };
        match tokio::time::timeout(wait, collect).await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(())) | Err(_) => Ok(answers),
        }
    }

    /// Starts one exchange.
    fn start(
        &self,
        route: &Route,
        request: &Request,
        options: &Options,
        payload: &[u8],
    ) -> Result<Pending, Error> {
        if let Some(link) = &route.link {
            return link.call(request.code, options, payload);
        }
        let remote = route.remote;
        self.shared(remote)?.call(remote, |endpoint, now| {
            options.with_slice(None, |options| {
                let content = Content { code: request.code, options, payload };
                endpoint.request(now, remote, &content, request.reliability)
            })
        })
    }

    /// Starts one exchange of RFC 9177: it leaves at once, and several answers may come.
    fn start_block(
        &self,
        remote: SocketAddr,
        code: Code,
        options: &Options,
        payload: &[u8],
    ) -> Result<Pending, Error> {
        self.shared(remote)?.call(remote, |endpoint, now| {
            options.with_slice(None, |options| {
                endpoint.request_block(now, remote, &Content { code, options, payload })
            })
        })
    }

    /// A CoAP ping (RFC 7252 section 4.3, RFC 8323 section 5.4): the round trip, if the answer
    /// told.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub async fn ping(
        &self,
        uri: impl TryInto<Uri, Error: Into<UriError>>,
    ) -> Result<Option<Sample>, Error> {
        let uri = uri.try_into().map_err(|error| Error::Uri(error.into()))?;
        let remote = self.resolve(&uri).await?;
        let Route { remote, link } = self.route(&uri, remote).await?;
        if let Some(link) = link {
            return link.ping()?.reset().await;
        }
        let pending =
            self.shared(remote)?.call(remote, |endpoint, now| endpoint.ping(now, remote))?;
        pending.reset().await
    }

    /// The address that a URI's host and port mean; of several addresses the first.
    ///
    /// # Errors
    ///
    /// [`Error::Resolve`].
    pub async fn resolve(&self, uri: &Uri) -> Result<SocketAddr, Error> {
        if let (Some(address), None) = (uri.address(), uri.zone()) {
            return Ok(SocketAddr::new(address, uri.port()));
        }
        let host = uri
            .zone()
            .map_or_else(|| uri.host().to_owned(), |zone| format!("{}%{zone}", uri.host()));
        let found = tokio::net::lookup_host((host.as_str(), uri.port())).await;
        let first = found.map(|mut addresses| addresses.next());
        match first {
            Ok(Some(address)) => Ok(address),
            Ok(None) => Err(Error::Resolve { host, source: None }),
            Err(source) => Err(Error::Resolve { host, source: Some(source) }),
        }
    }

    /// Chooses the congestion control for one peer; it takes effect at once, and knows nothing yet.
    /// Peers without a choice have the one of the [`Config`].
    ///
    /// # Errors
    ///
    /// If there is no room for another peer's state, or for another control: an endpoint has 256
    /// different ones at most.
    pub fn set_control(&self, remote: SocketAddr, control: Control) -> Result<(), Error> {
        let chosen = |state: &mut State, now| state.endpoint.set_control(now, remote, control);
        Ok(self.shared(remote)?.with(chosen)?)
    }

    /// What congestion control knows about a peer, if it has been spoken to.
    #[must_use]
    pub fn metrics(&self, remote: SocketAddr) -> Option<Metrics> {
        self.place(remote).get()?.lock().endpoint.metrics(remote)
    }

    /// What both sockets have counted; IPv4's and IPv6's, where there is one.
    #[must_use]
    pub fn counters(&self) -> [Option<Counters>; 2] {
        [&self.inner.v4, &self.inner.v6]
            .map(|place| place.get().map(|shared| shared.lock().endpoint.counters()))
    }

    /// What its sockets have counted, together, and how much is under way.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let sockets = self.sockets();
        Snapshot::of(sockets, self.inner.connections.counters())
    }

    /// Exchanges that have not ended. Zero once every future is done or dropped.
    #[must_use]
    pub fn open_exchanges(&self) -> usize {
        let sockets = self.sockets();
        let datagrams: usize = sockets.map(|shared| shared.lock().endpoint.open_exchanges()).sum();
        datagrams + self.inner.connections.open_requests()
    }

    /// What all connections have counted.
    #[must_use]
    pub fn stream_counters(&self) -> StreamCounters {
        self.inner.connections.counters()
    }

    /// Messages that wait until congestion control lets them leave for this peer.
    fn waiting(&self, remote: SocketAddr) -> usize {
        self.place(remote).get().map_or(0, |shared| shared.lock().endpoint.waiting(remote))
    }

    /// The sockets that are open.
    fn sockets(&self) -> impl Iterator<Item = &Arc<Shared>> {
        let Inner { v4, v6, dtls_v4, dtls_v6, .. } = &*self.inner;
        [v4, v6, dtls_v4, dtls_v6].into_iter().filter_map(|place| place.get())
    }

    fn now(&self, remote: SocketAddr) -> ebbtide_core::time::Instant {
        let shared = self.place(remote).get();
        shared.map_or(ebbtide_core::time::Instant::ZERO, |shared| shared.clock.now())
    }

    fn place(&self, remote: SocketAddr) -> &OnceLock<Arc<Shared>> {
        match address::family(remote) {
            Some(true) => &self.inner.dtls_v4,
            Some(false) => &self.inner.dtls_v6,
            None if remote.is_ipv4() => &self.inner.v4,
            None => &self.inner.v6,
        }
    }

    /// The socket for a remote, opened if need be.
    fn shared(&self, remote: SocketAddr) -> Result<&Arc<Shared>, BindError> {
        let place = self.place(remote);
        if let Some(shared) = place.get() {
            return Ok(shared);
        }
        let any: IpAddr = match remote {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let opened = Shared::new(SocketAddr::new(any, 0), &self.inner.config, None)?;
        let shared = place.get_or_init(|| {
            Driver::spawn(opened.clone());
            opened
        });
        Ok(shared)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.connections.close();
        for place in [&self.v4, &self.v6, &self.dtls_v4, &self.dtls_v6] {
            if let Some(shared) = place.get() {
                shared.close();
            }
        }
    }
}
