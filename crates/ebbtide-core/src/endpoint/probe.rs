//! Probes, which are CoAP pings that congestion control sends for an exchange, and the timers of
//! congestion controls.
//!
//! A probe has a message ID of its own and no state other than an entry in the exchange for which
//! it was sent. The probes of an exchange are forgotten when it is acknowledged, reset, given up
//! or cancelled; a later answer to one of them belongs to no exchange.

use super::types::{Ignored, Received, Sent};
use super::waits::Wait;
use super::{Endpoint, context};
use crate::cc::{Kind, Shell, Transmission};
use crate::exchange::table::{ExchangeState, Probe, Purpose, TimerReason};
use crate::time::{Instant, Micros};
use crate::wire::{Code, Content, HEADER_LEN, MessageId, Token, Type};

/// How many message IDs are tried for a request to a group before it waits. Exchanges that are open have few
/// of the 65536 IDs, so that one or two suffice.
const GROUP_ID_TRIES: u32 = 64;

impl Endpoint {
    /// A message ID for a peer, or the instant from which one is free again.
    pub(super) fn fresh_id(&mut self, now: Instant, peer: u32) -> Result<MessageId, Instant> {
        let lifetime = self.config.study.unique_message_ids.then_some(self.exchange_lifetime);
        self.peers.get_mut(peer).ids.allocate(now, lifetime)
    }

    /// The message ID of a request to a group, which names no open exchange with any peer: a member that
    /// does not know that the request came to a group may answer it with a Reset (RFC 7252 section 8.1).
    pub(super) fn group_id(&mut self, now: Instant, peer: u32) -> Result<MessageId, Instant> {
        for _ in 0..GROUP_ID_TRIES {
            let id = self.fresh_id(now, peer)?;
            if !self.table.is_id_in_use(id) {
                return Ok(id);
            }
        }
        // The next tries take other IDs.
        Err(now + Shell::FLOOR)
    }

    /// Sends a probe instead of repeating the message, after the timeout of an open exchange.
    /// Returns false and does nothing if no message ID is free.
    pub(super) fn probe_expired(&mut self, now: Instant, index: u32) -> bool {
        let Ok(id) = self.fresh_id(now, self.table.get(index).peer) else { return false };
        let remaining = self.remaining(now, self.table.get(index));
        let exchange = self.table.get_mut(index);
        let ordinal = exchange.effort().probes;
        let probe = Transmission { remaining, ..Transmission::new(Kind::Probe, ordinal) };
        let peer = self.peers.get_mut(exchange.peer);
        let cx = &mut context(now, &self.config, &self.controls[peer.control()], &mut *self.rng);
        let timeout = peer.shell.on_transmit(probe, &mut exchange.slot, cx);
        self.emit_probe(now, index, id, timeout);
        let wait = self.wait_after(now, index, timeout);
        self.timers.arm(index, now + wait);
        self.waits(now, index, Wait::Probe, Some(now + wait));
        true
    }

    /// Sends a probe in the place of a message that waits for admission. If no message ID is free,
    /// sends nothing and returns the instant from which one is.
    pub(super) fn probe_queued(&mut self, now: Instant, index: u32) -> Result<(), Instant> {
        let id = self.fresh_id(now, self.table.get(index).peer)?;
        self.emit_probe(now, index, id, Micros::ZERO);
        Ok(())
    }

    fn emit_probe(&mut self, now: Instant, index: u32, id: MessageId, timeout: Micros) {
        self.table.remember_probe(index, Probe { id, sent: now, answered: false });
        let exchange = self.table.get(index);
        let what = Sent::Probe { exchange: self.table.name(index), timeout };
        let sent =
            self.output.push(self.config.limits.outbox_bytes, exchange.remote, what, |out| {
                let empty = Content { code: Code::EMPTY, options: &[], payload: &[] };
                let mut bytes = [0; HEADER_LEN];
                let encoded = empty.encode(&mut bytes, Type::Confirmable, id, Token::EMPTY);
                out.extend_from_slice(&bytes);
                encoded.is_ok()
            });
        self.counters.probes += 1;
        self.count_sent(sent);
    }

