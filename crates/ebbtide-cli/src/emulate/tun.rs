//! The ends of a path as two TUN devices, which carry IP packets.

use super::capture::Frame;
use super::{Packet, PathEnds};
use ebbtide_sim::emulation::Direction;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use std::io;
use tun_rs::SyncDevice;

/// The number of packets taken from one device before the other one and the clock are checked.
const BATCH: usize = 16;

/// The devices' and the server's TUN device.
pub(crate) struct Tuns {
    devices: SyncDevice,
    server: SyncDevice,
    /// The token of the clients' device; the server's is the next one.
    first: u64,
    buffer: Vec<u8>,
    not_ip: u64,
    undeliverable: u64,
}

impl Tuns {
    /// The two ends of a path.
    pub(crate) fn new(devices: SyncDevice, server: SyncDevice) -> Self {
        let buffer = vec![0; 65_536];
        Self { devices, server, first: 0, buffer, not_ip: 0, undeliverable: 0 }
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
        take: &mut dyn FnMut(Direction, u32, IpPacket),
    ) -> io::Result<()> {
        let (device, direction) = if token == self.first {
            (&self.devices, Direction::Up)
        } else {
            (&self.server, Direction::Down)
        };
        for _ in 0..BATCH {
            let packet = match device.recv(&mut self.buffer) {
                Ok(length) => self.buffer.get(..length).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            match packet.first().map(|byte| byte >> 4) {
                Some(4) => {}
                // To groups of the link the system reports memberships (RFC 3810), which no program sends.
                Some(6) if packet.get(24) == Some(&0xff) => continue,
                Some(6) => {}
                _ => {
                    self.not_ip += 1;
                    continue;
                }
            }
            // A TUN device gives packets of at most 65535 bytes.
            take(direction, packet.len() as u32, IpPacket(packet.to_vec()));
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
        if self.undeliverable > 0 {
            remarks.push(format!("the system did not accept {} packets", self.undeliverable));
        }
        remarks
    }
}
