//! The CoCoA family: `cocoa` (draft-ietf-core-cocoa-03), `cocoa-plus` (WiMob17), `cocoa-01`
//! (SOCNE14), and `cocoa-fb1`, `cocoa-fb2` (ANRW18 section 4.2).

use super::estimator::{Estimator, Gains};
use super::{
    Admission, CongestionControl, Context, Load, Metrics, Outcome, OutgoingMessage, Sample, Slot,
    Transmission, admit_non_at_interval,
};
use crate::time::{Instant, Micros};

/// CoCoA: a strong estimator from exchanges without retransmissions, a weak one from those with a
/// few, and an overall RTO that moves towards whichever was fed last.
///
/// The timeout of the original transmission is the overall RTO, dithered over `[1, 1.5]`; each
/// expiry multiplies it by a *variable* backoff factor, which is larger for small timeouts.
/// Without a sample, an exchange that starts while others are open starts with a longer timeout
/// (*blind* start). A very small or very large estimate that receives no samples for a while
/// *ages* towards the middle.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Cocoa {
    strong: Estimator,
    weak: Estimator,
    /// The overall RTO; zero before the first sample.
    rto: Micros,
    /// When `rto` last received a sample or aged, in milliseconds since the epoch, modulo 2^32 (49
    /// days).
    updated_ms: u32,
    variant: Variant,
    /// Retransmissions since the last strong sample, which only the authors' code counts.
    missed: u8,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Variant {
    /// cocoa-03.
    Cocoa03,
    /// CoCoA+ as in WiMob17 and RCOAP21.
    Plus,
    /// SOCNE14.
    Socne14,
    /// The code for Contiki of CoCoA's authors.
    Contiki,
}

/// Timeouts below one second are small.
pub(super) const SMALL: Micros = Micros::from_millis(1000);
/// Timeouts above three seconds are large.
pub(super) const LARGE: Micros = Micros::from_millis(3000);

impl Cocoa {
    const fn with_variant(variant: Variant) -> Self {
        Self {
            strong: Estimator::new(),
            weak: Estimator::new(),
            rto: Micros::ZERO,
            updated_ms: 0,
            variant,
            missed: 0,
        }
    }

    /// `cocoa`: draft-ietf-core-cocoa-03.
    #[must_use]
    pub const fn draft03() -> Self {
        Self::with_variant(Variant::Cocoa03)
    }

    /// `cocoa-plus`: the backoff factor is chosen once per exchange and is 1.3 for large timeouts;
    /// the bound is 60 s.
    #[must_use]
    pub const fn plus() -> Self {
        Self::with_variant(Variant::Plus)
    }

    /// `cocoa-plus:code=contiki`: the code for Contiki of CoCoA's authors; see
    /// [`CocoaCode::Contiki`](super::CocoaCode::Contiki).
    #[must_use]
    pub const fn contiki() -> Self {
        Self::with_variant(Variant::Contiki)
    }

    /// `cocoa-01` without its history; see [`Cocoa01`].
    const fn socne14() -> Self {
        Self::with_variant(Variant::Socne14)
    }

    /// Whether either estimator has received a sample.
    fn has_sample(&self) -> bool {
        self.rto > Micros::ZERO
    }

    fn overall(&self, cx: &Context<'_>) -> Micros {
        if self.has_sample() { self.rto } else { cx.settings.initial_rto(cx.params) }
    }

    /// The base of the next exchange's timeout, after ageing or blind start.
    fn base(&mut self, beside: u16, cx: &Context<'_>) -> Micros {
        if self.has_sample() {
            self.age(cx);
            return self.rto;
        }
        let initial = cx.settings.initial_rto(cx.params);
        match self.variant {
            // 2 s * 2^p, where p other exchanges are open.
            Variant::Socne14 => {
                initial.scale(1u32.checked_shl(beside.into()).unwrap_or(u32::MAX), 1)
            }
            // The same, at most 32 s.
            Variant::Contiki => {
                let blind = initial.scale(1u32.checked_shl(beside.into()).unwrap_or(u32::MAX), 1);
                blind.min(Micros::from_millis(32_000).max(initial))
            }
            // 2 s * (p + 1) (cocoa-03 section 4.1).
            Variant::Cocoa03 | Variant::Plus => initial.scale(u32::from(beside) + 1, 1),
        }
    }

