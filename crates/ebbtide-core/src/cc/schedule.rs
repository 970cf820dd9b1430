//! Timers of published programs that learn nothing: each is a schedule of timeouts. At an endpoint the shell stretches
//! the last three ([`Shell::wait`](super::Shell::wait)).

use super::default::{admit_non_at_probing_rate, doubled, initial_timeout};
use super::{
    Admission, CongestionControl, Context, Load, OutgoingMessage, Sample, Slot, Transmission,
};
use crate::time::Micros;

/// How the timeouts of an exchange follow each other. T is ACK_TIMEOUT, and "drawn" means from
/// `[T, T * ACK_RANDOM_FACTOR]`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TimeoutSchedule {
    /// `go-coap`: always T.
    Constant,
    /// `wakaama`: T, doubled, without a dither.
    Undithered,
    /// `gcoap`: doubled, each timeout drawn by itself.
    Redrawn,
    /// `nyoci`: three copies within a tenth of a second, then as `gcoap`.
    Bursts,
    /// `coco-red`: drawn once, and multiplied by 1, 1, 2, 3, 5 and so on.
    Fibonacci,
    /// `encoco-red`: drawn once, and multiplied by 1, 1, 2, 3 and always 3.
    HeldFibonacci,
}

/// Copies of a burst, and the span that passes between two of them (libnyoci's
/// `NYOCI_TRANSACTION_BURST_COUNT`, `..._TIMEOUT_MIN` and `..._TIMEOUT_MAX`).
const BURST: u8 = 3;
const BURST_MIN: Micros = Micros::from_millis(20);
const BURST_MAX: Micros = Micros::from_millis(50);

impl CongestionControl for TimeoutSchedule {
    fn admit(&mut self, message: &OutgoingMessage, load: &Load, cx: &mut Context<'_>) -> Admission {
        admit_non_at_probing_rate(message, load, cx)
    }

    fn on_transmit(
        &mut self,
        transmission: &Transmission,
        slot: &mut Slot,
        cx: &mut Context<'_>,
    ) -> Micros {
        let ordinal = transmission.ordinal;
        match self {
            Self::Constant => cx.settings.ack_timeout(cx.params),
            Self::Undithered if ordinal == 0 => cx.settings.ack_timeout(cx.params),
            Self::Undithered => doubled(slot.armed, cx),
            Self::Redrawn => redrawn(ordinal, cx),
            Self::Bursts if ordinal % BURST < BURST - 1 => cx.uniform(BURST_MIN, BURST_MAX),
            Self::Bursts => redrawn(ordinal / BURST, cx),
            Self::Fibonacci | Self::HeldFibonacci => {
                // Zero at first, and in an exchange that another control has begun.
                if slot.base == Micros::ZERO {
                    slot.base = initial_timeout(cx);
                }
                let last = if *self == Self::HeldFibonacci { 3 } else { ordinal };
                let timeout = slot.base.scale(fibonacci(ordinal.min(last)), 1);
                cx.bounded(timeout, slot.base)
            }
        }
    }

    fn on_feedback(&mut self, _slot: &Slot, _sample: &Sample, _cx: &mut Context<'_>) {}
}

/// A newly drawn initial timeout, doubled so often.
fn redrawn(doublings: u8, cx: &mut Context<'_>) -> Micros {
    let drawn = initial_timeout(cx);
    let factor = 1_u32.checked_shl(doublings.into()).unwrap_or(u32::MAX);
    cx.bounded(drawn.scale(factor, 1), Micros::ZERO)
}

/// 1, 1, 2, 3, 5 and so on; u32::MAX where that is less.
fn fibonacci(n: u8) -> u32 {
    (0..n).fold((0_u32, 1_u32), |(a, b), _| (b, a.saturating_add(b))).1
}
