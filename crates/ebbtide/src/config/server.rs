//! Settings of servers.

use super::{Config, setters};
use crate::state_store::StateStore;
use ebbtide_core::session::Verify;
use std::sync::Arc;
use std::time::Duration;

setters! {
    /// Sets how long a handler may take before its request is acknowledged, and answered later by a
    /// separate response (RFC 7252 section 5.2.2). Default 50 ms, which is shorter than the
    /// timeouts of clients that measure the round trip.
    acknowledge_after(span: Duration) => acknowledge_after = span;

    /// Sets the maximum number of requests that asynchronous handlers work on concurrently; an IPv4
    /// address or IPv6 /64 holds at most as many as are free. Further requests are answered 5.03
    /// (Service Unavailable) with Max-Age 1. Default 10000.
    max_working(requests: usize) => max_working = requests;

    /// Sets the maximum number of bytes of a server's block-wise transfers in progress, uploads and
    /// downloads together; those in Non-confirmable blocks have the same limit again. Default 64
    /// MiB.
    max_block_bytes(bytes: usize) => max_block_bytes = bytes;

    /// Sets the maximum number of observers of each socket of a server; further clients are
    /// answered once and not registered. Default 131072.
    max_observers(observers: usize) => max_observers = observers;

    /// Sets the maximum number of requests per second from one address; further ones are answered
    /// 4.29 (RFC 8516). Default: no limit.
    max_rate(requests: u32) => max_rate = Some(requests);

    /// Sets the address validation: which addresses receive at most three times the bytes they sent
    /// until they have echoed a challenge (RFC 9175 section 2.4). Default: all but loopback
    /// addresses.
    verify(verify: Verify) => verify = verify;

    /// Sets the number of sockets of a server for each address, each with an endpoint and a thread
    /// of its own; the system divides the peers among them (SO_REUSEPORT). Default 1, which is
    /// driven by the runtime in which the server is bound. More than one is an error on other
    /// systems than Linux. An address of DTLS has one socket.
    workers(workers: usize) => workers = workers;
}

impl Config {
    /// Sets the storage for the state of a server that survives a restart, such as observers.
    /// Default: none.
    pub fn state(mut self, store: impl StateStore) -> Self {
        self.state = Some(Arc::new(store));
        self
    }
}