    /// Ageing (cocoa-03 section 4.3), computed when the estimate is used rather than by a timer.
    /// Each application restarts the idle clock, so a long idle period applies it several times.
    fn age(&mut self, cx: &Context<'_>) {
        if !cx.settings.ageing {
            return;
        }
        let mut idle_ms = millis(cx.now).wrapping_sub(self.updated_ms);
        loop {
            let times_rto_ms =
                |times: u64| (self.rto.as_micros() * times / 1000).min(u64::from(u32::MAX));
            let (after_ms, aged) = match self.variant {
                Variant::Contiki if self.rto < SMALL => (times_rto_ms(16) as u32, SMALL),
                _ if self.rto < SMALL => (
                    times_rto_ms(16) as u32,
                    self.rto.scale(cx.settings.cocoa.small_ageing_factor.into(), 1),
                ),
                Variant::Socne14 if self.rto > cx.settings.initial_rto(cx.params) => {
                    // No sample for 60 s: SRTT = (2 s + SRTT) / 2 and RTTVAR / 2 in both
                    // estimators. The same therefore holds for any SRTT + K * RTTVAR, and for the
                    // mean of the two.
                    let initial = cx.settings.initial_rto(cx.params);
                    (60_000, self.rto.saturating_add(initial).scale(1, 2))
                }
                Variant::Cocoa03 | Variant::Plus | Variant::Contiki if self.rto > LARGE => {
                    (times_rto_ms(4) as u32, SMALL.saturating_add(self.rto.scale(1, 2)))
                }
                _ => return,
            };
            if idle_ms < after_ms || aged == self.rto {
                return;
            }
            if self.variant == Variant::Socne14 && self.rto >= SMALL {
                self.strong.decay_towards(cx.settings.initial_rto(cx.params));
                self.weak.decay_towards(cx.settings.initial_rto(cx.params));
            }
            idle_ms -= after_ms;
            self.updated_ms = self.updated_ms.wrapping_add(after_ms);
            self.rto = aged.max(Micros::new(1));
        }
    }

    /// The timeout after `armed` expired: variable backoff, truncated. The truncation bounds the
    /// backoff but not the estimate, which may be larger.
    fn backed_off(&self, armed: Micros, initial: Micros, cx: &mut Context<'_>) -> Micros {
        let factor = match self.variant {
            // By the armed value at each expiry (ANRW18, Thesis19): 3, 2, 1.5.
            Variant::Cocoa03 => factor_permille(armed, [3000, 1500]),
            // Once, by the exchange's initial timeout (SOCNE14, WiMob17): 3, 2, 1.3.
            Variant::Plus | Variant::Socne14 => factor_permille(initial, [3000, 1300]),
            Variant::Contiki => factor_permille(initial, [2500, 1500]),
        };
        let next = armed.scale(factor, 1000);
        cx.bounded(next, initial)
    }

    fn feed(&mut self, sample: &Sample, cx: &Context<'_>) {
        let (gains, most_weak) = match self.variant {
            Variant::Socne14 => (Gains::SOCNE14, 1),
            Variant::Cocoa03 | Variant::Plus => (Gains::RFC6298, 2),
            Variant::Contiki => (Gains::RFC6298, u8::MAX),
        };
        self.count_missed(sample.retransmissions());
        let g = cx.settings.granularity;
        let (estimate, [new, old]) = match sample.retransmissions() {
            0 => {
                self.strong.update(sample.since_first, gains, 2);
                (self.strong.rto(4, g), [1, 1])
            }
            r if r <= most_weak => {
                self.weak.update(sample.since_first, gains, 2);
                let is_swapped = self.variant == Variant::Contiki;
                (self.weak.rto(1, g), if is_swapped { [3, 1] } else { [1, 3] })
            }
            _ => return,
        };
        if let Some(estimate) = estimate {
            // strong: RTO = 1/2 E + 1/2 RTO; weak: RTO = 1/4 E + 3/4 RTO, in the authors' code the other
            // way round.
            let before = self.overall(cx).as_micros();
            let mean = (estimate.as_micros() * new + before * old) / (new + old);
            self.rto = Micros::from_u64(mean).max(Micros::new(1));
            self.updated_ms = millis(cx.now);
        }
    }

