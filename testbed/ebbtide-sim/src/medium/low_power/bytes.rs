//! Frames as bytes, for captures: IEEE 802.15.4-2006 section 7.2, compressed headers of RFC 6282,
//! fragments of RFC 4944 section 5.3. The simulation itself needs their lengths only.

use super::lowpan::{Addresses, ElidedAddresses, compressed_header, fragments};
use etherparse::UdpHeader;

/// CoAP's port (RFC 7252 section 6.1).
const PORT: u16 = 5683;
/// The network's identifier, any.
const PAN: u16 = 0xeb1d;
/// A datagram that has not been forwarded yet.
const HOP_LIMIT: u8 = 64;
/// IPv6 40 and UDP 8 bytes, which fragments count although they are compressed.
const UNCOMPRESSED: usize = 48;
/// The checksum at the end of a frame.
const CHECKSUM: usize = 2;

/// A datagram on a hop between two nodes.
#[derive(Copy, Clone, Debug)]
pub(super) struct Hop<'p> {
    pub(super) addresses: Addresses,
    /// The node that sends it, and the one that it is for.
    pub(super) link: (u32, u32),
    /// The host that it comes from, and the one that it goes to.
    pub(super) hosts: (u32, u32),
    /// Hosts from this number on are in the Internet.
    pub(super) nodes: u32,
    /// Hops that it has behind it.
    pub(super) behind: u32,
    /// The datagram_tag of its fragments.
    pub(super) tag: u32,
    /// Whether its frames ask for acknowledgements.
    pub(super) acknowledged: bool,
    /// The CoAP message.
    pub(super) message: &'p [u8],
}

impl Hop<'_> {
    /// The frame of fragment `index`, checksum included.
    pub(super) fn frame(&self, index: u32) -> Vec<u8> {
        let header = self.header();
        let frames = fragments(self.addresses, header.len() as u32, self.message.len() as u32);
        let mut bytes = self.mac_header(index);
        let mac = bytes.len() + CHECKSUM;
        let tag = (self.tag as u16).to_be_bytes();
        let size = ((UNCOMPRESSED + self.message.len()) as u16 & 0x7ff).to_be_bytes();
        let first = frames.bytes(0) as usize - mac - header.len();
        if frames.count == 1 {
            bytes.extend(header);
            bytes.extend_from_slice(self.message);
        } else if index == 0 {
            // Dispatch 11000.
            bytes.extend([0b1100_0000 | size[0], size[1], tag[0], tag[1]]);
            bytes.extend(header);
            bytes.extend_from_slice(&self.message[..first - 4]);
        } else {
            let each = frames.bytes(1) as usize - mac - 5;
            let from = first - 4 + (index as usize - 1) * each;
            let length = frames.bytes(index) as usize - mac - 5;
            // Dispatch 11100; the offset counts eights.
            let offset = ((UNCOMPRESSED + from) / 8) as u8;
            bytes.extend([0b1110_0000 | size[0], size[1], tag[0], tag[1], offset]);
            bytes.extend_from_slice(&self.message[from..from + length]);
        }
        with_checksum(bytes)
    }

    /// Copies of a frame have one sequence number, the next frame another one.
    pub(super) const fn sequence(&self, index: u32) -> u8 {
        self.tag.wrapping_mul(5).wrapping_add(index) as u8
    }

    fn mac_header(&self, index: u32) -> Vec<u8> {
        // A data frame, acknowledged or not, both addresses in one network.
        let control: u16 = 0b001 | (self.acknowledged as u16) << 5 | 1 << 6;
        let mode = match self.addresses {
            Addresses::Short => 2,
            Addresses::Long => 3,
        };
        let mut bytes = Vec::with_capacity(127);
        bytes.extend((control | mode << 10 | mode << 14).to_le_bytes());
        bytes.push(self.sequence(index));
        bytes.extend(PAN.to_le_bytes());
        for node in [self.link.1, self.link.0] {
            match self.addresses {
                Addresses::Short => bytes.extend((node as u16).to_le_bytes()),
                Addresses::Long => bytes.extend(eui64(node).to_le_bytes()),
            }
        }
        bytes
    }

    /// The compressed IPv6 and UDP headers (RFC 6282 sections 3.1 and 4.3.3).
    fn header(&self) -> Vec<u8> {
        let from_sender = self.hosts.0 == self.link.0;
        let to_receiver = self.hosts.1 == self.link.1;
        let is_original = from_sender;
        // 011, traffic class and flow label left out, next header compressed, hop limit 64 or as is.
        let first = 0b0111_1100 | if is_original { 0b10 } else { 0 };
        let source = self.mode(self.hosts.0, from_sender);
        let destination = self.mode(self.hosts.1, to_receiver);
        let mut bytes = vec![first, source << 4 | destination];
        if !is_original {
            bytes.push(HOP_LIMIT.saturating_sub(self.behind.min(63) as u8));
        }
        for (host, mode) in [(self.hosts.0, source), (self.hosts.1, destination)] {
            let address = self.address(host);
            match mode & 0b11 {
                0 => bytes.extend(address),
                1 => bytes.extend(&address[8..]),
                2 => bytes.extend(&address[14..]),
                _ => {}
            }
        }
        // 11110, checksum and both ports in full.
        bytes.push(0b1111_0000);
        bytes.extend(PORT.to_be_bytes());
        bytes.extend(PORT.to_be_bytes());
        bytes.extend(self.udp_checksum().to_be_bytes());
        let ends = ElidedAddresses {
            from_sender,
            to_receiver,
            beyond: self.hosts.0 >= self.nodes || self.hosts.1 >= self.nodes,
        };
        debug_assert_eq!(bytes.len() as u32, compressed_header(self.addresses, ends));
        bytes
    }

    /// How an address is compressed: in full for a host in the Internet; else with the network's
    /// prefix, which is context 0, and the identifier as far as the link-layer address does not say it.
    const fn mode(&self, host: u32, is_known: bool) -> u8 {
        if host >= self.nodes {
            return 0b000;
        }
        match self.addresses {
            _ if is_known => 0b111,
            Addresses::Long => 0b101,
            Addresses::Short => 0b110,
        }
    }

    fn address(&self, host: u32) -> [u8; 16] {
        let (prefix, identifier): (u64, u64) = match self.addresses {
            _ if host >= self.nodes => (0x2001_0db8 << 32, u64::from(host)),
            // The universal bit of the EUI-64 inverted (RFC 4291 appendix A).
            Addresses::Long => (0xfd00 << 48, eui64(host) ^ 0x0200_0000_0000_0000),
            Addresses::Short => (0xfd00 << 48, 0x0000_00ff_fe00_0000 | u64::from(host & 0xffff)),
        };
        (u128::from(prefix) << 64 | u128::from(identifier)).to_be_bytes()
    }

    fn udp_checksum(&self) -> u16 {
        let length = (UdpHeader::LEN + self.message.len()) as u16;
        let header = UdpHeader { source_port: PORT, destination_port: PORT, length, checksum: 0 };
        let (from, to) = (self.address(self.hosts.0), self.address(self.hosts.1));
        // Fails beyond 4 GB only.
        header.calc_checksum_ipv6_raw(from, to, self.message).unwrap_or_default()
    }
}

