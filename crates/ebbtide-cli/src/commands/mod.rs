//! The commands, a file each.

pub(crate) mod bench;
pub(crate) mod request;
pub(crate) mod serve;
mod serve_resources;
