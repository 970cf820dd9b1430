//! The other end of a session, as one that can be asked.

use super::exchange::{self, Extent};
use super::observe::Observation;
use super::registration::Home;
use super::weak_session::WeakSession;
use crate::error::{Cause, Error};
use crate::message::{Request, Response, Scheme, Uri, UriError};
use crate::net::trace;
use bytes::Bytes;
use core::fmt;
use ebbtide_core::PeerId;
use ebbtide_core::cc::Sample;
use ebbtide_core::session::Arrival;
use std::net::SocketAddr;
use std::sync::Arc;
use tracing::Instrument;

/// The other end of a session, to which requests can be sent over that session: to a device that has opened it, for
/// example. A handler takes it as an argument or by [`Call::peer`](crate::server::Call::peer).
///
/// A session is a DTLS session, which may change its address (RFC 9146), a connection (RFC 8323), or over UDP an
/// address and port. Requests leave by the socket or connection of the session, and share its congestion control.
/// Both ends may send requests at the same time.
///
/// The handle holds nothing open. It ends with the session: requests then fail with
/// [`ErrorKind::Gone`](crate::ErrorKind::Gone), at once if the end is known, and so do those under
/// way and observations. A session that the peer resumes or replaces is another one; its handle
/// comes with the peer's next request. At a client with a [router](crate::Client::serving), the
/// handle to a server over DTLS goes on with the next session, which a request begins if there is
/// none. Over UDP there is no end: a peer that is not there does not answer.
///
/// ```
/// use ebbtide::server::{Router, State, post};
/// use ebbtide::{Code, Error, Peer};
/// use tokio::sync::mpsc::Sender;
///
/// async fn register(peer: Peer, State(devices): State<Sender<Peer>>) -> Code {
///     let _ = devices.send(peer).await;
///     Code::CREATED
/// }
///
/// /// Later, or in another task.
/// async fn restart(device: &Peer) -> Result<bool, Error> {
///     Ok(device.post("/3/0/4", "").await?.is_success())
/// }
///
/// # let (devices, _) = tokio::sync::mpsc::channel(8);
/// let router: Router = Router::new().route("/rd", post(register)).with_state(devices);
/// ```
#[derive(Clone)]
pub struct Peer {
    session: WeakSession,
}

impl Peer {
    pub(crate) const fn new(session: WeakSession) -> Self {
        Self { session }
    }

    /// The peer as the endpoint knows it.
    pub(crate) const fn id(&self) -> PeerId {
        self.session.id
    }

    /// Its present address; `None` once the session is gone.
    #[must_use]
    pub fn remote(&self) -> Option<SocketAddr> {
        self.session.info().map(|info| info.address)
    }

    /// The identity that it has proved, as [`Call::identity`](crate::server::Call::identity) returns it; `None` also
    /// once the session is gone.
    #[must_use]
    pub fn identity(&self) -> Option<Arc<[u8]>> {
        self.session.info()?.identity.map(Arc::from)
    }

    /// The URI of a path and query at this peer, such as `/3/0?x=1`, for a [`Request`]. It has the address that the
    /// peer had when the handle was made, but a request for it goes wherever the session is.
    ///
    /// # Errors
    ///
    /// Returns an error if `path` is not a valid URI reference.
    pub fn uri(&self, path: &str) -> Result<Uri, UriError> {
        let scheme = if self.session.is_connection() {
            Scheme::CoapTcp
        } else if self.session.is_secured() {
            Scheme::Coaps
        } else {
            Scheme::Coap
        };
        // Without the zone of a link-local address, which is not sent.
        let address = SocketAddr::new(self.session.address.ip(), self.session.address.port());
        format!("{scheme}://{address}").parse::<Uri>()?.join(path)
    }

    /// Sends a Confirmable GET for a path, such as `/3/0`, and returns the response with its whole body.
    ///
    /// # Errors
    ///
    /// See [`Self::request`].
    pub async fn get(&self, path: &str) -> Result<Response, Error> {
        self.request(Request::get(self.uri(path)?)?).await
    }

    /// Sends a PUT of `payload` to a path.
    ///
    /// # Errors
    ///
    /// See [`Self::request`].
    pub async fn put(&self, path: &str, payload: impl Into<Bytes>) -> Result<Response, Error> {
        self.request(Request::put(self.uri(path)?)?.payload(payload)).await
    }

    /// Sends a POST of `payload` to a path.
    ///
    /// # Errors
    ///
    /// See [`Self::request`].
    pub async fn post(&self, path: &str, payload: impl Into<Bytes>) -> Result<Response, Error> {
        self.request(Request::post(self.uri(path)?)?.payload(payload)).await
    }

    /// Sends a request over the session. Of its URI, the scheme, address and port do not matter. Dropping the future
    /// cancels the request.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Gone`](crate::ErrorKind::Gone) if the session has ended; otherwise as
    /// [`Client::get`](crate::Client::get). Nothing is repeated over another session.
    pub async fn request(&self, request: Request) -> Result<Response, Error> {
        let session = self.session.upgrade()?;
        let (address, began) = (session.address, session.now());
        let span = trace::request(&request, address);
        let work = exchange::run(&session, &request, Extent::Whole).instrument(span);
        let answered = match self.session.requests.limit(&request) {
            None => work.await,
            Some(limit) => tokio::time::timeout(limit, work)
                .await
                .unwrap_or(Err(Error::for_peer(address, Cause::TimedOut))),
        };
        let response = answered?;
        let round_trip = session.now().saturating_since(began);
        Ok(response.with_arrival(Arrival { remote: address, round_trip }))
    }

    /// Observes a resource of the peer (RFC 7641).
    ///
    /// # Errors
    ///
    /// See [`Self::request`].
    pub fn observe(&self, path: &str) -> Result<Observation, Error> {
        self.observe_with(Request::get(self.uri(path)?)?)
    }

    /// Observes the resource of a GET or FETCH. It registers again after errors like that of a
    /// [`Client`](crate::Client::observe_with), but ends with
    /// [`ErrorKind::Gone`](crate::ErrorKind::Gone) when the session does.
    ///
    /// # Errors
    ///
    /// See [`Self::request`].
    pub fn observe_with(&self, request: Request) -> Result<Observation, Error> {
        let session = self.session.upgrade()?;
        let span = trace::request(&request, session.address);
        let home = Home::Session(self.session.clone());
        Ok(span.in_scope(|| Observation::new(home, session, request)))
    }

    /// Sends a CoAP ping (RFC 7252 section 4.3, RFC 8323 section 5.4), as [`Client::ping`](crate::Client::ping) does.
    ///
    /// # Errors
    ///
    /// See [`Self::request`].
    pub async fn ping(&self) -> Result<Option<Sample>, Error> {
        let session = self.session.upgrade()?;
        session.ping()?.reset().await
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("address", &self.session.address).finish_non_exhaustive()
    }
}
