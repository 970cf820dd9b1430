//! The limits of `ebbtide serve` that depend on the machine and on its clients.

use clap::Args;
use ebbtide::ServerConfig;
use ebbtide::dtls::DtlsConfig;

/// Limits; docs/limits.md has all of them
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct LimitArgs {
    /// Requests per second of one address; further ones are answered 4.29 [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_rate: Option<u32>,
    /// Observers of each socket [default: 131072]
    #[arg(long, value_name = "N")]
    max_observers: Option<usize>,
    /// Peers with state, of each socket [default: 131072]
    #[arg(long, value_name = "N")]
    max_peers: Option<usize>,
    /// DTLS sessions of each socket [default: 131072]
    #[arg(long, value_name = "N")]
    max_sessions: Option<usize>,
    /// Connections over TCP, TLS and WebSockets [default: 16384]
    #[arg(long, value_name = "N")]
    max_connections: Option<usize>,
    /// Connections of one address [default: 256]
    #[arg(long, value_name = "N")]
    max_connections_per_address: Option<usize>,
    /// Bytes that all connections hold [default: 67108864]
    #[arg(long, value_name = "BYTES")]
    max_connection_bytes: Option<usize>,
    /// Bytes of a body in blocks [default: 16777216]
    #[arg(long, value_name = "BYTES")]
    max_body: Option<usize>,
    /// Bytes of all bodies in blocks [default: 67108864]
    #[arg(long, value_name = "BYTES")]
    max_block_bytes: Option<usize>,
}

impl LimitArgs {
    /// Applies those that are given. It replaces the settings of DTLS, so that others follow it.
    pub(crate) fn apply(&self, mut config: ServerConfig) -> ServerConfig {
        if let Some(sessions) = self.max_sessions {
            let mut dtls = DtlsConfig::default();
            dtls.server.limits.sessions = sessions;
            config = config.dtls(dtls);
        }
        if let Some(requests) = self.max_rate {
            config = config.max_rate(requests);
        }
        if let Some(bytes) = self.max_body {
            config = config.max_body(bytes);
        }
        config
            .limits(|mut limits| {
                if let Some(observers) = self.max_observers {
                    limits = limits.observers(observers);
                }
                if let Some(peers) = self.max_peers {
                    limits = limits.peers(peers);
                }
                if let Some(bytes) = self.max_block_bytes {
                    limits = limits.block_bytes(bytes);
                }
                limits
            })
            .connection_limits(|mut limits| {
                if let Some(connections) = self.max_connections {
                    limits = limits.connections(connections);
                }
                if let Some(connections) = self.max_connections_per_address {
                    limits = limits.per_address(connections);
                }
                if let Some(bytes) = self.max_connection_bytes {
                    limits = limits.bytes(bytes);
                }
                limits
            })
    }
}
