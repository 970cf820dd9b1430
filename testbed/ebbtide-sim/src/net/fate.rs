//! The fates of packets on a link.

use ebbtide_core::time::Instant;

/// The fate of a packet, known when it is handed to the link.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at the other end.
    Delivered {
        /// The time of arrival.
        at: Instant,
    },
    /// The buffer was full.
    Dropped,
    /// It occupied buffer and serialiser, and was lost on the way.
    Lost {
        /// The time at which it had left the serialiser.
        left: Instant,
    },
}
