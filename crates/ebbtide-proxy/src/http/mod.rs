//! Requests of HTTP clients (RFC 8075).

mod connection;
mod events;
mod request;
mod response;

pub(crate) use connection::{answer, serve};
pub(crate) use request::PREFIX;
pub(crate) use response::{AnswerBody, whole};
