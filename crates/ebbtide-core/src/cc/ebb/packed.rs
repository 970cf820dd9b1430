//! The state of `ebb` in few bytes: spans, counters, and the memory of an exchange.

use crate::time::Micros;

/// The number of unanswered probes after which the peer is taken not to answer any.
pub(super) const SILENT: u8 = 3;
/// The number of samples from which on an estimate is trusted. A single sample may have met a
/// queue that was about to grow.
pub(super) const GROWN: u8 = 2;
/// Blind intervals double with each consecutive exchange that is given up, at most this often.
pub(super) const MAX_FAILS: u8 = 4;

/// A span in two bytes: milliseconds as a number of 11 bits times a power of two. Exact up to two
/// seconds, and never more than 0.1 % short above.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rough(u16);

impl Rough {
    /// No time at all.
    pub(super) const ZERO: Self = Self(0);
    const BITS: u32 = 11;

    pub(super) const fn new(span: Micros) -> Self {
        let millis = span.as_micros() / 1000;
        let exponent = (u64::BITS - millis.leading_zeros()).saturating_sub(Self::BITS);
        Self((exponent << Self::BITS) as u16 | (millis >> exponent) as u16)
    }

    pub(super) const fn get(self) -> Micros {
        let millis = (self.0 & ((1 << Self::BITS) - 1)) as u64;
        Micros::from_u64((millis << (self.0 >> Self::BITS)) * 1000)
    }
}

/// Three small counters in one byte.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts(u8);

impl Counts {
    /// All of them zero.
    pub(super) const ZERO: Self = Self(0);

    /// Consecutive probes that stayed unanswered although the path carried an answer after them,
    /// at most [`SILENT`].
    pub(super) const fn silent(self) -> u8 {
        self.0 & 3
    }

    /// The number of samples, at most [`GROWN`].
    pub(super) const fn samples(self) -> u8 {
        self.0 >> 2 & 3
    }

    /// Consecutive exchanges that were given up, at most [`MAX_FAILS`].
    pub(super) const fn fails(self) -> u8 {
        self.0 >> 4
    }

    pub(super) fn set_silent(&mut self, silent: u8) {
        self.0 = self.0 & !3 | silent.min(SILENT);
    }

    pub(super) fn set_samples(&mut self, samples: u8) {
        self.0 = self.0 & !(3 << 2) | samples.min(GROWN) << 2;
    }

    pub(super) fn set_fails(&mut self, fails: u8) {
        self.0 = self.0 & 15 | fails.min(MAX_FAILS) << 4;
    }
}

/// The last transmission of an exchange.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// The original, or a copy that was sent because no answer had arrived.
    Copy,
    /// A probe that is not answered yet.
    Probe,
    /// An answered probe, which is a verdict on all copies; the next copy is due.
    Verdict,
    /// The copy that followed a verdict, or a later one.
    Sentenced,
}

/// The state that an exchange keeps from one transmission to the next, in the byte `Slot::tag`.
#[derive(Copy, Clone, Debug)]
pub(super) struct Memory {
    pub(super) last: Last,
    /// The path was not known, or not trusted, when the exchange began, and nothing has been answered since.
    pub(super) blind: bool,
    /// A copy left after a probe that had remained unanswered.
    pub(super) unheard: bool,
    /// Expired timeouts that count: while blind, the tries after the original; later, one for each short
    /// repeat and each doubling. At most 15.
    pub(super) steps: u8,
}

impl Memory {
    pub(super) const fn load(tag: u8) -> Self {
        let last = match tag & 3 {
            0 => Last::Copy,
            1 => Last::Probe,
            2 => Last::Verdict,
            _ => Last::Sentenced,
        };
        Self { last, blind: tag & 4 != 0, unheard: tag & 8 != 0, steps: tag >> 4 }
    }

    pub(super) fn store(self) -> u8 {
        let flags = u8::from(self.blind) << 2 | u8::from(self.unheard) << 3;
        self.last as u8 | flags | self.steps.min(15) << 4
    }
}
