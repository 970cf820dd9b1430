//! Requests of HTTP clients (RFC 8075).

mod connection;
mod events;
mod request;
mod response;
