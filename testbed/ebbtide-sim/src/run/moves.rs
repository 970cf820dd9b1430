//! Devices that move between cells: when each of them does.

use super::event::NetEvent;
use super::power::drawn;
use crate::engine::Engine;
use crate::random::{Streams, uniform};
use crate::scenario::{ClassView, Scenario};
use ebbtide_core::time::{Duration, Instant};

/// The moves of a replication: for each, its devices with their instants.
pub(super) struct Moves(Vec<Vec<(u32, Instant)>>);

impl Moves {
    /// Schedules the beginning of each move.
    pub(super) fn new(
        scenario: &Scenario,
        classes: &[ClassView],
        streams: &Streams,
        engine: &mut Engine<NetEvent>,
    ) -> Self {
        let mut all = Vec::new();
        for (number, moved) in (0..).zip(&scenario.device_move) {
            let begins = Instant::from_nanos(moved.at.0);
            engine.schedule(begins, NetEvent::MoveBegins(number));
            let mut rng = streams.stream(&format!("device_move/{}", moved.name));
            let own = classes.iter().filter(|class| moved.befalls(class));
            let clients: Vec<u32> = own.flat_map(ClassView::clients).collect();
            let devices = drawn(&clients, moved.share, &mut rng).into_iter().map(|client| {
                let within = uniform(&mut rng, 0, moved.within.0);
                (client, begins + Duration::from_nanos(within))
            });
            all.push(devices.collect());
        }
        Self(all)
    }

    /// The devices of a move that begins.
    pub(super) fn begins(&mut self, number: u16) -> Vec<(u32, Instant)> {
        self.0.get_mut(usize::from(number)).map(std::mem::take).unwrap_or_default()
    }
}
