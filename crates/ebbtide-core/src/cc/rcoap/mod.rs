//! `rcoap`: rate control for bursts (RCOAP21 section III).
//!
//! The paper's rate R is kept as the interval 1/R in microseconds, in which every rule is a ratio
//! of integers: halving R doubles the interval, R + 1/RTT is I x RTT / (I + RTT), and the messages
//! in flight, R x RTT, are RTT / I.

mod discovery;

use super::estimator::Gains;
use super::{
    Admission, CongestionControl, Context, Estimator, Expiry, InFlight, Kind, Load, Metrics,
    OutgoingMessage, ProbeReply, Sample, Slot, Transmission, admit_non_at_interval,
};
use crate::time::{Duration, Instant, Micros};

/// RCOAP: many messages to one receiver, several in flight, one message every 1/R.
///
/// * **INITIAL** discovers R with CoAP pings, which every server answers. They leave every
///   1/R_start. If R_start is not given, a pair of pings leaves first, and again after each
///   initial RTO. The spacing of their two answers, in proportion to the message's size, is the
///   time that the narrowest link needs for a message. From the first answer on, answers are
///   counted for two round trips. Without any answer for four initial RTOs the transfer fails.
/// * **NORMAL** raises R by one message per round trip in each round trip in which the answers
///   arrived at rate R without a loss.
/// * **LOSS_DETECTION** begins at a timeout: R is halved and the message repeated. An answer
///   within a round trip shows a loss that was not caused by the queue, and R is restored. A
///   second timeout, or neither event, shows congestion.
/// * **BACKOFF**: R is halved repeatedly, and pings take the place of messages until something is
///   answered.
///
/// Deviations from the paper, each with its reason where it is implemented: answers are counted by
/// their spacing; the RTO has a floor and a margin and is dithered; samples of repeated messages
/// are not used; below one message per round trip an interval takes the place of the round trip;
/// the loss of messages that left before R fell does not lower it again; and an R that is not used
/// is not raised.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rcoap {
    estimator: Estimator,
    /// Equations 11 to 13 of RCOAP21, without floor and margin.
    rto: Micros,
    /// 1/R.
    interval: Micros,
    /// PAIRED: the spacing of the pair's answers. DISCOVERY: when the last answer came, after
    /// `since`. NORMAL: how long before `since` the rate stopped falling; the longest span if it
    /// never fell. LOSS_DETECTION: the interval to restore. BACKOFF: the limit up to which the
    /// interval grows.
    memo: Micros,
    /// When the state, or its current epoch, began.
    since: PackedInstant,
    /// When the next message may leave, after `since`.
    pause: Micros,
    /// Answers in this epoch.
    answers: u16,
    state: RcoapState,
}

/// An instant with the alignment of the fields next to it, so that the state stays at 36 bytes a
/// peer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(Rust, packed(4))]
struct PackedInstant(Instant);

/// The four states of RCOAP21, with the steps of INITIAL.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum RcoapState {
    /// INITIAL: nothing has been sent.
    Fresh,
    /// INITIAL: pairs of pings leave, because R_start is not given.
    Pair,
    /// INITIAL: the spacing of a pair is known.
    Paired,
    /// INITIAL: pings leave at R_start.
    Discovery,
    Normal,
    LossDetection,
    Backoff,
}

/// In `Slot::tag`: the message was repeated in LOSS_DETECTION, so its answer decides the next
/// state.
const SUSPECT: u8 = 1;
/// A rate that was not used for longer than this is discarded; cocoa-03 section 4.3 keeps
/// estimates for the same time.
const STALE: Duration = Duration::from_secs(255);
/// The maximum delay of a wake-up that is compensated; a larger one would cause a burst.
const CREDIT: Micros = Micros::from_millis(2);

impl Rcoap {
    /// The minimum timeout of an original transmission unless another one is set. With a shorter
    /// timeout, the server's processing time would look like a loss, which halves the rate.
    pub(super) const FLOOR: Micros = Micros::from_millis(200);
    /// The shortest interval that can be set: 10,000 messages a second.
    pub(super) const FASTEST: Micros = Micros::new(100);
    /// The longest interval that can be set.
    pub(super) const SLOWEST: Micros = Micros::from_millis(60_000);

