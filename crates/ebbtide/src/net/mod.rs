//! Connects sockets to the core endpoint: the only code that reads a clock.

mod alarm;
pub(crate) mod beside;
mod brief;
pub(crate) mod brief_task;
mod calls;
pub(crate) mod clock;
pub(crate) mod device;
pub(crate) mod driver;
#[cfg(feature = "dtls")]
pub(crate) mod dtls;
#[cfg(not(feature = "dtls"))]
#[path = "no_dtls.rs"]
pub(crate) mod dtls;
pub(crate) mod handed_over;
#[cfg(any(feature = "tls", feature = "edhoc"))]
pub(crate) mod handshake_gate;
mod kernel_drops;
pub mod network;
pub(crate) mod peer;
pub(crate) mod pending;
pub(crate) mod receive;
mod receive_buffers;
mod reports;
pub(crate) mod room;
#[cfg(feature = "test-net")]
mod seeded;
#[cfg(feature = "dtls")]
mod session_events;
pub(crate) mod shared;
pub mod socket;
pub(crate) mod socket_state;
pub(crate) mod trace;
pub(crate) mod workers;
