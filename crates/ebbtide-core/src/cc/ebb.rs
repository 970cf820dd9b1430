//! `ebb`: probe the path before repeating a message (docs/ebb.md).

use super::{
    Admission, CongestionControl, Context, Expiry, Fasor, Kind, Load, Marking, Metrics, Outcome,
    OutgoingMessage, ProbeReply, Sample, Slot, Transmission,
};
use crate::time::{Duration, Instant, Micros};

/// Ebb: a missing answer alone does not cause a retransmission; a detected loss does.
///
/// * **Blind** (no round trip known): the first timeout, which is short, sends a probe instead of a
///   copy; a probe is a CoAP ping. On a path that preserves order, the Reset that answers the probe
///   shows that the message or its answer was lost, so the message is repeated at once. If the
///   answer arrives first, nothing was lost, and the probe cost a third of a copy. If neither
///   arrives, the message is repeated twice after a long interval, and then at growing ones.
/// * **Known, no queue** (the last round trip is near the smallest one): a missing answer means a
///   loss. The message is repeated after the same short timeout a few times, then with doubled
///   ones. If nearly every second transmission is lost, a buffer must be full, and timeouts double
///   from the start.
/// * **Known, queue** (the last round trip is well above the smallest one): a missing answer most
///   likely means a queue. Timeouts double from the start.
///
/// An exchange sends at most one probe. After an exchange that was given up, or nearly was, the next one
/// begins with half of the last timeout. All copies on a known path leave within EXCHANGE_LIFETIME, unless the
/// path takes longer. Copies are marked, so that every answer is a sample. For a peer that does not answer
/// probes Ebb behaves as FASOR does, whose estimator it uses.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ebb {
    /// The estimator and the last sample; it also runs the exchanges with a peer that does not
    /// answer probes.
    fasor: Fasor,
    /// The smallest recent round trip; zero before the first sample. It creeps upwards, because
    /// otherwise a change of path would never be noticed.
    least: Micros,
    /// When an answer last gave a sample, in seconds since the driver's epoch.
    fed: u32,
    /// How long a verdict waits for an answer that the probe may have overtaken, in ms.
    guard: u16,
    /// The round trip of the last probe in ms; zero before the first one. No timeout is computed
    /// from it alone.
    path: u16,
    /// The minimum timeout of the next original transmission, in hundredths of a second: half of the
    /// timeout that the last exchange had backed off to if it was given up or nearly was.
    held: u16,
    /// Recent average of copies per exchange, in sixteenths.
    copies: u8,
    counts: Counts,
}

/// Three small counters in one byte.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Counts(u8);

impl Counts {
    /// Consecutive probes that stayed unanswered although the path carried an answer after them,
    /// at most [`SILENT`].
    const fn silent(self) -> u8 {
        self.0 & 3
    }

    /// The number of samples, at most [`GROWN`].
    const fn samples(self) -> u8 {
        self.0 >> 2 & 3
    }

    /// Consecutive exchanges that were given up, at most [`MAX_FAILS`].
    const fn fails(self) -> u8 {
        self.0 >> 4
    }

    fn set_silent(&mut self, silent: u8) {
        self.0 = self.0 & !3 | silent.min(SILENT);
    }

    fn set_samples(&mut self, samples: u8) {
        self.0 = self.0 & !(3 << 2) | samples.min(GROWN) << 2;
    }

    fn set_fails(&mut self, fails: u8) {
        self.0 = self.0 & 15 | fails.min(MAX_FAILS) << 4;
    }
}

/// There is one such state for each peer, and a server may have many peers.
const _: () = assert!(size_of::<Ebb>() <= 36, "the state of a peer has grown");

