//! Configuration of clients and servers.

#[cfg(feature = "dtls")]
use crate::net::dtls::config::DtlsConfig;
use crate::net::shared::SocketConfig;
use crate::net::socket::SocketOptions;
use crate::stream::StreamConfig;
use ebbtide_core::cc::ControlConfig;
use ebbtide_core::endpoint::{EndpointConfig, Scope};
use ebbtide_core::q_block::QBlockParameters;
use std::net::SocketAddr;
use std::time::Duration;

/// Settings of a [`Client`](crate::Client) or a [`Server`](crate::Server).
#[derive(Clone, Debug)]
pub struct Config {
    /// The message layer: transmission parameters, congestion control, limits.
    pub endpoint: EndpointConfig,
    /// Bytes of the longest body that is assembled from blocks, in either direction. Default 16
    /// MiB.
    pub max_body: usize,
    /// Bytes of the blocks that are sent over UDP: 16, 32, 64, 128, 256, 512 or 1024 (RFC 7959 section
    /// 2.2); other values are rounded down to one of these. Default 1024.
    pub block_size: usize,
    /// The pace of bodies in the blocks of RFC 9177 (Q-Block): of requests with
    /// [`q_block`](crate::Request::q_block), and of a server's responses to clients that use it.
    /// [`EndpointConfig::q_block`] sets whether Q-Block is supported at all; it is by default.
    pub q_block: QBlockParameters,
    /// The address and port to which a client's UDP socket is bound, for peers of its family; port
    /// 0 is any port. By default the system chooses both. A server's addresses are arguments of
    /// `Server::bind`.
    pub local_address: Option<SocketAddr>,
    /// The interface, hop limits and traffic class of UDP sockets.
    pub socket: SocketOptions,
    /// Connections over TCP, TLS and WebSockets.
    pub stream: StreamConfig,
    /// DTLS: `coaps`.
    #[cfg(feature = "dtls")]
    pub dtls: DtlsConfig,
    /// How long a socket keeps polling for datagrams after the last ones before it sleeps. Polling
    /// saves the time of a wake-up, which on a virtual machine is most of a short round trip, and
    /// keeps a core busy. Default zero.
    pub busy_poll: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            endpoint: EndpointConfig { q_block: true, ..EndpointConfig::default() },
            max_body: 16 << 20,
            block_size: 1024,
            q_block: QBlockParameters::DEFAULT,
            local_address: None,
            socket: SocketOptions::default(),
            stream: StreamConfig::default(),
            #[cfg(feature = "dtls")]
            dtls: DtlsConfig::default(),
            busy_poll: Duration::ZERO,
        }
    }
}

impl Config {
    /// The part that concerns a socket.
    pub(crate) fn socket(&self) -> SocketConfig {
        SocketConfig {
            endpoint: self.endpoint.clone(),
            busy_poll: self.busy_poll,
            options: self.socket.clone(),
        }
    }

    /// The defaults with another congestion control.
    #[must_use]
    pub fn with_control(control: ControlConfig) -> Self {
        let mut config = Self::default();
        config.endpoint.control = control;
        config
    }

    /// Sets how many Confirmable exchanges may be open to one scope (NSTART, RFC 7252 section
    /// 4.7). At least 1, which is the default and appropriate for shared networks.
    #[must_use]
    pub fn nstart(mut self, exchanges: u16) -> Self {
        self.endpoint.params.nstart = exchanges.max(1);
        self
    }

    /// Sets the first timeout of a Confirmable message to a peer of which nothing is known (ACK_TIMEOUT, RFC
    /// 7252 section 4.8). Default 2 s.
    #[must_use]
    pub fn ack_timeout(mut self, span: Duration) -> Self {
        self.endpoint.params.ack_timeout = ebbtide_core::time::Micros::from_duration(span);
        self
    }

    /// Sets how often a Confirmable message is repeated (MAX_RETRANSMIT, RFC 7252 section 4.8). Default 4.
    #[must_use]
    pub fn max_retransmit(mut self, repetitions: u8) -> Self {
        self.endpoint.params.max_retransmit = repetitions;
        self
    }

    /// Sets the scope that shares one congestion control.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.endpoint.scope = scope;
        self
    }

    /// Sets how long a request that was acknowledged or sent Non-confirmable waits for its
    /// response. Default 247 s.
    #[must_use]
    pub fn response_timeout(mut self, span: Duration) -> Self {
        self.endpoint.params.response_timeout = ebbtide_core::time::Micros::from_duration(span);
        self
    }
}