    /// Creates a control without any knowledge.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            estimator: Estimator::new(),
            rto: Micros::ZERO,
            interval: Micros::ZERO,
            memo: Micros::ZERO,
            since: PackedInstant(Instant::ZERO),
            pause: Micros::ZERO,
            answers: 0,
            state: RcoapState::Fresh,
        }
    }

    /// The instant at which the next message may leave.
    fn next(&self) -> Instant {
        self.since.0 + self.pause
    }

    /// Delays all messages until this instant.
    fn wait_until(&mut self, at: Instant) {
        self.pause = at.micros_since(self.since.0);
    }

    /// Begins a state, or the next epoch of the same state.
    fn enter(&mut self, state: RcoapState, now: Instant) {
        let next = self.next();
        (self.state, self.since, self.answers) = (state, PackedInstant(now), 0);
        self.wait_until(next);
    }

    /// The smoothed round trip. Nothing is paced before it is known.
    fn rtt(&self) -> Micros {
        self.estimator.srtt().unwrap_or(Micros::ZERO)
    }

    /// How long discovery waits for its first answer: 4 x the initial RTO, 8 s by default.
    fn patience(cx: &Context<'_>) -> Micros {
        cx.settings.initial_rto(cx.params).max(Micros::from_millis(1)).scale(4, 1)
    }

    /// Sets the rate to `1/interval`, at most R_max = 1/IPI_min and never so low that nothing
    /// moves.
    fn pace(&mut self, interval: Micros, cx: &Context<'_>) {
        let shortest = cx.settings.rcoap.ipi_min.max(Self::FASTEST);
        self.interval = interval.min(Self::slowest(cx)).max(shortest);
    }

    /// The longest interval.
    fn slowest(cx: &Context<'_>) -> Micros {
        cx.settings.rcoap.start_interval.unwrap_or(Micros::ZERO).max(Self::patience(cx))
    }

    fn halve(&mut self, cx: &Context<'_>) {
        self.pace(self.interval.scale(2, 1), cx);
    }

    /// R + 1/RTT.
    fn raise(&mut self, cx: &Context<'_>) {
        let (interval, rtt) = (self.interval.as_micros(), self.rtt().as_micros());
        let raised = u128::from(interval) * u128::from(rtt) / u128::from((interval + rtt).max(1));
        // Shorter than either of the two, so it fits.
        self.pace(Micros::from_u64(raised as u64), cx);
    }

    /// The length of an epoch: a round trip, or an interval if less than one message leaves per
    /// round trip, since no answer could be expected within a shorter time.
    fn epoch(&self) -> Micros {
        self.rtt().max(self.interval)
    }

    /// Equations 11 to 13: RTO = 0.5 (RTT + 4 RTTVAR) + 0.5 RTT_old.
    fn learn(&mut self, sample: Micros) {
        let old = self.estimator.srtt().unwrap_or(sample);
        self.estimator.update(sample, Gains::RFC6298, 2);
        let strong = self.estimator.rto(4, Micros::ZERO).unwrap_or(sample);
        self.rto = strong.scale(1, 2).saturating_add(old.scale(1, 2));
    }

    /// The timeout of an original transmission. On a steady path equations 11 to 13 converge to
    /// the round trip itself, and any jitter would halve the rate. The minimum is therefore 1.5
    /// round trips.
    fn timeout(&self, cx: &Context<'_>) -> Micros {
        match self.estimator.srtt() {
            None => cx.settings.initial_rto(cx.params),
            Some(_) => self.verdict().max(cx.settings.floor),
        }
    }

    /// How long to wait for a verdict on a loss: one round trip, with the timeout's margin.
    fn verdict(&self) -> Micros {
        self.rto.max(self.rtt().scale(3, 2))
    }

    /// The maximum number of messages in flight: R x RTT, rounded up, or the configured limit.
    fn in_flight(&self, cx: &Context<'_>) -> u16 {
        let InFlight::Rate = cx.settings.in_flight else { return u16::MAX };
        let messages = self.rtt().as_micros().div_ceil(self.interval.as_micros().max(1));
        u16::try_from(messages).unwrap_or(u16::MAX).max(1)
    }

    /// A message or, in BACKOFF, a ping leaves; the next one follows after 1/R.
    fn left(&mut self, now: Instant) {
        let earliest = Instant::from_nanos(now.as_nanos().saturating_sub(CREDIT.as_nanos()));
        self.wait_until(self.next().clamp(earliest, now) + self.interval);
    }

    /// Begins NORMAL, or its next epoch; `risen` is the time since the rate stopped falling.
    fn go_on(&mut self, risen: Micros, now: Instant) {
        self.enter(RcoapState::Normal, now);
        self.memo = risen;
        self.wait_until(self.next().min(now + self.interval));
    }

    /// Whether the answers of this epoch match one message every 1/R, give or take one. If the
    /// path, the limit of messages in flight or the application did not use the rate, it is not
    /// known to be sustainable. Raising it nevertheless would fill the path in a burst as soon as
    /// it were used (RFC 7661).
    fn is_used(&self, now: Instant) -> bool {
        let span = now.micros_since(self.since.0).as_micros();
        (u64::from(self.answers) + 1) * self.interval.as_micros() * 4 >= span * 3
    }

    /// NORMAL: how long ago the rate stopped falling.
    fn risen(&self, now: Instant) -> Micros {
        self.memo.saturating_add(now.micros_since(self.since.0))
    }

    /// An answer arrived, other than the one that LOSS_DETECTION waits for.
    fn on_answer(&mut self, cx: &Context<'_>) {
        self.answers = self.answers.saturating_add(1);
        let now = cx.now;
        match self.state {
            RcoapState::Backoff => self.go_on(Micros::ZERO, now),
            RcoapState::Normal if now >= self.since.0 + self.rtt() => {
                if self.is_used(now) {
                    self.raise(cx);
                }
                self.go_on(self.risen(now), now);
            }
            _ => {}
        }
    }

    /// Congestion: a ping leaves at once if a message waits, and the rate falls until an answer
    /// arrives.
    fn back_off(&mut self, cx: &Context<'_>) {
        self.enter(RcoapState::Backoff, cx.now);
        self.memo = Self::slowest(cx);
        self.wait_until(cx.now);
    }

    /// Whether the rate was last used so long ago that the path may have changed.
    fn is_stale(&self, load: &Load, cx: &Context<'_>) -> bool {
        let known = matches!(
            self.state,
            RcoapState::Normal | RcoapState::LossDetection | RcoapState::Backoff
        );
        let idle = cx.now.saturating_since(self.next());
        cx.settings.ageing && known && load.open == 0 && idle > STALE
    }
}

