//! `ebb`: probe the path before repeating a message (studies/ebb.md).

mod packed;

use super::estimator::{Estimator, Gains};
use super::{
    Admission, CongestionControl, Context, Expiry, Kind, Load, Marking, Metrics, Outcome,
    OutgoingMessage, ProbeReply, Sample, Slot, Transmission, admit_non_at_interval,
};
use crate::time::{Duration, Instant, Micros};
use packed::{Counts, GROWN, Last, Memory, Rough, SILENT};

/// Ebb: a missing answer alone does not cause a retransmission; a detected loss does.
///
/// * **Blind** (no round trip known): the first timeout, which is short, sends a probe instead of a
///   copy; a probe is a CoAP ping. On a path that preserves order, the Reset that answers the probe
///   shows that the message or its answer was lost, so the message is repeated at once. If the
///   answer arrives first, nothing was lost, and the probe cost a third of a copy. If neither
///   arrives, probes and copies take turns at intervals that grow so fast that the number of copies is
///   a logarithm of the queue: a fleet that begins at once cannot fill its link with copies.
/// * **Known, no queue** (the last round trip is near the smallest one): a missing answer means a
///   loss. The message is repeated after the same short timeout a few times, then with doubled
///   ones. If nearly every second transmission is lost, a buffer must be full, and timeouts double
///   from the start.
/// * **Known, queue** (the last round trip is well above the smallest one): a missing answer most
///   likely means a queue. Timeouts double from the start. No timeout has an upper bound of its own.
/// * **Cautious** (the estimate is older than the network's state, or the only sample was so long that
///   it met a growing queue): a probe leaves before the first copy, and no repeat is short.
///
/// After an exchange that was given up, or nearly was, the next one begins with half of the last timeout.
/// All copies on a known path leave within EXCHANGE_LIFETIME, unless the path takes longer. Copies are
/// marked, so that every answer is a sample. A peer that does not answer probes is sent none; the copies
/// that leave in their place grow further apart.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ebb {
    estimator: Estimator,
    /// The last sample; after an ambiguous answer the time since the original, for one exchange. Zero
    /// before the first answer.
    last: Micros,
    /// The smallest recent round trip; zero before the first sample. It creeps upwards, because
    /// otherwise a change of path would never be noticed.
    least: Micros,
    /// When an answer last gave a sample, in seconds since the driver's epoch.
    fed: u32,
    /// How long a verdict waits for an answer that the probe may have overtaken.
    guard: Rough,
    /// The round trip of the last probe; zero before the first one. No timeout is computed from it
    /// alone.
    path: Rough,
    /// The minimum timeout of the next original transmission: half of the timeout that the last exchange
    /// had backed off to if it was given up or nearly was.
    held: Rough,
    /// Recent average of copies per exchange, in sixteenths.
    copies: u8,
    counts: Counts,
    marking: Marking,
}

/// There is one such state for each peer, and a server may have many peers.
const _: () = assert!(size_of::<Ebb>() <= 36, "the state of a peer has grown");

/// The factor of doubled timeouts while only one sample of the path is known.
const DOUBT: u32 = 2;
/// A single sample that is longer than this many times ACK_TIMEOUT met a queue: copies left before it.
/// The queue has grown since, by an unknown factor.
const LONG: u32 = 5;
/// The first timeout after such a sample, over the sample; and the growth of its timeouts. Of the devices
/// that begin together, the one at the fraction x of the queue measures x of the round trip that the next
/// message takes, so that 1 in 4 measures less than a quarter.
const LEAP: u32 = 4;
/// An estimate without a sample for longer than this many times ACK_TIMEOUT says what the path takes but
/// not whether a queue has formed: a queue forms within the time that its senders take to notice it,
/// and all of them may have begun again together.
const FRESH: u32 = 5;
/// A queue stands if the last round trip is more than this many times the smallest one.
const QUEUE: u32 = 3;
/// Where at least this many retransmissions are allowed, probes take turns with the copies; below it,
/// all tries but the first are copies, since a probe takes the place of one.
const MANY: u8 = 8;
/// The growth of copies that leave in the place of probes while nothing is known.
const UNPROBED_GROWTH: u32 = 4;
/// The first sample divided by this gives the first variation, as in FASOR (Thesis19 section 7.2).
const FIRST_DIVISOR: u32 = 8;
/// The maximum number of doublings of a timeout; from then on it grows by equal steps.
const MAX_DOUBLINGS: u8 = 7;
/// The longest timeout that is held after an exchange, unless the path itself takes longer.
const HELD: Micros = Micros::from_millis(60_000);
/// The same after an exchange that was given up, and the longest wait after the last copy.
const LONGEST: Micros = Micros::from_millis(240_000);
/// The minimum wait after the last copy.
const LAST_WAIT: Micros = Micros::from_millis(3_000);
/// The minimum wait after the last copy while nothing is known of the path.
const BLIND_LAST_WAIT: Micros = Micros::from_millis(120_000);
/// A bound that the user sets, and that of the last wait, hold only above this many times the original's
/// timeout.
const STRETCH: u32 = 4;
/// An exchange that was answered with at most this many copies left was nearly given up.
const NEAR: u8 = 2;
/// More copies per exchange than this, in sixteenths, are caused by a full buffer rather than by
/// link errors: nearly every second transmission is lost.
const CONGESTED: u8 = 14;
/// An estimate without a sample for longer than this is stale; cocoa-03 section 4.3 keeps
/// estimates for the same time.
const STALE: Duration = Duration::from_secs(255);