/// The number of unanswered probes after which the peer is taken not to answer any.
const SILENT: u8 = 3;
/// The number of samples from which on an estimate is trusted. A single sample may have met a
/// queue that was about to grow.
const GROWN: u8 = 2;
/// The factor of doubled timeouts while only one sample of the path is known.
const DOUBT: u32 = 2;
/// A queue stands if the last round trip is more than this many times the smallest one.
const QUEUE: u32 = 3;
/// The maximum number of doublings of a timeout, in addition to the bound in seconds.
const MAX_DOUBLINGS: u8 = 5;
/// Timeouts may exceed the bound up to this multiple of the original's timeout, but not
/// [`LONGEST`]. While nothing is known and the last exchange was given up, only the latter counts.
const STRETCH: u32 = 4;
/// The longest timeout, and the longest held timeout if there is no bound.
const LONGEST: Micros = Micros::from_millis(240_000);
/// The minimum wait after the last copy.
const LAST_WAIT: Micros = Micros::from_millis(3_000);
/// The minimum wait after the last copy while nothing is known of the path.
const BLIND_LAST_WAIT: Micros = Micros::from_millis(120_000);
/// An exchange that was answered with at most this many copies left was nearly given up.
const NEAR: u8 = 2;
/// Blind intervals double with each consecutive exchange that is given up, at most this often.
const MAX_FAILS: u8 = 4;
/// More copies per exchange than this, in sixteenths, are caused by a full buffer rather than by
/// link errors: nearly every second transmission is lost.
const CONGESTED: u8 = 14;
/// An estimate without a sample for longer than this is stale; cocoa-03 section 4.3 keeps
/// estimates for the same time.
const STALE: Duration = Duration::from_secs(255);

/// The last transmission of an exchange.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Last {
    /// The original, or a copy that was sent because no answer had arrived.
    Copy,
    /// A probe that is not answered yet.
    Probe,
    /// An answered probe, which is a verdict on all copies; the next copy is due.
    Verdict,
    /// The copy that followed a verdict, which is the first one, or a later one.
    Sentenced,
}

/// The state that an exchange keeps from one transmission to the next, in the byte `Slot::tag`.
#[derive(Copy, Clone, Debug)]
struct Memory {
    last: Last,
    /// The path was not known when the exchange began, and nothing has been answered since.
    blind: bool,
    /// A copy left after a probe that had remained unanswered.
    unheard: bool,
    /// Expired timeouts that count: while blind, one for the probe; later, one for each short
    /// repeat and each doubling. At most 15.
    steps: u8,
}

impl Memory {
    const fn load(tag: u8) -> Self {
        let last = match tag & 3 {
            0 => Last::Copy,
            1 => Last::Probe,
            2 => Last::Verdict,
            _ => Last::Sentenced,
        };
        Self { last, blind: tag & 4 != 0, unheard: tag & 8 != 0, steps: tag >> 4 }
    }

    fn store(self) -> u8 {
        let flags = u8::from(self.blind) << 2 | u8::from(self.unheard) << 3;
        self.last as u8 | flags | self.steps.min(15) << 4
    }
}

impl Ebb {
    /// Creates a control without any knowledge. Without marks, answers to repeated messages are
    /// not samples.
    #[must_use]
    pub const fn new(marking: Marking) -> Self {
        Self {
            fasor: Fasor::fast_slow_fast(marking),
            least: Micros::ZERO,
            path: 0,
            fed: 0,
            guard: 0,
            held: 0,
            copies: 0,
            counts: Counts(0),
        }
    }

    /// Whether only one round trip is known, which may have met a queue that was about to grow.
    /// The answer to a probe of the same exchange is a second one.
    fn doubtful(&self) -> bool {
        self.counts.samples() == 1 && self.path == 0
    }

    /// Whether there is a queue: the last round trip was well above the smallest one.
    fn queued(&self) -> bool {
        self.fasor.previous > self.least.scale(QUEUE, 1)
    }

    /// Records a finished exchange that took this many copies; it contributes an eighth of the
    /// average.
    fn count(&mut self, copies: u8) {
        let own = copies.min(15) * 16;
        self.copies = if own > self.copies {
            self.copies + (own - self.copies).div_ceil(8)
        } else {
            self.copies - (self.copies - own) / 8
        };
    }

    /// Whether so much is lost that a buffer must be full, whatever the round trips say. If the
    /// buffer is always full, the smallest round trip includes its delay as well.
    const fn congested(&self) -> bool {
        self.copies > CONGESTED
    }

    /// The minimum timeout of the next original transmission.
    fn held(&self) -> Micros {
        Micros::from_millis(u32::from(self.held) * 10)
    }

    fn hold(&mut self, timeout: Micros) {
        self.held = u16::try_from(timeout.get() / 10_000).unwrap_or(u16::MAX);
    }

    /// How often a message is repeated after the same short timeout: in at most half of
    /// MAX_RETRANSMIT, so that backoff gets the rest.
    fn short_repeats(&self, cx: &Context<'_>) -> u8 {
        let most = cx.settings.copies.min(cx.params.max_retransmit / 2);
        match (self.queued() || self.congested(), self.counts.samples() < GROWN) {
            (true, _) => 0,
            (false, true) => most.min(1),
            (false, false) => most,
        }
    }

