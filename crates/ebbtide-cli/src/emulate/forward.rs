//! The thread that moves packets between the ends and the emulation, on time.

use super::capture::Recorder;
use super::clock::Clock;
use super::wakeup::{NAP, WakeUps};
use super::{ArrivedPacket, Packet, PathEnds};
use ebbtide_core::time::Instant;
use ebbtide_sim::emulation::{Emulation, EmulationSummary};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

const TIMER: u64 = 0;
const STOP: u64 = 1;
const FIRST_TOKEN: u64 = 2;

/// The result of the forwarding.
#[derive(Debug)]
pub(crate) struct Forwarded {
    pub(crate) summary: EmulationSummary,
    /// Whether the thread had real-time priority.
    pub(crate) is_realtime: bool,
    /// The share of one processor's time that the thread took.
    pub(crate) processor: f64,
    /// Messages about packets that were left out.
    pub(crate) remarks: Vec<String>,
}

/// The running thread.
pub(crate) struct Forwarder {
    stop: Arc<EventFd>,
    thread: JoinHandle<io::Result<Forwarded>>,
}

impl Forwarder {
    /// Starts forwarding.
    ///
    /// # Errors
    ///
    /// Returns an error if there are no threads or descriptors left.
    pub(crate) fn start<E: PathEnds + 'static>(
        ends: E,
        emulation: Emulation<E::Packet>,
        clock: Clock,
        capture: Option<Recorder>,
    ) -> io::Result<Self> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let stop = Arc::new(EventFd::from_value_and_flags(0, flags)?);
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("forward".into()).spawn(move || {
            let is_realtime = be_punctual();
            let wake_ups = WakeUps::new(clock.now());
            let armed = None;
            let mut path =
                EmulatedPath { ends, emulation, clock, capture, is_realtime, wake_ups, armed };
            path.forward(&stopped)?;
            path.finish()
        })?;
        Ok(Self { stop, thread })
    }

    /// Whether it has ended by itself, which only happens if it fails.
    pub(crate) fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops it.
    ///
    /// # Errors
    ///
    /// Returns the error that ended it.
    pub(crate) fn finish(self) -> io::Result<Forwarded> {
        self.stop.write(1)?;
        self.thread.join().map_err(|_| io::Error::other("the forwarding thread panicked"))?
    }
}

/// Requests exact timers and, if permitted, a priority above all ordinary threads. Returns whether
/// the priority was granted.
fn be_punctual() -> bool {
    // Otherwise timers may be 50 us late by design.
    let _ = nix::sys::prctl::set_timerslack(1);
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok()
}

struct EmulatedPath<E: PathEnds> {
    ends: E,
    emulation: Emulation<E::Packet>,
    clock: Clock,
    capture: Option<Recorder>,
    is_realtime: bool,
    wake_ups: WakeUps,
    /// The alarm for which the timer was set, until it expires.
    armed: Option<Alarm>,
}

/// A timer that is set.
#[derive(Copy, Clone)]
struct Alarm {
    /// When the packet is due.
    due: Instant,
    /// The instant at which the timer expires: some time before.
    at: Instant,
}

impl<E: PathEnds> EmulatedPath<E> {
    fn forward(&mut self, stop: &EventFd) -> io::Result<()> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        epoll.add(stop, EpollEvent::new(EpollFlags::EPOLLIN, STOP))?;
        self.ends.register(&epoll, FIRST_TOKEN)?;
        let mut events = [EpollEvent::empty(); 64];
        loop {
            self.deliver()?;
            self.nap();
            let timeout = self.arm(&timer)?;
            let before = self.clock.now();
            let count = match epoll.wait(&mut events, timeout) {
                Ok(count) => count,
                Err(nix::errno::Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let after = self.clock.now();
            self.wake_ups.slept(after, after.saturating_since(before));
            for event in events.iter().take(count) {
                match event.data() {
                    // The timer has woken this thread, which is its only purpose.
                    TIMER => {
                        let _ = timer.wait();
                        // Unless it expired before the thread slept.
                        if let Some(alarm) = self.armed.take().filter(|alarm| alarm.at > before) {
                            self.wake_ups.woke(after.saturating_since(alarm.at));
                        }
                    }
                    STOP => return Ok(()),
                    token => self.receive(token, &epoll)?,
                }
            }
        }
    }

    /// Sleeps for a short while if that is due.
    #[expect(clippy::disallowed_methods, reason = "a driver that lets others run")]
    fn nap(&mut self) {
        let before = self.clock.now();
        if self.wake_ups.is_nap_due(before) {
            std::thread::sleep(NAP);
            let after = self.clock.now();
            let slept = after.saturating_since(before);
            self.wake_ups.slept(after, slept);
            self.wake_ups.woke(slept.saturating_sub(NAP));
        }
    }

    /// Hands over the packets that are due.
    fn deliver(&mut self) -> io::Result<()> {
        while let Some(delivery) = self.emulation.poll_packet(self.clock.now()) {
            if let Some(capture) = &mut self.capture {
                capture.left(self.clock.now(), delivery.direction, delivery.packet.frame());
            }
            self.ends.deliver(delivery.direction, delivery.packet)?;
        }
        Ok(())
    }

    /// How long to wait for packets: until some time before the next one is due, or not at all.
    fn arm(&mut self, timer: &TimerFd) -> io::Result<EpollTimeout> {
        let Some(due) = self.emulation.poll_timeout() else { return Ok(EpollTimeout::NONE) };
        let now = self.clock.now();
        let left = due.saturating_since(now);
        let margin = self.wake_ups.margin();
        if left <= margin {
            // Other emulators have the same priority and would wait for this one to sleep. A
            // thread of ordinary priority would lose its processor to other programs for a long
            // time.
            if self.is_realtime {
                std::thread::yield_now();
            }
            return Ok(EpollTimeout::ZERO);
        }
        // A packet that joins a queue does not change the departure of the first one. Setting the
        // timer for each packet took a fifth of this thread's time at 40,000 packets a second.
        if self.armed.is_some_and(|alarm| alarm.due == due) {
            return Ok(EpollTimeout::NONE);
        }
        let wait = left - margin;
        self.armed = Some(Alarm { due, at: now + wait });
        let expiration = Expiration::OneShot(TimeSpec::from_duration(wait));
        timer.set(expiration, TimerSetTimeFlags::empty())?;
        Ok(EpollTimeout::NONE)
    }

    fn receive(&mut self, token: u64, epoll: &Epoll) -> io::Result<()> {
        let Self { ends, emulation, clock, capture, .. } = self;
        ends.receive(token, epoll, &mut |arrived| {
            let ArrivedPacket { direction, device, bytes, packet } = arrived;
            let now = clock.now();
            if let Some(capture) = capture {
                capture.entered(now, direction, packet.frame());
            }
            emulation.handle_packet(now, direction, device, bytes, packet);
        })
    }

    fn finish(self) -> io::Result<Forwarded> {
        let summary = self.emulation.summary(self.clock.now());
        let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
        let worked = usage.user_time() + usage.system_time();
        let processor = worked.num_nanoseconds() as f64 / 1e9 / summary.seconds.max(1e-9);
        let mut remarks = self.ends.remarks();
        if let Some(capture) = self.capture {
            match capture.finish()? {
                0 => {}
                missed => remarks.push(format!("{missed} packets are missing in the capture")),
            }
        }
        Ok(Forwarded { summary, is_realtime: self.is_realtime, processor, remarks })
    }
}
