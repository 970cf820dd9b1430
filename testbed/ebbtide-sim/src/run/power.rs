//! The power of the devices: which of them a cut befalls, and when they work again.

use super::event::NetEvent;
use crate::engine::Engine;
use crate::random::{CompactChaCha, Streams, uniform};
use crate::scenario::{ClassView, PowerCut, Scenario};
use ebbtide_core::time::Instant;
use rand_chacha::ChaCha8Rng;

/// The power cuts of a replication, and the devices that are without power.
pub(super) struct Power {
    streams: Streams,
    cuts: Vec<Cut>,
    devices: Vec<DevicePower>,
}

/// The devices that one cut befalls, each with the instant at which it works again.
struct Cut {
    devices: Vec<(u32, Instant)>,
    /// Requests of each on its return.
    requests: u32,
}

/// The power of one device.
#[derive(Copy, Clone, Debug, Default)]
struct DevicePower {
    /// The cuts that keep it without power.
    cuts: u16,
    restarts: u32,
    /// The number of its first exchange since the last restart.
    first_exchange: u32,
}

impl Power {
    /// Schedules the cuts of a scenario; `None` if it has none.
    pub(super) fn new(
        scenario: &Scenario,
        classes: &[ClassView],
        streams: &Streams,
        engine: &mut Engine<NetEvent>,
    ) -> Option<Box<Self>> {
        if scenario.power_cut.is_empty() {
            return None;
        }
        for (index, cut) in (0..).zip(&scenario.power_cut) {
            engine.schedule(Instant::from_nanos(cut.at.0), NetEvent::PowerFails(index));
        }
        Some(Box::new(Self {
            streams: *streams,
            cuts: scenario.power_cut.iter().map(|cut| Cut::new(cut, classes, streams)).collect(),
            devices: vec![DevicePower::default(); scenario.clients.count as usize],
        }))
    }

    /// Whether a device has no power.
    pub(super) fn is_off(&self, client: u32) -> bool {
        self.devices[client as usize].cuts > 0
    }

    /// Whether a device cannot make anything of a packet of this exchange: it has no power, or has forgotten the
    /// exchange.
    pub(super) fn is_deaf(&self, client: u32, exchange: u32) -> bool {
        let device = self.devices[client as usize];
        device.cuts > 0 || exchange < device.first_exchange
    }

    /// The devices that a cut befalls now, with the instants of their return.
    pub(super) fn fails(&mut self, cut: u16) -> Vec<(u32, Instant)> {
        let devices = std::mem::take(&mut self.cuts[usize::from(cut)].devices);
        for (client, _) in &devices {
            self.devices[*client as usize].cuts += 1;
        }
        devices
    }

    /// A device forgets its exchanges, whose next one has this number. Returns the randomness of its next life.
    pub(super) fn forgets(&mut self, client: u32, next_exchange: u32) -> CompactChaCha {
        let device = &mut self.devices[client as usize];
        device.first_exchange = next_exchange;
        device.restarts += 1;
        self.streams.frugal(&format!("client/{client}/restart/{}", device.restarts))
    }

    /// A cut is over for a device. The requests of its return if it works again, and no other cut holds it.
    pub(super) fn returns(&mut self, client: u32, cut: u16) -> Option<u32> {
        let device = &mut self.devices[client as usize];
        device.cuts -= 1;
        (device.cuts == 0).then(|| self.cuts[usize::from(cut)].requests)
    }
}

impl Cut {
    fn new(cut: &PowerCut, classes: &[ClassView], streams: &Streams) -> Self {
        let mut rng = streams.stream(&format!("power_cut/{}", cut.name));
        let befallen = classes.iter().filter(|class| cut.befalls(class));
        let clients: Vec<u32> = befallen.flat_map(ClassView::clients).collect();
        let back = cut.at.0.saturating_add(cut.duration.0);
        let devices = drawn(&clients, cut.share, &mut rng).into_iter().map(|client| {
            let within = uniform(&mut rng, 0, cut.return_within.0);
            (client, Instant::from_nanos(back.saturating_add(within)))
        });
        Self { devices: devices.collect(), requests: cut.requests }
    }
}

/// A share of the clients, rounded to whole ones, each equally likely (Knuth's selection sampling).
pub(super) fn drawn(clients: &[u32], share: f64, rng: &mut ChaCha8Rng) -> Vec<u32> {
    // At most a million; the cast saturates.
    let mut wanted = (clients.len() as f64 * share).round() as u64;
    let mut chosen = Vec::new();
    for (left, client) in (1..=clients.len() as u64).rev().zip(clients) {
        if uniform(rng, 0, left - 1) < wanted {
            chosen.push(*client);
            wanted -= 1;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_clients_is_drawn_exactly_and_fairly() {
        let clients: Vec<u32> = (10..20).collect();
        let mut rng = Streams::new(1, 0).stream("power");
        let mut times = [0u32; 10];
        for _ in 0..2000 {
            let chosen = drawn(&clients, 0.3, &mut rng);
            assert_eq!(chosen.len(), 3);
            chosen.iter().for_each(|client| times[*client as usize - 10] += 1);
        }
        // Binomial with mean 600 and deviation 20: five deviations.
        assert!(times.iter().all(|count| (500..=700).contains(count)), "{times:?}");
        assert_eq!(drawn(&clients, 1.0, &mut rng), clients);
    }
}