    /// The minimum first timeout while nothing is known: a fifth of ACK_TIMEOUT, because a probe
    /// leaves then. It may be short: no copy follows the probe for a long interval.
    fn first(cx: &Context<'_>) -> Micros {
        cx.settings.initial_rto.unwrap_or(cx.params.ack_timeout.scale(1, 5))
    }

    /// How long to wait, while nothing is known, after the probe (ordinal 0) or after the copy
    /// with this ordinal. The first interval covers the queues in which a copy should be avoided.
    /// It doubles with each copy from the second one on, and with each earlier exchange that was
    /// given up.
    fn interval(&self, base: Micros, ordinal: u8, cx: &Context<'_>) -> Micros {
        let doublings = ordinal.clamp(1, 7) - 1 + self.counts.fails();
        base.scale(cx.settings.probe_growth.into(), 1).scale(1 << doublings, 1)
    }

    /// The timeout of an original transmission: SRTT + max(3.5 RTTVAR, margin), at least the last
    /// sample and the held timeout, plus a small dither. A single sample may have met a queue that
    /// grows, so the margin is then at least as long as the sample, or as ACK_TIMEOUT.
    fn first_timeout(&self, cx: &mut Context<'_>) -> Micros {
        let (Some(srtt), Some(rttvar)) = (self.fasor.fast.srtt(), self.fasor.fast.rttvar()) else {
            // Spread widely: the probes of devices that begin together must not meet in a small buffer.
            let first = Self::first(cx);
            let least = first.max(self.held());
            return cx.uniform(least, first.scale(2, 1).max(least.scale(5, 4)));
        };
        let margin = srtt.scale(cx.settings.margin_percent.into(), 100);
        let margin = margin.max(cx.settings.granularity).max(rttvar.scale(7, 2));
        let rto = srtt.saturating_add(margin).max(self.fasor.previous).max(self.held());
        let doubt = if self.doubtful() { srtt.min(cx.params.ack_timeout) } else { Micros::ZERO };
        let rto = rto.max(srtt.saturating_add(doubt));
        cx.uniform(rto, rto.saturating_add(srtt.scale(cx.settings.dither_percent.into(), 100)))
    }

    /// A known timeout after `steps` expiries. The short repeats have the interval of the first
    /// timeout; after them it doubles, starting at no less than a twentieth of ACK_TIMEOUT.
    fn backed_off(&self, base: Micros, steps: u8, cx: &Context<'_>) -> Micros {
        let doublings = steps.saturating_sub(self.short_repeats(cx)).min(MAX_DOUBLINGS);
        if doublings == 0 {
            return base;
        }
        let factor = if self.doubtful() { DOUBT } else { 1 };
        let patience = cx.params.ack_timeout.scale(1 << (doublings - 1), 20);
        base.scale(factor << doublings, 1).max(patience)
    }

    /// Limits the timeout to the bound, lets the remaining copies leave in time, and makes the wait after
    /// the last one long enough.
    fn bounded(
        &self,
        timeout: Micros,
        memory: Memory,
        base: Micros,
        transmission: &Transmission,
        cx: &Context<'_>,
    ) -> Micros {
        let stretched = match memory.blind && self.counts.fails() > 0 {
            true => LONGEST,
            false => base.scale(STRETCH, 1).min(LONGEST),
        };
        let bound = cx.settings.bound.map_or(Micros::MAX, |bound| bound.max(stretched));
        let timeout = timeout.min(bound);
        let copies = match transmission.kind {
            Kind::Probe => 0,
            Kind::Message | Kind::Unprobed => transmission.ordinal,
        };
        match (cx.params.max_retransmit.saturating_sub(copies), memory.blind) {
            (0, _) if copies == 0 => timeout,
            (0, false) => timeout.max(LAST_WAIT),
            (0, true) => timeout.max(BLIND_LAST_WAIT),
            (left, false) => timeout.min(self.fitting(base, left, transmission.remaining)),
            // Two copies must still leave after the probe, also if the request is not idempotent.
            (_, true) if transmission.kind == Kind::Probe => {
                timeout.min(transmission.remaining.scale(7, 8))
            }
            (_, true) => timeout,
        }
    }

