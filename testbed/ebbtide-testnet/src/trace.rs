//! The packets of a test.

use bytes::Bytes;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Packets that a trace holds; those after them are only counted.
const MAX_PACKETS: usize = 1 << 20;

/// The fate of a packet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketFate {
    /// It arrives at this time.
    Arrives(Duration),
    /// The link lost it.
    Lost,
    /// The link's buffer was full.
    Dropped,
    /// Its receiver's address was [forgotten](crate::TestNetwork::rebind) or its hosts were [cut
    /// off](crate::TestNetwork::cut) from each other when it was sent, or its receiver was
    /// [unplugged](crate::TestNetwork::unplug) when it would have arrived, or its connection was
    /// [silenced](crate::TestNetwork::silence_connections).
    Cut,
}

/// The purpose of a packet of a connection.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentKind {
    /// It opens a connection (SYN).
    Open,
    /// It accepts a connection (SYN and ACK).
    Opened,
    /// It carries bytes.
    Data,
    /// It acknowledges a segment (ACK).
    Acknowledgement,
    /// Its sender sends no more (FIN).
    End,
    /// It ends a connection at once, or refuses one (RST).
    Reset,
}

impl SegmentKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Open => "SYN",
            Self::Opened => "SYN+ACK",
            Self::Data => "TCP",
            Self::Acknowledgement => "ACK",
            Self::End => "FIN",
            Self::Reset => "RST",
        }
    }
}

/// A packet that was sent. A duplicate is a packet of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedPacket {
    /// When it was sent, since the test began.
    pub at: Duration,
    /// The sender, as the receiver sees it.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// Its purpose in a connection; `None` for a datagram.
    pub segment: Option<SegmentKind>,
    /// The datagram, or the bytes of the segment.
    pub datagram: Bytes,
    /// Its fate.
    pub fate: PacketFate,
}

impl fmt::Display for TracedPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, from, to, segment, datagram, fate } = self;
        write!(f, "{:.6} {from} > {to} ", at.as_secs_f64())?;
        if let Some(segment) = segment {
            write!(f, "{} ", segment.name())?;
        }
        datagram.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        match fate {
            PacketFate::Arrives(at) => write!(f, " arrives {:.6}", at.as_secs_f64()),
            PacketFate::Lost => f.write_str(" lost"),
            PacketFate::Dropped => f.write_str(" dropped"),
            PacketFate::Cut => f.write_str(" cut off"),
        }
    }
}

/// The packets of a test in the order in which they were sent. It is displayed as one line for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketTrace {
    packets: Vec<TracedPacket>,
    left_out: u64,
}

impl PacketTrace {
    /// The packets, at most a million.
    pub fn packets(&self) -> &[TracedPacket] {
        &self.packets
    }

    /// The packets after the first million, which are not held.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    pub(crate) fn push(&mut self, packet: TracedPacket) {
        if self.packets.len() < MAX_PACKETS {
            self.packets.push(packet);
        } else {
            self.left_out += 1;
        }
    }

    /// The packet at this place, if it is held, does not arrive.
    pub(crate) fn cut_off(&mut self, place: usize) {
        if let Some(packet) = self.packets.get_mut(place) {
            packet.fate = PacketFate::Cut;
        }
    }
}

impl fmt::Display for PacketTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.packets.iter().try_for_each(|packet| writeln!(f, "{packet}"))
    }
}
