//! DTLS: `coaps` with pre-shared keys.
//!
//! ```no_run
//! use ebbtide::dtls::{Credentials, Psk};
//! use ebbtide::{Client, Config};
//!
//! # async fn example() -> Result<(), ebbtide::Error> {
//! let mut config = Config::default();
//! config.dtls.credentials = Psk::new(b"secret").map(|psk| Credentials::new("device", psk));
//! let client = Client::with_config(config);
//! let response = client.get("coaps://192.0.2.7/temperature").await?;
//! # Ok(()) }
//! ```

pub use crate::net::dtls::config::{DtlsConfig, KeyLogger};
pub use ebbtide_dtls::{
    CipherSuite, Config, Counters, Credentials, Failure, Limits, Psk, PskLookup,
};
