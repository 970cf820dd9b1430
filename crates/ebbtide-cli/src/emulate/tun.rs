//! The ends of a path as two TUN devices, which carry IP packets.

use super::capture::Frame;
use super::{ArrivedPacket, Packet, PathEnds};
use ebbtide_sim::emulation::Direction;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use tun_rs::SyncDevice;

/// The number of packets taken from one device before the other one and the clock are checked.
const BATCH: usize = 16;

/// The devices' and the server's TUN device.
pub(crate) struct Tuns {
    devices: SyncDevice,
    server: SyncDevice,
    /// The token of the clients' device; the server's is the next one.
    first: u64,
    addresses: FirstAddresses,
    buffer: Vec<u8>,
    not_ip: u64,
    forged: u64,
    undeliverable: u64,
}

impl Tuns {
    /// The two ends of a path.
    pub(crate) fn new(devices: SyncDevice, server: SyncDevice, addresses: FirstAddresses) -> Self {
        let buffer = vec![0; 65_536];
        Self {
            devices,
            server,
            first: 0,
            addresses,
            buffer,
            not_ip: 0,
            forged: 0,
            undeliverable: 0,
        }
    }
}

/// The addresses of the first device; those of the others follow.
#[derive(Copy, Clone, Debug)]
pub(crate) struct FirstAddresses {
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

impl FirstAddresses {
    /// The number of the device that sends or receives a packet: 0 for other addresses, as those of routers are.
    fn device(self, packet: &[u8], direction: Direction) -> u32 {
        let is_up = direction == Direction::Up;
        let bits = |at: usize| packet.get(at..at + 4).and_then(|bits| bits.try_into().ok());
        // RFC 791 section 3.1 and RFC 8200 section 3. Devices share all but the last 32 bits of an address.
        let (address, first) = match packet.first().map(|byte| byte >> 4) {
            Some(4) => (bits(if is_up { 12 } else { 16 }), self.v4.to_bits()),
            _ => (bits(if is_up { 20 } else { 36 }), self.v6.to_bits() as u32),
        };
        let number = address.map_or(0, |bits| u32::from_be_bytes(bits).wrapping_sub(first));
        if number <= u32::from(u16::MAX) { number } else { 0 }
    }

    /// Whether a packet of IPv6 comes from the devices' prefix of 64 bits.
    fn is_source(self, packet: &[u8]) -> bool {
        packet.get(8..16) == self.v6.octets().get(..8)
    }
}

/// An IP packet.
pub(crate) struct IpPacket(Vec<u8>);

impl Packet for IpPacket {
    fn frame(&self) -> Frame {
        Frame::Packet(self.0.clone())
    }
}

impl PathEnds for Tuns {
    type Packet = IpPacket;

    fn register(&mut self, epoll: &Epoll, first: u64) -> io::Result<()> {
        self.first = first;
        for (token, device) in (first..).zip([&self.devices, &self.server]) {
            device.set_nonblocking(true)?;
            epoll.add(device, EpollEvent::new(EpollFlags::EPOLLIN, token))?;
        }
        Ok(())
    }

    fn receive(
        &mut self,
        token: u64,
        _epoll: &Epoll,
        take: &mut dyn FnMut(ArrivedPacket<IpPacket>),
    ) -> io::Result<()> {
        let (end, direction) = if token == self.first {
            (&self.devices, Direction::Up)
        } else {
            (&self.server, Direction::Down)
        };
        for _ in 0..BATCH {
            let packet = match end.recv(&mut self.buffer) {
                Ok(length) => self.buffer.get(..length).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            match packet.first().map(|byte| byte >> 4) {
                Some(4) => {}
                // To groups of the link the system reports memberships (RFC 3810), which no program sends.
                Some(6) if packet.get(24) == Some(&0xff) => continue,
                // RFC 3704: behind the far end may be this machine and its networks, and Linux
                // checks sources of IPv4 alone.
                Some(6) if direction == Direction::Up && !self.addresses.is_source(packet) => {
                    self.forged += 1;
                    continue;
                }
                Some(6) => {}
                _ => {
                    self.not_ip += 1;
                    continue;
                }
            }
            let device = self.addresses.device(packet, direction);
            // A TUN device gives packets of at most 65535 bytes.
            let bytes = packet.len() as u32;
            take(ArrivedPacket { direction, device, bytes, packet: IpPacket(packet.to_vec()) });
        }
        Ok(())
    }

    fn deliver(&mut self, direction: Direction, packet: IpPacket) -> io::Result<()> {
        let device = match direction {
            Direction::Up => &self.server,
            Direction::Down => &self.devices,
        };
        if device.send(&packet.0).is_err() {
            self.undeliverable += 1;
        }
        Ok(())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.not_ip > 0 {
            remarks.push(format!(
                "{} packets were neither IPv4 nor IPv6 and were dropped",
                self.not_ip
            ));
        }
        if self.forged > 0 {
            remarks.push(format!(
                "{} packets of IPv6 had no device's address and were dropped",
                self.forged
            ));
        }
        if self.undeliverable > 0 {
            remarks.push(format!("the system did not accept {} packets", self.undeliverable));
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_belongs_to_the_device_whose_address_it_has() {
        let v4 = Ipv4Addr::new(10, 83, 1, 1);
        let first = FirstAddresses { v4, v6: "fd00:a:53:1::1".parse().unwrap() };
        let (third, server) = ([10, 83, 1, 3], [10, 83, 0, 1]);
        let packet = |from: [u8; 4], to: [u8; 4]| [&[0x45_u8; 12][..], &from, &to].concat();
        assert_eq!(first.device(&packet(third, server), Direction::Up), 2);
        assert_eq!(first.device(&packet(server, third), Direction::Down), 2);
        // The 300th device, and an address that is no device's.
        assert_eq!(first.device(&packet([10, 83, 2, 44], server), Direction::Up), 299);
        assert_eq!(first.device(&packet(server, server), Direction::Up), 0);
        let third: Ipv6Addr = "fd00:a:53:1::3".parse().unwrap();
        let packet = [&[0x60_u8; 8][..], &third.octets(), &[0; 16]].concat();
        assert_eq!(first.device(&packet, Direction::Up), 2);
        assert_eq!(first.device(&packet[..20], Direction::Up), 0);
        assert!(first.is_source(&packet));
        let forged = [&[0x60_u8; 8][..], &[0x20; 16], &[0; 16]].concat();
        assert!(!first.is_source(&forged) && !first.is_source(&packet[..12]));
    }
}
