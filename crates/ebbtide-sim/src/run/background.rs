//! TCP in the background of a replication: its flows count on where the clients' numbers end.

use super::network::{Event, Net};
use super::recorder::Recorder;
use super::simulation::due;
use crate::engine::Engine;
use crate::host::{Bulk, Side, starts};
use crate::random::Streams;
use crate::record::BackgroundFlow;
use crate::scenario::{Control, Scenario, TCP, Tcp};
use ebbtide_core::time::Instant;

/// The flows.
pub(super) struct Flows {
    /// The number of the first.
    first: u32,
    /// Those that have begun, in order.
    flows: Vec<Bulk>,
    scenario: Scenario,
    tcp: Tcp,
    streams: Streams,
    /// Whether the clients are done, and so are they.
    is_over: bool,
    /// A packet that arrives; reused.
    packet: Vec<u8>,
}

impl Flows {
    pub(super) fn new(scenario: &Scenario, streams: &Streams, engine: &mut Engine<Event>) -> Self {
        let first = scenario.clients.count;
        let background = &scenario.network.background;
        // They begin in the order of their numbers.
        for index in 0..background.flows {
            engine.schedule(starts(background, index), Event::Act(first + index));
        }
        // Checked to be one; without flows it does not matter.
        let tcp = match scenario.control_config(TCP) {
            Ok(Control::Tcp(tcp)) => tcp,
            _ => Tcp::default(),
        };
        Self {
            first,
            flows: Vec::new(),
            scenario: scenario.clone(),
            tcp,
            streams: *streams,
            is_over: false,
            packet: Vec::new(),
        }
    }

    /// The clients are done: what is under way counts no more.
    pub(super) const fn end(&mut self) {
        self.is_over = true;
    }

    /// Returns the measurements of each flow.
    pub(super) fn records(&self) -> Vec<BackgroundFlow> {
        self.flows.iter().map(Bulk::record).collect()
    }

    /// Something happens. Whether it was theirs.
    pub(super) fn handle<R: Recorder>(
        &mut self,
        now: Instant,
        event: Event,
        (net, engine, recorder): (&mut Net, &mut Engine<Event>, &mut R),
    ) -> bool {
        let (number, side) = match event {
            Event::Act(number) | Event::Timer(number) => (number, Side::Sender),
            Event::ServerTimer(number) => (number, Side::Receiver),
            Event::AtServer(place) => (net.pool.get(place).0.client, Side::Receiver),
            Event::AtClient(place) => (net.pool.get(place).0.client, Side::Sender),
            _ => return false,
        };
        let Some(index) = number.checked_sub(self.first) else { return false };
        if let Event::AtServer(place) | Event::AtClient(place) = event {
            let upwards = side == Side::Receiver;
            let (packet, bytes) = net.pool.get(place);
            recorder.arrived(now, &packet.details(bytes, upwards, now));
            self.packet.clear();
            self.packet.extend_from_slice(bytes);
            net.pool.release(place);
        }
        if self.is_over {
            return true;
        }
        if let Event::Act(_) = event {
            let flow = (index, number);
            self.flows.push(Bulk::new(now, flow, self.tcp, &self.scenario, &self.streams));
        }
        let Some(flow) = self.flows.get_mut(index as usize) else { return true };
        match event {
            Event::AtServer(_) | Event::AtClient(_) => flow.receive(now, side, &self.packet),
            Event::Timer(_) | Event::ServerTimer(_) => {
                // Only the timer event that was scheduled last counts: others are left over.
                if *flow.timer(side) != Some(now) {
                    return true;
                }
                *flow.timer(side) = None;
            }
            _ => {}
        }
        let timeout = flow.drain(now, side, |packet, tag| {
            let sent = (number, packet, tag);
            match side {
                Side::Sender => net.client_sends(now, sent, engine, recorder),
                Side::Receiver => net.server_sends(now, sent, engine, recorder),
            }
        });
        if let Some(at) = due(timeout, flow.timer(side), now) {
            let event = match side {
                Side::Sender => Event::Timer(number),
                Side::Receiver => Event::ServerTimer(number),
            };
            engine.schedule(at, event);
        }
        true
    }
}
