//! The behaviour of a client's application, for every transport: when the next request is made,
//! when a batch ends, and how long everything took.

use crate::random::{Streams, uniform};
use crate::scenario::{Activity, BackToBack, Clocked, Cloud, Offers, Pattern, Scenario};
use ebbtide_core::time::{Duration, Instant};
use rand_chacha::ChaCha8Rng;
use std::num::NonZeroU64;

/// The workload of one client.
pub(crate) struct Agenda {
    course: Course,
    /// Whether an answer counts from the client's first request, at which all requests are due.
    is_due_at_once: bool,
    /// Requests made at once where they go by the clock.
    at_once: u8,
    /// How many requests it keeps open (NSTART).
    window: u32,
    /// Requests not made yet.
    to_make: u32,
    /// Requests not made yet of the current batch.
    batch_left: u32,
    open: u32,
    next_number: u32,
    started: Option<Instant>,
    /// Where requests are made in batches.
    batches: Option<Box<Batches>>,
    /// Within which an answer is worth something, ns; `None`: always.
    deadline: Option<NonZeroU64>,
}

/// The sizes of batches: random, or those of one server after the other.
struct Batches {
    least: u32,
    most: u32,
    rng: ChaCha8Rng,
}

/// The cause of a client's next request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Course {
    /// The clock.
    Clock,
    /// The end of an exchange; the same device goes on.
    Device,
    /// The end of an exchange; another device takes over after a batch.
    Devices,
    /// The end of an exchange; after a batch the next server is asked.
    Servers,
}

/// The next action of the application.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum NextAction {
    /// To make a request.
    Request,
    /// That another device takes over; then to be asked again.
    NewDevice,
    /// Nothing until an exchange ends, or the next period begins.
    Wait,
}

impl Agenda {
    /// The agenda of client `number`, which keeps `window` requests open.
    pub(crate) fn new(number: u32, window: u32, scenario: &Scenario, streams: &Streams) -> Self {
        let workload = &scenario.workload;
        let activity = workload.activity();
        let (course, sizes) = match activity {
            Activity::Clocked(_) => (Course::Clock, None),
            Activity::BackToBack(BackToBack::Random(sizes)) => (Course::Devices, Some(*sizes)),
            Activity::BackToBack(_) | Activity::Flow(_) => (Course::Device, None),
            Activity::Cloud(Cloud::Baseline) => (Course::Servers, Some([workload.exchanges; 2])),
            Activity::Cloud(_) | Activity::Firmware | Activity::Reporting(_) => {
                (Course::Devices, None)
            }
        };
        let to_make = match activity {
            Activity::Reporting(_) => u32::MAX,
            Activity::Flow(flow) => match &flow.offers {
                Offers::Stream { .. } => u32::MAX,
                Offers::Transfer { .. } => workload.messages(number).unwrap_or(0),
            },
            _ if scenario.is_steady(number) => u32::MAX,
            Activity::Clocked(Clocked { pattern: Pattern::Log(log), .. }) => {
                // At most as many as a log may have.
                log.instants(number).len() as u32
            }
            _ => workload.exchanges.saturating_mul(scenario.servers_in_turn()),
        };
        let mut agenda = Self {
            course,
            is_due_at_once: !workload.keeps_time() && !workload.is_mesh(),
            // Checked to be at most 64.
            at_once: workload.at_once().min(64) as u8,
            window,
            to_make,
            batch_left: 0,
            open: 0,
            next_number: 0,
            started: None,
            batches: sizes.map(|[least, most]| {
                let rng = streams.stream(&format!("client/{number}/batches"));
                Box::new(Batches { least, most, rng })
            }),
            deadline: NonZeroU64::new(workload.deadline.0),
        };
        agenda.next_batch();
        agenda
    }

    /// Whether nothing is left to do.
    #[inline]
    pub(crate) const fn is_done(&self) -> bool {
        self.to_make == 0 && self.open == 0
    }

    /// Whether there are requests still to be made.
    pub(crate) const fn has_more(&self) -> bool {
        self.to_make > 0
    }

