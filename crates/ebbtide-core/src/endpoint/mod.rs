//! The endpoint: RFC 7252's message layer for any number of peers, without a clock or a socket.
//!
//! # Contract
//!
//! The driver owns the socket and the clock. It reports events to the endpoint and fetches the
//! endpoint's output:
//!
//! ```text
//! loop {
//!     while let Transmit or Event = endpoint.poll_output() { send it / handle it }
//!     // poll_output gave Timeout(at) last
//!     wait for a datagram, the application, or `at`;
//!     endpoint.handle_datagram(now, from, bytes) / request / respond / handle_timeout(now)
//! }
//! ```
//!
//! * Time never runs backwards: the endpoint replaces an earlier `now` by the latest one seen.
//! * The driver calls [`Endpoint::poll_output`] after every other call until it returns
//!   [`Output::Timeout`].
//! * `handle_*` never fails: a faulty datagram is the peer's fault and is counted.
//! * Calls that send return an error if the request cannot be accepted, and then have no effect.
//! * Every accepted exchange ends exactly once: with [`Received::Response`],
//!   [`Received::Acknowledged`] (for a response of ours), [`Received::Reset`], [`Event::Failed`],
//!   or the caller's [`Endpoint::cancel`]. Everything that it held is then free again.

mod again;
mod block;
mod config;
mod controls;
mod flight;
mod marks;
mod measurement;
mod output;
mod peers;
mod probe;
mod read_ahead;
mod receive;
mod respond;
mod send;
mod statistics;
mod study;
mod tally;
mod types;
mod unsent;
mod waits;

pub use config::{EndpointConfig, Limits, MessageIdStart, SharedConfig};
pub use flight::Flight;
pub use measurement::{Measured, Measurement};
#[doc(hidden)]
pub use output::OutputBuffers;
pub use peers::Scope;
#[doc(hidden)]
pub use read_ahead::MemoryPart;
pub use statistics::{ControlCounters, Exchanges, Histogram, Malformed};
#[doc(hidden)]
pub use study::StudySettings;
pub use types::{
    Arrival, Counters, Event, Failure, Ignored, Incoming, Output, Received, Reliability, Remember,
    SendError, Sent, Transmit,
};

use crate::cc::{Context, ControlConfig, Metrics, Outcome, Sample, Slot};
use crate::exchange::ExchangeId;
use crate::exchange::dedup::{Dedup, MessageKey};
use crate::exchange::table::{ExchangeState, Table, TimerReason};
use crate::exchange::timers::Timers;
use crate::exchange::under_way::RequestsUnderWay;
use crate::peer::PeerId;
use crate::time::{Duration, Instant};
use crate::wire::MessageId;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use controls::Controls;
use marks::FirstAnswers;
use peers::{Marks, NewPeer, OptionSupport, Peers};
use rand_core::Rng;
use tally::Tally;

/// A CoAP endpoint, both client and server. The [module](self) documentation states how a driver
/// uses it.
pub struct Endpoint {
    config: SharedConfig,
    /// The controls that peers refer to, with their counters.
    controls: Controls,
    exchange_lifetime: Duration,
    rng: Box<dyn Rng + Send>,
    now: Instant,
    peers: Peers,
    table: Table,
    timers: Timers,
    /// The timers of the controls themselves, by peer; `None` until a control has one.
    epochs: Option<Box<Timers>>,
    output: OutputBuffers,
    dedup: Dedup,
    under_way: RequestsUnderWay,
    first_answers: FirstAnswers,
    counters: Tally,
    /// `None` until something of it happens.
    rare: Option<Box<Rare>>,
    /// Whether the datagram that is being processed carries the mark Congestion Experienced.
    is_marked: bool,
}

/// State that most endpoints never have.
#[derive(Debug, Default)]
struct Rare {
    /// The faults of datagrams.
    malformed: Malformed,
    /// The values of the controls in exchanges whose transmissions do not leave, from before those.
    unsent: BTreeMap<u32, Slot>,
}

impl Endpoint {
    /// Creates an endpoint without exchanges. `rng` is its only source of randomness: tokens,
    /// message IDs and dithering. On the open Internet it must be unpredictable (RFC 7252 section
    /// 11.4).
    #[must_use]
    pub fn new(config: impl Into<SharedConfig>, mut rng: Box<dyn Rng + Send>) -> Self {
        let config = config.into();
        let limits = config.limits;
        let [of_peers, of_exchanges, of_messages] = [(); 3].map(|()| rng.next_u64());
        Self {
            controls: Controls::new(config.clone()),
            exchange_lifetime: config.params_of_path().exchange_lifetime(),
            now: Instant::ZERO,
            peers: Peers::new(limits.peers, of_peers),
            table: Table::new(limits.exchanges, of_exchanges),
            timers: Timers::default(),
            epochs: None,
            output: OutputBuffers::default(),
            dedup: Dedup::new(limits.remembered_messages, limits.remembered_bytes, of_messages),
            under_way: RequestsUnderWay::new(limits.deferred_requests, of_messages),
            first_answers: FirstAnswers::default(),
            counters: Tally::default(),
            rare: None,
            is_marked: false,
            config,
            rng,
        }
    }

