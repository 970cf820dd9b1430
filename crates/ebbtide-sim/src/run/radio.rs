//! The radio next to the bottleneck, if there is one, and what the network does with it.

use super::low_power::LowPower;
use super::network::{Net, NetEvent};
use super::topology::BOTTLENECK;
use super::wifi::{Cell, Crossed};
use crate::engine::Engine;
use crate::medium::ieee802154::LowPowerEvent;
use crate::medium::lora::{Crossing, LoraCell, LoraCounts};
use crate::medium::{ieee80211, lora};
use crate::net::Fate;
use crate::random::Streams;
use crate::record::{Details, Recorder, WifiRecord};
use crate::scenario::{ClassView, Scenario};
use ebbtide_core::time::Instant;

/// A cell or a network that all clients' packets cross.
pub(super) enum Radio {
    Wifi(Box<Cell>),
    Lora(Box<LoraCell>),
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
        let network = &scenario.network;
        if let Some(mesh) = &network.mesh {
            return Some(Self::Mesh(Box::new(LowPower::new(scenario, mesh, classes, streams))));
        }
        let wifi = || network.wifi.as_ref().map(|wifi| Cell::new(wifi, stations, streams));
        let lora = || network.lora.as_ref().map(|lora| LoraCell::new(lora, stations, streams));
        wifi().map(Box::new).map(Self::Wifi).or_else(|| lora().map(Box::new).map(Self::Lora))
    }

    /// Its name in a trace.
    const fn name(&self) -> &'static str {
        match self {
            Self::Wifi(_) => "wifi",
            Self::Lora(_) => "lora",
            Self::Mesh(_) => "mesh",
        }
    }

    fn send(
        &mut self,
        now: Instant,
        client: u32,
        upwards: bool,
        place: u32,
        bytes: u32,
        engine: &mut Engine<NetEvent>,
    ) -> bool {
        match self {
            Self::Wifi(cell) => cell.send(now, client, upwards, place, bytes, engine),
            Self::Lora(cell) => cell.send(now, client, upwards, place, bytes, engine),
            // Its packets enter it at any node.
            Self::Mesh(_) => false,
        }
    }

    fn poll(&mut self, now: Instant, engine: &mut Engine<NetEvent>) -> Option<Crossed> {
        match self {
            Self::Wifi(cell) => cell.poll(now, engine),
            Self::Lora(cell) => cell.poll().map(|crossing| match crossing {
                Crossing::Up(place) => Crossed::Up(place),
                Crossing::Down(place) => Crossed::Down(place),
                Crossing::Lost { token, upwards } => Crossed::Lost { place: token, upwards },
            }),
            Self::Mesh(_) => None,
        }
    }

    /// How many packets wait at a client, or for it on the other side.
    fn waiting(&self, client: u32, upwards: bool) -> usize {
        match self {
            Self::Wifi(cell) => cell.waiting(client, upwards),
            Self::Lora(cell) => cell.waiting(client, upwards),
            Self::Mesh(_) => 0,
        }
    }

    /// Returns the measurements of a Wi-Fi cell.
    pub(super) fn wifi_record(&self) -> Option<WifiRecord> {
        match self {
            Self::Wifi(cell) => Some(cell.record()),
            Self::Lora(_) | Self::Mesh(_) => None,
        }
    }

    /// Returns the frames of a LoRaWAN cell.
    pub(super) fn lora_counts(&self) -> Option<LoraCounts> {
        match self {
            Self::Lora(cell) => Some(cell.counts()),
            Self::Wifi(_) | Self::Mesh(_) => None,
        }
    }

    /// The low-power network, if it is one.
    pub(super) fn low_power(&mut self) -> Option<&mut LowPower> {
        match self {
            Self::Mesh(mesh) => Some(mesh),
            Self::Wifi(_) | Self::Lora(_) => None,
        }
    }
}

impl Net {
    /// A packet joins those that wait to go on the air.
    pub(super) fn enter_radio<R: Recorder>(
        &mut self,
        now: Instant,
        (place, upwards): (u32, bool),
        engine: &mut Engine<NetEvent>,
        recorder: &mut R,
    ) {
        if self.has_mesh {
            return self.enter_mesh(now, (place, upwards), engine);
        }
        let (packet, _) = self.pool.get(place);
        let bytes = self.wire_length(packet.transport, packet.length.into());
        let Some(radio) = &mut self.radio else { return };
        if !radio.send(now, packet.client, upwards, place, bytes, engine) {
            self.leaves_radio(now, (place, upwards), Fate::Dropped, recorder);
        }
    }

    /// Something happens at the radio. [`Self::crossed`] says what came of it.
    pub(super) fn at_radio<R: Recorder>(
        &mut self,
        now: Instant,
        event: NetEvent,
        engine: &mut Engine<NetEvent>,
        recorder: &mut R,
    ) {
        if let NetEvent::LowPower { step, station } = event {
            self.note_frame(now, LowPowerEvent { step, station }, recorder);
        }
        match (&mut self.radio, event) {
            (Some(Radio::Wifi(cell)), NetEvent::Wifi { step, station }) => {
                cell.handle(now, ieee80211::WifiEvent { step, station }, engine);
            }
            (Some(Radio::Lora(cell)), NetEvent::Lora { step, device }) => {
                cell.handle(now, lora::LoraEvent { step, device }, engine);
            }
            (Some(Radio::Mesh(mesh)), NetEvent::LowPower { step, station }) => {
                mesh.handle(now, LowPowerEvent { step, station }, engine);
            }
            _ => {}
        }
    }

    /// The next packet that has crossed the air to its host, and whether that is a server. Those that go on
    /// go onto the link.
    pub(super) fn crossed<R: Recorder>(
        &mut self,
        now: Instant,
        engine: &mut Engine<NetEvent>,
        recorder: &mut R,
    ) -> Option<(u32, bool)> {
        if self.has_mesh {
            return self.crossed_mesh(now, engine, recorder);
        }
        loop {
            let arrived = Fate::Delivered { at: now };
            match self.radio.as_mut()?.poll(now, engine)? {
                Crossed::Up(place) => {
                    self.leaves_radio(now, (place, true), arrived, recorder);
                    let (packet, _) = self.pool.get(place);
                    let link = self.next(packet.client, None, true).unwrap_or(BOTTLENECK);
                    self.onto_link(now, (place, link, true), engine, recorder);
                }
                Crossed::Down(place) => {
                    self.leaves_radio(now, (place, false), arrived, recorder);
                    return Some((place, false));
                }
                Crossed::Lost { place, upwards } => {
                    self.leaves_radio(now, (place, upwards), Fate::Lost { left: now }, recorder);
                }
            }
        }
    }

    /// Tells the observer what became of a packet at the radio; a place that is lost is free.
    fn leaves_radio<R: Recorder>(
        &mut self,
        now: Instant,
        (place, upwards): (u32, bool),
        fate: Fate,
        recorder: &mut R,
    ) {
        let Some(radio) = &self.radio else { return };
        let (packet, datagram) = self.pool.get(place);
        let queued = radio.waiting(packet.client, upwards) as u64;
        let details = Details { queued, fate, ..packet.details(datagram, upwards, now) };
        recorder.crossed(now, radio.name(), &details);
        if !matches!(fate, Fate::Delivered { .. }) {
            self.pool.release(place);
        }
    }
}
