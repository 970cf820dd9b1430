//! Shared media: nodes that hear each other, collide, and repeat what was not acknowledged.
//!
//! [`Air`] knows who hears whom and which transmissions spoil which; it knows no protocol. A MAC
//! ([`ieee802154::Mac`], [`ieee80211::Mac`]) decides when its stations transmit, over an `Air`. Like
//! an endpoint, a MAC is driven: [`send`](ieee802154::Mac::send) and `handle` go in, its timers go
//! into the driver's engine, and `poll` hands out [`Indication`]s until there are none. Another medium
//! is another MAC over the same `Air`, with the same frames, indications and counts.

mod air;
mod counts;
mod energy;
pub mod ieee80211;
pub mod ieee802154;

pub use air::{Air, Fading, Path, Reception};
pub use counts::FrameCounts;
pub use energy::{Energy, RadioTime};

use crate::engine::Engine;
use ebbtide_core::time::{Duration, Instant};

/// A frame that a station hands to its MAC.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The station that sends it.
    pub from: u32,
    /// The neighbour that it is for.
    pub to: u32,
    /// Its length in bytes, MAC header and checksum included, without preamble.
    pub bytes: u32,
    /// The name that the sender's upper layer gave it; returned in every [`Indication`].
    pub token: u32,
    /// Whether another frame for the same neighbour follows at once: it then stays awake.
    pub more: bool,
    /// Whether it is to be acknowledged, and so repeated.
    pub confirmed: bool,
}

/// An indication of a MAC to the layer above.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Indication {
    /// A frame has arrived at its neighbour, for the first time.
    Arrived(Frame),
    /// A station is done with its frame and takes the next one.
    Done(Frame, Outcome),
}

/// How a frame ended for its sender.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The neighbour acknowledged it, or it was sent without asking for that.
    Sent,
    /// No acknowledgement after all retries. It may have arrived all the same.
    NoAck,
    /// The channel was found busy too often.
    ChannelAccessFailure,
}

/// A timer of a MAC runs out `after` so many nanoseconds.
fn schedule<E: Copy, V: Into<E>>(engine: &mut Engine<E>, now: Instant, after: u64, event: V) {
    engine.schedule(now + Duration::from_nanos(after), event.into());
}