impl Default for Rcoap {
    fn default() -> Self {
        Self::new()
    }
}

impl CongestionControl for Rcoap {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        if !message.confirmable {
            let interval = self.interval.max(self.timeout(cx));
            return admit_non_at_interval(message, load, interval, cx);
        }
        // In BACKOFF no open exchange is left that could be answered. The peer must show that it
        // is there, or all waiting messages fail.
        let lost = self.state == RcoapState::Backoff && load.open == 0;
        if self.state == RcoapState::Fresh || lost || self.is_stale(load, cx) {
            *self = Self::new();
            self.begin(cx);
        }
        match self.state {
            RcoapState::Discovery if self.answers > 0 && cx.now >= self.window_end() => {
                self.settle(cx)
            }
            RcoapState::Fresh | RcoapState::Pair | RcoapState::Paired | RcoapState::Discovery => {
                return self.discover(message, load, cx);
            }
            RcoapState::Normal | RcoapState::LossDetection | RcoapState::Backoff => {}
        }
        if self.state != RcoapState::Backoff && load.open >= self.in_flight(cx) {
            return Admission::Blocked;
        }
        if cx.now < self.next() {
            return Admission::NotBefore(self.next());
        }
        match self.state {
            RcoapState::Backoff if load.probes >= Load::MAX_PROBES => Admission::Blocked,
            RcoapState::Backoff => {
                self.left(cx.now);
                Admission::Probe(self.next())
            }
            _ => Admission::Send,
        }
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        if transmission.kind == Kind::Probe {
            return slot.armed;
        }
        if transmission.ordinal == 0 || slot.base == Micros::ZERO {
            self.left(cx.now);
            // Dithered so that senders do not synchronise (RFC 7252 section 4.2 and cocoa-03).
            let rto = self.timeout(cx);
            slot.base = cx.uniform(rto, rto.scale(3, 2));
            return slot.base;
        }
        slot.tag = if self.state == RcoapState::LossDetection { SUSPECT } else { 0 };
        // A ping takes the place of at most one message: 1/R passes before the next.
        self.wait_until(self.next().max(cx.now + self.interval));
        let factor = match slot.base.as_micros() {
            ..1_000_000 => 30,
            1_000_000..=3_000_000 => 20,
            _ => 13,
        };
        cx.bounded(slot.armed.scale(factor, 10), slot.base)
    }

    fn on_expire(&mut self, slot: &Slot, cx: &mut Context<'_>) -> Expiry {
        match self.state {
            // A buffer that overflows loses many messages, and their losses become known one by
            // one after the rate has fallen. The paper's states react to a loss; here they react
            // to an episode of losses, as TCP does (RFC 6582 section 3.2). A message that left
            // earlier gives no information about the present rate.
            RcoapState::Normal if self.risen(cx.now) < slot.armed => {}
            RcoapState::Normal => {
                self.memo = self.interval;
                self.halve(cx);
                self.enter(RcoapState::LossDetection, cx.now);
            }
            RcoapState::LossDetection => self.back_off(cx),
            RcoapState::Fresh
            | RcoapState::Pair
            | RcoapState::Paired
            | RcoapState::Discovery
            | RcoapState::Backoff => {}
        }
        Expiry::Repeat
    }

    fn on_probe(
        &mut self,
        _slot: &mut Slot,
        reply: &ProbeReply,
        cx: &mut Context<'_>,
    ) -> Option<Micros> {
        self.learn(reply.since);
        let first = self.answers == 0;
        match self.state {
            // The first answer: the two round trips begin.
            RcoapState::Discovery if first => self.enter(self.state, cx.now),
            // The other ping of the pair left at the same time, so one more round trip is long
            // enough for its answer.
            RcoapState::Pair if first => {
                self.enter(self.state, cx.now);
                self.wait_until(cx.now + self.rtt());
            }
            RcoapState::Pair => {
                (self.state, self.memo) = (RcoapState::Paired, cx.now.micros_since(self.since.0));
                self.wait_until(cx.now);
            }
            RcoapState::Discovery => self.memo = cx.now.micros_since(self.since.0),
            _ => {}
        }
        self.on_answer(cx);
        None
    }

    fn on_feedback(&mut self, slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        let repeated = sample.retransmissions() > 0;
        if !repeated {
            // It is not known which copy of a repeated message was answered (Karn's algorithm).
            self.learn(sample.since_first);
        }
        match self.state {
            RcoapState::LossDetection if repeated && slot.tag == SUSPECT => {
                self.pace(self.memo, cx);
                self.go_on(Micros::MAX, cx.now);
            }
            RcoapState::Pair | RcoapState::Paired | RcoapState::Discovery => {}
            _ => self.on_answer(cx),
        }
    }

    /// A mark is a loss that has cost nothing (RFC 3168 section 5): R is halved, and there is no doubt to
    /// resolve as after a timeout. At most once per round trip, since this control waits for nothing else.
    fn on_congestion_experienced(&mut self, cx: &mut Context<'_>) -> Micros {
        if self.state == RcoapState::Normal && self.risen(cx.now) >= self.rtt() {
            self.halve(cx);
            self.go_on(Micros::ZERO, cx.now);
        }
        Micros::ZERO
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            RcoapState::Discovery if self.answers > 0 => Some(self.window_end()),
            RcoapState::LossDetection => Some(self.since.0 + self.verdict()),
            RcoapState::Backoff if self.interval < self.memo => Some(self.since.0 + self.epoch()),
            _ => None,
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        if self.poll_timeout().is_none_or(|at| cx.now < at) {
            return;
        }
        match self.state {
            RcoapState::Discovery => self.settle(cx),
            RcoapState::LossDetection => self.back_off(cx),
            RcoapState::Backoff => {
                self.halve(cx);
                self.enter(RcoapState::Backoff, cx.now);
            }
            _ => {}
        }
    }

    fn metrics(&self) -> Metrics {
        let paced =
            !matches!(self.state, RcoapState::Fresh | RcoapState::Pair | RcoapState::Paired);
        Metrics {
            srtt: self.estimator.srtt(),
            rttvar: self.estimator.rttvar(),
            rto: self.estimator.has_sample().then(|| self.verdict()),
            second: None,
            interval: paced.then_some(self.interval),
            state: match self.state {
                RcoapState::Fresh
                | RcoapState::Pair
                | RcoapState::Paired
                | RcoapState::Discovery => "INITIAL",
                RcoapState::Normal => "NORMAL",
                RcoapState::LossDetection => "LOSS_DETECTION",
                RcoapState::Backoff => "BACKOFF",
            },
        }
    }
}