    /// The next action of the driver: first all datagrams, then all events, and the timeout last.
    #[inline]
    pub fn poll_output(&mut self) -> Output<'_> {
        let option = self.next_option();
        match self.output.pop(option) {
            Some(output) => output,
            None => {
                let epoch = self.epochs.as_deref().and_then(Timers::next);
                Output::Timeout(match (self.timers.next(), epoch) {
                    (Some(timer), Some(epoch)) => Some(timer.min(epoch)),
                    (timer, epoch) => timer.or(epoch),
                })
            }
        }
    }

    /// Processes everything that is due at `now`. Call it at the instant that
    /// [`Endpoint::poll_output`] returned; calling it at another time is harmless.
    pub fn handle_timeout(&mut self, now: Instant) {
        let now = self.advance(now);
        while let Some(index) = self.timers.pop_due(now) {
            match self.table.get(index).state {
                ExchangeState::Open if self.table.get(index).due == TimerReason::Repeat => {
                    self.repeat(now, index)
                }
                ExchangeState::Open => self.expire(now, index),
                ExchangeState::Queued => {
                    let peer = self.table.get(index).peer;
                    self.pump(now, peer);
                }
                ExchangeState::Waiting => {
                    self.fail(now, index, Outcome::Cancelled, Failure::NoResponse)
                }
                ExchangeState::Observing | ExchangeState::Free => {}
            }
        }
        self.handle_epochs(now);
    }

    /// Ends an exchange without an event. Unknown and ended exchanges are ignored.
    pub fn cancel(&mut self, now: Instant, exchange: ExchangeId) {
        let now = self.advance(now);
        if let Some(index) = self.table.find(exchange) {
            self.end(now, index, Outcome::Cancelled, None);
        }
    }

    /// Reports that the datagrams of this exchange cannot be sent at all, for example because they are
    /// too long for the network. The exchange fails at once. A driver does not report an error that may pass,
    /// such as a link that is down: the datagram counts as lost, and the timer of the exchange goes on.
    pub fn handle_send_error(&mut self, now: Instant, exchange: ExchangeId) {
        let now = self.advance(now);
        if let Some(index) = self.table.find(exchange) {
            self.fail(now, index, Outcome::Cancelled, Failure::SendError);
        }
    }

    /// Selects the congestion control of a peer's scope. It takes effect at once, starts without
    /// knowledge, and stays: the state of such a peer is not dropped because of its age, only if
    /// [`Limits::peers`] leaves no other choice.
    ///
    /// # Errors
    ///
    /// [`SendError::TooManyPeers`] if there is no room for one more peer, and
    /// [`SendError::TooManyControls`] if 256 different controls are in use.
    pub fn set_control(
        &mut self,
        now: Instant,
        remote: PeerId,
        control: ControlConfig,
    ) -> Result<(), SendError> {
        let now = self.advance(now);
        let number = self.controls.number_of(control).ok_or(SendError::TooManyControls)?;
        let index = self.peer(now, remote)?;
        let peer = self.peers.get_mut(index);
        peer.control = number;
        peer.shell.replace(self.controls[peer.control()].build());
        // The new control may allow a larger NSTART or a faster pace.
        self.pump(now, index);
        Ok(())
    }

    /// Forgets what congestion control learnt about a peer's scope, as if another device had taken
    /// its place. Open exchanges stay open.
    pub fn forget(&mut self, remote: PeerId) {
        if let Some(index) = self.peers.find(self.config.scope.key(remote)) {
            let marks = self.fresh_marks();
            let peer = self.peers.get_mut(index);
            peer.shell.replace(self.controls[peer.control()].build());
            peer.marks = marks;
        }
    }

    /// The metrics of the congestion control of a peer's scope; `None` if there is no such peer.
    #[must_use]
    pub fn metrics(&self, remote: PeerId) -> Option<Metrics> {
        let index = self.peers.find(self.config.scope.key(remote))?;
        Some(self.peers.get(index).shell.metrics())
    }

    /// Whether anything in a peer's scope has answered a message of this endpoint. The state of a peer
    /// without an exchange is forgotten after a while.
    #[must_use]
    pub fn has_answered(&self, remote: PeerId) -> bool {
        self.last_heard(remote).is_some()
    }

    /// When anything in a peer's scope last answered a message of this endpoint, or sent a notification.
    #[must_use]
    pub fn last_heard(&self, remote: PeerId) -> Option<Instant> {
        let index = self.peers.find(self.config.scope.key(remote))?;
        self.peers.get(index).heard.get()
    }

    /// The length of the datagram of an exchange in bytes, while it may be sent again; `None` if the exchange
    /// has ended or was answered.
    #[must_use]
    pub fn unanswered_len(&self, exchange: ExchangeId) -> Option<usize> {
        let exchange = self.table.get(self.table.find(exchange)?);
        let is_open = matches!(exchange.state, ExchangeState::Open | ExchangeState::Queued)
            || exchange.state == ExchangeState::Waiting && !exchange.confirmable;
        is_open.then_some(exchange.datagram.len())
    }

    /// The peer that stands for the scope of a remote. Remotes with the same one share a
    /// congestion control, NSTART and a queue.
    #[must_use]
    pub fn scope_of(&self, remote: PeerId) -> PeerId {
        self.config.scope.key(remote)
    }

    /// The number of messages that wait to leave for a peer's scope.
    #[must_use]
    pub fn waiting(&self, remote: PeerId) -> usize {
        let index = self.peers.find(self.config.scope.key(remote));
        index.map_or(0, |index| usize::from(self.peers.get(index).queued))
    }

    /// The endpoint's counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { peers_evicted_early: self.peers.evicted_early, ..self.counters.counters() }
    }

    /// The number of exchanges that have not ended, including queued ones.
    #[inline]
    #[must_use]
    pub fn open_exchanges(&self) -> usize {
        self.table.len()
    }

    /// [`Limits::exchanges`].
    #[must_use]
    pub fn max_exchanges(&self) -> usize {
        self.config.limits.exchanges
    }

    /// Whether half of [`Limits::exchanges`] are in use. A caller should then hold back what can
    /// wait.
    #[must_use]
    pub fn is_half_full(&self) -> bool {
        self.table.len() >= self.config.limits.exchanges / 2
    }

    /// Whether an exchange has ended.
    #[must_use]
    pub fn has_ended(&self, exchange: ExchangeId) -> bool {
        self.table.find(exchange).is_none()
    }

    /// The number of scopes for which state is kept.
    #[must_use]
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// The number of messages remembered for deduplication.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.dedup.len()
    }

    /// The number of requests that were [deferred](Self::defer) and not answered.
    #[must_use]
    pub fn deferred(&self) -> usize {
        self.under_way.len()
    }

    /// Whether half of the room for remembered messages is in use. From then on a server should
    /// remember only messages from remotes whose address is verified (RFC 9175 section 2.4).
    #[inline]
    #[must_use]
    pub fn is_dedup_half_full(&self) -> bool {
        self.dedup.is_half_full()
    }

    /// Whether this message is remembered, in which case a copy of it is a duplicate.
    pub fn is_remembered(&mut self, now: Instant, remote: PeerId, id: MessageId) -> bool {
        let now = self.advance(now);
        self.dedup.lookup(now, remote, id).is_some()
    }

    /// Remembers a request that was not remembered when it arrived ([`Remember::No`]), and that the
    /// application has verified by a key since. The oldest such requests make room: the application
    /// must refuse those that it has accepted before.
    pub fn remember_verified(&mut self, now: Instant, incoming: &Incoming) {
        let now = self.advance(now);
        let key = MessageKey { remote: incoming.remote, id: incoming.id };
        self.dedup.insert_verified(now, self.exchange_lifetime, key);
    }

    /// Limits the number of transmissions of an exchange, which is otherwise MAX_RETRANSMIT + 1.
    /// Intended for a remote whose address may be forged. Ended exchanges are ignored.
    pub fn limit_transmissions(&mut self, exchange: ExchangeId, transmissions: u8) {
        if let Some(index) = self.table.find(exchange) {
            self.table.get_mut(index).max_transmissions = transmissions;
        }
    }

    /// The transmission parameters.
    #[must_use]
    pub fn params(&self) -> &crate::params::Parameters {
        &self.config.params
    }

    /// The latest time seen: if the clock jumps back, time stands still instead.
    #[inline]
    fn advance(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    /// The control of a peer has no timer of its own any more.
    fn disarm_epoch(&mut self, peer: u32) {
        if let Some(epochs) = &mut self.epochs {
            epochs.disarm(peer);
        }
    }

    fn fresh_marks(&self) -> Marks {
        Marks { faithful: self.config.study.trusts_marks, option: OptionSupport::Unknown }
    }

    /// Finds or creates the peer of a remote's scope.
    fn peer(&mut self, now: Instant, remote: PeerId) -> Result<u32, SendError> {
        let key = self.config.scope.key(remote);
        if let Some(index) = self.peers.find(key) {
            self.peers.touch(now, index);
            return Ok(index);
        }
        let drawn = self.rng.next_u32() as u16;
        let first_id = self.config.message_id_start.map_or(drawn, |start| start.of(key));
        let (config, marks) = (&self.controls[0], self.fresh_marks());
        // Message IDs start again at random for a peer that was forgotten, so the peer must have
        // forgotten them as well (RFC 7252 section 4.4).
        let retention = self.config.limits.peer_retention.max(self.exchange_lifetime);
        let found = self.peers.find_or_insert(
            now,
            retention,
            key,
            NewPeer { control: 0, config, first_id, marks },
        );
        found.ok_or_else(|| {
            self.counters.rare().queue_full += 1;
            SendError::TooManyPeers
        })
    }

    /// Ends an exchange and reports the reason to the application.
    fn fail(&mut self, now: Instant, index: u32, outcome: Outcome, reason: Failure) {
        let exchange = self.table.name(index);
        self.end(now, index, outcome, None);
        self.output.report(Event::Failed { exchange, reason });
    }

    /// Ends an exchange. Everything that it held is free afterwards, and the next message of its
    /// peer may leave.
    fn end(&mut self, now: Instant, index: u32, outcome: Outcome, sample: Option<Sample>) {
        let peer = self.table.get(index).peer;
        self.retire(now, index, outcome, sample);
        self.pump(now, peer);
    }

    /// Like `end`, but does not let the next message leave.
    fn retire(&mut self, now: Instant, index: u32, outcome: Outcome, sample: Option<Sample>) {
        let (state, peer) = (self.table.get(index).state, self.table.get(index).peer);
        match state {
            ExchangeState::Open => self.close(now, index, outcome, sample),
            ExchangeState::Waiting => {
                self.table.forget_id(index);
                self.note_mark(now, peer);
            }
            ExchangeState::Queued => self.unqueue(index),
            ExchangeState::Observing => {}
            ExchangeState::Free => return,
        }
        self.timers.disarm(index);
        if let Some(rare) = &mut self.rare {
            rare.unsent.remove(&index);
        }
        self.table.forget_probes(index);
        if self.table.get(index).purpose == crate::exchange::table::Purpose::Request {
            self.table.forget_token(index);
        }
        self.table.release(index);
        self.peers.end_exchange(now, peer);
        if self.peers.get(peer).is_idle() {
            self.disarm_epoch(peer);
        }
    }

    /// Ends congestion control's part of an open exchange and frees its NSTART place.
    fn close(&mut self, now: Instant, index: u32, outcome: Outcome, sample: Option<Sample>) {
        self.table.forget_id(index);
        self.table.forget_probes(index);
        let exchange = self.table.get(index);
        let peer = self.peers.get_mut(exchange.peer);
        if let Some(sample) = &sample {
            self.controls.count(peer.control(), |counters| counters.answered(sample));
        }
        let cx = &mut context(now, &self.config, &self.controls[peer.control()], &mut *self.rng);
        if let Some(sample) = &sample {
            peer.shell.on_feedback(&exchange.slot, sample, cx);
        }
        let retransmissions = exchange.transmissions.saturating_sub(1);
        peer.shell.close_exchange(&exchange.slot, outcome, retransmissions, cx);
        if sample.is_some() {
            self.note_mark(now, self.table.get(index).peer);
        }
    }

    /// Tells a peer's control if the datagram that is being processed, which answers an exchange with it, was
    /// marked. Requests of the peer do not count: only their sender could slow down, and CoAP has no way to
    /// tell it.
    fn note_mark(&mut self, now: Instant, peer: u32) {
        if !core::mem::take(&mut self.is_marked) {
            return;
        }
        self.counters.rare().congestion_experienced += 1;
        let peer = self.peers.get_mut(peer);
        let cx = &mut context(now, &self.config, &self.controls[peer.control()], &mut *self.rng);
        peer.shell.on_congestion_experienced(cx);
    }
}

/// The context in which a control of `config` is called.
fn context<'c>(
    now: Instant,
    config: &'c EndpointConfig,
    control: &'c ControlConfig,
    rng: &'c mut dyn Rng,
) -> Context<'c> {
    Context { now, params: &config.params, settings: &control.settings, rng }
}

impl core::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Endpoint")
            .field("now", &self.now)
            .field("peers", &self.peers.len())
            .field("exchanges", &self.table.len())
            .field("remembered", &self.dedup.len())
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}
