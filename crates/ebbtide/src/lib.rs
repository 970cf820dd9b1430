//! Congestion-safe CoAP endpoints for tokio.
//!
//! A [`Client`] sends requests and a [`Server`] answers them. Both consist of a core endpoint
//! ([`ebbtide_core::endpoint`]) with a socket, a clock, and a congestion control, by default one
//! that avoids congestion collapse (`ebb`). `coaps` URIs use DTLS with pre-shared keys or
//! certificates (feature and module `dtls`); `oscore` protects messages end to end. Over TCP, TLS and
//! WebSockets ([`stream`]) the client and the handlers are the same, and the transport controls
//! congestion.
//!
//! Clients and servers need a running tokio runtime with IO and time enabled. The crate runs on
//! Unix systems.
//!
//! ```no_run
//! # async fn example() -> Result<(), ebbtide::Error> {
//! let client = ebbtide::Client::new();
//! let response = client.get("coap://192.0.2.7/temperature").await?;
//! println!("{} {}", response.code(), response.text());
//! # Ok(()) }
//! ```
//!
//! ```no_run
//! use ebbtide::{Response, Server, server::{Call, Router, get}};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let router = Router::new().route("/hello/{name}", get(|call: &Call<'_>| {
//!     Response::content(format!("Hello, {}!", call.param("name").unwrap_or("you")))
//! }));
//! let server = Server::bind(router, ["0.0.0.0:5683", "[::]:5683"])?;
//! server.run().await?;
//! # Ok(()) }
//! ```
//!
//! The guide is `docs/library.md`.

mod answered;
pub mod client;
pub mod config;
pub mod congestion;
#[cfg(feature = "dtls")]
pub mod dtls;
#[cfg(feature = "edhoc")]
pub mod edhoc;
mod error;
#[doc(hidden)]
pub mod locked_file;
mod message;
pub mod metrics;
mod net;
#[cfg(not(feature = "oscore"))]
#[path = "no_oscore.rs"]
mod oscore;
#[cfg(feature = "oscore")]
pub mod oscore;
mod proved_identity;
mod refusals;
pub mod server;
mod state_store;
pub mod stream;

pub use client::{Client, Peer};
pub use config::{ClientConfig, ServerConfig};
pub use ebbtide_core::q_block::QBlockParameters;
pub use ebbtide_core::wire::{Code, OptionNumber};
pub use error::{BindError, Error, ErrorKind, OscoreFailure};
#[cfg(feature = "serde")]
pub use message::DataError;
pub use message::{
    BurstMark, ContentFormat, DEFAULT_PORT, Options, Request, Response, Scheme, StatusError, Uri,
    UriError, is_harmless,
};
pub use net::{network, socket};
pub use server::Server;

/// The examples of the guide are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
#[doc = include_str!("../../../docs/dtls.md")]
struct Guide;
