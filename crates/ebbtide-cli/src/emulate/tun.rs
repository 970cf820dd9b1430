//! The ends of a path as two TUN devices, which carry IP packets, and a serial line beside the devices' one.

use super::capture::Frame;
use super::slip::SerialLine;
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
    serial: Option<SerialDevice>,
    /// The token of the clients' device; the server's is the next one, those of the serial line follow.
    first: u64,
    addresses: FirstAddresses,
    buffer: Vec<u8>,
    refused: Refused,
    undeliverable: u64,
}

/// A device at a serial line.
pub(crate) struct SerialDevice {
    pub(crate) line: SerialLine,
    /// Its number among the devices.
    pub(crate) number: u32,
}

impl Tuns {
    /// The two ends of a path.
    pub(crate) fn new(
        devices: SyncDevice,
        server: SyncDevice,
        serial: Option<SerialDevice>,
        addresses: FirstAddresses,
    ) -> Self {
        Self {
            devices,
            server,
            serial,
            first: 0,
            addresses,
            buffer: vec![0; 65_536],
            refused: Refused::default(),
            undeliverable: 0,
        }
    }
}

/// Counts packets that do not enter the path.
#[derive(Default)]
struct Refused {
    not_ip: u64,
    forged: u64,
}

impl Refused {
    /// Whether a packet enters the path.
    fn passes(&mut self, packet: &[u8], direction: Direction, addresses: FirstAddresses) -> bool {
        match packet.first().map(|byte| byte >> 4) {
            Some(4) => true,
            // To groups of the link the system reports memberships (RFC 3810), which no program sends.
            Some(6) if packet.get(24) == Some(&0xff) => false,
            // RFC 3704: behind the far end may be this machine and its networks, and Linux checks
            // sources of IPv4 alone.
            Some(6) if direction == Direction::Up && !addresses.is_source(packet) => {
                self.forged += 1;
                false
            }
            Some(6) => true,
            _ => {
                self.not_ip += 1;
                false
            }
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
        match &self.serial {
            Some(serial) => serial.line.register(epoll, first + 2),
            None => Ok(()),
        }
    }

    fn receive(
        &mut self,
        token: u64,
        _epoll: &Epoll,
        take: &mut dyn FnMut(ArrivedPacket<IpPacket>),
    ) -> io::Result<()> {
        let Self { addresses, refused, .. } = self;
        let (end, direction) = match (token - self.first, &mut self.serial) {
            (0, _) => (&self.devices, Direction::Up),
            (2.., Some(SerialDevice { line, number })) => {
                let (direction, device) = (Direction::Up, *number);
                return line.receive(&mut |packet| {
                    if refused.passes(packet, direction, *addresses) {
                        // A line gives packets of at most the MTU.
                        let (bytes, packet) = (packet.len() as u32, IpPacket(packet.to_vec()));
                        take(ArrivedPacket { direction, device, bytes, packet });
                    }
                });
            }
            _ => (&self.server, Direction::Down),
        };
        for _ in 0..BATCH {
            let packet = match end.recv(&mut self.buffer) {
                Ok(length) => self.buffer.get(..length).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            if !refused.passes(packet, direction, *addresses) {
                continue;
            }
            let device = addresses.device(packet, direction);
            // A TUN device gives packets of at most 65535 bytes.
            let bytes = packet.len() as u32;
            take(ArrivedPacket { direction, device, bytes, packet: IpPacket(packet.to_vec()) });
        }
        Ok(())
    }

    fn deliver(&mut self, direction: Direction, packet: IpPacket) -> io::Result<()> {
        let device = match (direction, &mut self.serial) {
            (Direction::Up, _) => &self.server,
            (Direction::Down, Some(SerialDevice { line, number }))
                if self.addresses.device(&packet.0, direction) == *number =>
            {
                return line.send(&packet.0);
            }
            (Direction::Down, _) => &self.devices,
        };
        if device.send(&packet.0).is_err() {
            self.undeliverable += 1;
        }
        Ok(())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let Refused { not_ip, forged } = self.refused;
        if not_ip > 0 {
            remarks.push(format!("{not_ip} packets were neither IPv4 nor IPv6 and were dropped"));
        }
        if forged > 0 {
            remarks
                .push(format!("{forged} packets of IPv6 had no device's address and were dropped"));
        }
        if self.undeliverable > 0 {
            remarks.push(format!("the system did not accept {} packets", self.undeliverable));
        }
        remarks.extend(self.serial.iter().flat_map(|serial| serial.line.remarks()));
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
