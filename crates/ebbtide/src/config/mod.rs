//! The configuration of clients and servers: what most applications set, and groups of settings for the rest.

mod client;
mod common;
mod limits;
mod research;
mod server;
mod setters;
mod transport;

pub use limits::{ConnectionLimits, MemoryLimits};
pub use research::Research;
pub use transport::TransportConfig;

#[cfg(feature = "edhoc")]
use crate::edhoc::Edhoc;
#[cfg(feature = "dtls")]
use crate::net::dtls::config::{DtlsBind, DtlsConfig};
use crate::net::handed_over::HandedOver;
use crate::net::network::DatagramNetwork;
use crate::net::shared::SocketConfig;
use crate::net::socket::SocketOptions;
use crate::oscore::OscoreContexts;
use crate::state_store::StateStore;
use crate::stream::{StreamConfig, StreamLimits};
use ebbtide_core::endpoint::{EndpointConfig, Limits};
use ebbtide_core::q_block::QBlockParameters;
use ebbtide_core::session::Verify;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a [`Client`](crate::Client). Each method sets one of them; [`transport`](Self::transport),
/// [`limits`](Self::limits) and [`research`](Self::research) change those that are set less often.
///
/// ```
/// use ebbtide::ClientConfig;
/// use std::time::Duration;
///
/// let config = ClientConfig::new()
///     .ack_timeout(Duration::from_secs(3))
///     .max_body(1 << 20)
///     .limits(|limits| limits.peers(1_000));
/// let client = ebbtide::Client::with_config(config);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ClientConfig(pub(crate) AllSettings);

impl ClientConfig {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Settings of a [`Server`](crate::Server). Each method sets one of them;
/// [`transport`](Self::transport), [`limits`](Self::limits),
/// [`connection_limits`](Self::connection_limits) and [`research`](Self::research) change those
/// that are set less often.
///
/// ```
/// use ebbtide::ServerConfig;
///
/// let config = ServerConfig::new()
///     .max_rate(100)
///     .limits(|limits| limits.observers(1_000))
///     .connection_limits(|limits| limits.connections(500));
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ServerConfig(pub(crate) AllSettings);

impl ServerConfig {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
}

/// Bytes of the longest token that requests of peers may have (RFC 8974): that of a proxy which keeps its
/// state in it fits, authenticated and encrypted.
const TOKEN_BYTES: usize = 256;

/// The values of all settings.
#[derive(Clone, Debug)]
pub(crate) struct AllSettings {
    pub(crate) endpoint: EndpointConfig,
    pub(crate) max_body: usize,
    pub(crate) request_timeout: Option<Duration>,
    pub(crate) block_size: usize,
    pub(crate) q_block: QBlockParameters,
    pub(crate) local_address: Option<SocketAddr>,
    pub(crate) observe_keep_alive: Option<Duration>,
    pub(crate) socket: SocketOptions,
    pub(crate) busy_poll: Duration,
    pub(crate) network: Option<Arc<dyn DatagramNetwork>>,
    pub(crate) oscore: Option<OscoreContexts>,
    pub(crate) oscore_required: bool,
    #[cfg(feature = "edhoc")]
    pub(crate) edhoc: Option<Edhoc>,
    pub(crate) stream: StreamConfig,
    pub(crate) stream_limits: StreamLimits,
    #[cfg(feature = "dtls")]
    pub(crate) dtls: DtlsConfig,
    #[cfg(feature = "dtls")]
    pub(crate) dtls_binds: Vec<DtlsBind>,
    pub(crate) acknowledge_after: Duration,
    pub(crate) max_working: usize,
    pub(crate) max_block_bytes: usize,
    pub(crate) max_observers: usize,
    pub(crate) max_rate: Option<u32>,
    pub(crate) verify: Verify,
    pub(crate) state: Option<Arc<dyn StateStore>>,
    pub(crate) workers: usize,
    pub(crate) handed_over: HandedOver,
}

impl Default for AllSettings {
    fn default() -> Self {
        Self {
            endpoint: EndpointConfig {
                q_block: true,
                limits: Limits { token_bytes: TOKEN_BYTES, ..Limits::default() },
                ..EndpointConfig::default()
            },
            max_body: 16 << 20,
            request_timeout: None,
            block_size: 1024,
            q_block: QBlockParameters::DEFAULT,
            local_address: None,
            observe_keep_alive: None,
            socket: SocketOptions::default(),
            busy_poll: Duration::ZERO,
            network: None,
            oscore: None,
            oscore_required: false,
            #[cfg(feature = "edhoc")]
            edhoc: None,
            stream: StreamConfig::with_tokens(TOKEN_BYTES as u32),
            stream_limits: StreamLimits::default(),
            #[cfg(feature = "dtls")]
            dtls: DtlsConfig::default(),
            #[cfg(feature = "dtls")]
            dtls_binds: Vec::new(),
            acknowledge_after: Duration::from_millis(50),
            max_working: 10_000,
            max_block_bytes: 64 << 20,
            max_observers: 131_072,
            max_rate: None,
            verify: Verify::default(),
            state: None,
            workers: 1,
            handed_over: HandedOver::default(),
        }
    }
}

impl AllSettings {
    /// These settings with the timers of sessions and connections that the path demands: a first timeout
    /// above theirs says that round trips are as long.
    pub(crate) fn for_its_path(mut self) -> Self {
        let params = self.endpoint.params_of_path();
        #[cfg(feature = "dtls")]
        {
            self.dtls.server = self.dtls.server.for_round_trips(params.ack_timeout.to_duration());
        }
        if params.ack_timeout > params.max_latency {
            let wait = &mut self.stream.connection.response_timeout;
            *wait = (*wait).max(params.response_wait());
        }
        self
    }

    /// Leaves critical options that are safe to forward to the application, which is a proxy.
    pub(crate) fn leave_safe_options(&mut self) {
        self.endpoint.forwards = true;
        self.stream.connection.forwards = true;
    }

    /// The part that concerns a socket.
    pub(crate) fn socket(&self) -> SocketConfig {
        SocketConfig {
            endpoint: self.endpoint.clone(),
            busy_poll: self.busy_poll,
            options: self.socket.clone(),
            oscore: self.oscore.clone(),
            network: self.network.clone(),
        }
    }
}
