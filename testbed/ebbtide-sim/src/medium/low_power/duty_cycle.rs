//! Radio duty cycling similar to ContikiMAC (Dunkels, The ContikiMAC Radio Duty Cycling Protocol,
//! SICS T2011:13).
//!
//! A radio wakes up eight times a second, listens for a moment, and sleeps again unless it hears
//! something. A sender repeats its frame (it *strobes*) for at most one period until the receiver
//! has woken up and acknowledges it. With phase lock the sender remembers when the receiver woke
//! up and begins just before that the next time.

use super::phase::PhaseLock;
use super::timing::{ACK_BYTES, ASSESSMENT, LARGEST_FRAME, TURNAROUND, airtime};
use ebbtide_core::time::Instant;

/// The settings of duty cycling.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DutyCycle {
    /// The time between wake-ups, ns: 125 ms at 8 Hz.
    pub period: u64,
    /// The senders' memory of their neighbours' wake-ups.
    pub phase_lock: PhaseLock,
}

/// The gap between two strobes, long enough for the acknowledgement.
pub(super) const STROBE_GAP: u64 = TURNAROUND + airtime(ACK_BYTES);
/// How long a radio that hears something at its wake-up stays on to catch the start of a frame:
/// one frame of maximum length in which it woke up, and the gap after it.
pub(super) const LISTEN: u64 = airtime(LARGEST_FRAME) + STROBE_GAP;
/// How long before the receiver's wake-up a sender that knows its phase begins: the mean first
/// backoff and the assessment take 1.6 ms.
pub(super) const LEAD: u64 = 3_000_000;
/// The duration of a wake-up without traffic: two assessments (the paper's section 3.1).
pub(super) const WAKE_UP: u64 = 2 * ASSESSMENT;

impl DutyCycle {
    /// Whether a node with this phase listens at `now` according to its schedule.
    pub(super) fn listens(self, phase: u64, now: Instant) -> bool {
        let now = now.as_nanos();
        now >= phase && (now - phase) % self.period <= LISTEN
    }

    /// When to begin in order to be on the air `lead` before the next wake-up of a node with this phase.
    pub(super) fn departure(self, phase: u64, lead: u64, now: Instant) -> Instant {
        let earliest = now.as_nanos() + lead;
        let wait = match earliest.checked_sub(phase) {
            None => phase - earliest,
            Some(since) => (self.period - since % self.period) % self.period,
        };
        Instant::from_nanos(now.as_nanos() + wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_that_knows_the_phase_sets_out_just_before_the_wake_up() {
        let duty = DutyCycle { period: 125_000_000, phase_lock: PhaseLock::Exact };
        let phase = 20_000_000;
        for now in [0, 5_000_000, 17_000_000, 17_000_001, 40_000_000, 260_000_000] {
            let at = duty.departure(phase, LEAD, Instant::from_nanos(now)).as_nanos();
            assert!(at >= now && at - now < duty.period, "{now}");
            assert_eq!((at + LEAD - phase) % duty.period, 0, "{now}");
        }
        assert!(duty.listens(phase, Instant::from_nanos(145_000_000)));
        assert!(!duty.listens(phase, Instant::from_nanos(144_999_999)));
    }
}
