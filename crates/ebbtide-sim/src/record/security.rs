//! Measurements of DTLS sessions.

use ebbtide_core::time::Instant;
use serde::{Deserialize, Serialize};

/// The handshakes of a replication.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityRecord {
    /// Handshakes that clients began.
    pub begun: u64,
    /// Of these, those that were completed.
    pub completed: u64,
    /// Of these, those that resumed a session.
    pub resumed: u64,
    /// Handshakes that clients gave up or that the server refused.
    pub failed: u64,
    /// Datagrams of handshakes, of path validation and of alerts that clients sent.
    pub packets_up: u64,
    /// Those that the server sent.
    pub packets_down: u64,
    /// Bytes of those, without the headers of lower layers.
    pub bytes_up: u64,
    /// Likewise.
    pub bytes_down: u64,
    /// When the last handshake was completed, ns.
    pub last_ns: u64,
}

impl SecurityRecord {
    pub(crate) fn completed(&mut self, now: Instant, resumed: bool) {
        self.completed += 1;
        self.resumed += u64::from(resumed);
        self.last_ns = self.last_ns.max(now.as_nanos());
    }

    /// Another client's, too.
    pub(crate) fn add(&mut self, other: &Self) {
        self.begun += other.begun;
        self.completed += other.completed;
        self.resumed += other.resumed;
        self.failed += other.failed;
        self.packets_up += other.packets_up;
        self.packets_down += other.packets_down;
        self.bytes_up += other.bytes_up;
        self.bytes_down += other.bytes_down;
        self.last_ns = self.last_ns.max(other.last_ns);
    }
}
