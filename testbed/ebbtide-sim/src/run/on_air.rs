//! Packets that enter, cross and leave the radio.

use super::event::NetEvent;
use super::network::Net;
use super::radio::Radio;
use super::topology::BOTTLENECK;
use super::wifi::Crossed;
use crate::engine::Engine;
use crate::medium::ieee802154::LowPowerEvent;
use crate::medium::{ieee80211, lora};
use crate::net::Fate;
use crate::record::{Details, Recorder};
use ebbtide_core::time::Instant;

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
