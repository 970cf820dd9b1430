//! Shared media: nodes that hear each other, collide, and retransmit unacknowledged frames.
//!
//! [`Air`] knows which nodes hear each other and which transmissions interfere, independently of
//! any protocol. A MAC ([`low_power::Mac`], [`wifi::Mac`]) decides when its stations
//! transmit over an `Air`. Like an endpoint, a MAC has a driver: the driver calls
//! [`send`](low_power::Mac::send) and `handle`, keeps the MAC's timers in its engine, and fetches
//! [`Indication`]s with `poll` until there are none. Another medium is another MAC over the same
//! `Air`, with the same frames, indications and counts.

mod air;
mod counts;
mod energy;
pub mod lora;
pub mod low_power;
pub mod nb_iot;
pub mod wifi;

pub use air::{Air, AirPath, Fading, Reception};
pub use counts::FrameCounts;
pub use energy::{Energy, RadioTime};

use crate::engine::Engine;
use crate::net::Direction;
use ebbtide_core::time::{Duration, Instant};

/// A frame that a station hands to its MAC.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct MacFrame {
    /// The station that sends it.
    pub from: u32,
    /// The neighbour to which it is sent.
    pub to: u32,
    /// Its length in bytes, MAC header and checksum included, without preamble.
    pub bytes: u32,
    /// The identifier that the sender's upper layer gave it, returned in every [`Indication`].
    pub token: u32,
    /// Whether another frame for the same neighbour follows at once, so that the neighbour stays
    /// awake.
    pub more: bool,
    /// Whether it requests an acknowledgement and is retransmitted without one.
    pub confirmed: bool,
}

/// An indication of a MAC to the layer above.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Indication {
    /// A frame has arrived at its neighbour, for the first time.
    Arrived(MacFrame),
    /// A station has finished with its frame and accepts the next one.
    Done(MacFrame, FrameOutcome),
}

/// The fate of a frame at its sender.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FrameOutcome {
    /// The neighbour acknowledged it, or it was sent without requesting an acknowledgement.
    Sent,
    /// No acknowledgement after all retransmissions. It may have arrived all the same.
    NoAck,
    /// The channel was found busy too often.
    ChannelAccessFailure,
}

/// The outcome of a packet that was to cross a cell, with the token of its sender.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// It is at the gateway or access point, on its way to the server.
    Up(u32),
    /// It is at its client.
    Down(u32),
    /// It was given up or could not be read.
    Lost {
        /// Its token.
        token: u32,
        /// Its direction.
        direction: Direction,
    },
}

/// An event of a cell: a step of one of its devices.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DeviceEvent<S> {
    /// The step.
    pub step: S,
    /// The device to which it happens.
    pub device: u32,
}

/// The timers of a medium, which its driver keeps.
pub trait Timers<V> {
    /// `event` is due at this instant.
    fn schedule(&mut self, at: Instant, event: V);
}

impl<V, E: From<V> + Copy> Timers<V> for Engine<E> {
    fn schedule(&mut self, at: Instant, event: V) {
        Self::schedule(self, at, event.into());
    }
}

/// A step of a device as an event.
const fn at_device<S: Copy>(step: S, device: u32) -> DeviceEvent<S> {
    DeviceEvent { step, device }
}

/// Schedules a timer of a MAC, `after` this many nanoseconds.
fn schedule<V>(timers: &mut dyn Timers<V>, now: Instant, after: u64, event: V) {
    timers.schedule(now + Duration::from_nanos(after), event);
}
