//! LoRaWAN class A: half-duplex devices that may transmit a small share of the time and listen in two
//! windows after each transmission only.
//!
//! Unlike the other media this one needs no [`Air`](super::Air): no device hears another one, and a transmission begins
//! without listening first.

mod adr;
mod airtime;
mod cell;
mod counts;
mod reception;
mod settings;
mod signal;

pub use adr::LinkParameters;
pub use airtime::{Modulation, airtime};
pub use cell::{LoraCell, LoraEvent, LoraStep, LoraTimers};
pub use counts::{LoraCounts, LoraFrames};
pub use settings::Lora;
pub use signal::required_snr;
