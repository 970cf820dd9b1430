//! Settings of UDP sockets, and of DTLS.

use super::{Config, setters};
#[cfg(feature = "dtls")]
use crate::net::dtls::config::{DtlsBind, DtlsConfig, KeyLogger};
#[cfg(feature = "dtls")]
use ebbtide_dtls::Credentials;
use std::net::SocketAddr;
use std::time::Duration;

setters! {
    /// Sets the address and port to which a client's UDP socket is bound, for peers of its family; port 0 is
    /// any port. By default the system chooses both. A server's addresses are arguments of `Server::bind`.
    local_address(address: SocketAddr) => local_address = Some(address);

    /// Sets the index of the interface that requests to groups leave by
    /// ([`interface_index`](crate::server::interface_index)). By default the system chooses it.
    multicast_interface(index: u32) => socket.multicast_interface = Some(index);

    /// Sets the hop limit, or time to live, of datagrams to one host. By default the system chooses it.
    hop_limit(hops: u8) => socket.hop_limit = Some(hops);

    /// Sets the hop limit of requests to groups. The system's choice is mostly 1: they stay on the link.
    multicast_hop_limit(hops: u8) => socket.multicast_hop_limit = Some(hops);

    /// Sets the code point of Differentiated Services (RFC 2474), 0 to 63; another one is an error when a
    /// socket is opened.
    dscp(code_point: u8) => socket.dscp = Some(code_point);

    /// Sets how long a socket keeps polling for datagrams after the last ones before it sleeps. Polling saves
    /// the time of a wake-up, which on a virtual machine is most of a short round trip, and keeps a core busy.
    /// Default zero.
    busy_poll(span: Duration) => busy_poll = span;
}

impl Config {
    /// Sets the interface by which all datagrams leave and arrive (SO_BINDTODEVICE; Linux).
    pub fn interface(mut self, name: impl Into<String>) -> Self {
        self.socket.interface = Some(name.into());
        self
    }
}

#[cfg(feature = "dtls")]
setters! {
    /// Sets a client's identity and key for `coaps`; the same for all servers.
    credentials(credentials: impl Into<Option<Credentials>>) => dtls.credentials = credentials.into();

    /// Sets what receives the secrets of each DTLS session.
    key_log(logger: impl Into<Option<KeyLogger>>) => dtls.key_log = logger.into();

    /// Replaces all settings of DTLS.
    dtls(dtls: DtlsConfig) => dtls = dtls;
}

#[cfg(feature = "dtls")]
impl Config {
    /// Adds an address at which a server serves over DTLS (`coaps`), to clients whose key it knows.
    pub fn bind_dtls(mut self, at: DtlsBind) -> Self {
        self.dtls_binds.push(at);
        self
    }
}
