//! Why a replication has no record.

use std::fmt;

/// Why a replication could not be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// A packet was longer than the MTU.
    PacketTooLong {
        /// Its length, headers included, bytes.
        bytes: u32,
        /// The scenario's `network.mtu`.
        mtu: u32,
    },
    /// The simulated time ran beyond a century: something repeats forever.
    NeverEnds,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PacketTooLong { bytes, mtu } => write!(
                f,
                "a packet of {bytes} bytes exceeds network.mtu = {mtu}: shorten the payloads or \
                 raise the MTU"
            ),
            Self::NeverEnds => f.write_str("the simulation passed 100 years without an end"),
        }
    }
}

impl std::error::Error for RunError {}
