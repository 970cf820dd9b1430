//! Measurements of TCP in the background.

use serde::{Deserialize, Serialize};

/// The packets of all flows of TCP in the background at the bottleneck, acknowledgements included.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundPackets {
    /// Packets handed to the link, as far as their fate is known.
    pub sent: u64,
    /// Packets that the queue dropped.
    pub dropped_queue: u64,
}

impl BackgroundPackets {
    /// Whether there were none.
    pub(crate) const fn is_none(&self) -> bool {
        self.sent == 0
    }
}

/// A flow of TCP that shared the bottleneck with the clients.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundFlow {
    /// When it began, ns.
    pub start_ns: u64,
    /// When the last of what was delivered arrived, ns.
    pub end_ns: u64,
    /// Bytes that its application offered.
    pub offered: u64,
    /// Bytes that arrived at the other application.
    pub delivered: u64,
    /// Segments that its sender repeated.
    pub retransmissions: u32,
    /// Segments that arrived although all that they carry was there.
    pub unnecessary: u32,
}
