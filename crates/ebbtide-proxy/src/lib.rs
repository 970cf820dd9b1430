//! CoAP proxies and HTTP gateways that cannot flood the network behind them.
//!
//! A [`Gateway`] forwards requests of CoAP clients (RFC 7252 section 5.7) and of HTTP clients (RFC 8075) to CoAP
//! servers. Each [cell](CellConfig), such as the devices behind one base station, has a budget of requests in flight,
//! which follows the round trips. Requests that exceed it wait, with equal shares for their clients. Those
//! that cannot be answered within their time limit are refused before anything is sent for them. Equal requests
//! that wait at the same time are sent once, and answers are cached.
//!
//! A [`Directory`] knows the resources of devices (RFC 9176), and a [`Broker`] passes publications on to subscribers.
//!
//! ```no_run
//! use ebbtide::Server;
//! use ebbtide_proxy::{Gateway, GatewayConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // Nothing may be reached unless a prefix allows it.
//! let gateway = Gateway::new(GatewayConfig::new().allow("10.0.0.0/8".parse()?));
//! let server = Server::bind(gateway.router(), ["127.0.0.1:5683"])?;
//! server.run().await?;
//! # Ok(()) }
//! ```

mod access;
mod ask;
mod backend;
mod blocks;
mod broker;
mod cache;
mod cell;
mod config;
mod directory;
mod downloads;
mod durable;
mod explore;
mod forward;
mod gateway;
mod http;
mod media;
mod numbered;
mod observed;
mod open;
mod options;
mod outcome;
mod remainder;
mod room;
mod shared;
mod system;
mod target;
#[cfg(test)]
mod tests;
mod time_limit;
mod timeline;
mod uploads;
mod upstream;
mod web;
mod web_body;
mod web_link;
mod web_uri;
mod work;

pub use access::{Prefix, PrefixError};
pub use broker::{Broker, BrokerConfig};
pub use cell::CellConfig;
pub use config::GatewayConfig;
pub use directory::{Directory, DirectoryConfig};
pub use explore::Explorer;
pub use gateway::{CellStatus, Gateway};
