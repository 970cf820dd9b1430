//! The timer of a driver.
//!
//! Tokio's timers give the wait for events a timeout, so that the kernel sets and cancels a timer each
//! time a task waits for a datagram. A timer of its own on Linux is set once, and stays where it is
//! while requests are answered in time.

use super::clock::Clock;
use ebbtide_core::time::Instant;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;
#[cfg(target_os = "linux")]
use tokio::{io::Interest, io::unix::AsyncFd};

/// Nanoseconds of the grid on which timers fire.
#[cfg(target_os = "linux")]
const TICK: u64 = 1_000_000;

/// See the [module](self).
#[derive(Debug)]
pub(super) enum Alarm {
    /// A timer of the kernel's (timerfd).
    #[cfg(target_os = "linux")]
    Descriptor(AsyncFd<OwnedFd>),
    /// A timer of tokio's: on other systems and networks, or if there is no descriptor left.
    Sleep(Pin<Box<Sleep>>, Clock),
}

impl Alarm {
    /// A timer that is not set.
    pub(super) fn new(clock: Clock) -> Self {
        #[cfg(target_os = "linux")]
        if let Some(descriptor) = descriptor() {
            return Self::Descriptor(descriptor);
        }
        Self::of_tokio(clock)
    }

    /// A timer of tokio's that is not set.
    pub(super) fn of_tokio(clock: Clock) -> Self {
        Self::Sleep(Box::pin(tokio::time::sleep(Duration::ZERO)), clock)
    }

    /// Sets the timer. It fires up to a millisecond later, as tokio's do, so that what is due at nearly
    /// the same time leaves in one batch.
    pub(super) fn set(&mut self, now: Instant, at: Instant) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Descriptor(timer) => {
                let at = Instant::from_nanos(at.as_nanos().div_ceil(TICK).saturating_mul(TICK));
                set(timer.get_ref(), at.saturating_since(now));
            }
            Self::Sleep(sleep, clock) => sleep.as_mut().reset(clock.to_tokio(at)),
        }
    }

    /// Whether it has fired since it was set.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Descriptor(timer) => match timer.poll_read_ready(cx) {
                Poll::Ready(Ok(mut ready)) => {
                    // The timer is not read: setting it again resets it.
                    ready.clear_ready();
                    Poll::Ready(())
                }
                // The runtime has ended, and the driver with it.
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            },
            Self::Sleep(sleep, _) => sleep.as_mut().poll(cx),
        }
    }
}

#[cfg(target_os = "linux")]
fn descriptor() -> Option<AsyncFd<OwnedFd>> {
    use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags).ok()?;
    #[expect(
        deprecated,
        reason = "its replacement is unsafe because a type might change its descriptor; \
                  `OwnedFd` is one for life"
    )]
    AsyncFd::with_interest(timer, Interest::READABLE).ok()
}

#[cfg(target_os = "linux")]
fn set(timer: &OwnedFd, after: Duration) {
    use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};

    // A value of zero would disarm it.
    let after = after.max(Duration::from_nanos(1));
    let value = Timespec {
        tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: after.subsec_nanos().into(),
    };
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    // It fails for values that are not valid only.
    let _ = timerfd_settime(
        timer,
        TimerfdTimerFlags::empty(),
        &Itimerspec { it_interval: never, it_value: value },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    const SOON: Duration = Duration::from_millis(20);
    const LATE: Duration = Duration::from_secs(600);

    /// Both kinds of timer that this system has.
    fn alarms(clock: Clock) -> [Alarm; 2] {
        [Alarm::new(clock), Alarm::of_tokio(clock)]
    }

    #[tokio::test]
    async fn it_fires_when_it_is_due_and_again_when_it_is_set_again() {
        let clock = Clock::start();
        for mut alarm in alarms(clock) {
            for _ in 0..3 {
                let now = clock.now();
                alarm.set(now, now + SOON);
                poll_fn(|cx| alarm.poll(cx)).await;
                assert!(clock.now() >= now + SOON, "{alarm:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_new_time_replaces_the_old_one() {
        let clock = Clock::start();
        for mut alarm in alarms(clock) {
            let now = clock.now();
            alarm.set(now, now + LATE);
            alarm.set(now, now + SOON);
            let fired = tokio::time::timeout(LATE / 10, poll_fn(|cx| alarm.poll(cx))).await;
            assert!(fired.is_ok(), "{alarm:?}");
            alarm.set(now, now + LATE);
            let fired = tokio::time::timeout(SOON, poll_fn(|cx| alarm.poll(cx))).await;
            assert!(fired.is_err(), "{alarm:?}");
        }
    }

    #[tokio::test]
    async fn a_time_that_has_passed_fires_at_once() {
        let clock = Clock::start();
        for mut alarm in alarms(clock) {
            alarm.set(clock.now(), Instant::ZERO);
            poll_fn(|cx| alarm.poll(cx)).await;
        }
    }
}
