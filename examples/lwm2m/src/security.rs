//! Object 0 (Security): which server the device belongs to, and its identity and key. A server must neither read nor
//! write it (LwM2M 1.1 Core, appendix E.1); the device has it from its factory.

use ebbtide::ClientConfig;
use ebbtide::dtls::{Credentials, Psk, PskError};

/// An instance of object 0 in the mode of pre-shared keys.
#[derive(Clone, Debug)]
pub struct Security {
    /// Resource 0, such as `coaps://192.0.2.7`.
    pub(crate) server: String,
    credentials: Credentials,
}

impl Security {
    /// A server, with the identity (resource 3) and the key (resource 5) that it knows.
    ///
    /// # Errors
    ///
    /// Returns an error if the key is empty or too long.
    pub fn new(server: &str, identity: &str, key: &[u8]) -> Result<Self, PskError> {
        let credentials = Credentials::new(identity, Psk::new(key)?);
        Ok(Self { server: server.to_owned(), credentials })
    }

    /// Settings of a client with its identity and key.
    pub(crate) fn client_config(&self) -> ClientConfig {
        ClientConfig::new().credentials(self.credentials.clone())
    }
}
