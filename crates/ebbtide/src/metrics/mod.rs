//! Metrics: the counters and the present load of a client or a server.
//!
//! Everything is counted in plain integers where it happens, which costs the receive loop neither
//! an allocation nor a lock. A [`Snapshot`] is taken on request, and its `Display` is the
//! text that Prometheus scrapes: serve it at any HTTP endpoint. `docs/metrics.md` lists every
//! metric with its meaning.
//!
//! ```no_run
//! # use ebbtide::{Server, server::Router};
//! # async fn example(router: Router) -> Result<(), ebbtide::BindError> {
//! let server = Server::bind(router, ["[::]:5683"])?;
//! let meter = server.meter();
//! tokio::spawn(server.run());
//! println!("{}", meter.snapshot());
//! assert_eq!(meter.snapshot().counters.malformed, 0);
//! # Ok(()) }
//! ```

mod dtls;
mod exposition;
mod family;

pub use crate::answered::AnswerCounts;
pub use crate::refusals::RefusalCounts;
pub use dtls::DtlsCounts;
pub use family::{Family, Kind, Sample, Value};

use crate::net::shared::Shared;
use crate::stream::counters::Tally;
use crate::stream::{OpenLinks, StreamCounters};
use ebbtide_core::cc::ControlConfig;
use ebbtide_core::endpoint::{ControlCounters, Counters, Exchanges, Malformed};
use ebbtide_core::session::server::Refusals;
use std::sync::{Arc, Weak};

/// Reads the metrics of a [`Server`](crate::Server). A meter can be used from any thread and
/// outlives the server.
#[derive(Clone, Debug)]
pub struct Meter {
    sockets: Vec<Weak<Shared>>,
    connections: Weak<Tally>,
    listeners: Vec<OpenLinks>,
    server: Weak<dyn Reports>,
}

/// The metrics of a server's handlers and transfers.
pub(crate) trait Reports: core::fmt::Debug + Send + Sync {
    fn load(&self) -> Load;
    fn refusals(&self) -> Refusals;
    fn refused(&self) -> RefusalCounts;
    fn answered(&self) -> AnswerCounts;
    fn state_errors(&self) -> u64;
    /// Whether new requests are sent away.
    fn is_ending(&self) -> bool;
}

impl Meter {
    pub(crate) fn new<'s>(
        sockets: impl Iterator<Item = &'s Arc<Shared>>,
        connections: &Arc<Tally>,
        listeners: Vec<OpenLinks>,
        server: Weak<dyn Reports>,
    ) -> Self {
        let sockets = sockets.map(Arc::downgrade).collect();
        Self { sockets, connections: Arc::downgrade(connections), listeners, server }
    }

    /// Whether the server accepts requests: it is there, and has not been told to end.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let server = self.server.upgrade();
        server.is_some_and(|server| !server.is_ending())
    }

    /// A snapshot of the server's metrics; all zero once the server is gone.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let live: Vec<_> = self.sockets.iter().filter_map(Weak::upgrade).collect();
        let tally = self.connections.upgrade();
        let mut connections = tally.map(|tally| tally.counters()).unwrap_or_default();
        self.listeners.iter().for_each(|links| links.add_to(&mut connections));
        let mut snapshot = Snapshot::of_sockets(live.iter(), connections);
        if let Some(server) = self.server.upgrade() {
            snapshot.load = server.load();
            snapshot.refused = server.refused();
            snapshot.answered = server.answered();
            snapshot.state_errors = server.state_errors();
            let Refusals { observers_refused, observers_vanished, .. } = snapshot.refusals;
            snapshot.refusals = server.refusals();
            snapshot.refusals.observers_refused = observers_refused;
            snapshot.refusals.observers_vanished = observers_vanished;
        }
        snapshot
    }
}

