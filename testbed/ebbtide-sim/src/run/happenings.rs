//! Events that all clients of a class report: the workload `events`.

use super::event::NetEvent;
use crate::engine::Engine;
use crate::random::{Streams, exponential, uniform};
use crate::scenario::{Activity, ClassView, Events, Reporting, ReportsDue};
use ebbtide_core::time::{Duration, Instant};
use rand_chacha::ChaCha8Rng;

/// For each class, its settings and a generator if its clients report events.
pub(super) struct Happenings(Vec<Option<(Events, ChaCha8Rng)>>);

impl Happenings {
    /// Schedules the first event of each class.
    pub(super) fn new(
        classes: &[ClassView],
        streams: &Streams,
        engine: &mut Engine<NetEvent>,
    ) -> Self {
        let of = |class: &ClassView| {
            let Activity::Reporting(Reporting { due: ReportsDue::Events { events, .. }, .. }) =
                class.scenario.workload.activity()
            else {
                return None;
            };
            let name = match class.name.as_str() {
                "" => "workload/events".to_owned(),
                name => format!("workload/events/{name}"),
            };
            Some((events.clone(), streams.stream(&name)))
        };
        let mut all = Self(classes.iter().map(of).collect());
        // At most as many classes as nodes.
        for class in 0..classes.len() as u16 {
            if let Some(first) = all.next(Instant::ZERO, class) {
                engine.schedule(first, NetEvent::Happens(class));
            }
        }
        all
    }

    /// When the next event comes that the clients of a class report.
    pub(super) fn next(&mut self, now: Instant, class: u16) -> Option<Instant> {
        let (events, rng) = self.0.get_mut(usize::from(class))?.as_mut()?;
        Some(next_event(now, events, rng))
    }
}

fn next_event(now: Instant, events: &Events, rng: &mut ChaCha8Rng) -> Instant {
    let mean = events.interval.0;
    let interval = match events.spread {
        None => exponential(rng, mean),
        Some(share) => {
            // Checked to be from 0 to 1.
            let most = ((mean as f64 * share) as u64).min(mean);
            uniform(rng, mean - most, mean.saturating_add(most))
        }
    };
    now + Duration::from_nanos(interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::units::Time;

    #[test]
    fn intervals_between_events_are_as_far_from_the_mean_as_allowed() {
        let mean = 600_000_000_000u64;
        let mut rng = Streams::new(1, 0).stream("events");
        for spread in [0.0, 0.5, 1.0] {
            let events = Events { message: 192, interval: Time(mean), spread: Some(spread) };
            let far = (mean as f64 * spread) as u64;
            let intervals: Vec<u64> = (0..1000)
                .map(|_| next_event(Instant::ZERO, &events, &mut rng).as_nanos())
                .collect();
            assert!(intervals.iter().all(|at| (mean - far..=mean + far).contains(at)), "{spread}");
            let sum: u64 = intervals.iter().sum();
            assert!((sum / 1000).abs_diff(mean) <= far / 10, "{spread}");
        }
    }
}
