//! A network in memory, in virtual time, for tests of applications on [`ebbtide`].
//!
//! [`run`] plays a test once for each seed. The test is given a [`TestNetwork`], whose
//! [`client_config`](TestNetwork::client_config) and [`server_config`](TestNetwork::server_config)
//! make clients and servers exchange their datagrams over it, through links of the simulator
//! ([`ebbtide_sim::net::Link`]) under these [`Conditions`]. Nothing else of the application
//! changes: its `Router`, `Client`, `Server`, DTLS and OSCORE are those that it deploys.
//! Connections (TCP, TLS and WebSockets) go over the same links by a model of TCP: what is lost
//! arrives later, after timeouts that double, and a connection over which nothing passes for a
//! quarter of an hour ends. TLS and WebSockets draw keys and masks of their own, so their bytes
//! differ each time.
//!
//! Time is tokio's, and paused: while every task waits, it advances to the next timer at once. All
//! randomness of the clients, servers and links comes from the seed, so a seed gives the same
//! packets each time ([`PacketTrace`]), as long as the application draws nothing of its own:
//! `tokio::select!` without `biased`, the system's clock and other threads are what most often
//! differs.
//!
//! ```
//! use ebbtide::{Client, Response, Server, server::{Router, get}};
//! use ebbtide_testnet::{Conditions, run};
//! use std::time::Duration;
//!
//! run([7], Conditions::new().loss(0.2), async |network| {
//!     let router = Router::new().route("/hello", get(|| Response::content("hello")));
//!     let server = Server::with_config(router, network.server_config(), ["10.0.0.1:5683"]).unwrap();
//!     tokio::spawn(server.run());
//!     let client = Client::with_config(network.client_config());
//!     let response = client.get("coap://10.0.0.1/hello").await.unwrap();
//!     assert_eq!(response.text(), "hello");
//! });
//! ```

mod conditions;
mod connections;
mod fabric;
mod links;
mod network;
mod play;
mod ports;
mod segment;
mod streams;
mod trace;

pub use conditions::Conditions;
pub use network::TestNetwork;
pub use play::{SEED_VARIABLE, play, run};
pub use trace::{PacketFate, PacketTrace, SegmentKind, TracedPacket};

/// The example of the README is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