    /// Whether requests come by the clock rather than one after another.
    pub(crate) const fn is_clocked(&self) -> bool {
        matches!(self.course, Course::Clock)
    }

    /// Requests made at once where they go by the clock.
    pub(crate) const fn at_once(&self) -> u8 {
        self.at_once
    }

    /// No further request is made.
    pub(crate) const fn stop(&mut self) {
        self.to_make = 0;
    }

    /// Whether one device makes all requests, one after another.
    pub(crate) const fn keeps_device(&self) -> bool {
        matches!(self.course, Course::Device)
    }

    fn next_batch(&mut self) {
        self.batch_left = match &mut self.batches {
            Some(batches) => {
                let Batches { least, most, rng } = &mut **batches;
                let size = uniform(rng, (*least).into(), (*most).into());
                u32::try_from(size).unwrap_or(*most).min(self.to_make)
            }
            None => self.to_make,
        };
    }

    /// The next step of a workload that is not periodic.
    pub(crate) fn next(&mut self) -> NextAction {
        if self.open >= self.window || self.to_make == 0 {
            return NextAction::Wait;
        }
        if self.batch_left > 0 {
            return NextAction::Request;
        }
        // The batch ends when all of it is answered; then another device takes over, or the next server is asked.
        if self.open > 0 {
            return NextAction::Wait;
        }
        self.next_batch();
        if self.course == Course::Servers { NextAction::Request } else { NextAction::NewDevice }
    }

    /// Counts the time from now on, although no request may be possible yet.
    pub(crate) fn begins(&mut self, now: Instant) {
        self.started.get_or_insert(now);
    }

    /// A request is made: its number; `None` if all have been.
    pub(crate) fn make(&mut self, now: Instant) -> Option<u32> {
        self.to_make = self.to_make.checked_sub(1)?;
        self.batch_left = self.batch_left.saturating_sub(1);
        self.started.get_or_insert(now);
        self.next_number += 1;
        Some(self.next_number - 1)
    }

    /// A request is not made. Whether there was one to be made.
    pub(crate) const fn skip(&mut self) -> bool {
        let had_one = self.to_make > 0;
        self.to_make = self.to_make.saturating_sub(1);
        had_one
    }

    /// A request has to be made once more.
    pub(crate) const fn ask_again(&mut self) {
        self.to_make = self.to_make.saturating_add(1);
    }

    /// So many more requests have to be made.
    pub(crate) const fn ask_more(&mut self, requests: u32) {
        self.to_make = self.to_make.saturating_add(requests);
        self.batch_left = self.batch_left.saturating_add(requests);
    }

    /// The request that was made last was not taken: its number is free.
    pub(crate) const fn take_back(&mut self) {
        self.ask_again();
        self.next_number = self.next_number.saturating_sub(1);
    }

    /// The number of the next request.
    pub(crate) const fn next_number(&self) -> u32 {
        self.next_number
    }

    /// The request that was made is under way.
    pub(crate) const fn opened(&mut self) {
        self.open += 1;
    }

    /// Exchanges under way.
    pub(crate) const fn open(&self) -> u32 {
        self.open
    }

    /// How long after it was due a request that was made at `made` is answered, and whether that is
    /// within its deadline. Where a client asks back to back everything is due at its first request, except in
    /// the workloads of low-power networks, whose clients mostly ask until the time is over.
    pub(crate) fn answered(&self, now: Instant, made: Instant) -> (Duration, bool) {
        let due = if self.is_due_at_once { self.started.unwrap_or(made) } else { made };
        let in_time = |deadline: NonZeroU64| now - made <= Duration::from_nanos(deadline.get());
        (now - due, self.deadline.is_none_or(in_time))
    }

    /// An exchange has ended. How long it has been since the first request, if any was made.
    pub(crate) fn ended(&mut self, now: Instant) -> Option<Duration> {
        self.open -= 1;
        self.started.map(|started| now - started)
    }
}
