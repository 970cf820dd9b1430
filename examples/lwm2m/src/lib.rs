//! LwM2M 1.1 as far as a device and its server need it: registration, update and deregistration; Read, Write, Execute
//! and Observe. Both run on the one DTLS session that the device opens.

mod device;
mod objects;
pub mod operations;
mod security;
pub mod senml;
pub mod server;
pub mod tlv;

pub use objects::{Device, Id};
pub use security::Security;
