//! DTLS 1.3 (RFC 9147) with certificates, by the library `dimpl`, beside the sessions of DTLS 1.2.
//!
//! [`DualEndpoint`] has the interface of [`ebbtide_dtls::Endpoint`], whose outputs and events it uses, so that a driver
//! replaces one by the other. Instants are arguments; keys come from the system's randomness, not from a seed.

mod config;
mod dual;
mod endpoint;
mod epoch;
mod failure;
mod hello;
mod kept;
mod provider;
mod reader;
mod retry;
mod selection;
mod session;

pub use config::{Certificate, Dtls13Config, ServedCertificate};
pub use dual::DualEndpoint;
pub use endpoint::Dtls13Endpoint;
