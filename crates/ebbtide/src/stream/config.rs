//! Settings of connections at clients and servers.

use super::tls::ClientTls;
#[cfg(feature = "tls")]
use super::tls_server::TlsServer;
use crate::message::Scheme;
use crate::net::network::DatagramNetwork;
use ebbtide_core::stream::Config as ConnectionConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Settings of outgoing and incoming connections.
#[derive(Clone, Debug)]
pub(crate) struct StreamConfig {
    /// Message sizes, limits and timeouts of one connection.
    pub(crate) connection: ConnectionConfig,
    /// How long establishing a connection may take: for a client the TCP, TLS and WebSocket
    /// handshakes together, for a server each of the latter two. Default 15 s.
    pub(crate) handshake_timeout: Duration,
    /// How long a client waits for the server's CSM: this time, or four times the time that
    /// connecting took if that is longer, but never longer than `connection.csm_timeout`. A server
    /// sends its CSM first (RFC 8323 section 5.3), so one that takes much longer does not send
    /// any. Default 5 s.
    pub(crate) csm_wait: Duration,
    /// Whether segments leave at once. Otherwise a short segment waits until the one before it is
    /// acknowledged (Nagle's algorithm, RFC 9293 section 3.7.4). Default true.
    pub(crate) nodelay: bool,
    /// Whose pages may open a server's WebSockets, besides its own. Default none.
    pub(crate) origins: Vec<String>,
    /// A client's side of TLS.
    pub(crate) tls: ClientTls,
    /// Carries the connections instead of the system's network.
    pub(crate) network: Option<Arc<dyn DatagramNetwork>>,
    /// The local address of outgoing connections to peers of its family, with port 0: of a link-local one the zone
    /// counts too.
    pub(crate) from: Option<SocketAddr>,
}

impl StreamConfig {
    /// The defaults, with tokens of peers of up to so many bytes.
    pub(crate) fn with_tokens(bytes: u32) -> Self {
        let connection = ConnectionConfig {
            keep_alive: Some(Duration::from_secs(240)),
            max_token_length: bytes,
            ..ConnectionConfig::default()
        };
        Self {
            connection,
            handshake_timeout: Duration::from_secs(15),
            csm_wait: Duration::from_secs(5),
            nodelay: true,
            origins: Vec::new(),
            tls: ClientTls::default(),
            network: None,
            from: None,
        }
    }
}

/// Limits on all connections that a server accepts. Connections that are refused or closed are
/// [counted](super::StreamCounters) by reason.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamLimits {
    /// Connections at all listeners together. Beyond this limit, the address with the most
    /// connections loses the one that was idle longest; a new connection from that address is
    /// closed at once. Default 16384.
    pub(crate) connections: usize,
    /// Connections from one IPv4 address or one IPv6 network of 64 bits; further ones are closed
    /// at once. Default 256, since many hosts may be behind one address translator.
    pub(crate) per_address: usize,
    /// Bytes that all connections may hold: incomplete messages, output that waits to be sent, and
    /// for each connection 4 KiB, plus 16 KiB with TLS and 8 KiB for a WebSocket. Beyond this
    /// limit, the address that holds most loses the connection that holds most. Default 64 MiB.
    pub(crate) bytes: usize,
    /// TLS and WebSocket handshakes in progress at the same time. Beyond this limit the oldest one
    /// is ended. Default 1024.
    pub(crate) handshakes: usize,
    /// File descriptors that connections leave free for other files and sockets. If fewer are left
    /// below the soft limit of open files, the rule of `connections` applies. Default 64.
    pub(crate) spare_descriptors: u32,
    /// Idle time without a request or notification after which a connection is released, unless a
    /// resource is being observed over it. Default one hour.
    pub(crate) idle_timeout: Option<Duration>,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            connections: 16_384,
            per_address: 256,
            bytes: 64 << 20,
            handshakes: 1024,
            spare_descriptors: 64,
            idle_timeout: Some(Duration::from_secs(3600)),
        }
    }
}

/// An address at which a server listens for connections, and the transport.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Listen {
    /// `coap+tcp`.
    Tcp(SocketAddr),
    /// `coaps+tcp`, with this certificate.
    #[cfg(feature = "tls")]
    Tls(SocketAddr, TlsServer),
    /// `coap+ws`.
    #[cfg(feature = "ws")]
    Ws(SocketAddr),
    /// `coaps+ws`, with this certificate.
    #[cfg(all(feature = "tls", feature = "ws"))]
    Wss(SocketAddr, TlsServer),
}

impl Listen {
    pub(super) const fn scheme(&self) -> Scheme {
        match self {
            Self::Tcp(_) => Scheme::CoapTcp,
            #[cfg(feature = "tls")]
            Self::Tls(..) => Scheme::CoapsTcp,
            #[cfg(feature = "ws")]
            Self::Ws(_) => Scheme::CoapWs,
            #[cfg(all(feature = "tls", feature = "ws"))]
            Self::Wss(..) => Scheme::CoapsWs,
        }
    }

    pub(super) const fn address(&self) -> SocketAddr {
        match self {
            Self::Tcp(address) => *address,
            #[cfg(feature = "tls")]
            Self::Tls(address, _) => *address,
            #[cfg(feature = "ws")]
            Self::Ws(address) => *address,
            #[cfg(all(feature = "tls", feature = "ws"))]
            Self::Wss(address, _) => *address,
        }
    }

    #[cfg(feature = "tls")]
    pub(super) const fn tls(&self) -> Option<&TlsServer> {
        match self {
            Self::Tls(_, tls) => Some(tls),
            #[cfg(feature = "ws")]
            Self::Wss(_, tls) => Some(tls),
            _ => None,
        }
    }
}
