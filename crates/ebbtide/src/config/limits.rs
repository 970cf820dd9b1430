//! Limits on the memory of a UDP endpoint, see [`Limits`](ebbtide_core::endpoint::Limits).

use super::setters;
use std::time::Duration;

setters! {
    /// Sets the maximum number of peers, or other [scopes](crate::Config::scope), with state. Default
    /// 131072. The one that was idle for longest is forgotten; if none is idle, requests fail with
    /// [`ErrorKind::NotSent`](crate::ErrorKind::NotSent).
    max_peers(peers: usize) => endpoint.limits.peers = peers;

    /// Sets the maximum number of exchanges, including queued ones. Default 65536.
    max_exchanges(exchanges: usize) => endpoint.limits.exchanges = exchanges;

    /// Sets the maximum number of messages for one peer that wait for congestion control. Default
    /// 64. Further requests wait for room, in turn.
    queue_per_peer(messages: u16) => endpoint.limits.queue_per_peer = messages;

    /// Sets the maximum length of a message over UDP. Default 1152 bytes, which fits a packet of
    /// 1280 bytes, the minimum MTU of IPv6, with all headers (RFC 7252 section 4.6).
    message_bytes(bytes: usize) => endpoint.limits.message_bytes = bytes;

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
}
