//! Congestion-safe CoAP endpoints for tokio.
//!
//! A [`Client`] asks, a [`Server`] answers; both are a core endpoint
//! ([`ebbtide_core::endpoint`]) with a socket and a clock, and a congestion control that keeps
//! retransmissions from melting the network. Over TCP, TLS and WebSockets ([`stream`]) it is the
//! same client and the same handlers, and the transport's congestion control.
//!
//! ```no_run
//! # async fn example() -> Result<(), ebbtide::Error> {
//! let client = ebbtide::Client::new()?;
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

pub mod client;
#[cfg(feature = "dtls")]
pub mod dtls;
mod error;
mod message;
pub mod metrics;
mod net;
pub mod server;
pub mod stream;

pub use client::Client;
pub use ebbtide_core as core;
pub use ebbtide_core::wire::{Code, OptionNumber};
pub use error::{BindError, Error};
#[cfg(feature = "serde")]
pub use message::DataError;
pub use message::{
    BurstMark, ContentFormat, DEFAULT_PORT, Options, Request, Response, Scheme, StatusError, Uri,
    UriError,
};
pub use net::config::Config;
pub use net::socket;
pub use server::Server;

/// The examples of the guide are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Guide;
