//! A client that also answers requests.

use super::inner::Service;
use super::router::Router;
use crate::client::{Client, Responders};
use crate::config::ClientConfig;
use crate::error::BindError;
use std::sync::Arc;

impl Client {
    /// Creates a client that also answers requests, with the handlers of `router`: those that come over the sessions
    /// and connections that it has opened, and over plain UDP all that reach its socket. A device that registers with a
    /// server, which then asks it, is such a client.
    ///
    /// A handler sees whom it answers: [`Call::identity`](super::Call::identity) is that of the server.
    ///
    /// ```no_run
    /// use ebbtide::server::{Router, get};
    /// use ebbtide::{Client, ClientConfig};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let router = Router::new().route("/3/0/0", get(|| "Ebbtide"));
    /// let device = Client::serving(router, ClientConfig::new())?;
    /// device.post("coap://192.0.2.7/rd?ep=device&lt=300", "</3/0>").await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the system provides no randomness.
    pub fn serving(router: Router, config: ClientConfig) -> Result<Self, BindError> {
        let no_randomness = BindError::unprepared;
        let service = Service::new(router, config.0).map_err(no_randomness)?;
        let (requests, clock) = (service.inner.requests.clone(), service.clock());
        let (datagrams, connections) = (Arc::new(service.clone()), Arc::new(service));
        Ok(Self::with_requests(requests, Some(Responders { datagrams, connections, clock })))
    }
}
