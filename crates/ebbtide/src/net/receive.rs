//! Receiving: by the driver, or by the task of the only call that waits for an answer.
//!
//! A client that makes one request after the other would wake two tasks for each response: the driver,
//! which receives it, and the caller. Where only one call waits, the readiness of the socket wakes its
//! task instead, which receives and handles what has arrived ([`Shared::receive_for_call`]). Everything
//! else remains with the driver, which also takes over if that task has not come within `PATIENCE`.

use super::beside::{TURN, served};
use super::device;
use super::serve::ArrivedRequest;
use super::shared::{Shared, SocketState};
use super::socket::{Datagram, Inbox};
use super::trace;
use crate::refusals::Reason;
use ebbtide_core::PeerId;
use ebbtide_core::endpoint::{Arrival, Ignored, Incoming, Received, Remember};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Message;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Batches that are received before other tasks get their turn, unless its time is over earlier.
pub(super) const BATCHES: usize = 8;

/// Datagrams between two looks at the clock.
const UNTIMED: usize = 4;

/// How long a datagram waits for the task that was woken to receive it. It is short compared with
/// ACK_TIMEOUT, so that a peer does not retransmit meanwhile.
const PATIENCE: Duration = Duration::from_millis(50);

/// The waker for the readiness of a client's socket, and the socket itself.
#[derive(Debug, Default)]
pub(super) struct Ready(OnceLock<(Waker, Weak<Shared>)>);

struct Arrived(Weak<Shared>);

impl Wake for Arrived {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(shared) = self.0.upgrade() {
            shared.wake_receiver();
        }
    }
}

/// The call whose task receives, and when the driver looks after it.
#[derive(Debug, Default)]
pub(super) struct Handed {
    /// The call that was woken to receive.
    call: Option<u32>,
    /// The call that began to wait last.
    waits: u32,
    /// When the datagrams arrived for which it was woken: a sample of the round trip must not contain the time
    /// that the application takes to poll the call.
    since: Option<Instant>,
    /// The driver's timer fires no later while calls are woken. It is not moved for each of them.
    guard: Option<Instant>,
}

impl SocketState {
    /// Until when the driver's timer must fire for the sake of a task that was woken to receive.
    pub(super) fn guard(&self) -> Option<Instant> {
        self.handed.guard
    }

    /// Whether a task was woken to receive and has not come yet.
    pub(super) fn is_handed(&self) -> bool {
        self.handed.call.is_some()
    }

    /// The task of a call waits, or has come. Returns when the datagrams arrived for which it was woken, if it
    /// was woken to receive.
    pub(super) fn comes(&mut self, index: u32) -> Option<Instant> {
        self.handed.waits = index;
        self.handed.call.take_if(|call| *call == index)?;
        self.handed.since
    }

    /// Wakes the call whose task is to receive, if there is one.
    fn hand_over(&mut self, now: Instant) -> Option<Waker> {
        if self.closed || self.is_handed() || self.pending.calls() != 1 {
            return None;
        }
        let soon = now + PATIENCE;
        if self.armed.is_none_or(|at| at > soon) {
            // The driver receives this one, and arms its timer for the next ones.
            self.handed.guard = Some(soon);
            return None;
        }
        let index = self.handed.waits;
        let waker = self.pending.take_only_waker(index)?;
        (self.handed.call, self.handed.since) = (Some(index), Some(now));
        Some(waker)
    }
}

impl Shared {
    /// Lets the tasks of calls receive. A server's socket has other work at the same time, and one that
    /// is polled busily has a task that is always awake.
    pub(super) fn let_callers_receive(self: &Arc<Self>) {
        if self.service.is_none() && self.busy_poll.is_zero() {
            let weak = Arc::downgrade(self);
            let waker = Waker::from(Arc::new(Arrived(weak.clone())));
            let _ = self.ready.0.set((waker, weak));
        }
    }

    /// The waker for the readiness of a client's socket.
    pub(super) fn ready(&self) -> Option<&Waker> {
        self.ready.0.get().map(|(waker, _)| waker)
    }

