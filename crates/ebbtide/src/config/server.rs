//! Settings that only a server has.

use super::setters::setters;
use super::{ConnectionLimits, ServerConfig};
#[cfg(feature = "dtls")]
use crate::net::dtls::config::DtlsBind;
use crate::net::handed_over::HandedOver;
use crate::state_store::StateStore;
use std::os::fd::OwnedFd;
use std::sync::Arc;

setters! {
    /// Settings that only a server has.
    ServerConfig {
        /// Sets the number of sockets for each address, each with an endpoint and a thread
        /// of its own; the system divides the peers among them (SO_REUSEPORT). Default 1, which is
        /// driven by the runtime in which the server is bound. More than one is an error on other
        /// systems than Linux. The second byte of their connection IDs over DTLS, or the first one without
        /// `server_id`, is the number of the worker.
        workers(workers: usize) => workers = workers;

        /// Serves at these bound sockets, of datagrams or listening, where their addresses are asked
        /// for, instead of binding others: a service manager that keeps them open lets one process
        /// follow another. Such a server ends without a word to its clients
        /// ([`ServerHandle::shutdown`](crate::server::ServerHandle::shutdown)): what it has not
        /// received waits for its successor, which goes on with its [state](Self::state). Of several at
        /// one address each has a worker.
        sockets(bound: impl IntoIterator<Item = OwnedFd>) => handed_over = HandedOver::new(bound);

        /// Sets the first byte of the connection IDs that the server issues over DTLS (RFC 9146), by
        /// which a balancer in front of several servers finds the one that has a session. Default:
        /// none.
        #[cfg(feature = "dtls")]
        server_id(id: u8) => dtls.server.cid_prefix = vec![id];

        /// Sets the storage for the state that survives a restart, such as observers.
        /// Default: none.
        state(store: impl StateStore) => state = Some(Arc::new(store));
    }
}

impl ServerConfig {
    /// Adds an address at which the server also serves over DTLS (`coaps`), to clients whose key it knows, or with
    /// a certificate.
    #[cfg(feature = "dtls")]
    pub fn bind_dtls(mut self, at: DtlsBind) -> Self {
        self.0.dtls_binds.push(at);
        self
    }

    /// Lets pages of this origin, such as `https://home.example`, open WebSockets (RFC 6455 section
    /// 10.2). Otherwise only pages of the server's own host and port may, and programs other than
    /// browsers. May be called several times.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.0.stream.origins.push(origin.into());
        self
    }

    /// Changes limits on the connections that the server accepts.
    pub fn connection_limits(
        self,
        change: impl FnOnce(ConnectionLimits) -> ConnectionLimits,
    ) -> Self {
        Self(change(ConnectionLimits(self.0)).0)
    }
}
