//! The events of a replication, and the lanes of those that come in order.

use crate::engine::Engine;
use crate::medium::{lora, low_power, nb_iot, wifi};
use crate::net::Direction;
use ebbtide_core::time::Instant;

/// The instant of the event that is being handled, with what every part of the network needs to handle it.
pub(super) struct Moment<'m, R> {
    pub(super) now: Instant,
    pub(super) engine: &'m mut Engine<NetEvent>,
    pub(super) recorder: &'m mut R,
}

/// Something that happens at an instant.
#[derive(Copy, Clone, Debug)]
pub(super) enum NetEvent {
    /// A client's application acts: makes its first or next requests.
    Act(u32),
    /// A client's timer may be due.
    Timer(u32),
    /// A timer of the server's ends of a client's connections may be due.
    ServerTimer(u32),
    /// A packet arrives at the server.
    AtServer(u32),
    /// A packet arrives at the router before the link to the clients.
    AtDownLink(u32),
    /// A packet arrives at the radio: at the access point of a Wi-Fi cell, at the gateway of LoRaWAN, at the base
    /// station of NB-IoT, or at the root of a low-power network.
    AtAccessPoint(u32),
    /// A packet arrives at its client.
    AtClient(u32),
    /// A packet arrives at a link other than the bottleneck.
    AtLink {
        /// Its place.
        place: u32,
        /// The number of the link.
        link: u16,
        /// Its direction.
        direction: Direction,
    },
    /// A link may be free for what waits.
    LinkFree {
        /// The number of the link.
        link: u16,
        /// The direction.
        direction: Direction,
    },
    /// A source of cross traffic is due.
    Cross(u16),
    /// A timer of the server's DTLS sessions may be due.
    SessionTimer,
    /// Something happens in the Wi-Fi cell.
    Wifi {
        /// The step of the DCF.
        step: wifi::WifiStep,
        /// The station.
        station: u32,
    },
    /// Something happens in the LoRaWAN cell.
    Lora {
        /// The step of an uplink or of a window.
        step: lora::LoraStep,
        /// The device.
        device: u32,
    },
    /// Something happens in the cell of NB-IoT.
    NbIot {
        /// The step of a device.
        step: nb_iot::NbIotStep,
        /// The device.
        device: u32,
    },
    /// Something happens on the air of a low-power network.
    LowPower {
        /// The step of CSMA/CA or of the duty cycle.
        step: low_power::LowPowerStep,
        /// The node that sends the frame.
        station: u32,
    },
    /// A server on a node of it has processed the request in this packet.
    Processed(u32),
    /// Something happens that all clients of this class report.
    Happens(u16),
    /// Devices lose power: the number of the cut.
    PowerFails(u16),
    /// A device's power is back.
    PowerReturns {
        /// The device.
        client: u32,
        /// The number of the cut that is over for it.
        cut: u16,
    },
    /// Devices begin to move to another cell: the number of the move.
    MoveBegins(u16),
    /// A device is in the cell to which it moves.
    Moves {
        /// The device.
        client: u32,
        /// The number of the move.
        number: u16,
    },
}

/// Each packet under way has one.
const _: () = assert!(size_of::<NetEvent>() <= 8, "an event has grown");

impl From<wifi::WifiEvent> for NetEvent {
    fn from(event: wifi::WifiEvent) -> Self {
        Self::Wifi { step: event.step, station: event.station }
    }
}

impl From<lora::LoraEvent> for NetEvent {
    fn from(event: lora::LoraEvent) -> Self {
        Self::Lora { step: event.step, device: event.device }
    }
}

impl From<nb_iot::NbIotEvent> for NetEvent {
    fn from(event: nb_iot::NbIotEvent) -> Self {
        Self::NbIot { step: event.step, device: event.device }
    }
}

impl From<low_power::LowPowerEvent> for NetEvent {
    fn from(event: low_power::LowPowerEvent) -> Self {
        Self::LowPower { step: event.step, station: event.station }
    }
}

/// Deliveries behind the link to the clients are in the order of the queue.
pub(super) const DOWN_LANE: u32 = 0;
/// And so are those behind the link to the server, unless the further way reorders them.
pub(super) const UP_LANE: u32 = 1;
/// Answers on their way from the server to the router.
pub(super) const ROUTER_LANE: u32 = 2;
pub(super) const LANES: u32 = 3;