/// An acknowledgement (section 7.2.2.3).
pub(super) fn acknowledgement(sequence: u8) -> Vec<u8> {
    with_checksum(vec![0b010, 0, sequence])
}

/// Locally administered, with the node's number.
const fn eui64(node: u32) -> u64 {
    0x0200_0000_0000_0000 | node as u64
}

/// Section 7.2.1.9: CRC-16 of ITU-T, least significant bit first.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut crc = 0u16;
    for byte in &bytes {
        crc ^= u16::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x8408 } else { crc >> 1 };
        }
    }
    bytes.extend(crc.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_checksum_is_the_standards_example() {
        // Section 7.2.1.9: an acknowledgement 0x02 0x00 0x6a (sequence number 0x56, sent lowest bit
        // first) has the checksum 0010 0111 1001 1110 in the order of sending.
        let frame = acknowledgement(0b0110_1010);
        assert_eq!(frame, [0b010, 0, 0b0110_1010, 0b1110_0100, 0b0111_1001]);
    }

    proptest! {
        #[test]
        fn every_frame_is_as_long_as_the_simulation_says_and_carries_its_part(
            long in any::<bool>(),
            link in (0u32..4, 0u32..4),
            hosts in (0u32..6, 0u32..6),
            length in 4usize..1900,
        ) {
            prop_assume!(link.0 != link.1 && hosts.0 != hosts.1);
            prop_assume!(hosts.0 < 4 || hosts.1 < 4);
            prop_assume!(hosts.0 != link.1 && hosts.1 != link.0);
            let addresses = if long { Addresses::Long } else { Addresses::Short };
            let message: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            let (nodes, behind, tag, acknowledged) = (4, 1, 7, long);
            let hop =
                Hop { addresses, link, hosts, nodes, behind, tag, acknowledged, message: &message };
            let header = hop.header().len();
            let frames = fragments(addresses, header as u32, length as u32);
            let mac = hop.mac_header(0).len();
            let mut carried = Vec::new();
            for index in 0..frames.count {
                let frame = hop.frame(index);
                prop_assert_eq!(frame.len() as u32, frames.bytes(index));
                let before = match (frames.count, index) {
                    (1, _) => mac + header,
                    (_, 0) => mac + 4 + header,
                    _ => mac + 5,
                };
                carried.extend_from_slice(&frame[before..frame.len() - CHECKSUM]);
            }
            prop_assert_eq!(carried, message);
        }
    }
}