    /// Datagrams have arrived: wakes the only call that waits, or else the driver.
    fn wake_receiver(&self) {
        let now = self.clock.now();
        let mut state = self.lock();
        let woken = state.hand_over(now).or_else(|| state.driver.take());
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// The driver runs: what a call was woken to receive is received now, before anything else is due,
    /// and the call is not woken for it again.
    pub(super) fn take_over(self: &Arc<Self>, now: Instant) {
        let mut state = self.lock();
        state.handed.guard = state.handed.guard.filter(|at| *at > now);
        let Some(index) = state.handed.call.take() else { return };
        let since = state.handed.since;
        if since.is_none_or(|since| now >= since + PATIENCE)
            && let Some(call) = state.pending.call(index)
        {
            call.is_late = true;
        }
        drop(state);
        if let Some(waker) = self.ready() {
            self.receive(&mut Context::from_waker(waker), false, since);
        }
    }

    /// Receives what has arrived: the task of a call has come that was woken to do so.
    pub(super) fn receive_for_call(&self, since: Instant) {
        let Some((waker, shared)) = self.ready.0.get() else { return };
        let Some(shared) = shared.upgrade() else { return };
        let mut cx = Context::from_waker(waker);
        let more = (0..BATCHES).all(|batch| {
            let arrived = (batch == 0).then_some(since);
            shared.receive(&mut cx, false, arrived)
        });
        let mut state = self.lock();
        if !state.out.is_empty() {
            // The driver tries again if the socket is full.
            let _ = self.flush(&mut state, self.clock.now());
        }
        let driver = if more || state.concerns_the_driver() { state.driver.take() } else { None };
        let woken = core::mem::take(&mut state.wake);
        drop(state);
        woken.into_iter().chain(driver).for_each(Waker::wake);
    }

    /// The task of a call that was woken to receive will not come: the call is forgotten.
    pub(super) fn hand_back(&self, state: &mut SocketState, index: u32) -> Option<Waker> {
        state.handed.call.take_if(|call| *call == index)?;
        state.driver.take()
    }

    /// Receives and handles a batch. Returns false if the socket was not ready; it will then wake
    /// the waker of `cx`. With `busily` it receives without a readiness notification, too. The batch has
    /// `arrived` then, or now. It ends when a turn is over, and the rest of the batch comes first the next time.
    pub(super) fn receive(
        self: &Arc<Self>,
        cx: &mut Context<'_>,
        busily: bool,
        arrived: Option<Instant>,
    ) -> bool {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        if inbox.has_left() {
            self.handle(&mut inbox, arrived);
            return true;
        }
        let Poll::Ready(received) = self.device.poll_receive(cx, &mut inbox, busily) else {
            return false;
        };
        match received {
            device::ReceiveOutcome::Datagrams => {
                self.handle(&mut inbox, arrived);
                true
            }
            device::ReceiveOutcome::Nothing => true,
            device::ReceiveOutcome::Error => {
                drop(inbox);
                // The network reported this error for an earlier datagram. Reading it clears it,
                // and there may be datagrams after it.
                self.take_errors();
                true
            }
        }
    }

    fn handle(self: &Arc<Self>, inbox: &mut Inbox, arrived: Option<Instant>) {
        let began = self.clock.now();
        let now = arrived.unwrap_or(began);
        let speaks_dtls = self.speaks_dtls.load(Ordering::Relaxed);
        let mut count = 0;
        for datagram in inbox.datagrams() {
            if count % UNTIMED == UNTIMED - 1 && self.clock.now() >= began + TURN {
                break;
            }
            count += 1;
            if speaks_dtls {
                self.handle_records(now, datagram);
            } else {
                self.handle_message(now, PeerId::Address(datagram.from), datagram);
            }
        }
        inbox.take(count);
    }

    /// Handles a datagram of DTLS records.
    fn handle_records(self: &Arc<Self>, now: Instant, datagram: Datagram<'_>) {
        // A record of a handshake may be answered although no message is in it.
        let mut state = self.draining(self.reply_from(datagram.to));
        let Some(opened) = state.open(now, datagram.from, datagram.bytes) else { return };
        drop(state);
        for (session, bytes) in opened.messages() {
            self.handle_message(now, PeerId::Session(session), Datagram { bytes, ..datagram });
        }
        if let Some(sessions) = &mut self.lock().dtls {
            sessions.reuse(opened);
        }
    }

    /// Handles one message, as received or after decryption.
    fn handle_message(self: &Arc<Self>, now: Instant, peer: PeerId, datagram: Datagram<'_>) {
        let mut state = self.draining(self.reply_from(datagram.to));
        trace::received(datagram.from, datagram.bytes);
        served(now);
        let to_group = datagram.to.is_some_and(|to| to.is_multicast());
        let congestion_experienced = datagram.congestion_experienced;
        let arrival = Arrival { from: peer, to_group, congestion_experienced };
        let much = state.endpoint.is_dedup_half_full();
        let mut vouched = true;
        let remember = |incoming: &Incoming, message: &Message<'_>| {
            let Some(service) = &self.service else { return Remember::Yes };
            let remember = service.remember(now, incoming.remote, message, much);
            vouched = remember != Remember::No;
            remember
        };
        match (state.endpoint.receive(now, arrival, datagram.bytes, remember), &self.service) {
            (Received::Request(incoming, message), Some(service)) => {
                // Handlers run without the lock.
                drop(state);
                let to = datagram.to;
                let from = datagram.from;
                service.serve(self, now, &ArrivedRequest { incoming, message, from, to, vouched });
            }
            // A client without a server (RFC 7252 section 4.2: lacking context).
            (Received::Request(incoming, _), None) => state.endpoint.reset(&incoming),
            (Received::Ignored(why), _) => self.count(now, why, peer),
            (other, _) => state.dispatch(peer, datagram.from, other),
        }
    }

    /// Counts a refusal of a server's message layer.
    fn count(&self, now: Instant, why: Ignored, from: PeerId) {
        let why = match why {
            Ignored::Malformed => Reason::Malformed,
            Ignored::NoRoom => Reason::NotRemembered,
            _ => return,
        };
        if let Some(service) = &self.service {
            service.refused(now, why, from);
        }
    }
}
