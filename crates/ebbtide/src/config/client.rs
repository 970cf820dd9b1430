//! Settings that only a client has.

use super::ClientConfig;
use super::setters::setters;
#[cfg(feature = "dtls")]
use crate::net::dtls::config::Certificates;
#[cfg(feature = "tls")]
use crate::stream::{Identity, Trust};
#[cfg(feature = "dtls")]
use ebbtide_dtls::Credentials;
use std::net::SocketAddr;

setters! {
    /// Settings that only a client has.
    ClientConfig {
        /// Sets the client's identity and key for `coaps`; the same for all servers.
        #[cfg(feature = "dtls")]
        credentials(credentials: impl Into<Option<Credentials>>) =>
            dtls.credentials = credentials.into();

        /// Sets which servers of `coaps` the client accepts by their certificates, and its own certificate; not used if
        /// there are [`credentials`](Self::credentials).
        #[cfg(feature = "dtls")]
        certificates(certificates: impl Into<Option<Certificates>>) =>
            dtls.certificates = certificates.into();

        /// Sets which server certificates the client accepts over TLS. Default: those of the
        /// authorities that the system trusts.
        #[cfg(feature = "tls")]
        trust(trust: Trust) => stream.tls.trust = trust;

        /// Sets the certificate with which the client authenticates itself over TLS, if a server asks for one.
        #[cfg(feature = "tls")]
        identity(identity: impl Into<Option<Identity>>) => stream.tls.identity = identity.into();
    }
}

impl ClientConfig {
    /// Sets the address and port to which the UDP socket is bound, for peers of its family; port 0 is
    /// any port. By default the system chooses both. A client has one socket for `coap` and one for `coaps`, so with a
    /// port of its own it can use one of them: the other is [`ErrorKind::Bind`](crate::ErrorKind::Bind). Connections
    /// leave from the address as well, with a port that the system chooses.
    pub fn local_address(mut self, address: SocketAddr) -> Self {
        self.0.local_address = Some(address);
        let mut from = address;
        from.set_port(0);
        self.0.stream.from = Some(from);
        self
    }

    /// Lets responses have critical options that are safe to forward and that the client does not
    /// understand: for a proxy, which passes them on (RFC 7252 section 5.7.1), such as that of
    /// OSCORE. By default such a response is an error.
    pub fn for_proxy(mut self) -> Self {
        self.0.leave_safe_options();
        self
    }
}
