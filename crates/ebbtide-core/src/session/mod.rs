//! What stands on messages: bodies in blocks, observations, Echo, the stages of a request.
//!
//! Nothing here reads a clock, owns a socket or calls a handler: instants and randomness are
//! arguments, and what has to be done next is a return value. The same code serves a device's loop, an
//! asynchronous runtime and a simulation.

pub mod client;
mod message;

pub use message::{BlockSizes, BurstMark, ContentFormat, Options, Response};
