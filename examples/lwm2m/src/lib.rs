//! LwM2M 1.1 as far as a device and its server need it: registration, update and deregistration; Read, Write, Execute
//! and Observe. Both run on the one DTLS session that the device opens.

mod device;
mod objects;
pub mod operations;
pub mod senml;
pub mod server;

pub use objects::{Device, Id};
