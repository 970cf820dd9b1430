//! Settings of servers.

use super::{Config, setters};
use crate::state_store::StateStore;
use ebbtide_core::session::Verify;
use std::sync::Arc;
use std::time::Duration;

setters! {
    /// Sets how long a handler may take before its request is acknowledged, and answered by a separate
    /// response later (RFC 7252 section 5.2.2). Default 50 ms: below the timeouts of clients that
    /// measure the round trip.
    acknowledge_after(span: Duration) => acknowledge_after = span;

    /// Sets how many requests asynchronous handlers may work on at once; an IPv4 address or IPv6 prefix of 64 bits
    /// holds at most as many places as are free. Further requests are answered 5.03 (Service Unavailable) with
    /// Max-Age 1. Default 10000.
    max_working(requests: usize) => max_working = requests;

    /// Sets how many bytes a server keeps of bodies in parts, uploads and downloads together, and as many again
    /// of those in Non-confirmable blocks. Default 64 MiB.
    max_block_bytes(bytes: usize) => max_block_bytes = bytes;

    /// Sets how many observers a socket of a server has; who registers beyond that is answered once. Default
    /// 131072.
    max_observers(observers: usize) => max_observers = observers;

    /// Sets how many requests a second one address may send to a server; more are answered 4.29 (RFC 8516).
    /// Default: no limit.
    max_rate(requests: u32) => max_rate = Some(requests);

    /// Sets which addresses get no more than three times the bytes they sent before they have echoed a
    /// challenge (RFC 9175 section 2.4).
    verify(verify: Verify) => verify = verify;

    /// Sets how many sockets a server has for each address, each with an endpoint and a thread of its own, among
    /// which the system divides the peers (SO_REUSEPORT). Default 1, which is driven by the runtime in which the
    /// server was bound. More than one is an error elsewhere than on Linux. An address of DTLS has one socket.
    workers(workers: usize) => workers = workers;
}

impl Config {
    /// Sets where a server stores what it must know after a restart, such as who observes what. Default: nowhere.
    pub fn state(mut self, store: impl StateStore) -> Self {
        self.state = Some(Arc::new(store));
        self
    }
}