    /// The authors' code lets the strong estimator start again after more than three retransmissions
    /// without a sample for it.
    fn count_missed(&mut self, retransmissions: u8) {
        if self.variant != Variant::Contiki {
            return;
        }
        self.missed = match retransmissions {
            0 => 0,
            more => self.missed.saturating_add(more),
        };
        if self.missed > 3 {
            self.strong = Estimator::new();
            self.missed = 0;
        }
    }

    fn first_timeout(&mut self, base: Micros, slot: &mut Slot, cx: &mut Context<'_>) -> Micros {
        // The authors' code dithers the timeout before the first sample only.
        if self.variant == Variant::Contiki && self.has_sample() {
            slot.base = base;
            return base;
        }
        slot.base = cx.uniform(base, base.scale(cx.params.ack_random_permille, 1000));
        slot.base
    }
}

/// The variable backoff factor in thousandths: `small` below one second, `large` above three seconds,
/// 2 in between.
pub(super) fn factor_permille(timeout: Micros, [small, large]: [u32; 2]) -> u32 {
    if timeout < SMALL {
        small
    } else if timeout > LARGE {
        large
    } else {
        2000
    }
}

/// Milliseconds since the epoch, modulo 2^32 (49 days).
pub(super) fn millis(now: Instant) -> u32 {
    // The truncation is that modulo.
    (now.as_nanos() / 1_000_000) as u32
}

impl CongestionControl for Cocoa {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        if self.has_sample() {
            self.age(cx);
        }
        let interval = self.overall(cx);
        admit_non_at_interval(message, load, interval, cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        if transmission.ordinal == 0 {
            let base = self.base(transmission.beside, cx);
            self.first_timeout(base, slot, cx)
        } else {
            self.backed_off(slot.armed, slot.base, cx)
        }
    }

    fn on_feedback(&mut self, _slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        self.feed(sample, cx);
    }

    fn metrics(&self) -> Metrics {
        Metrics {
            srtt: self.strong.srtt().or(self.weak.srtt()),
            rttvar: self.strong.rttvar().or(self.weak.rttvar()),
            rto: self.has_sample().then_some(self.rto),
            second: self.weak.rto(1, Micros::ZERO),
            interval: None,
            state: if self.has_sample() { "" } else { "blind" },
        }
    }
}

/// `cocoa-01`: SOCNE14's CoCoA, which can smooth the overall RTO over its last `history` values.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Cocoa01 {
    cocoa: Cocoa,
    /// Earlier overall RTOs in units of 10 ms, newest first; zero where there is no value yet.
    earlier: [u16; Self::LONGEST_HISTORY as usize - 1],
}

impl Cocoa01 {
    /// The longest configurable history.
    pub const LONGEST_HISTORY: u8 = 4;
    /// The unit of an earlier value in microseconds, and the bit that says that the value is in coarse
    /// units of 2^9 of them (5 s), which begin at 5.5 minutes and reach 46 hours.
    const UNIT: u64 = 10_000;
    const COARSE: u16 = 1 << 15;
    const COARSE_SHIFT: u32 = 9;

    fn pack(rto: Micros) -> u16 {
        let units = rto.as_micros() / Self::UNIT;
        match u16::try_from(units) {
            Ok(units) if units < Self::COARSE => units.max(1),
            _ => (units >> Self::COARSE_SHIFT) as u16 | Self::COARSE,
        }
    }

    fn unpack(value: u16) -> u64 {
        let units = match value < Self::COARSE {
            true => u64::from(value),
            false => u64::from(value & !Self::COARSE) << Self::COARSE_SHIFT,
        };
        units * Self::UNIT
    }

    /// Creates a control without a sample.
    #[must_use]
    pub const fn new() -> Self {
        Self { cocoa: Cocoa::socne14(), earlier: [0; Self::LONGEST_HISTORY as usize - 1] }
    }

