//! Models of networks. They compute the fates of packets from instants and lengths, and depend on
//! neither the engine nor CoAP, so the emulator drives the same models with the wall clock.

mod delay;
mod link;
mod loss;
mod path;
mod targeted_loss;

pub use delay::Delay;
pub use link::{Fate, Link, LinkCounts, Serialiser};
pub use loss::{Loss, LossModel};
pub use path::Path;
pub use targeted_loss::TargetedLoss;
