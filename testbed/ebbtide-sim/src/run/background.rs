//! TCP in the background of a replication: its flows count on where the clients' numbers end.

use super::client_timer::due;
use super::event::{Moment, NetEvent};
use super::network::Net;
use crate::engine::Engine;
use crate::host::{Bulk, OutgoingPacket, Side, starts};
use crate::net::Direction;
use crate::random::Streams;
use crate::record::BackgroundFlow;
use crate::record::Recorder;
use crate::scenario::{Control, Scenario, TCP, Tcp};

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
    pub(super) fn new(
        scenario: &Scenario,
        streams: &Streams,
        engine: &mut Engine<NetEvent>,
    ) -> Self {
        let first = scenario.clients.count;
        let background = &scenario.network.background;
        // They begin in the order of their numbers.
        for index in 0..background.flows {
            engine.schedule(starts(background, index), NetEvent::Act(first + index));
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

    /// The end of a flow at which packets of a direction arrive.
    fn side(&self, at: Direction) -> Side {
        let is_receiver = self.scenario.network.background.direction == at;
        if is_receiver { Side::Receiver } else { Side::Sender }
    }

    /// Something happens. Whether it was theirs.
    #[inline]
    pub(super) fn handle<R: Recorder>(
        &mut self,
        event: NetEvent,
        net: &mut Net,
        moment: &mut Moment<'_, R>,
    ) -> bool {
        // Whose packet it is need not be looked up where there are none.
        self.scenario.network.background.flows > 0 && self.take(event, net, moment)
    }

    fn take<R: Recorder>(
        &mut self,
        event: NetEvent,
        net: &mut Net,
        moment: &mut Moment<'_, R>,
    ) -> bool {
        let now = moment.now;
        let (number, side) = match event {
            NetEvent::Act(number) | NetEvent::Timer(number) => (number, Side::Sender),
            NetEvent::ServerTimer(number) => (number, Side::Receiver),
            NetEvent::AtServer(place) => (net.pool.get(place).0.client, self.side(Direction::Up)),
            NetEvent::AtClient(place) => (net.pool.get(place).0.client, self.side(Direction::Down)),
            _ => return false,
        };
        let Some(index) = number.checked_sub(self.first) else { return false };
        if let NetEvent::AtServer(place) | NetEvent::AtClient(place) = event {
            let direction = match event {
                NetEvent::AtServer(_) => Direction::Up,
                _ => Direction::Down,
            };
            let (packet, bytes) = net.pool.get(place);
            moment.recorder.arrived(now, &packet.details(bytes, direction, now));
            self.packet.clear();
            self.packet.extend_from_slice(bytes);
            net.pool.release(place);
        }
        if self.is_over {
            return true;
        }
        if let NetEvent::Act(_) = event {
            let (scenario, streams) = (&self.scenario, &self.streams);
            self.flows.push(Bulk::new(now, index, number, self.tcp, scenario, streams));
        }
        let is_at_server = side == self.side(Direction::Up);
        let Some(flow) = self.flows.get_mut(index as usize) else { return true };
        match event {
            NetEvent::AtServer(_) | NetEvent::AtClient(_) => flow.receive(now, side, &self.packet),
            NetEvent::Timer(_) | NetEvent::ServerTimer(_) => {
                // Only the timer event that was scheduled last counts: others are left over.
                if *flow.timer(side) != Some(now) {
                    return true;
                }
                *flow.timer(side) = None;
            }
            _ => {}
        }
        let timeout = flow.drain(now, side, |packet, tag| {
            let packet = OutgoingPacket { client: number, datagram: packet, tag };
            match is_at_server {
                false => net.client_sends(packet, moment),
                true => net.server_sends(packet, moment),
            }
        });
        if let Some(at) = due(timeout, flow.timer(side), now) {
            let event = match side {
                Side::Sender => NetEvent::Timer(number),
                Side::Receiver => NetEvent::ServerTimer(number),
            };
            moment.engine.schedule(at, event);
        }
        true
    }
}