impl Ebb {
    /// Creates a control without any knowledge. Without marks, answers to repeated messages are
    /// not samples.
    #[must_use]
    pub const fn new(marking: Marking) -> Self {
        Self {
            estimator: Estimator::new(),
            last: Micros::ZERO,
            least: Micros::ZERO,
            fed: 0,
            guard: Rough::ZERO,
            path: Rough::ZERO,
            held: Rough::ZERO,
            copies: 0,
            counts: Counts::ZERO,
            marking,
        }
    }

    /// Whether only one round trip is known, which may have met a queue that was about to grow.
    /// The answer to a probe of the same exchange is a second one.
    fn doubtful(&self) -> bool {
        self.counts.samples() == 1 && self.path == Rough::ZERO
    }

    /// Whether the last answer came so late that copies had left before it.
    fn is_long(&self, cx: &Context<'_>) -> bool {
        self.last > cx.params.ack_timeout.scale(LONG, 1)
    }

    /// Whether the only sample met a queue that was growing.
    fn met_growth(&self, cx: &Context<'_>) -> bool {
        self.counts.samples() == 1 && self.is_long(cx)
    }

    /// Whether there is a queue: the last round trip was well above the smallest one.
    fn queued(&self) -> bool {
        self.last > self.least.scale(QUEUE, 1)
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

    /// Whether the peer has left so many probes unanswered that none is sent to it.
    const fn is_silent(&self) -> bool {
        self.counts.silent() >= SILENT
    }

    /// How often a message is repeated after the same short timeout: in at most half of
    /// MAX_RETRANSMIT, so that backoff gets the rest.
    fn short_repeats(&self, cx: &Context<'_>) -> u8 {
        let most = cx.settings.ebb.copies.min(cx.params.max_retransmit / 2);
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

    /// How long to wait, while nothing is known, after the try with this number, of which the first one is
    /// the probe that follows the original. The first interval covers the queues in which a copy should be
    /// avoided. Where many tries are left, a second probe follows the first copy soon, so that a loss of both
    /// probe and copy is noticed; from the second copy on, the interval doubles before a probe and is four
    /// times as long before a copy.
    fn interval(&self, base: Micros, tries: u8, cx: &Context<'_>) -> Micros {
        let first = base.scale(cx.settings.ebb.probe_growth.into(), 1);
        let later = u32::from(tries.clamp(1, 14));
        let interval = match (cx.params.max_retransmit >= MANY, later) {
            _ if self.is_silent() => first.scale(UNPROBED_GROWTH.saturating_pow(later - 1), 1),
            (_, 1) => first,
            (false, n) => first.scale(1 << (n - 2), 1),
            (true, 2) => base,
            (true, 3) => first.scale(2, 1),
            // Copies are the odd tries from here on, and each is eight times as far from the last one.
            (true, n) => first.scale(1 << (3 * (n / 2) + n % 2 - 4), 1),
        };
        interval.scale(1 << self.counts.fails(), 1)
    }

    /// Whether the next try of a blind exchange is a probe, after this many tries.
    fn asks(&self, tries: u8, cx: &Context<'_>) -> bool {
        let takes_turns = cx.params.max_retransmit >= MANY && self.counts.samples() == 0;
        match tries {
            _ if self.is_silent() => false,
            0 => true,
            2 => takes_turns,
            n => takes_turns && n % 2 == 1 && n >= 3,
        }
    }

    /// SRTT + max(3.5 RTTVAR, margin), at least the last sample. A single sample may have met a queue that
    /// grows, so the margin is then at least as long as the sample, or as ACK_TIMEOUT. `None` while nothing
    /// is known.
    fn rto(&self, cx: &Context<'_>) -> Option<Micros> {
        let (srtt, rttvar) = (self.estimator.srtt()?, self.estimator.rttvar()?);
        let margin = srtt.scale(cx.settings.ebb.margin_percent.into(), 100);
        let margin = margin.max(cx.settings.granularity).max(rttvar.scale(7, 2));
        let doubt = if self.doubtful() { srtt.min(cx.params.ack_timeout) } else { Micros::ZERO };
        Some(srtt.saturating_add(margin.max(doubt)).max(self.last))
    }

    /// The timeout of an original transmission: the RTO, at least the held timeout, plus a small dither.
    fn first_timeout(&self, cx: &mut Context<'_>) -> Micros {
        let (Some(rto), Some(srtt)) = (self.rto(cx), self.estimator.srtt()) else {
            // Spread widely: the probes of devices that begin together must not meet in a small buffer.
            let first = Self::first(cx);
            let least = first.max(self.held.get());
            return cx.uniform(least, first.scale(2, 1).max(least.scale(5, 4)));
        };
        let leap = if self.met_growth(cx) { srtt.scale(LEAP, 1) } else { Micros::ZERO };
        let rto = rto.max(leap).max(self.held.get());
        cx.uniform(rto, rto.saturating_add(srtt.scale(cx.settings.ebb.dither_percent.into(), 100)))
    }

    /// A known timeout after `steps` expiries. The short repeats have the interval of the first
    /// timeout; after them it doubles, starting at no less than a twentieth of ACK_TIMEOUT.
    fn backed_off(&self, base: Micros, steps: u8, repeats: u8, cx: &Context<'_>) -> Micros {
        let doublings = steps.saturating_sub(repeats);
        if doublings == 0 {
            return base;
        }
        let factor = if self.doubtful() { DOUBT } else { 1 };
        let growth = if self.met_growth(cx) { LEAP } else { 2 };
        let patience = cx.params.ack_timeout.scale(1 << (doublings - 1).min(MAX_DOUBLINGS), 20);
        // The growth is linear in the end: a queue of any length is met by few copies, and a burst of losses
        // does not cost hours.
        let (powers, sums) =
            (doublings.min(MAX_DOUBLINGS), doublings.saturating_sub(MAX_DOUBLINGS));
        let timeout = base.scale(growth.saturating_pow(powers.into()), 1);
        timeout.scale(factor * (u32::from(sums) + 1), 1).max(patience)
    }

    /// Lets the remaining copies leave in time, makes the wait after the last one long enough, and obeys a
    /// bound that the user has set.
    fn bounded(
        &self,
        timeout: Micros,
        memory: Memory,
        base: Micros,
        transmission: &Transmission,
        cx: &Context<'_>,
    ) -> Micros {
        let timeout = match cx.settings.bound {
            Some(bound) => timeout.min(bound.max(base.scale(STRETCH, 1))),
            None => timeout,
        };
        let copies = match transmission.kind {
            Kind::Probe => 0,
            Kind::Message | Kind::Unprobed => transmission.ordinal,
        };
        let remaining = transmission.remaining;
        let is_blind = memory.blind && self.counts.samples() == 0;
        // A peer that is gone is not waited for without end, and less long by those who say that their path is short.
        let ack_timeout = cx.params.ack_timeout;
        let last = LONGEST.min(ack_timeout.scale(120, 1)).max(base.scale(STRETCH, 1));
        let blind_wait = BLIND_LAST_WAIT.min(ack_timeout.scale(60, 1));
        match (cx.params.max_retransmit.saturating_sub(copies), is_blind) {
            (0, _) if copies == 0 => timeout,
            (0, false) => timeout.max(LAST_WAIT).min(last),
            // Nothing else can be done, and the message ID is not free before.
            (0, true) => timeout.max(blind_wait).max(remaining).min(last),
            (left, false) => timeout.min(self.fitting(base, left, remaining)),
            // A try is a maximum, not a duty: what is left of the lifetime does not hurry the last ones.
            (_, true) if remaining < base => timeout.min(last),
            // Two copies must still leave after the probe, also if the request is not idempotent.
            (_, true) if transmission.kind == Kind::Probe => timeout.min(remaining.scale(7, 8)),
            (_, true) => timeout.min(remaining),
        }
    }

    /// The longest timeout with which the copies that are left can still leave before the message may no
    /// longer be repeated, but never less than a round trip. Behind a queue, two are enough.
    fn fitting(&self, base: Micros, left: u8, remaining: Micros) -> Micros {
        if remaining == Micros::MAX {
            return Micros::MAX;
        }
        let round_trip = self.estimator.srtt().unwrap_or(base).max(self.last);
        let left = if self.queued() || self.counts.samples() < GROWN { left.min(2) } else { left };
        remaining.scale(1, left.into()).max(round_trip)
    }

    /// How old the estimate is, if there is one.
    fn age(&self, cx: &Context<'_>) -> Option<Duration> {
        let fed = Instant::ZERO + Duration::from_secs(self.fed.into());
        (self.counts.samples() > 0).then(|| cx.now.saturating_since(fed))
    }

    /// Whether an estimate is too old to repeat by.
    fn is_stale(&self, cx: &Context<'_>) -> bool {
        cx.settings.ageing && self.age(cx).is_some_and(|age| age > STALE)
    }

    /// Discards a stale estimate. Returns the timeout that it gave, below which the next one must not be.
    fn forget_stale(&mut self, cx: &mut Context<'_>) -> Option<Micros> {
        if !self.is_stale(cx) {
            return None;
        }
        let timeout = self.first_timeout(cx);
        let Self { guard, held, copies, counts, .. } = *self;
        *self = Self { guard, held, copies, ..Self::new(self.marking) };
        self.counts.set_fails(counts.fails());
        // Only what is not known is asked about, so that a peer which answers no probes is never found if
        // they are forgotten. One that was found is asked once more: its probes may just have been lost.
        self.counts.set_silent(counts.silent().min(SILENT - 1));
        Some(timeout)
    }

    /// Prepares an original transmission. Returns the exchange's memory and the first timeout.
    fn begin(&mut self, kind: Kind, slot: &mut Slot, cx: &mut Context<'_>) -> (Memory, Micros) {
        let stale = self.forget_stale(cx);
        let fresh = Duration::from(cx.params.ack_timeout.scale(FRESH, 1));
        let is_old = cx.settings.ageing && self.age(cx).is_some_and(|age| age > fresh);
        // Another control may have begun the exchange; its timeout is then the minimum.
        let least = stale.unwrap_or_default().max(slot.armed);
        let timeout = self.first_timeout(cx).max(least);
        let is_known = self.counts.samples() > 0;
        slot.base = match is_known && !is_old {
            true => timeout,
            false => timeout.max(Self::blind_base(cx)),
        };
        let blind = !is_known || is_old || self.met_growth(cx);
        let memory = Memory { last: Last::Copy, blind, unheard: false, steps: 0 };
        // The first timeout is one for a probe, and the base one for a copy. A path that was known and has
        // lost nothing of late is not asked sooner than a copy would leave: the queue that the senders
        // of a report at a fixed time make would be lengthened by their probes.
        let had_no_losses = (is_old || stale.is_some()) && self.copies == 0;
        let asks = kind != Kind::Unprobed && !self.is_silent() && !had_no_losses;
        (memory, if blind && asks { timeout } else { slot.base })
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
        memory.steps = memory.steps.saturating_add(1);
        if transmission.kind != Kind::Probe {
            memory.unheard |= after == Last::Probe;
            if after == Last::Verdict {
                // The path is known, but the peer's processing time is not.
                slot.base = self.path.get().scale(3, 2).max(cx.params.ack_timeout.scale(1, 4));
                memory.blind = false;
                memory.steps = 1;
            }
        }
        let timeout = match (memory.blind, self.counts.samples()) {
            (true, 0) => self.interval(slot.base, memory.steps, cx),
            // The probe has taken the place of the short repeat.
            (true, _) => self.backed_off(slot.base, memory.steps, 1, cx),
            (false, _) => self.backed_off(slot.base, memory.steps, self.short_repeats(cx), cx),
        };
        (memory, timeout)
    }

    /// The base of the intervals while nothing is known: at least three quarters of ACK_TIMEOUT, because
    /// copies follow them.
    fn blind_base(cx: &mut Context<'_>) -> Micros {
        let least = cx.params.ack_timeout.scale(3, 4);
        cx.uniform(least, least.scale(5, 4))
    }
}

impl CongestionControl for Ebb {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        let interval = self.rto(cx).unwrap_or_else(|| cx.settings.initial_rto(cx.params));
        admit_non_at_interval(message, load, interval, cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        let Transmission { kind, ordinal, .. } = *transmission;
        let is_message = kind != Kind::Probe;
        let (memory, timeout) = match is_message && (ordinal == 0 || slot.base == Micros::ZERO) {
            true => self.begin(kind, slot, cx),
            false => self.go_on(transmission, slot, cx),
        };
        slot.tag = memory.store();
        self.bounded(timeout, memory, slot.base, transmission, cx)
    }

    fn on_expire(&mut self, slot: &Slot, cx: &mut Context<'_>) -> Expiry {
        let memory = Memory::load(slot.tag);
        if memory.blind && self.asks(memory.steps, cx) { Expiry::Probe } else { Expiry::Repeat }
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
        self.path = Rough::new(echo.since.max(Micros::from_millis(1)));
        let mut memory = Memory::load(slot.tag);
        memory.unheard = false;
        // The probe left before the last copy and says nothing about it.
        let is_verdict = echo.since <= echo.since_last;
        if is_verdict {
            memory.last = Last::Verdict;
        }
        slot.tag = memory.store();
        is_verdict.then(|| self.guard.get().min(slot.armed))
    }

    fn on_feedback(&mut self, slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        let memory = Memory::load(slot.tag);
        self.counts.set_fails(0);
        let copies = sample.retransmissions();
        self.count(copies);
        let was_near = copies.saturating_add(NEAR) >= cx.params.max_retransmit;
        let held = self.held.get();
        self.held = Rough::new(match copies > 0 && (was_near || self.congested()) {
            true => held.max(slot.armed.scale(1, 2)).min(HELD.max(self.last)),
            false => held.scale(1, 2),
        });
        let answered = sample.answered.filter(|_| self.marking != Marking::None);
        match answered.map(|answered| answered.ordinal) {
            // The answer to the original arrived after the verdict, so the probe had overtaken it.
            // The next verdict waits longer, by the time for which the last copy was early.
            Some(0) if memory.last == Last::Sentenced => {
                let late = sample.since_last.saturating_add(Micros::from_millis(2));
                self.guard = Rough::new(self.guard.get().saturating_add(late));
            }
            Some(_) if memory.last == Last::Sentenced => {
                self.guard = Rough::new(self.guard.get().scale(1, 2));
            }
            Some(ordinal) if memory.unheard && ordinal == copies => {
                self.counts.set_silent(self.counts.silent() + 1)
            }
            None if memory.unheard => self.counts.set_silent(self.counts.silent() + 1),
            _ => {}
        }
        let unambiguous = match answered {
            Some(answered) => answered.since,
            None if copies == 0 => sample.since_first,
            None => {
                // The longest time that the round trip may have taken. It serves for one exchange
                // and never enters an estimate (Karn).
                self.last = sample.since_first;
                return;
            }
        };
        let rtt = unambiguous.max(Micros::new(1));
        self.estimator.update(rtt, Gains::RFC6298, FIRST_DIVISOR);
        self.last = rtt;
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
        _cx: &mut Context<'_>,
    ) {
        if outcome == Outcome::GaveUp {
            self.counts.set_fails(self.counts.fails() + 1);
            self.count(retransmissions);
            let is_known = self.counts.samples() > 0;
            let half = slot.armed.scale(1, 2).min(LONGEST.max(self.last));
            self.held = Rough::new(if is_known { half } else { Micros::ZERO });
        }
    }

    fn marking(&self) -> Marking {
        self.marking
    }

    fn original_timeout(&self, cx: &mut Context<'_>) -> Micros {
        self.first_timeout(cx)
    }

    fn metrics(&self) -> Metrics {
        let state = match () {
            () if self.is_silent() => "SILENT",
            () if self.counts.samples() == 0 => "BLIND",
            () if self.queued() => "QUEUE",
            () => "CLEAR",
        };
        Metrics {
            srtt: self.estimator.srtt(),
            rttvar: self.estimator.rttvar(),
            rto: self.estimator.rto(4, Micros::ZERO),
            state,
            ..Metrics::default()
        }
    }
}
