//! A station's carrier sense and backoff (IEEE 802.11-1999, sections 9.2.1 to 9.2.5).

use super::Dcf;
use ebbtide_core::time::{Duration, Instant};

/// The channel as a station hears it, and the number of idle slots for which it still waits.
#[derive(Clone, Debug)]
pub(super) struct Contention {
    /// Transmissions that it hears now, including its own.
    heard: u32,
    /// When the first of them began.
    busy_since: Instant,
    /// How long it has heard a transmission in all, ns.
    busy_ns: u64,
    /// Whether they overlapped.
    garbled: bool,
    /// The end of the interframe space after the last of them.
    open: Instant,
    /// The end of the time that other stations reserved: the network allocation vector (section
    /// 9.2.5.4).
    reserved: Instant,
    /// Idle slots for which a backoff still waits; `None` if there is no backoff.
    slots: Option<u32>,
    /// While it counts them down: the start, and the end of the backoff.
    counting: Option<(Instant, Instant)>,
}

/// How a transmission ended for a station that heard it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum HeardTransmission {
    /// It was the station's own, or one that it could read and need not wait for.
    Plain,
    /// It is followed by an acknowledgement of another station.
    Reserves,
    /// It could not be read although nothing overlapped with it.
    Unreadable,
}

impl Contention {
    pub(super) const fn new() -> Self {
        Self {
            heard: 0,
            busy_since: Instant::ZERO,
            busy_ns: 0,
            garbled: false,
            open: Instant::ZERO,
            reserved: Instant::ZERO,
            slots: None,
            counting: None,
        }
    }

    /// A transmission that the station hears begins. A running backoff is suspended; the slot that
    /// has begun is not counted (section 9.2.5.2).
    pub(super) fn begin(&mut self, now: Instant, dcf: &Dcf) {
        self.garbled = self.heard > 0;
        if self.heard == 0 {
            self.busy_since = now;
        }
        self.heard += 1;
        let Some((since, due)) = self.counting else { return };
        // A station needs a slot to hear, decide and switch its radio (section 9.2.10), so a
        // station that is due sooner does not notice the transmission. With synchronous slots this
        // applies to stations that are due at the same instant.
        if due < now + nanos(dcf.slot.0) {
            return;
        }
        let elapsed = now.as_nanos().saturating_sub(since.as_nanos()) / dcf.slot.0.max(1);
        let elapsed = u32::try_from(elapsed).unwrap_or(u32::MAX);
        self.slots = self.slots.map(|slots| slots.saturating_sub(elapsed));
        self.counting = None;
    }

    /// A transmission that the station hears ends.
    ///
    /// Stations that heard an overlap, or took part in it, wait for EIFS (section 9.2.3.4). All of
    /// them therefore count the same slots afterwards.
    pub(super) fn end(&mut self, now: Instant, how: HeardTransmission, dcf: &Dcf) {
        self.heard = self.heard.saturating_sub(1);
        let unreadable = self.garbled || how == HeardTransmission::Unreadable;
        self.open = now + nanos(if unreadable { dcf.eifs() } else { dcf.difs() });
        if how == HeardTransmission::Reserves && !unreadable {
            self.reserved = self.reserved.max(now + nanos(dcf.ack_wait()));
        }
        if self.heard == 0 {
            self.garbled = false;
            self.busy_ns += now.as_nanos() - self.busy_since.as_nanos();
        }
    }

    /// How long the station has heard a transmission, ns, until it last was silent.
    pub(super) const fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// The station's own attempt has ended. It draws a backoff, whether or not it has another
    /// frame (section 9.2.5.2).
    pub(super) fn back_off(&mut self, now: Instant, slots: u32, dcf: &Dcf) {
        self.open = self.open.max(now + nanos(dcf.difs()));
        self.slots = Some(slots);
        self.counting = None;
    }

    /// Whether a frame that arrives now may be sent only after a backoff: the channel is busy or
    /// was within the interframe space, and no backoff is running (section 9.2.5.1).
    pub(super) fn needs_backoff(&self, now: Instant, dcf: &Dcf) -> bool {
        self.counting.is_none() && self.slots.is_none() && !self.is_free(now, dcf)
    }

    /// Continues the countdown if the channel is idle and there is a backoff or a frame. Returns
    /// the end of the countdown if it was started.
    pub(super) fn resume(&mut self, now: Instant, has_frame: bool, dcf: &Dcf) -> Option<Instant> {
        let goes_at_once = self.slots.is_none() && self.is_free(now, dcf);
        let is_busy = self.heard > 0 && !goes_at_once;
        if is_busy || self.counting.is_some() || (self.slots.is_none() && !has_frame) {
            return None;
        }
        let since = now.max(self.access(dcf));
        let slots = u64::from(self.slots.unwrap_or(0));
        let due = since + nanos(slots * dcf.slot.0);
        self.counting = Some((since, due));
        Some(due)
    }

    /// Whether the backoff ends now; if so, clears it.
    pub(super) fn is_through(&mut self, now: Instant) -> bool {
        let through = self.counting.is_some_and(|(_, due)| due == now);
        if through {
            self.counting = None;
            self.slots = None;
        }
        through
    }

    /// Whether the channel has been idle for an interframe space, as far as the station has noticed.
    fn is_free(&self, now: Instant, dcf: &Dcf) -> bool {
        let unnoticed = now < self.busy_since + nanos(dcf.slot.0);
        self.access(dcf) <= now && (self.heard == 0 || unnoticed)
    }

    /// The instant from which slots count if the channel stays idle.
    fn access(&self, dcf: &Dcf) -> Instant {
        self.open.max(self.reserved + nanos(dcf.difs()))
    }
}

const fn nanos(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}