    /// How long to wait after a transmission or a probe of an open exchange, given the `timeout`
    /// that congestion control chose. After the last transmission a peer gets at least
    /// PROCESSING_DELAY (RFC 7252 section 4.8.2) before the exchange is given up, and the last
    /// waits are at least as long as [`Shell::patience`] requires.
    pub(super) fn wait_after(&mut self, now: Instant, index: u32, timeout: Micros) -> Micros {
        let exchange = self.table.get(index);
        let params = &self.config.params;
        let tries = u16::from(params.max_retransmit) + 1;
        let left = tries.saturating_sub(exchange.effort().unanswered());
        let least = if left == 0 { params.ack_timeout } else { Micros::ZERO };
        let timeout = timeout.max(least);
        if !self.config.study.patience {
            return timeout;
        }
        let since_first = now.micros_since(exchange.first);
        let remaining = match exchange.purpose {
            Purpose::Response | Purpose::Notification => Some(self.remaining(now, exchange)),
            Purpose::Request | Purpose::Ping => None,
        };
        let control = &self.controls[self.peers.get(exchange.peer).control()];
        let cx = &mut context(now, &self.config, control, &mut *self.rng);
        match remaining {
            Some(remaining) => Shell::wait_of_response(timeout, left, since_first, remaining, cx),
            None => Shell::wait(timeout, left, since_first, cx),
        }
    }

    /// Whether a message ID belongs to a probe of the exchange.
    pub(super) fn is_probe(&self, index: u32, id: MessageId) -> bool {
        self.table.get(index).probes.iter().any(|probe| probe.id == id)
    }