    /// The mean of `newest` and of up to `history - 1` earlier values.
    fn mean(&self, newest: Micros, history: u8) -> Micros {
        let earlier = self
            .earlier
            .iter()
            .take(usize::from(history.saturating_sub(1)))
            .take_while(|&&value| value > 0);
        let (sum, count) = earlier.fold((newest.as_micros(), 1), |(sum, count), &value| {
            (sum + Self::unpack(value), count + 1)
        });
        Micros::from_u64(sum / count)
    }
}

impl core::default::Default for Cocoa01 {
    fn default() -> Self {
        Self::new()
    }
}

impl CongestionControl for Cocoa01 {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        self.cocoa.admit(message, load, cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        if transmission.ordinal > 0 {
            return self.cocoa.on_transmit(transmission, slot, cx);
        }
        let base = self.cocoa.base(transmission.beside, cx);
        let base = self.mean(base, cx.settings.cocoa.history);
        self.cocoa.first_timeout(base, slot, cx)
    }

    fn on_feedback(&mut self, _slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        let before = self.cocoa;
        self.cocoa.feed(sample, cx);
        if before.has_sample() && self.cocoa != before {
            self.earlier.rotate_right(1);
            self.earlier[0] = Self::pack(before.rto);
        }
    }

    fn metrics(&self) -> Metrics {
        self.cocoa.metrics()
    }
}

/// `cocoa-fb1` and `cocoa-fb2`: CoCoA whose backoff outlives the exchange (ANRW18 section 4.2).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CocoaFullBackoff {
    cocoa: Cocoa,
    /// The initial timeout of the next exchange; zero if CoCoA's own timeout applies.
    kept: Micros,
    /// Whether the kept timeout is raised to the RTO and backed off once more (`cocoa-fb2`).
    again: bool,
}

impl CocoaFullBackoff {
    /// `cocoa-fb1`: the last timeout of an exchange with retransmissions becomes the first timeout
    /// of the next exchange, until an exchange needs no retransmission.
    #[must_use]
    pub const fn fb1() -> Self {
        Self { cocoa: Cocoa::draft03(), kept: Micros::ZERO, again: false }
    }

    /// `cocoa-fb2`: uses the larger of that timeout and the newly computed RTO, backed off once
    /// more.
    #[must_use]
    pub const fn fb2() -> Self {
        Self { cocoa: Cocoa::draft03(), kept: Micros::ZERO, again: true }
    }
}

impl CongestionControl for CocoaFullBackoff {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        self.cocoa.admit(message, load, cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        if transmission.ordinal == 0 && self.kept > Micros::ZERO {
            slot.base = self.kept;
            return self.kept;
        }
        self.cocoa.on_transmit(transmission, slot, cx)
    }

    fn on_feedback(&mut self, slot: &Slot, sample: &Sample, cx: &mut Context<'_>) {
        self.cocoa.feed(sample, cx);
        if self.again && (1..=2).contains(&sample.retransmissions()) {
            // This exchange contributed to the RTO, so the base of the timeout that `on_close`
            // keeps is at least the RTO.
            self.kept = self.cocoa.rto.max(slot.armed);
        } else {
            self.kept = Micros::ZERO;
        }
    }

    fn on_close(
        &mut self,
        slot: &Slot,
        outcome: Outcome,
        retransmissions: u8,
        cx: &mut Context<'_>,
    ) {
        if retransmissions == 0 {
            if outcome != Outcome::Cancelled {
                self.kept = Micros::ZERO;
            }
        } else if self.again {
            // The kept value belongs to this exchange only if the exchange gave feedback;
            // otherwise an overlapping exchange left it.
            let base = match outcome {
                Outcome::Acknowledged | Outcome::Reset => self.kept.max(slot.armed),
                Outcome::GaveUp | Outcome::Cancelled => slot.armed,
            };
            self.kept = self.cocoa.backed_off(base, slot.base, cx);
        } else {
            self.kept = slot.armed;
        }
    }

    fn original_timeout(&self, cx: &mut Context<'_>) -> Micros {
        if self.kept > Micros::ZERO { self.kept } else { self.cocoa.original_timeout(cx) }
    }

    fn metrics(&self) -> Metrics {
        let state = if self.kept > Micros::ZERO { "backed-off" } else { "" };
        Metrics { state, ..self.cocoa.metrics() }
    }
}