    /// The longest timeout with which the copies that are left can still leave before the message may no
    /// longer be repeated, but never less than a round trip.
    fn fitting(&self, base: Micros, left: u8, remaining: Micros) -> Micros {
        if remaining == Micros::MAX {
            return Micros::MAX;
        }
        let round_trip = self.fasor.fast.srtt().unwrap_or(base).max(self.fasor.previous);
        remaining.scale(1, left.into()).max(round_trip)
    }

    /// Whether an estimate is too old to repeat by.
    fn is_stale(&self, cx: &Context<'_>) -> bool {
        let fed = Instant::ZERO + Duration::from_secs(self.fed.into());
        let has_one = cx.settings.ageing && self.counts.samples() > 0;
        has_one && cx.now.saturating_since(fed) > STALE
    }

    /// Discards a stale estimate; the timeout stays as long as it was.
    fn age(&mut self, cx: &mut Context<'_>) -> Micros {
        if !self.is_stale(cx) {
            return Micros::ZERO;
        }
        let timeout = self.first_timeout(cx);
        let Self { guard, held, copies, counts, .. } = *self;
        *self = Self { guard, held, copies, ..Self::new(self.fasor.marking) };
        self.counts.set_fails(counts.fails());
        // Only what is not known is asked about, so that a peer which answers no probes is never found if
        // they are forgotten. One that was found is asked once more: its probes may just have been lost.
        self.counts.set_silent(counts.silent().min(SILENT - 1));
        timeout
    }

    /// Prepares an original transmission. Returns the exchange's memory and the first timeout.
    fn begin(&mut self, kind: Kind, slot: &mut Slot, cx: &mut Context<'_>) -> (Memory, Micros) {
        // Another control may have begun the exchange; its timeout is then the minimum.
        let least = self.age(cx).max(slot.armed);
        let timeout = self.first_timeout(cx);
        let blind = self.counts.samples() == 0;
        slot.base = least.max(if blind { Self::blind_base(timeout, cx) } else { timeout });
        let memory = Memory { last: Last::Copy, blind, unheard: false, steps: 0 };
        // While nothing is known, the first timeout is one for a probe and the base one for a copy.
        (memory, if kind == Kind::Unprobed { slot.base } else { timeout.max(least) })
    }

    /// A copy or a probe leaves. Returns the exchange's memory and the timeout.
    fn go_on(
        &self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &Context<'_>,
    ) -> (Memory, Micros) {
        let mut memory = Memory::load(slot.tag);
        let after = memory.last;
        memory.last = match (transmission.kind, after) {
            (Kind::Probe, _) => Last::Probe,
            (_, Last::Verdict | Last::Sentenced) => Last::Sentenced,
            _ => Last::Copy,
        };
        match transmission.kind {
            Kind::Probe => memory.steps = 1,
            _ if after == Last::Verdict => {
                // The path is known, but the peer's processing time is not.
                let path = Micros::from_millis(self.path.into()).scale(3, 2);
                slot.base = path.max(cx.params.ack_timeout.scale(1, 4));
                memory.blind = false;
            }
            _ if after == Last::Probe => memory.unheard = true,
            // This also applies when the message replaces a probe that may not leave.
            _ if memory.blind => memory.steps = 1,
            _ => memory.steps = memory.steps.saturating_add(1),
        }
        let timeout = match memory.blind {
            // There are two transmissions at either end of the first long interval.
            true if after == Last::Probe => slot.base,
            true => self.interval(slot.base, transmission.ordinal, cx),
            false => self.backed_off(slot.base, memory.steps, cx),
        };
        (memory, timeout)
    }

    /// The base of the intervals while nothing is known: at least three quarters of ACK_TIMEOUT, because
    /// copies follow them, and at least the first timeout.
    fn blind_base(timeout: Micros, cx: &mut Context<'_>) -> Micros {
        let least = cx.params.ack_timeout.scale(3, 4);
        timeout.max(cx.uniform(least, least.scale(5, 4)))
    }
}

impl CongestionControl for Ebb {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        self.fasor.admit(message, load, cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        let Transmission { kind, ordinal, .. } = *transmission;
        let is_message = kind != Kind::Probe;
        let is_stale = is_message && ordinal == 0 && self.is_stale(cx);
        if self.counts.silent() >= SILENT && !is_stale {
            return self.fasor.on_transmit(transmission, slot, cx);
        }
        let (memory, timeout) = match is_message && (ordinal == 0 || slot.base == Micros::ZERO) {
            true => self.begin(kind, slot, cx),
            false => self.go_on(transmission, slot, cx),
        };
        slot.tag = memory.store();
        self.bounded(timeout, memory, slot.base, transmission, cx)
    }

