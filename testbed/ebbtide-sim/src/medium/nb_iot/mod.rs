//! A cell of NB-IoT: devices ask for a connection by random access, repeat what they send as often as their coverage
//! needs, and sleep when the connection is released.
//!
//! Unlike the other media this one needs no [`Air`](super::Air): the network schedules all transmissions but preambles,
//! and of preambles it matters only whether two devices have chosen the same subcarrier.

mod access;
mod cell;
mod counts;
mod settings;

pub use cell::{NbIotCell, NbIotEvent, NbIotStep, NbIotTimers};
pub use counts::{NbIotCounts, NbIotPower, NbIotTimes};
pub use settings::NbIot;
