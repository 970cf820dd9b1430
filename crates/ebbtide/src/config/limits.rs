//! Limits on the memory of a UDP endpoint, see [`Limits`](ebbtide_core::endpoint::Limits).

use super::setters;
use std::time::Duration;

setters! {
    /// Sets for how many peers, or other [scopes](Config::scope), there is state. Default 131072. The one that
    /// was idle for longest is forgotten; if none is idle, requests fail with [`Error::Send`](crate::Error::Send).
    max_peers(peers: usize) => endpoint.limits.peers = peers;

    /// Sets how many exchanges there may be, queued ones included. Default 65536.
    max_exchanges(exchanges: usize) => endpoint.limits.exchanges = exchanges;

    /// Sets how many messages for one peer may wait for permission to leave. Default 64. Requests beyond
    /// that wait for room, in turn.
    queue_per_peer(messages: u16) => endpoint.limits.queue_per_peer = messages;

    /// Sets the length of the longest message over UDP. Default 1280 bytes, the minimum MTU of IPv6, beyond which
    /// datagrams are fragmented.
    message_bytes(bytes: usize) => endpoint.limits.message_bytes = bytes;

    /// Sets how many messages are remembered for deduplication, of which one address, or IPv6 prefix of 64
    /// bits, holds at most half. Default 65536.
    remembered_messages(messages: usize) => endpoint.limits.remembered_messages = messages;

    /// Sets the bytes of responses that are stored for duplicates of requests that are not idempotent.
    /// Default 8 MiB.
    remembered_bytes(bytes: usize) => endpoint.limits.remembered_bytes = bytes;

    /// Sets the bytes of datagrams that wait for the socket. Default 16 MiB.
    outbox_bytes(bytes: usize) => endpoint.limits.outbox_bytes = bytes;

    /// Sets how long a peer's state is kept after its last use. Default 255 s; at least EXCHANGE_LIFETIME,
    /// because message IDs depend on it.
    peer_retention(span: Duration) => endpoint.limits.peer_retention = span;
}
