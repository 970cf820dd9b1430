//! Settings of connections over TCP, TLS and WebSockets.

use super::{Config, setters};
#[cfg(feature = "tls")]
use crate::stream::{Identity, Trust};
use std::time::Duration;

setters! {
    /// Sets how long establishing a connection may take: for a client the TCP, TLS and WebSocket handshakes
    /// together, for a server each of the latter two. Default 15 s.
    handshake_timeout(span: Duration) => stream.handshake_timeout = span;

    /// Sets how long a client waits for the server's CSM: this time, or four times the time that connecting
    /// took if that is longer, but never longer than [`csm_timeout`](Config::csm_timeout). A server sends its CSM
    /// first (RFC 8323 section 5.3), so one that takes much longer does not send any. Default 5 s.
    csm_wait(span: Duration) => stream.csm_wait = span;

    /// Sets whether segments leave at once. Otherwise a short segment waits until the one before it is
    /// acknowledged (Nagle's algorithm, RFC 9293 section 3.7.4). Default true.
    nodelay(yes: bool) => stream.nodelay = yes;

    /// Sets the length of the longest message of a connection in either direction, which the CSM announces
    /// (RFC 8323 section 5.3.1). A value above 1152 bytes announces BERT (section 6). Default 66688 bytes.
    max_message_size(bytes: u32) => stream.connection.max_message_size = bytes;

    /// Sets how many requests of ours may be unanswered over one connection, including observations. Default
    /// 1024.
    max_requests(requests: u16) => stream.connection.max_requests = requests;

    /// Sets how many requests of the peer may be unanswered over one connection. At this limit nothing more is
    /// read until one is answered. Default 1024.
    max_unanswered(requests: u32) => stream.connection.max_unanswered = requests;

    /// Sets how many bytes may wait to be sent over one connection. From half of this limit on nothing more is
    /// read. Default 256 KiB.
    max_output(bytes: usize) => stream.connection.max_output = bytes;

    /// Sets how long the peer may take for its first CSM. Default 30 s.
    csm_timeout(span: Duration) => stream.connection.csm_timeout = span;

    /// Sets how long a message that has begun to arrive over a connection may take to arrive completely. Default
    /// 60 s.
    message_timeout(span: Duration) => stream.connection.message_timeout = span;

    /// Sets how long a connection may accept none of the waiting bytes. Default 60 s.
    write_timeout(span: Duration) => stream.connection.write_timeout = span;

    /// Sets how long the peer may take to close a connection after our Release. Default 10 s.
    release_timeout(span: Duration) => stream.connection.release_timeout = span;

    /// Sets the idle time after which a Ping is sent over a connection (RFC 8323 section 5.4); `None`: never.
    /// Default 240 s.
    keep_alive(span: impl Into<Option<Duration>>) => stream.connection.keep_alive = span.into();

    /// Sets how long a Ping may go unanswered. Default 20 s.
    pong_timeout(span: Duration) => stream.connection.pong_timeout = span;

    /// Sets how many connections a server accepts at all listeners together. Beyond this limit, the address with
    /// the most connections loses the one that was idle longest; a new connection from that address is closed at
    /// once. Default 16384.
    max_connections(connections: usize) => stream_limits.connections = connections;

    /// Sets how many connections a server accepts from one IPv4 address or one IPv6 network of 64 bits; further
    /// ones are closed at once. Default 256, since many hosts may be behind one address translator.
    max_connections_per_address(connections: usize) => stream_limits.per_address = connections;

    /// Sets how many bytes all accepted connections may hold: incomplete messages, output that waits to be sent,
    /// and for each connection 4 KiB, plus 16 KiB with TLS and 8 KiB for a WebSocket. Beyond this limit, the address
    /// that holds most loses the connection that holds most. Default 64 MiB.
    max_connection_bytes(bytes: usize) => stream_limits.bytes = bytes;

    /// Sets how many TLS and WebSocket handshakes may be in progress at a server. Beyond this limit the oldest one
    /// is ended. Default 1024.
    max_handshakes(handshakes: usize) => stream_limits.handshakes = handshakes;

    /// Sets how many file descriptors a server's connections leave free for other files and sockets. If fewer are
    /// left below the soft limit of open files, the rule of [`max_connections`](Config::max_connections) applies.
    /// Default 64.
    spare_descriptors(descriptors: u32) => stream_limits.spare_descriptors = descriptors;
}

#[cfg(feature = "tls")]
setters! {
    /// Sets which server certificates a client accepts. Default: those of the authorities that the system trusts.
    trust(trust: Trust) => stream.trust = trust;

    /// Sets the certificate with which a client authenticates itself, if a server asks for one.
    identity(identity: impl Into<Option<Identity>>) => stream.identity = identity.into();
}

impl Config {
    /// Sets the time without a request, a response or a notification after which a connection is released, unless a
    /// resource is being observed over it; `None`: never. Default never for a client, and one hour for a server.
    pub fn idle_timeout(mut self, span: impl Into<Option<Duration>>) -> Self {
        let span = span.into();
        self.stream.connection.idle_timeout = span;
        self.stream_limits.idle_timeout = span;
        self
    }
}
