//! RFC 9177: bodies in Non-confirmable blocks that need not be requested one by one.
//!
//! There are two state machines for a body, which need no clock, no socket and not even the body
//! itself. A [`Sender`] decides which block leaves when. A [`Receiver`] records which blocks have
//! arrived and decides what to send about the others. The same machines serve Q-Block1, where a
//! client sends and a server receives, and Q-Block2, where it is the other way round:
//!
//! | | Q-Block1 | Q-Block2 |
//! |---|---|---|
//! | [`Sending::Block`] | a request with the option | a response with the option |
//! | [`Receiving::Continue`] | 2.31 for the block before | a request for the block, M set |
//! | [`Receiving::Missing`] | 4.08 with [`MissingBlocks`](crate::wire::MissingBlocks) | a request with an option per block |
//!
//! ```
//! use ebbtide_core::q_block::{QBlockParameters, Receiver, Receiving, Sender, Sending};
//! use ebbtide_core::time::Instant;
//! # struct Zero;
//! # impl rand_core::TryRng for Zero {
//! #     type Error = core::convert::Infallible;
//! #     fn try_next_u32(&mut self) -> Result<u32, Self::Error> { Ok(0) }
//! #     fn try_next_u64(&mut self) -> Result<u64, Self::Error> { Ok(0) }
//! #     fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Self::Error> { to.fill(0); Ok(()) }
//! # }
//! # let mut rng = Zero;
//! let (now, params) = (Instant::ZERO, QBlockParameters::DEFAULT);
//! let mut sender = Sender::upload(25, true, params, &mut rng);
//! let mut receiver = Receiver::new(now, 25, params);
//! while let Sending::Block(num) = sender.poll(now) {
//!     receiver.on_block(now, num);
//!     if let Receiving::Continue(from) = receiver.poll(now) {
//!         sender.on_continue(from);
//!     }
//! }
//! assert_eq!(receiver.poll(now), Receiving::Complete);
//! ```

mod params;
mod receive;
mod retry;
mod send;

pub use params::QBlockParameters;
pub use receive::{BlockArrival, Receiver, Receiving};
pub use retry::{Due, Retry};
pub use send::{Sender, Sending};
