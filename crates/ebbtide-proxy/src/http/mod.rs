//! Requests of HTTP clients (RFC 8075).

mod connection;
mod discovery;
mod events;
mod request;
mod response;
mod upload;

pub(crate) use connection::{Plain, answer, serve};
pub(crate) use request::PREFIX;
pub(crate) use response::{AnswerBody, whole};