    /// A probe was answered: with the Reset that RFC 7252 section 4.3 requires, or with an empty
    /// acknowledgement, which measures the path as well.
    pub(super) fn on_probe_reply(
        &mut self,
        now: Instant,
        index: u32,
        id: MessageId,
    ) -> Received<'static> {
        self.hear(now, index);
        let peer_index = self.table.get(index).peer;
        let Some(reply) = self.table.probe_reply(now, index, id) else { return self.unknown() };
        self.counters.probes_answered += 1;
        let exchange = self.table.get_mut(index);
        let peer = self.peers.get_mut(peer_index);
        let cx = &mut context(now, &self.config, &self.controls[peer.control()], &mut *self.rng);
        let repeat_after = peer.shell.on_probe(&mut exchange.slot, &reply, cx);
        if let (ExchangeState::Open, Some(wait)) = (exchange.state, repeat_after) {
            exchange.due = TimerReason::Repeat;
            self.timers.arm(index, now + wait);
        }
        self.pump(now, peer_index);
        Received::Ignored(Ignored::Probe)
    }

    /// Calls the controls whose timers are due.
    pub(super) fn handle_epochs(&mut self, now: Instant) {
        while let Some(index) = self.epochs.as_mut().and_then(|epochs| epochs.pop_due(now)) {
            let peer = self.peers.get_mut(index);
            let cx =
                &mut context(now, &self.config, &self.controls[peer.control()], &mut *self.rng);
            peer.shell.handle_timeout(cx);
            let next = peer.shell.poll_timeout();
            self.pump(now, index);
            // A control whose timer does not move on is called again later, not at once, and not
            // at all at the end of time.
            let earliest = now + Shell::FLOOR;
            match next.filter(|_| earliest > now && !self.peers.get(index).is_idle()) {
                Some(at) => self.epochs.get_or_insert_default().arm(index, at.max(earliest)),
                None => self.disarm_epoch(index),
            }
        }
    }

    /// Updates the timer of a peer's control after the control was called.
    pub(super) fn follow_epoch(&mut self, index: u32) {
        let peer = self.peers.get(index);
        match peer.shell.poll_timeout().filter(|_| !peer.is_idle()) {
            Some(at) => self.epochs.get_or_insert_default().arm(index, at),
            None => self.disarm_epoch(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EndpointConfig, Output, Reliability};
    use super::*;
    use crate::cc::{
        Admission, CongestionControl, Context, Controller, Load, Metrics, OutgoingMessage,
        ProbeReply, Sample, Slot, Transmission,
    };
    use crate::peer::PeerId;
    use crate::time::Duration;
    use alloc::boxed::Box;
    use core::net::SocketAddr;
    use rand_chacha::ChaCha8Rng;
    use rand_core::SeedableRng;

    /// Sends probes every 100 ms until one is answered, and counts its epochs.
    #[derive(Debug, Default)]
    struct Discoverer {
        replies: u32,
        epochs: u32,
        /// Whether the next epoch stays at the same instant.
        stuck: bool,
        next: Option<Instant>,
    }

    impl CongestionControl for Discoverer {
        fn admit(&mut self, _: &OutgoingMessage, _: &Load, cx: &mut Context<'_>) -> Admission {
            self.next.get_or_insert(cx.now + Duration::from_secs(1));
            match self.replies {
                0 => Admission::Probe(cx.now + Duration::from_millis(100)),
                _ => Admission::Send,
            }
        }
        fn on_transmit(&mut self, _: &Transmission, _: &mut Slot, _: &mut Context<'_>) -> Micros {
            Micros::from_millis(60_000)
        }
        fn on_probe(
            &mut self,
            _: &mut Slot,
            _: &ProbeReply,
            _: &mut Context<'_>,
        ) -> Option<Micros> {
            self.replies += 1;
            None
        }
        fn on_feedback(&mut self, _: &Slot, _: &Sample, _: &mut Context<'_>) {}
        fn poll_timeout(&self) -> Option<Instant> {
            self.next
        }
        fn handle_timeout(&mut self, cx: &mut Context<'_>) {
            self.epochs += 1;
            if !self.stuck {
                self.next = Some(cx.now + Duration::from_secs(1));
            }
        }
        fn metrics(&self) -> Metrics {
            Metrics { second: Some(Micros::new(self.epochs)), ..Metrics::default() }
        }
    }

    const PEER: PeerId = PeerId::Address(SocketAddr::new(
        core::net::IpAddr::V4(core::net::Ipv4Addr::LOCALHOST),
        5683,
    ));

    fn endpoint(control: Discoverer) -> Endpoint {
        let rng = Box::new(ChaCha8Rng::seed_from_u64(1));
        let mut endpoint = Endpoint::new(EndpointConfig::default(), rng);
        let peer = endpoint.peer(Instant::ZERO, PEER).unwrap_or_default();
        endpoint.peers.get_mut(peer).shell.replace(Controller::Other(Box::new(control)));
        let get = Content { code: Code::GET, options: &[], payload: &[] };
        let sent = endpoint.request(Instant::ZERO, PEER, &get, Reliability::Confirmable);
        assert!(sent.is_ok());
        endpoint
    }

    /// Lets time pass until `end`. Returns the number of probes and the message ID that were sent.
    fn run(endpoint: &mut Endpoint, end: Duration) -> (u32, Option<MessageId>) {
        let (mut probes, mut last) = (0, None);
        loop {
            match endpoint.poll_output() {
                Output::Transmit(transmit) => {
                    probes += u32::from(matches!(transmit.what, Sent::Probe { .. }));
                    let id = transmit.datagram.get(2..4).and_then(|id| id.try_into().ok());
                    last = id.map(|id| MessageId(u16::from_be_bytes(id)));
                }
                Output::Event(_) => {}
                Output::Timeout(at) => match at.filter(|&at| at <= Instant::ZERO + end) {
                    Some(at) => endpoint.handle_timeout(at),
                    None => return (probes, last),
                },
            }
        }
    }

    fn epochs(endpoint: &Endpoint) -> Option<u64> {
        endpoint.metrics(PEER)?.second.map(Micros::as_micros)
    }

    #[test]
    fn a_message_that_waits_is_preceded_by_probes_until_one_is_answered() {
        let mut endpoint = endpoint(Discoverer::default());
        let (probes, last) = run(&mut endpoint, Duration::from_millis(950));
        assert_eq!(probes, 10, "one at once and nine more");
        let Some(MessageId(id)) = last else { panic!("nothing was sent") };
        let [high, low] = id.to_be_bytes();
        let at = Instant::ZERO + Duration::from_millis(960);
        let reset = [0x70, 0, high, low];
        let got = endpoint.handle_datagram(at, PEER, &reset);
        assert!(matches!(got, Received::Ignored(Ignored::Probe)));
        assert_eq!(run(&mut endpoint, Duration::from_millis(980)).0, 0);
        assert_eq!(endpoint.counters().sent, 11, "then the message leaves");
        assert_eq!(endpoint.open_exchanges(), 1);
    }

    #[test]
    fn the_controls_own_time_is_heeded_while_the_peer_has_exchanges() {
        let mut endpoint = endpoint(Discoverer { replies: 1, ..Discoverer::default() });
        run(&mut endpoint, Duration::from_millis(5500));
        assert_eq!(epochs(&endpoint), Some(5));
        let open = endpoint.table.name(0);
        endpoint.cancel(Instant::ZERO, open);
        run(&mut endpoint, Duration::from_secs(100));
        assert_eq!(epochs(&endpoint), Some(5), "an idle peer costs no timer");
    }

    #[test]
    fn a_control_that_does_not_move_its_time_on_is_not_called_without_end() {
        let stuck = Discoverer { replies: 1, stuck: true, ..Discoverer::default() };
        let mut endpoint = endpoint(stuck);
        run(&mut endpoint, Duration::from_millis(1995));
        let floor = Shell::FLOOR.as_micros() / 1000;
        assert_eq!(epochs(&endpoint), Some(1 + 995 / floor));
    }
}
