//! DTLS: `coaps` with pre-shared keys, certificates or raw public keys.
//!
//! ```no_run
//! use ebbtide::dtls::{Credentials, Psk};
//! use ebbtide::{Client, ClientConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let credentials = Credentials::new("device", Psk::new(b"secret")?);
//! let client = Client::with_config(ClientConfig::new().credentials(credentials));
//! let response = client.get("coaps://192.0.2.7/temperature").await?;
//! # Ok(()) }
//! ```
//!
//! ```no_run
//! use ebbtide::dtls::{DtlsBind, Psk};
//! use ebbtide::{Server, ServerConfig, server::Router};
//!
//! # async fn example(router: Router) -> Result<(), Box<dyn std::error::Error>> {
//! let key = Psk::new(b"secret")?;
//! let keys = move |identity: &[u8]| (identity == b"device").then(|| key.clone());
//! let dtls = DtlsBind::new(([0, 0, 0, 0], 5684), keys);
//! let config = ServerConfig::new().bind_dtls(dtls);
//! let server = Server::with_config(router, config, ["0.0.0.0:5683"])?;
//! # server.run().await?; Ok(()) }
//! ```

pub use crate::net::dtls::config::{Certificates, DtlsBind, DtlsConfig, KeyLogger, Keys};
#[cfg(feature = "dtls-cert")]
pub use crate::stream::raw_keys::{RawKey, RawKeyServer, trusted_keys};
pub use ebbtide_dtls::{
    CertificateError, CertificateType, CipherSuite, Config, Counters, Credentials, Failure,
    Fingerprint, FingerprintError, Limits, Psk, PskError, PskLookup, SavedSession, SessionPeer,
    TrustedKeys,
};
#[cfg(feature = "dtls13")]
pub use ebbtide_dtls13::Dtls13Config;
