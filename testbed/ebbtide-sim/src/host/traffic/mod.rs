//! Traffic that goes by the clock, one file for each kind: when a device makes its requests, whatever
//! the fates of those before.

mod bursts;
mod logged;
mod periodic;
mod poisson;
mod synchronised;

use crate::random::{CompactChaCha, Streams};
use crate::scenario::{ClassView, Pattern, Scenario};
use bursts::Bursts;
use ebbtide_core::time::Instant;
use logged::Logged;
use periodic::Periodic;
use poisson::Poisson;
use synchronised::Synchronised;

/// A kind of traffic. Instants and spans are in nanoseconds, instants since the start of the class.
trait Traffic {
    /// The first instant at which a device makes requests.
    fn first(&self, device: u32, rng: &mut CompactChaCha) -> u64;

    /// The instant of the requests after those at `now`. There is a clock if [`Self::uses_clock`].
    fn next(&self, now: u64, clock: Option<&mut DeviceClock>) -> u64;

    /// Whether the kind needs a state of each device. Otherwise a million devices take no memory.
    fn uses_clock(&self) -> bool {
        true
    }
}

/// The state of one device's traffic.
struct DeviceClock {
    /// Its number.
    device: u32,
    /// The first instant.
    first: u64,
    /// How often requests have been made.
    times: u64,
    rng: CompactChaCha,
}

/// The timetable of a class.
pub(crate) struct Timetable {
    traffic: Box<dyn Traffic>,
    first_client: u32,
    /// The start of the class, ns.
    start: u64,
    clocks: Vec<DeviceClock>,
}

/// The kind of traffic of a scenario, whose devices start within its window; `None` if it does not go by the
/// clock.
fn traffic(scenario: &Scenario) -> Option<Box<dyn Traffic>> {
    let window = scenario.clients.start_window.0;
    if let Some(period) = scenario.message_period() {
        return Some(Box::new(Periodic { period, window, jitter: 0 }));
    }
    let clocked = scenario.workload.clocked()?;
    let period = clocked.period.0;
    Some(match &clocked.pattern {
        Pattern::Periodic { jitter } => Box::new(Periodic { period, window, jitter: jitter.0 }),
        Pattern::Poisson => Box::new(Poisson { mean: period, window }),
        Pattern::Bursts { .. } => Box::new(Bursts { period, window }),
        Pattern::Synchronised { spread } => {
            Box::new(Synchronised { period, window, spread: spread.0 })
        }
        Pattern::Log(log) => Box::new(Logged { log: log.clone(), window }),
        Pattern::Notifications => Box::new(Synchronised { period, window, spread: 0 }),
    })
}

impl Timetable {
    /// The timetable of a class, and the first instant of each of its devices; `None` if its requests do not
    /// go by the clock.
    pub(crate) fn new(class: &ClassView, streams: &Streams) -> Option<(Self, Vec<u64>)> {
        let scenario = &class.scenario;
        let traffic = traffic(scenario)?;
        let start = scenario.clients.start.0;
        let first = |client: u32| {
            let name = match scenario.workload.is_reporting() {
                // Without other classes this is the client's node; the sink, node 0, has none.
                true => format!("source/{}", client + 1),
                false => format!("client/{client}/start"),
            };
            start.saturating_add(traffic.first(client, &mut streams.frugal(&name)))
        };
        let starts: Vec<u64> = class.clients().map(first).collect();
        let clock = |(client, first): (u32, &u64)| {
            let rng = streams.frugal(&format!("client/{client}/traffic"));
            DeviceClock { device: client, first: first - start, times: 0, rng }
        };
        let clocks = match traffic.uses_clock() {
            true => class.clients().zip(&starts).map(clock).collect(),
            false => Vec::new(),
        };
        Some((Self { traffic, first_client: class.first, start, clocks }, starts))
    }

    /// When a device that makes requests now makes the next ones.
    pub(crate) fn next(&mut self, now: Instant, client: u32) -> Option<Instant> {
        let place = client.checked_sub(self.first_client)? as usize;
        let mut clock = self.clocks.get_mut(place);
        if let Some(clock) = &mut clock {
            clock.times += 1;
        }
        let next = self.traffic.next(now.as_nanos().saturating_sub(self.start), clock);
        Some(Instant::from_nanos(self.start.saturating_add(next)))
    }
}
