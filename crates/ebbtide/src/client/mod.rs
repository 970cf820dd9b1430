//! The client: requests out, responses in.

mod observe;
mod pending;
mod transfer;

pub use observe::Observation;

pub(crate) use pending::Pending;

use crate::error::{BindError, Error};
use crate::message::{Options, Request, Response, Uri, UriError};
use crate::net::config::Config;
use crate::net::driver::Driver;
use crate::net::pending::Answer;
use crate::net::shared::Shared;
use bytes::Bytes;
use ebbtide_core::cc::{Metrics, Sample};
use ebbtide_core::endpoint::Counters;
use ebbtide_core::wire::Content;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

/// A CoAP client: one socket per address family, opened when it is first needed, for any number
/// of peers and requests at once.
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

#[derive(Debug)]
struct Inner {
    config: Config,
    v4: OnceLock<Arc<Shared>>,
    v6: OnceLock<Arc<Shared>>,
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
        let inner = Inner { config, v4: OnceLock::new(), v6: OnceLock::new() };
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
        let exchange = transfer::run(self, remote, &request);
        match request.timeout {
            None => exchange.await,
            Some(span) => tokio::time::timeout(span, exchange)
                .await
                .unwrap_or(Err(Error::TimedOut { remote })),
        }
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
        Observation::start(self.clone(), remote, request)
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
        let pending = self.start(group, request, &options, &request.payload)?;
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
                    other @ Answer::Network(_) => return Err(pending.error(other)),
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
        remote: SocketAddr,
        request: &Request,
        options: &Options,
        payload: &[u8],
    ) -> Result<Pending, Error> {
        self.shared(remote)?.call(remote, |endpoint, now| {
            options.with_slice(None, |options| {
                let content = Content { code: request.code, options, payload };
                endpoint.request(now, remote, &content, request.reliability)
            })
        })
    }

    /// A CoAP ping (RFC 7252 section 4.3): the round trip, if the answer told.
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

    /// Exchanges that have not ended. Zero once every future is done or dropped.
    #[must_use]
    pub fn open_exchanges(&self) -> usize {
        let sockets = [&self.inner.v4, &self.inner.v6].into_iter().filter_map(|place| place.get());
        sockets.map(|shared| shared.lock().endpoint.open_exchanges()).sum()
    }

    fn now(&self, remote: SocketAddr) -> ebbtide_core::time::Instant {
        let shared = self.place(remote).get();
        shared.map_or(ebbtide_core::time::Instant::ZERO, |shared| shared.clock.now())
    }

    fn place(&self, remote: SocketAddr) -> &OnceLock<Arc<Shared>> {
        if remote.is_ipv4() { &self.inner.v4 } else { &self.inner.v6 }
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
        for place in [&self.v4, &self.v6] {
            if let Some(shared) = place.get() {
                shared.close();
            }
        }
    }
}
