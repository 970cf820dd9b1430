//! The radio next to the bottleneck, if there is one.

use super::event::NetEvent;
use super::low_power::LowPower;
use crate::engine::Engine;
use crate::medium::Crossing;
use crate::medium::lora::{LoraCell, LoraCounts};
use crate::medium::nb_iot::{NbIotCell, NbIotCounts};
use crate::medium::wifi::WifiCell;
use crate::net::Direction;
use crate::random::Streams;
use crate::record::WifiRecord;
use crate::scenario::{ClassView, NetworkKind, Scenario};
use ebbtide_core::time::Instant;

/// A cell or a network that all clients' packets cross.
pub(super) enum Radio {
    Wifi(Box<WifiCell>),
    Lora(Box<LoraCell>),
    NbIot(Box<NbIotCell>),
    Mesh(Box<LowPower>),
}

impl Radio {
    /// The radio of a scenario, with so many stations.
    pub(super) fn new(
        scenario: &Scenario,
        classes: &[ClassView],
        stations: u32,
        streams: &Streams,
    ) -> Option<Self> {
        Some(match &scenario.network.kind {
            NetworkKind::Wired => return None,
            NetworkKind::Wifi(wifi) => Self::Wifi(Box::new(WifiCell::new(wifi, stations, streams))),
            NetworkKind::Lora(lora) => Self::Lora(Box::new(LoraCell::new(lora, stations, streams))),
            NetworkKind::NbIot(cell) => {
                Self::NbIot(Box::new(NbIotCell::new(cell, stations, streams)))
            }
            NetworkKind::Mesh(mesh) => {
                Self::Mesh(Box::new(LowPower::new(scenario, mesh, classes, streams)))
            }
        })
    }

    /// Its name in a trace.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Wifi(_) => "wifi",
            Self::Lora(_) => "lora",
            Self::NbIot(_) => "nb-iot",
            Self::Mesh(_) => "mesh",
        }
    }

    /// A packet joins those that wait to go on the air; `false` if there is no room for it.
    pub(super) fn send(
        &mut self,
        now: Instant,
        client: u32,
        direction: Direction,
        place: u32,
        bytes: u32,
        engine: &mut Engine<NetEvent>,
    ) -> bool {
        match self {
            Self::Wifi(cell) => cell.send(now, client, direction, place, bytes, engine),
            Self::Lora(cell) => cell.send(now, client, direction, place, bytes, engine),
            Self::NbIot(cell) => cell.send(now, client, direction, place, bytes, engine),
            // Its packets enter it at any node.
            Self::Mesh(_) => false,
        }
    }

    /// The next packet that has crossed the air.
    pub(super) fn poll(&mut self, now: Instant, engine: &mut Engine<NetEvent>) -> Option<Crossing> {
        match self {
            Self::Wifi(cell) => cell.poll(now, engine),
            Self::Lora(cell) => cell.poll(),
            Self::NbIot(cell) => cell.poll(),
            Self::Mesh(_) => None,
        }
    }

    /// How many packets wait at a client, or for it on the other side.
    pub(super) fn waiting(&self, client: u32, direction: Direction) -> usize {
        match self {
            Self::Wifi(cell) => cell.waiting(client, direction),
            Self::Lora(cell) => cell.waiting(client, direction),
            Self::NbIot(cell) => cell.waiting(client, direction),
            Self::Mesh(_) => 0,
        }
    }

    /// Returns the measurements of a Wi-Fi cell.
    pub(super) fn wifi_record(&self) -> Option<WifiRecord> {
        match self {
            Self::Wifi(cell) => Some(cell.record()),
            Self::Lora(_) | Self::NbIot(_) | Self::Mesh(_) => None,
        }
    }

    /// Returns the frames of a LoRaWAN cell.
    pub(super) fn lora_counts(&self) -> Option<LoraCounts> {
        match self {
            Self::Lora(cell) => Some(cell.counts()),
            Self::Wifi(_) | Self::NbIot(_) | Self::Mesh(_) => None,
        }
    }

    /// Returns the counts of a cell of NB-IoT until this instant, ns.
    pub(super) fn nb_iot_counts(&self, now_ns: u64) -> Option<NbIotCounts> {
        match self {
            Self::NbIot(cell) => Some(cell.counts(Instant::from_nanos(now_ns))),
            Self::Wifi(_) | Self::Lora(_) | Self::Mesh(_) => None,
        }
    }

    /// The low-power network, if it is one.
    pub(super) fn low_power(&mut self) -> Option<&mut LowPower> {
        match self {
            Self::Mesh(mesh) => Some(mesh),
            Self::Wifi(_) | Self::Lora(_) | Self::NbIot(_) => None,
        }
    }
}
