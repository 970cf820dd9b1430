//! LoRaWAN class A: half-duplex devices that may transmit a small share of the time and listen in two
//! windows after each transmission only.
//!
//! Unlike the other media this one needs no [`Air`](super::Air): every device hears the gateway, none hears
//! another device, and a transmission begins without listening first.

mod airtime;
mod cell;
mod counts;
mod settings;

pub use airtime::{Modulation, airtime};
pub use cell::{LoraCell, LoraEvent, LoraStep};
pub use counts::{LoraCounts, LoraFrames};
pub use settings::Lora;
