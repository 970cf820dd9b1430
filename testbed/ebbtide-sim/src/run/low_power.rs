//! A low-power network between the clients and the bottleneck, or between that and the servers.

use super::event::NetEvent;
use super::placement::Placement;
use crate::engine::Engine;
use crate::medium::low_power::{Cause, LowPowerEvent, MeshNetwork};
use crate::net::Direction;
use crate::random::Streams;
use crate::record::{Causes, DirectionCounts, MeshRecord};
use crate::scenario::{ClassView, Mesh, Scenario};
use ebbtide_core::time::Instant;
use std::collections::VecDeque;

/// The network, the places of the hosts, and what became of their datagrams from end to end.
pub(super) struct LowPower {
    pub(super) network: MeshNetwork,
    pub(super) placement: Placement,
    /// Datagrams to the servers and back.
    pub(super) up: DirectionCounts,
    pub(super) down: DirectionCounts,
    /// Requests for which a mote had no room.
    pub(super) host_busy: u64,
    /// Whose datagrams were lost, and why.
    pub(super) losses: VecDeque<(u32, Cause)>,
}

impl LowPower {
    pub(super) fn new(
        scenario: &Scenario,
        mesh: &Mesh,
        classes: &[ClassView],
        streams: &Streams,
    ) -> Self {
        let network =
            MeshNetwork::new(mesh, scenario.loss_model(), scenario.average_loss(), streams);
        Self {
            placement: Placement::new(scenario, classes, &network, streams),
            network,
            up: DirectionCounts::default(),
            down: DirectionCounts::default(),
            host_busy: 0,
            losses: VecDeque::new(),
        }
    }

    pub(super) fn counts(&mut self, direction: Direction) -> &mut DirectionCounts {
        direction.select(&mut self.up, &mut self.down)
    }

    /// Something happens on the air.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        event: LowPowerEvent,
        engine: &mut Engine<NetEvent>,
    ) {
        self.network.handle(now, event, engine);
    }

    /// The measurements of the network at `now`; those of its clients are still to be added.
    pub(super) fn record(&self, now: Instant) -> MeshRecord {
        MeshRecord {
            nodes: self.network.records(now),
            client_nodes: self.placement.of_clients(),
            datagrams: self.network.set_out,
            arrived: self.network.arrived,
            lost: Causes { host: self.host_busy, ..self.network.lost },
            measured_ns: now.as_nanos(),
            ..MeshRecord::default()
        }
    }
}