/// Counters up to an instant, and gauges at it, summed over all sockets.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Snapshot {
    /// UDP sockets that are open, those for DTLS included.
    pub sockets: usize,
    /// Counters of the message layer.
    pub counters: Counters,
    /// Datagrams that were not valid messages, by reason.
    pub malformed: Malformed,
    /// Counters of each congestion control in use.
    pub controls: Vec<(ControlConfig, ControlCounters)>,
    /// Exchanges of our own over UDP and DTLS that have not ended, by state.
    pub exchanges: Exchanges,
    /// Requests of our own over connections that have not ended.
    pub connection_requests: usize,
    /// Requests of the application that wait for an answer, or whose answers were not fetched yet.
    pub calls: usize,
    /// Scopes with congestion control state.
    pub peers: usize,
    /// Messages remembered for deduplication.
    pub remembered: usize,
    /// Datagrams that wait for the socket to take them, and their bytes.
    pub outbox: Queue,
    /// Registered observers (RFC 7641).
    pub observers: usize,
    /// Events that were dropped because an observer was too slow.
    pub dropped_events: u64,
    /// Requests that a server rejected, by reason.
    pub refusals: Refusals,
    /// Refusals of a server, by reason and class of address.
    pub refused: RefusalCounts,
    /// A server's answers, by method and code.
    pub answered: AnswerCounts,
    /// Datagrams that the kernel dropped because they were not received in time (Linux).
    pub kernel_drops: u64,
    /// How often a server's state could not be stored.
    pub state_errors: u64,
    /// The load of the server's handlers and block-wise transfers.
    pub load: Load,
    /// Connections over TCP, TLS and WebSockets (RFC 8323).
    pub connections: StreamCounters,
    /// Sessions and handshakes over DTLS.
    pub dtls: DtlsCounts,
}

/// The length of a queue.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queue {
    /// The number of datagrams.
    pub datagrams: usize,
    /// The number of their bytes.
    pub bytes: usize,
}

/// State that a server holds for unfinished requests.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// Requests in progress at asynchronous handlers. A long one counts once for each 16 KiB of it, as in
    /// [`MemoryLimits::working`](crate::config::MemoryLimits::working).
    pub working: usize,
    /// Bytes of bodies in blocks (RFC 7959), in both directions together.
    pub block_bytes: usize,
    /// Bodies that clients send in blocks.
    pub uploads: usize,
    /// Bodies that clients fetch in blocks.
    pub downloads: usize,
}

impl Snapshot {
    /// Collects the metrics of sockets that belong to one client or one server.
    pub(crate) fn of_sockets<'s>(
        sockets: impl Iterator<Item = &'s Arc<Shared>>,
        connections: StreamCounters,
    ) -> Self {
        let observers = connections.observers;
        let mut snapshot = Self { connections, observers, ..Self::default() };
        for shared in sockets {
            snapshot.sockets += 1;
            snapshot.kernel_drops += shared.device.kernel_drops();
            let state = shared.lock();
            let endpoint = &state.endpoint;
            snapshot.counters.add(&endpoint.counters());
            snapshot.malformed.add(&endpoint.malformed());
            #[cfg(feature = "dtls")]
            if let Some(sessions) = &state.dtls {
                snapshot.dtls.add(sessions.count(), &sessions.counters());
            }
            for (control, counters) in endpoint.controls() {
                snapshot.add_control(control, counters);
            }
            snapshot.exchanges.add(&endpoint.exchanges());
            snapshot.calls += state.pending.calls();
            snapshot.peers += endpoint.peers();
            snapshot.remembered += endpoint.remembered();
            snapshot.outbox.datagrams += state.out.len();
            snapshot.outbox.bytes += state.out.len_bytes();
            snapshot.observers += state.observers.len();
            snapshot.dropped_events += state.observers.dropped_events();
            snapshot.refusals.observers_refused += state.observers.refused();
            snapshot.refusals.observers_vanished += state.observers.vanished();
        }
        snapshot
    }

    /// The number of exchanges and requests of our own that have not ended. Zero once every future is done or dropped.
    #[must_use]
    pub fn open_exchanges(&self) -> usize {
        let Exchanges { queued, open, waiting, observing, .. } = self.exchanges;
        (queued + open + waiting + observing) as usize + self.connection_requests
    }

    fn add_control(&mut self, control: &ControlConfig, counters: &ControlCounters) {
        match self.controls.iter_mut().find(|(known, _)| known == control) {
            Some((_, sum)) => sum.add(counters),
            None => self.controls.push((control.clone(), *counters)),
        }
    }
}
