//! One file per command.

pub(crate) mod bench;
mod burst;
mod campaign;
pub(crate) mod compact;
pub(crate) mod discover;
pub(crate) mod emulate;
pub(crate) mod export;
pub(crate) mod fit;
pub(crate) mod flow;
mod forecast;
pub(crate) mod list;
pub(crate) mod map;
pub(crate) mod observe;
pub(crate) mod ping;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod request;
mod response;
pub(crate) mod run;
pub(crate) mod serve;
mod serve_binds;
mod serve_files;
mod serve_memory;
mod serve_metrics;
mod serve_resources;
pub(crate) mod shell;
