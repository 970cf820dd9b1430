//! The fields of a TCP packet that the testbed reads.

use smoltcp::wire::{Ipv4Packet, TcpPacket};
use std::fmt;

/// The header of a segment, and how much it carries.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) source: u16,
    pub(crate) destination: u16,
    pub(crate) sequence: u32,
    /// The acknowledgement number, if there is one.
    pub(crate) acknowledged: Option<u32>,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
    /// Bytes of data.
    pub(crate) payload: u32,
}

impl Segment {
    /// Reads an IPv4 packet; `None` if it holds no segment.
    pub(crate) fn parse(packet: &[u8]) -> Option<Self> {
        let packet = Ipv4Packet::new_checked(packet).ok()?;
        let segment = TcpPacket::new_checked(packet.payload()).ok()?;
        Some(Self {
            source: segment.src_port(),
            destination: segment.dst_port(),
            sequence: segment.seq_number().0.cast_unsigned(),
            acknowledged: segment.ack().then(|| segment.ack_number().0.cast_unsigned()),
            syn: segment.syn(),
            fin: segment.fin(),
            rst: segment.rst(),
            // A packet has at most 65535 bytes.
            payload: segment.payload().len() as u32,
        })
    }

    /// Its length in the sequence space (RFC 9293 section 3.4), which is repeated until it is
    /// acknowledged.
    pub(crate) fn length(&self) -> u32 {
        self.payload + u32::from(self.syn) + u32::from(self.fin)
    }
}

impl fmt::Display for Segment {
    /// `SYN seq 7`, `ACK seq 8 ack 1001 len 65`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (is_set, name) in [
            (self.syn, "SYN "),
            (self.fin, "FIN "),
            (self.rst, "RST "),
            (self.acknowledged.is_some(), "ACK "),
        ] {
            if is_set {
                f.write_str(name)?;
            }
        }
        write!(f, "seq {}", self.sequence)?;
        if let Some(acknowledged) = self.acknowledged {
            write!(f, " ack {acknowledged}")?;
        }
        if self.payload > 0 {
            write!(f, " len {}", self.payload)?;
        }
        Ok(())
    }
}