    fn on_expire(&mut self, slot: &Slot, _cx: &mut Context<'_>) -> Expiry {
        let memory = Memory::load(slot.tag);
        let ask = memory.blind && memory.steps == 0;
        if ask && self.counts.silent() < SILENT { Expiry::Probe } else { Expiry::Repeat }
    }

    fn on_probe(
        &mut self,
        slot: &mut Slot,
        echo: &ProbeReply,
        _cx: &mut Context<'_>,
    ) -> Option<Micros> {
        // Much sooner than any answer ever came, so it is unlikely to come from the peer (RFC 7252
        // section 11.4).
        if echo.since < self.least.scale(1, 4) {
            return None;
        }
        self.counts.set_silent(0);
        self.path = u16::try_from(echo.since.get() / 1000).unwrap_or(u16::MAX).max(1);
        let mut memory = Memory::load(slot.tag);
        memory.unheard = false;
        // The probe left before the last copy and says nothing about it.
        let is_verdict = echo.since <= echo.since_last;
        if is_verdict {
            memory.last = Last::Verdict;
        }
        slot.tag = memory.store();
        is_verdict.then(|| Micros::from_millis(self.guard.into()).min(slot.armed))
    }

    fn on_feedback(&mut self, slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        let memory = Memory::load(slot.tag);
        self.fasor.on_feedback(slot, sample, cx);
        self.counts.set_fails(0);
        let copies = sample.retransmissions();
        self.count(copies);
        let was_near = copies.saturating_add(NEAR) >= cx.params.max_retransmit;
        if copies > 0 && (was_near || self.congested()) {
            let most = cx.settings.bound.unwrap_or(LONGEST);
            self.hold(self.held().max(slot.armed.scale(1, 2)).min(most));
        } else {
            self.held /= 2;
        }
        let last = sample.transmissions.saturating_sub(1);
        match sample.answered.map(|answered| answered.ordinal) {
            // The answer to the original arrived after the verdict, so the probe had overtaken it.
            // The next verdict waits longer, by the time for which the last copy was early.
            Some(0) if memory.last == Last::Sentenced => {
                let late = sample.since_last.get() / 1000 + u32::from(self.guard);
                self.guard = u16::try_from(late.saturating_add(1)).unwrap_or(u16::MAX);
            }
            Some(_) if memory.last == Last::Sentenced => self.guard /= 2,
            Some(ordinal) if memory.unheard && ordinal == last => {
                self.counts.set_silent(self.counts.silent() + 1)
            }
            None if memory.unheard => self.counts.set_silent(self.counts.silent() + 1),
            _ => {}
        }
        let unambiguous = match sample.answered {
            Some(answered) => answered.since,
            None if last == 0 => sample.since_first,
            None => {
                // The longest time that the round trip may have taken. It serves for one exchange
                // and never enters an estimate (Karn).
                self.fasor.previous = sample.since_first;
                return;
            }
        };
        let rtt = unambiguous.max(Micros::new(1));
        self.least = match self.least {
            Micros::ZERO => rtt,
            least if rtt < least => rtt,
            least => least.saturating_add(rtt.saturating_sub(least).scale(1, 64)),
        };
        self.counts.set_samples(self.counts.samples() + 1);
        self.fed = u32::try_from(cx.now.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX);
    }

    fn on_close(
        &mut self,
        slot: &Slot,
        outcome: Outcome,
        retransmissions: u8,
        cx: &mut Context<'_>,
    ) {
        self.fasor.on_close(slot, outcome, retransmissions, cx);
        if outcome == Outcome::GaveUp {
            self.counts.set_fails(self.counts.fails() + 1);
            self.count(retransmissions);
            let is_known = self.counts.samples() > 0;
            let half = slot.armed.scale(1, 2).min(LONGEST);
            self.hold(if is_known { half } else { Micros::ZERO });
        }
    }

    fn marking(&self) -> Marking {
        self.fasor.marking
    }

    fn metrics(&self) -> Metrics {
        let state = match () {
            () if self.counts.silent() >= SILENT => "FASOR",
            () if self.counts.samples() == 0 => "BLIND",
            () if self.queued() => "QUEUE",
            () => "CLEAR",
        };
        Metrics { state, ..self.fasor.metrics() }
    }
}
