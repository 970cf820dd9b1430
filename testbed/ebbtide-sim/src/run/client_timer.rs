//! The timers of the clients, apart from the clients.

use ebbtide_core::time::Instant;

/// The timer of a client. Most of its events find that the client, whose exchange was answered meanwhile,
/// wants a later one. They need not touch the client, which is large and rarely in the processor's cache.
#[derive(Copy, Clone, Debug)]
pub(super) struct ClientTimer {
    /// The earliest event that is scheduled; [`NEVER`] if there is none.
    scheduled: Instant,
    /// A call before this instant has no effect.
    idle_until: Instant,
}

const NEVER: Instant = Instant::from_nanos(u64::MAX);

impl Default for ClientTimer {
    fn default() -> Self {
        Self { scheduled: NEVER, idle_until: Instant::ZERO }
    }
}

/// The consequence of a timer event.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Fires {
    /// Nothing: another event was scheduled later, which counts.
    Not,
    /// The client is called.
    Now,
    /// An event is to be scheduled at this instant.
    At(Instant),
}

impl ClientTimer {
    /// The client wants to be called at `timeout`, and before it if it is not punctual. When an event is
    /// to be scheduled for that; `None` if the one that is scheduled does.
    #[inline]
    pub(super) fn want(
        &mut self,
        now: Instant,
        timeout: Option<Instant>,
        is_punctual: bool,
    ) -> Option<Instant> {
        self.idle_until = timeout.filter(|_| is_punctual).unwrap_or_default();
        let mut scheduled = Some(self.scheduled).filter(|at| *at != NEVER);
        let next = due(timeout, &mut scheduled, now);
        self.scheduled = scheduled.unwrap_or(NEVER);
        next
    }

    /// Whether the event that is scheduled will call the client, as far as is known now.
    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.idle_until <= self.scheduled
    }

    /// An event that was scheduled has come.
    #[inline]
    pub(super) fn fires(&mut self, now: Instant) -> Fires {
        if self.scheduled != now {
            return Fires::Not;
        }
        if self.idle_until > now {
            self.scheduled = self.idle_until;
            return Fires::At(self.idle_until);
        }
        self.scheduled = NEVER;
        Fires::Now
    }
}

/// When a timer event is to be scheduled for a host that wants to be called at `timeout`; `None` if
/// the one that is scheduled does.
pub(super) fn due(
    timeout: Option<Instant>,
    timer: &mut Option<Instant>,
    now: Instant,
) -> Option<Instant> {
    let at = timeout?.max(now);
    if timer.is_some_and(|scheduled| now <= scheduled && scheduled <= at) {
        return None;
    }
    *timer = Some(at);
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn an_early_event_is_put_off_until_the_client_wants_it() {
        let mut timer = ClientTimer::default();
        assert_eq!(timer.want(at(0), Some(at(2)), true), Some(at(2)));
        assert_eq!(timer.want(at(1), Some(at(3)), true), None, "the event at 2 s comes first");
        assert_eq!(timer.fires(at(2)), Fires::At(at(3)));
        assert_eq!(timer.fires(at(2)), Fires::Not, "it was put off");
        assert_eq!(timer.fires(at(3)), Fires::Now);
    }

    #[test]
    fn a_client_that_is_not_punctual_is_called_each_time() {
        let mut timer = ClientTimer::default();
        assert_eq!(timer.want(at(0), Some(at(2)), false), Some(at(2)));
        assert_eq!(timer.want(at(1), Some(at(3)), false), None);
        assert_eq!(timer.fires(at(2)), Fires::Now);
    }

    #[test]
    fn an_event_that_an_earlier_one_replaced_is_left_over() {
        let mut timer = ClientTimer::default();
        assert_eq!(timer.want(at(0), Some(at(5)), true), Some(at(5)));
        assert_eq!(timer.want(at(1), Some(at(2)), true), Some(at(2)));
        assert_eq!(timer.fires(at(2)), Fires::Now);
        assert_eq!(timer.fires(at(5)), Fires::Not);
    }
}
