//! Both roles at once: a client that also answers requests, and a server that also sends them.

use super::Server;
use super::inner::Service;
use super::router::Router;
use crate::client::{Client, Responders, ServerSockets};
use crate::config::ClientConfig;
use crate::error::BindError;
use crate::net::shared::Shared;
use std::io;
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
        Ok(service.client(None))
    }
}

impl Service {
    /// A client whose peers can ask this service.
    fn client(&self, sockets: Option<ServerSockets>) -> Client {
        let (requests, clock) = (self.inner.requests.clone(), self.clock());
        let (datagrams, connections) = (Arc::new(self.clone()), Arc::new(self.clone()));
        let responders = Responders { datagrams, connections, clock, sockets };
        Client::with_requests(requests, Some(responders))
    }
}

impl Server {
    /// A client that sends `coap` requests from the server's own addresses, by the first socket of
    /// each address family: a peer sees the address and port that it can ask in turn, and both
    /// directions share one congestion control. For an address family or a scheme without such a
    /// socket, the client opens sockets and connections of its own, whose peers can ask the
    /// server's resources, too. All calls return clones of one client. Once the server is closed,
    /// requests by its sockets fail with [`ErrorKind::Closed`](crate::ErrorKind::Closed). To ask a
    /// peer over the DTLS session or the connection that it has opened, take its
    /// [`Peer`](crate::Peer).
    ///
    /// ```no_run
    /// # async fn example(router: ebbtide::server::Router) -> Result<(), Box<dyn std::error::Error>> {
    /// let server = ebbtide::Server::bind(router, ["0.0.0.0:5683"])?;
    /// let client = server.client()?;
    /// tokio::spawn(server.run());
    /// let state = client.get("coap://192.0.2.7/state").await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error of kind `Unsupported` if the server has several
    /// [workers](crate::ServerConfig::workers): the system would hand the answers to any of their
    /// sockets.
    pub fn client(&self) -> io::Result<Client> {
        if self.service.config().workers > 1 {
            let why = "a server with several workers has no client on its sockets: \
                       use one worker, or a client of its own";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let first = |is_ipv4| {
            let shared = self.sockets.iter().map(|(shared, _)| shared);
            let mut plain = shared.filter(|shared: &&Arc<Shared>| shared.lock().dtls.is_none());
            let found = plain.find(|shared| shared.local_addr().is_ipv4() == is_ipv4);
            found.map(Arc::downgrade)
        };
        let sockets = || ServerSockets {
            v4: first(true),
            v6: first(false),
            count: self.sockets.len() as u32,
        };
        Ok(self.client.get_or_init(|| self.service.client(Some(sockets()))).clone())
    }
}
