//! State that all sockets and connections of a server share.

use super::arriving::Streams;
use super::last_write::LastWrite;
use super::locked::Locked;
use super::panics::CaughtPanic;
use super::router::Router;
use crate::answered::AnswerTally;
use crate::client::Requests;
use crate::config::AllSettings;
use crate::message::Response;
use crate::net::clock::{Clock, distinct, seeded};
#[cfg(feature = "edhoc")]
use crate::net::handshake_gate::HandshakeGate;
use crate::net::shared::Shared;
use crate::refusals::{Class, Ledger, Reason};
use ebbtide_core::session::FairShares;
use ebbtide_core::session::server::{Outgoing, Server, ServerState, SessionConfig};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Code;
use ebbtide_core::{PeerId, Source};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};
use tokio::sync::Notify;

/// The service that answers the requests of all sockets of a server.
#[derive(Clone, Debug)]
pub(super) struct Service {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) clock: Clock,
    pub(super) router: Router,
    /// Routes that were added while the server runs.
    pub(super) added: RwLock<Router>,
    pub(super) config: AllSettings,
    /// The requests of this side to its peers.
    pub(super) requests: Arc<Requests>,
    pub(super) session: Server<Locked<ServerState>>,
    /// The sockets by number, for answers that are not caused by a request.
    pub(super) sockets: Mutex<BTreeMap<u32, Weak<Shared>>>,
    /// The number of requests whose asynchronous handlers run, or whose answers wait for room.
    pub(super) working: AtomicUsize,
    /// The shares of addresses in the handlers at work that take longer than a moment.
    pub(super) shares: Mutex<FairShares>,
    /// For how many seconds a server that is ending sends clients away; 0 while it serves.
    pub(super) refuses_for: AtomicU32,
    pub(super) overloaded: AtomicU64,
    pub(super) handler_panics: AtomicU64,
    /// How often the state could not be stored.
    pub(super) state_errors: AtomicU64,
    pub(super) last_write: LastWrite,
    pub(super) refusals: Ledger,
    pub(super) answered: AnswerTally,
    pub(super) streams: Streams,
    /// The next wake-up of the task that handles the timers of bodies, if it runs.
    pub(super) pace: Mutex<Option<Instant>>,
    /// Signals that a timer was set to an earlier instant.
    pub(super) earlier: Arc<Notify>,
    /// The turns of messages of EDHOC.
    #[cfg(feature = "edhoc")]
    pub(super) handshakes: Arc<HandshakeGate>,
}

impl Service {
    /// # Errors
    ///
    /// Returns an error if the system provides no randomness.
    pub(super) fn new(router: Router, config: AllSettings) -> io::Result<Self> {
        let session = SessionConfig {
            verify: config.verify,
            max_rate: config.max_rate,
            max_body: config.max_body,
            max_block_bytes: config.max_block_bytes,
            block_size: config.block_size,
            q_block: config.q_block,
            exchange_lifetime: config.endpoint.params.exchange_lifetime(),
            ..SessionConfig::default()
        };
        let tables = Locked::new(ServerState::new(&session, seeded()?));
        let clock = Clock::start();
        let inner = Inner {
            clock,
            router,
            added: RwLock::default(),
            requests: Requests::new(config.clone()),
            config,
            session: Server::new(session, tables),
            sockets: Mutex::default(),
            working: AtomicUsize::new(0),
            shares: Mutex::new(FairShares::new(
                u64::from(distinct()) << 32 | u64::from(distinct()),
            )),
            refuses_for: AtomicU32::new(0),
            overloaded: AtomicU64::new(0),
            handler_panics: AtomicU64::new(0),
            state_errors: AtomicU64::new(0),
            last_write: LastWrite::default(),
            refusals: Ledger::default(),
            answered: AnswerTally::default(),
            streams: Streams::default(),
            pace: Mutex::default(),
            earlier: Arc::default(),
            #[cfg(feature = "edhoc")]
            handshakes: HandshakeGate::new(clock, crate::edhoc::TURNS),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub(super) fn config(&self) -> &AllSettings {
        &self.inner.config
    }

    /// The clock of all its sockets and connections, whose shared state needs one time base.
    pub(super) fn clock(&self) -> Clock {
        self.inner.clock
    }

    pub(super) fn session(&self) -> &Server<Locked<ServerState>> {
        &self.inner.session
    }

    /// The answer in place of a handler that panicked. The panic is counted and logged.
    pub(super) fn panicked(&self, caught: &CaughtPanic) -> Response {
        self.inner.handler_panics.fetch_add(1, Ordering::Relaxed);
        tracing::error!(reason = %caught, "a handler panicked");
        Response::new(Code::INTERNAL_SERVER_ERROR)
    }

    /// Counts a refusal.
    pub(super) fn refused(&self, now: Instant, why: Reason, from: PeerId) {
        let class = match from.source() {
            Source::Session(_) => Class::Dtls,
            // These say nothing about the address, so a look-up is not worth its cost.
            Source::Address(ip) => {
                let forged = matches!(why, Reason::Malformed | Reason::Oscore | Reason::Challenged);
                Class::of_address(ip, !forged && self.session().trusts_source(now, from.source()))
            }
        };
        self.inner.refusals.count(why, class, from.source());
    }

    /// Counts an answer, however many messages it takes.
    pub(super) fn count(&self, outgoing: &Outgoing<'_>) {
        if let Some(first) = outgoing.iter().next()
            && let Some(response) = first.get()
        {
            self.inner.answered.count(first.requester().method, response.code());
        }
    }
}
