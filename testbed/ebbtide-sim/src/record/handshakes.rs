//! Handshakes of DTLS.

use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// The handshakes of DTLS, of a replication or summed over several.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshakes {
    /// Handshakes that clients began.
    pub begun: u64,
    /// Handshakes that were completed.
    pub completed: u64,
    /// Handshakes that resumed a session.
    pub resumed: u64,
    /// Handshakes that clients gave up or that the server refused.
    pub failed: u64,
    /// Datagrams of handshakes, of path validation and of alerts that clients sent.
    pub packets_up: u64,
    /// Those that the server sent.
    pub packets_down: u64,
    /// Bytes of those that clients sent, without the headers of lower layers.
    pub bytes_up: u64,
    /// Bytes of those that the server sent, likewise.
    pub bytes_down: u64,
}

impl AddAssign<&Self> for Handshakes {
    fn add_assign(&mut self, other: &Self) {
        self.begun += other.begun;
        self.completed += other.completed;
        self.resumed += other.resumed;
        self.failed += other.failed;
        self.packets_up += other.packets_up;
        self.packets_down += other.packets_down;
        self.bytes_up += other.bytes_up;
        self.bytes_down += other.bytes_down;
    }
}
