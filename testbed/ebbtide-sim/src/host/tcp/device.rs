//! The network as smoltcp sees it: one arriving packet, and the packets that leave.

use smoltcp::phy::{self, Checksum, ChecksumCapabilities, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use smoltcp::wire::{IpAddress, Ipv4Packet, TcpPacket, TcpSeqNumber};
use std::ops::Range;

/// A device without hardware: the simulation puts packets in and takes them out.
#[derive(Debug)]
pub(super) struct Device {
    /// The largest IP packet, bytes.
    mtu: usize,
    arriving: Option<Vec<u8>>,
    leaving: OutgoingPackets,
}

/// Packets that leave, one after another in one buffer.
#[derive(Debug, Default)]
struct OutgoingPackets {
    bytes: Vec<u8>,
    packets: Vec<Range<usize>>,
    /// Where what has been sent so far ends in the sequence space.
    sent: Option<TcpSeqNumber>,
}

impl OutgoingPackets {
    /// Gives an acknowledgement without data the sequence number that follows all that was sent
    /// (SND.NXT, RFC 9293 section 3.10.7.4), as Linux does. smoltcp goes back to what it repeats:
    /// if both ends do so at once, neither ever accepts the other's acknowledgements.
    fn renumber(&mut self, start: usize) -> Option<()> {
        let mut ip = Ipv4Packet::new_checked(self.bytes.get_mut(start..)?).ok()?;
        let (from, to) = (IpAddress::Ipv4(ip.src_addr()), IpAddress::Ipv4(ip.dst_addr()));
        let mut segment = TcpPacket::new_checked(ip.payload_mut()).ok()?;
        let end = segment.seq_number() + segment.segment_len();
        match self.sent {
            Some(sent) if segment.segment_len() == 0 && !segment.rst() && end < sent => {
                segment.set_seq_number(sent);
                segment.fill_checksum(&from, &to);
            }
            Some(sent) if end <= sent => {}
            _ => self.sent = Some(end),
        }
        Some(())
    }
}

impl Device {
    pub(super) fn new(mtu: usize) -> Self {
        Self { mtu, arriving: None, leaving: OutgoingPackets::default() }
    }

    /// Puts in a packet; smoltcp takes it when it is polled for one.
    pub(super) fn arrive(&mut self, packet: &[u8]) {
        self.arriving = Some(packet.to_vec());
    }

    /// Lets a packet leave that smoltcp did not make.
    pub(super) fn send(&mut self, packet: &[u8]) {
        phy::TxToken::consume(OutgoingMessage(&mut self.leaving), packet.len(), |room| {
            room.copy_from_slice(packet);
        });
    }

    /// The packets that leave, in order; [`Self::clear`] takes them out.
    pub(super) fn leaving(&self) -> impl Iterator<Item = &[u8]> {
        self.leaving.packets.iter().map(|range| &self.leaving.bytes[range.clone()])
    }

    pub(super) fn clear(&mut self) {
        self.leaving.bytes.clear();
        self.leaving.packets.clear();
    }
}

impl phy::Device for Device {
    type RxToken<'a> = ArrivingPacket;
    type TxToken<'a> = OutgoingMessage<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(ArrivingPacket, OutgoingMessage<'_>)> {
        Some((ArrivingPacket(self.arriving.take()?), OutgoingMessage(&mut self.leaving)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<OutgoingMessage<'_>> {
        Some(OutgoingMessage(&mut self.leaving))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        // Captures need checksums; nothing on the way changes a byte, so nobody need check them.
        let mut checksums = ChecksumCapabilities::default();
        checksums.ipv4 = Checksum::Tx;
        checksums.tcp = Checksum::Tx;
        capabilities.checksum = checksums;
        capabilities
    }
}

/// A packet that arrives.
pub(super) struct ArrivingPacket(Vec<u8>);

impl phy::RxToken for ArrivingPacket {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

/// Room for a packet that leaves.
pub(super) struct OutgoingMessage<'d>(&'d mut OutgoingPackets);

impl phy::TxToken for OutgoingMessage<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let start = self.0.bytes.len();
        self.0.bytes.resize(start + len, 0);
        self.0.packets.push(start..start + len);
        let result = f(&mut self.0.bytes[start..]);
        self.0.renumber(start);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::Segment;
    use super::Device;

    /// An acknowledgement with so many bytes of data.
    fn segment(sequence: u32, data: u8) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 40 + data, 0, 0, 0, 0, 64, 6, 0, 0];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2]);
        packet.extend(sequence.to_be_bytes());
        packet.extend([0, 0, 0, 9, 0x50, 0x10, 0, 99, 0, 0, 0, 0]);
        packet.resize(40 + usize::from(data), 0);
        packet
    }

    #[test]
    fn an_acknowledgement_follows_all_that_was_sent_though_data_is_repeated() {
        let mut device = Device::new(1280);
        for packet in [segment(u32::MAX - 9, 50), segment(u32::MAX - 9, 20), segment(10, 0)] {
            device.send(&packet);
        }
        let sequences: Vec<_> =
            device.leaving().filter_map(Segment::parse).map(|segment| segment.sequence).collect();
        assert_eq!(sequences, [u32::MAX - 9, u32::MAX - 9, 40]);
    }
}
