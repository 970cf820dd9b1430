//! Losses as the endpoints measure them, with the option PM.

use ebbtide_core::endpoint::Measured;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Messages of complete blocks of the square wave, of all clients of a replication.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredBlocks {
    /// Messages that were sent.
    pub sent: u64,
    /// Messages that arrived.
    pub arrived: u64,
}

impl AddAssign<Measured> for MeasuredBlocks {
    fn add_assign(&mut self, other: Measured) {
        self.sent += other.sent;
        self.arrived += other.arrived;
    }
}

/// Losses as both ends measured them.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredLosses {
    /// Of the clients' messages, as the server counted them.
    pub up: MeasuredBlocks,
    /// Of the server's messages, as the clients counted them.
    pub down: MeasuredBlocks,
}
