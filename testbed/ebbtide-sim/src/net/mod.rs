//! Models of networks. They compute the fates of packets from instants and lengths, and depend on
//! neither the engine nor CoAP, so the emulator drives the same models with the wall clock.

mod bottleneck;
mod delay;
mod direction;
mod fate;
mod link;
mod loss;
mod managed;
mod propagation;
pub mod queue;
mod schedule;
mod serialiser;
mod targeted_loss;

pub use bottleneck::Bottleneck;
pub use delay::Delay;
pub use direction::Direction;
pub use fate::Fate;
pub use link::{Link, LinkCounts};
pub use loss::{Loss, LossModel};
pub use managed::ManagedLink;
pub use schedule::{RateStep, Schedule, ScheduleError};
pub use serialiser::Serialiser;
pub use targeted_loss::TargetedLoss;
