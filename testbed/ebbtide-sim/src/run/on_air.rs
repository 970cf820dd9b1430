//! Packets that enter, cross and leave the radio.

use super::event::{Moment, NetEvent};
use super::network::Net;
use super::radio::Radio;
use super::topology::{BOTTLENECK, DirectedLink};
use crate::medium::low_power::LowPowerEvent;
use crate::medium::{Crossing, DeviceEvent, wifi};
use crate::net::{Direction, Fate};
use crate::record::{Details, Recorder};

impl Net {
    /// A packet joins those that wait to go on the air.
    pub(super) fn enter_radio<R: Recorder>(
        &mut self,
        place: u32,
        direction: Direction,
        moment: &mut Moment<'_, R>,
    ) {
        if self.has_mesh {
            return self.enter_mesh(place, direction, moment);
        }
        let (packet, _) = self.pool.get(place);
        let bytes = self.wire_length(packet.transport, packet.length.into());
        let Some(radio) = &mut self.radio else { return };
        if !radio.send(moment.now, packet.client, direction, place, bytes, moment.engine) {
            self.leaves_radio(place, direction, Fate::Dropped, moment);
        }
    }

    /// Something happens at the radio. [`Self::crossed`] says what came of it.
    pub(super) fn at_radio<R: Recorder>(&mut self, event: NetEvent, moment: &mut Moment<'_, R>) {
        if let NetEvent::LowPower { step, station } = event {
            self.note_frame(LowPowerEvent { step, station }, moment);
        }
        let (now, engine) = (moment.now, &mut *moment.engine);
        match (&mut self.radio, event) {
            (Some(Radio::Wifi(cell)), NetEvent::Wifi { step, station }) => {
                cell.handle(now, wifi::WifiEvent { step, station }, engine);
            }
            (Some(Radio::Lora(cell)), NetEvent::Lora { step, device }) => {
                cell.handle(now, DeviceEvent { step, device }, engine);
            }
            (Some(Radio::NbIot(cell)), NetEvent::NbIot { step, device }) => {
                cell.handle(now, DeviceEvent { step, device }, engine);
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
        moment: &mut Moment<'_, R>,
    ) -> Option<(u32, Direction)> {
        if self.has_mesh {
            return self.crossed_mesh(moment);
        }
        let now = moment.now;
        loop {
            let arrived = Fate::Delivered { at: now };
            match self.radio.as_mut()?.poll(now, moment.engine)? {
                Crossing::Up(place) => {
                    self.leaves_radio(place, Direction::Up, arrived, moment);
                    let (packet, _) = self.pool.get(place);
                    let link = self.next(packet.client, None, Direction::Up).unwrap_or(BOTTLENECK);
                    self.onto_link(place, DirectedLink { link, direction: Direction::Up }, moment);
                }
                Crossing::Down(place) => {
                    self.leaves_radio(place, Direction::Down, arrived, moment);
                    return Some((place, Direction::Down));
                }
                Crossing::Lost { token: place, direction } => {
                    self.leaves_radio(place, direction, Fate::Lost { left: now }, moment);
                }
            }
        }
    }

    /// Tells the observer what became of a packet at the radio; a place that is lost is free.
    fn leaves_radio<R: Recorder>(
        &mut self,
        place: u32,
        direction: Direction,
        fate: Fate,
        moment: &mut Moment<'_, R>,
    ) {
        let now = moment.now;
        let Some(radio) = &self.radio else { return };
        let (packet, datagram) = self.pool.get(place);
        let queued = radio.waiting(packet.client, direction) as u64;
        let details = Details { queued, fate, ..packet.details(datagram, direction, now) };
        moment.recorder.crossed(now, radio.name(), &details);
        if !matches!(fate, Fate::Delivered { .. }) {
            self.pool.release(place);
        }
    }
}
