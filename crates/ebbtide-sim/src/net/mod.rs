//! Models of networks. They compute fates from instants and lengths, and know neither the engine
//! nor CoAP: the emulator drives the same models with the wall clock.

mod aimed;
mod delay;
mod link;
mod loss;
mod way;

pub use aimed::Aim;
pub use delay::Delay;
pub use link::{Fate, Link, LinkCounts, Serialiser};
pub use loss::{Loss, LossModel};
pub use way::Way;
