//! What clients and servers are told about connections.

#[cfg(feature = "tls")]
use super::tls::{Identity, Trust};
#[cfg(feature = "tls")]
use super::tls_server::TlsServer;
use crate::message::Scheme;
use ebbtide_core::stream::Config as ConnectionConfig;
use std::net::SocketAddr;
use std::time::Duration;

/// Settings of connections, opened or accepted.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// Message sizes, bounds and patience of one connection.
    pub connection: ConnectionConfig,
    /// How long connecting may take: TCP, TLS and WebSocket handshakes together; on a server
    /// the latter two each. Default 15 s.
    pub handshake_timeout: Duration,
    /// How long a client waits for the server's CSM: this long, or four times as long as connecting
    /// took if that is longer, but never beyond `connection.csm_timeout`. It is the first that a
    /// server sends (RFC 8323 section 5.3), so one that takes much longer sends none. Default 5 s.
    pub csm_wait: Duration,
    /// Whether segments leave at once. Otherwise a short one waits until the one before it is
    /// acknowledged (Nagle's algorithm, RFC 9293 section 3.7.4). Default true.
    pub nodelay: bool,
    /// Which certificates a server must have for a client of ours to speak to it.
    #[cfg(feature = "tls")]
    pub trust: Trust,
    /// With which certificate a client shows who it is, if servers ask for one.
    #[cfg(feature = "tls")]
    pub identity: Option<Identity>,
}

impl Default for StreamConfig {
    fn default() -> Self {
        let connection = ConnectionConfig {
            keep_alive: Some(Duration::from_secs(240)),
            ..ConnectionConfig::default()
        };
        Self {
            connection,
            handshake_timeout: Duration::from_secs(15),
            csm_wait: Duration::from_secs(5),
            nodelay: true,
            #[cfg(feature = "tls")]
            trust: Trust::default(),
            #[cfg(feature = "tls")]
            identity: None,
        }
    }
}

/// What the connections that a server accepts may use together. Whatever is turned away or ended is
/// [counted](super::StreamCounters) by reason.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Connections in all, at all listeners together. Beyond that, the address that has most
    /// connections loses the one that was idle longest; a newcomer from that address is closed at
    /// once. Default 16384.
    pub connections: usize,
    /// Connections from one IPv4 address or one IPv6 network of 64 bits; more are closed at once.
    /// Default 256: an address translator may have many hosts behind it.
    pub per_address: usize,
    /// Bytes that all connections may hold: what was read of messages that are not whole, what
    /// waits to be sent, and for each connection 4 KiB, 16 KiB more with TLS and 8 KiB more as
    /// WebSocket. Beyond that, the address that holds most loses the connection that holds most.
    /// Default 64 MiB.
    pub bytes: usize,
    /// TLS and WebSocket handshakes that are made at a time. Beyond that, the oldest ends. Default
    /// 1024.
    pub handshakes: usize,
    /// Descriptors that connections leave free for files and sockets of others: where fewer are
    /// left below the soft limit of open files, it is as with `connections`. Default 64.
    pub spare_descriptors: u32,
    /// After which time without a request or notification a connection is released, unless
    /// somebody observes something over it. Default one hour.
    pub idle_timeout: Option<Duration>,
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

/// Where a server listens for connections.
#[derive(Clone, Debug)]
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
