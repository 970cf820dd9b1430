//! CoAP over TCP, TLS and WebSockets (RFC 8323): the drivers of
//! [`ebbtide_core::stream::Connection`].
//!
//! A [`Client`](crate::Client) selects them by the scheme of a URI, and a
//! [`Server`](crate::Server) by [`Server::listen`](crate::Server::listen). One task drives each
//! connection; the application's calls, the handlers and the task share its state.

mod budget;
mod calls;
#[cfg(feature = "dtls-cert")]
mod certificates;
mod config;
mod connect;
pub(crate) mod counters;
#[cfg(feature = "tls")]
mod expiry;
mod link;
mod listen;
mod member;
mod pool;
#[cfg(feature = "dtls-cert")]
pub(crate) mod raw_keys;
mod room;
mod socket;
mod starting;
mod task;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "no_tls.rs"]
mod tls;
#[cfg(feature = "tls")]
mod tls_server;
mod trace;
mod wire;
#[cfg(feature = "ws")]
mod ws;
#[cfg(feature = "ws")]
mod ws_server;

pub(crate) use calls::ObservedCall;
pub use config::Listen;
pub(crate) use config::{StreamConfig, StreamLimits};
pub use counters::StreamCounters;
pub(crate) use counters::Tally;
pub(crate) use link::{Answerer, Link, LinkState, Serve};
pub(crate) use listen::{Listener, ListenerHandle, OpenLinks, Serving};
pub(crate) use pool::Pool;
#[cfg(feature = "tls")]
pub use tls::{Identity, TlsError, Trust};
#[cfg(feature = "tls")]
pub use tls_server::{TlsAcceptor, TlsServer};
