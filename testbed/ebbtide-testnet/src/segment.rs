//! The segments of connections, and the ends between which they go.

use crate::trace::SegmentKind;
use bytes::Bytes;

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EndSide {
    Client,
    Server,
}

/// One of the two ends of a connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndId {
    pub(crate) connection: u64,
    pub(crate) side: EndSide,
}

impl EndId {
    pub(crate) const fn other(self) -> Self {
        let side = match self.side {
            EndSide::Client => EndSide::Server,
            EndSide::Server => EndSide::Client,
        };
        Self { side, ..self }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Counts the segments of a direction; that of an acknowledgement is the segment's that it acknowledges.
    pub(crate) number: u64,
    pub(crate) kind: SegmentKind,
    pub(crate) bytes: Bytes,
}
