//! Limits on memory.

use super::AllSettings;
use super::setters::setters;
use std::time::Duration;

/// Limits on the memory of a client or a server: of its UDP endpoints, of its answers to requests,
/// and of each connection.
#[derive(Clone, Debug)]
#[must_use]
pub struct MemoryLimits(pub(super) AllSettings);

setters! {
    MemoryLimits {
        /// Sets the maximum number of peers, or other [scopes](super::ClientConfig::scope), with state. Default
        /// 131072. The one that was idle for longest is forgotten; if none is idle, requests fail with
        /// [`ErrorKind::NotSent`](crate::ErrorKind::NotSent).
        peers(peers: usize) => endpoint.limits.peers = peers;

        /// Sets the maximum number of exchanges, including queued ones. Default 65536.
        exchanges(exchanges: usize) => endpoint.limits.exchanges = exchanges;

        /// Sets the maximum number of messages for one peer that wait for congestion control. Default
        /// 64. Further requests wait for room, in turn.
        queue_per_peer(messages: u16) => endpoint.limits.queue_per_peer = messages;

        /// Sets the maximum length of a message over UDP. Default 1152 bytes, which fits a packet of
        /// 1280 bytes, the minimum MTU of IPv6, with all headers (RFC 7252 section 4.6).
        message_bytes(bytes: usize) => endpoint.limits.message_bytes = bytes;

        /// Sets the maximum length of the tokens of peers' requests in bytes, 8 to 65535 (RFC 8974): those of
        /// waiting requests and of observers are kept. Default 256; with 8, longer ones are format errors (RFC 7252
        /// section 3).
        token_bytes(bytes: u16) =>
            endpoint.limits.token_bytes = bytes.into(),
            stream.connection.max_token_length = bytes.into();

        /// Sets the maximum number of messages that are remembered for deduplication, of which one IPv4
        /// address or IPv6 /64 holds at most half. Default 65536.
        remembered_messages(messages: usize) => endpoint.limits.remembered_messages = messages;

        /// Sets the maximum number of bytes of responses that are stored for duplicates of
        /// non-idempotent requests. Default 8 MiB.
        remembered_bytes(bytes: usize) => endpoint.limits.remembered_bytes = bytes;

        /// Sets the maximum number of bytes of datagrams that wait for the socket. Default 16 MiB.
        outbox_bytes(bytes: usize) => endpoint.limits.outbox_bytes = bytes;

        /// Sets how long a peer's state is kept after its last use. Default 255 s; at least
        /// EXCHANGE_LIFETIME, because message IDs depend on it.
        peer_retention(span: Duration) => endpoint.limits.peer_retention = span;

        /// Sets the maximum number of observers of each socket, and of each connection; further clients are
        /// answered once and not registered. Default 131072.
        observers(observers: usize) => max_observers = observers;

        /// Sets the maximum number of requests that asynchronous handlers work on concurrently. A long one counts once
        /// for each 16 KiB of it, but not for more than half of the maximum. An IPv4 address or IPv6 /64 holds at most
        /// as many as are free. Further requests are answered 5.03 (Service Unavailable) with Max-Age 1. Default 10000.
        working(requests: usize) => max_working = requests;

        /// Sets the maximum number of bytes of block-wise transfers that are answered in progress, uploads and
        /// downloads together; those in Non-confirmable blocks have the same limit again. Default 64
        /// MiB.
        block_bytes(bytes: usize) => max_block_bytes = bytes;

        /// Sets how many requests of ours may be unanswered over one connection, including observations. Default
        /// 1024.
        requests(requests: u16) => stream.connection.max_requests = requests;

        /// Sets how many requests of the peer may be unanswered over one connection. At this limit nothing more is
        /// read until one is answered. Default 1024.
        unanswered(requests: u32) => stream.connection.max_unanswered = requests;

        /// Sets how many bytes may wait to be sent over one connection. From half of this limit on nothing more is
        /// read. Default 256 KiB.
        output(bytes: usize) => stream.connection.max_output = bytes;
    }
}

/// Limits on the connections that a server accepts. Connections that are refused or closed are
/// [counted](crate::stream::StreamCounters) by reason.
#[derive(Clone, Debug)]
#[must_use]
pub struct ConnectionLimits(pub(super) AllSettings);

setters! {
    ConnectionLimits {
        /// Sets how many connections the server accepts at all listeners together. Beyond this limit, the address with
        /// the most connections loses the one that was idle longest; a new connection from that address is closed at
        /// once. Default 16384.
        connections(connections: usize) => stream_limits.connections = connections;

        /// Sets how many connections the server accepts from one IPv4 address or one IPv6 network of 64 bits; further
        /// ones are closed at once. Default 256, since many hosts may be behind one address translator.
        per_address(connections: usize) => stream_limits.per_address = connections;

        /// Sets how many bytes all accepted connections may hold: incomplete messages, output that
        /// waits to be sent, and for each connection 4 KiB, plus 16 KiB with TLS and 8 KiB for a
        /// WebSocket. Beyond this limit, the address that holds most loses the connection that
        /// holds most. Default 64 MiB.
        bytes(bytes: usize) => stream_limits.bytes = bytes;

        /// Sets how many TLS and WebSocket handshakes may be in progress at a server. Beyond this limit the oldest one
        /// is ended. Default 1024.
        handshakes(handshakes: usize) => stream_limits.handshakes = handshakes;

        /// Sets how many file descriptors a server's connections leave free for other files and sockets. If fewer are
        /// left below the soft limit of open files, the rule of [`connections`](Self::connections) applies.
        /// Default 64.
        spare_descriptors(descriptors: u32) => stream_limits.spare_descriptors = descriptors;
    }
}
