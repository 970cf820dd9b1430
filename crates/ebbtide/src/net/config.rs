//! Configuration of clients and servers.

#[cfg(feature = "dtls")]
use super::dtls::config::DtlsConfig;
use super::socket::SocketOptions;
use crate::stream::StreamConfig;
use ebbtide_core::cc::Config as Control;
use ebbtide_core::endpoint::{EndpointConfig, Scope};
use ebbtide_core::q_block::QBlockParameters;
use std::net::SocketAddr;
use std::time::Duration;

/// Settings of a [`Client`](crate::Client) or a [`Server`](crate::Server).
#[derive(Clone, Debug)]
pub struct Config {
    /// The message layer: transmission parameters, congestion control, bounds.
    pub endpoint: EndpointConfig,
    /// Bytes of the longest body that is put together from blocks, in either direction. Default
    /// 16 MiB.
    pub max_body: usize,
    /// Bytes of the blocks that are sent over UDP: 16, 32, 64, 128, 256, 512 or 1024 (RFC 7959 section
    /// 2.2); other values are rounded down to one of these. Default 1024.
    pub block_size: usize,
    /// How fast bodies go in the blocks of RFC 9177 (Q-Block): those of requests that are
    /// [`q_block`](crate::Request::q_block), and a server's to clients that ask for it. Whether they are
    /// understood at all is [`EndpointConfig::q_block`], by default yes.
    pub q_block: QBlockParameters,
    /// The address and port that a client's UDP socket is bound to, for peers of its family; port 0 is any.
    /// By default the system chooses both. A server is told where to bind.
    pub local_address: Option<SocketAddr>,
    /// The interface, hop limits and traffic class of UDP sockets.
    pub socket: SocketOptions,
    /// Connections over TCP, TLS and WebSockets.
    pub stream: StreamConfig,
    /// DTLS: `coaps`.
    #[cfg(feature = "dtls")]
    pub dtls: DtlsConfig,
    /// How long a socket goes on asking for datagrams after the last ones before it sleeps. That
    /// saves the time it takes to be woken, which on a virtual machine is most of a short round
    /// trip, and keeps a core busy meanwhile. Default zero.
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
    /// The defaults under another congestion control.
    #[must_use]
    pub fn with_control(control: Control) -> Self {
        let mut config = Self::default();
        config.endpoint.control = control;
        config
    }

    /// Sets how many Confirmable exchanges may be open to one scope (NSTART, RFC 7252 section
    /// 4.7). At least 1, which is also the default and what a shared network wants.
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

    /// Sets what shares one congestion control.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.endpoint.scope = scope;
        self
    }

    /// Sets how long a request that was acknowledged, or sent Non-confirmable, waits for its
    /// response. Default 247 s.
    #[must_use]
    pub fn response_timeout(mut self, span: Duration) -> Self {
        self.endpoint.params.response_timeout = ebbtide_core::time::Micros::from_duration(span);
        self
    }
}
