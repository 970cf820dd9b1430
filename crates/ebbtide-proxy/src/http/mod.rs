//! Requests of HTTP clients (RFC 8075).

mod connection;
mod events;
mod media;
mod request;
mod response;
