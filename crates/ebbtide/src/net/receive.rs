//! Receiving: datagrams become messages, and messages are handled.

use super::beside::{TURN, served};
use super::device;
use super::dtls::OpenedMessages;
use super::receive_buffers::ReceiveBuffers;
use super::shared::{ArrivedRequest, Shared};
use super::socket::Datagram;
use super::trace;
use crate::refusals::Reason;
use ebbtide_core::PeerId;
use ebbtide_core::endpoint::{Arrival, Ignored, Incoming, Received, Remember};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Message;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

/// Batches that are received before other tasks get their turn, unless its time is over earlier.
pub(super) const BATCHES: usize = 8;

/// Datagrams between two looks at the clock.
const UNTIMED: usize = 4;

impl Shared {
    /// Receives and handles a batch, and returns about the instant at which it was handled. Returns
    /// `None` if the socket was not ready; it will then wake the waker of `cx`. With `busily` it
    /// receives without a readiness notification, too. The batch ends when a turn is over, and the
    /// rest of it comes first the next time.
    pub(super) fn receive(self: &Arc<Self>, cx: &mut Context<'_>, busily: bool) -> Option<Instant> {
        let mut buffers = self.receiving.lock().unwrap_or_else(PoisonError::into_inner);
        if buffers.inbox.has_left() {
            return Some(self.handle(&mut buffers));
        }
        if self.is_deaf.load(Ordering::SeqCst) {
            return None;
        }
        let Poll::Ready(received) = self.device.poll_receive(cx, &mut buffers.inbox, busily) else {
            return None;
        };
        match received {
            device::ReceiveOutcome::Datagrams => Some(self.handle(&mut buffers)),
            device::ReceiveOutcome::Nothing => Some(self.clock.now()),
            device::ReceiveOutcome::Error => {
                drop(buffers);
                // The network reported this error for an earlier datagram. Reading it clears it,
                // and there may be datagrams after it.
                self.take_errors();
                Some(self.clock.now())
            }
        }
    }

    fn handle(self: &Arc<Self>, buffers: &mut ReceiveBuffers) -> Instant {
        let ReceiveBuffers { inbox, opened } = buffers;
        let now = self.clock.now();
        let mut last = now;
        let speaks_dtls = self.speaks_dtls.load(Ordering::Relaxed);
        let mut count = 0;
        for datagram in inbox.datagrams() {
            if count % UNTIMED == UNTIMED - 1 {
                last = self.time_answers(now);
                if last >= now + TURN {
                    break;
                }
            }
            count += 1;
            if speaks_dtls {
                match self.workers.get().and_then(|workers| workers.other(datagram.bytes)) {
                    Some(other) => {
                        other.handle_records(now, datagram, opened);
                        other.time_answers(now);
                        other.wake_driver();
                    }
                    None => self.handle_records(now, datagram, opened),
                }
            } else {
                self.handle_message(now, PeerId::Address(datagram.from), datagram);
            }
        }
        if self.untimed.load(Ordering::Relaxed) > 0 {
            last = self.time_answers(now);
        }
        inbox.take(count);
        last
    }

    /// Looks at the clock, and tells the service how long the answers since the last look took.
    fn time_answers(&self, arrived: Instant) -> Instant {
        let now = self.clock.now();
        let answers = self.untimed.swap(0, Ordering::Relaxed);
        if answers > 0
            && let Some(service) = &self.service
        {
            service.answered(answers, arrived, now);
        }
        now
    }

    /// Handles a datagram of DTLS records.
    fn handle_records(
        self: &Arc<Self>,
        now: Instant,
        datagram: Datagram<'_>,
        opened: &mut OpenedMessages,
    ) {
        // A record of a handshake may be answered although no message is in it.
        let mut state = self.draining(self.reply_from(datagram.to));
        state.open(now, datagram.from, datagram.bytes, opened);
        drop(state);
        for (session, bytes) in opened.messages() {
            self.handle_message(now, PeerId::Session(session), Datagram { bytes, ..datagram });
        }
    }

    /// Handles one message, as received or after decryption.
    fn handle_message(self: &Arc<Self>, now: Instant, peer: PeerId, datagram: Datagram<'_>) {
        let mut state = self.draining(self.reply_from(datagram.to));
        trace::received(datagram.from, datagram.bytes);
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
            (other, _) => {
                // An acknowledgement may be that of an answer in a handshake.
                if matches!(other, Received::Response { .. } | Received::Notification { .. }) {
                    served(now);
                }
                state.dispatch(peer, datagram.from, other);
            }
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
