//! UDP over IPv4 by smoltcp, with the addresses of QEMU's user networking.

use super::Datagrams;
use super::ethernet::{ADDRESS, Ethernet};
use crate::board;
use core::net::SocketAddr;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::udp::{PacketBuffer, PacketMetadata, Socket};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpAddress, IpCidr, IpEndpoint};

const PORT: u16 = 5683;
const DATAGRAM: usize = 1280;

/// A UDP socket.
pub struct Ip {
    ethernet: Ethernet,
    interface: Interface,
    sockets: SocketSet<'static>,
    udp: SocketHandle,
}

fn now() -> Instant {
    Instant::from_micros((board::now().as_nanos() / 1000) as i64)
}

impl Ip {
    /// Opens the socket. To be called once.
    #[must_use]
    pub fn open() -> Self {
        static mut RECEIVED: [u8; DATAGRAM] = [0; DATAGRAM];
        static mut SENT: [u8; DATAGRAM] = [0; DATAGRAM];
        static mut METADATA: [[PacketMetadata; 2]; 2] = [[PacketMetadata::EMPTY; 2]; 2];
        static mut STORAGE: [SocketStorage<'static>; 1] = [SocketStorage::EMPTY];
        let mut ethernet = Ethernet::open();
        let config = Config::new(EthernetAddress(ADDRESS).into());
        let mut interface = Interface::new(config, &mut ethernet, now());
        interface.update_ip_addrs(|addresses| {
            let _ = addresses.push(IpCidr::new(IpAddress::v4(10, 0, 2, 15), 24));
        });
        // SAFETY: this function is called once, so nothing else refers to these.
        let (received, sent, [of_received, of_sent], storage) = unsafe {
            (
                &mut *&raw mut RECEIVED,
                &mut *&raw mut SENT,
                &mut *&raw mut METADATA,
                &mut *&raw mut STORAGE,
            )
        };
        let mut socket = Socket::new(
            PacketBuffer::new(&mut of_received[..], &mut received[..]),
            PacketBuffer::new(&mut of_sent[..], &mut sent[..]),
        );
        let _ = socket.bind(PORT);
        let mut sockets = SocketSet::new(&mut storage[..]);
        let udp = sockets.add(socket);
        Self { ethernet, interface, sockets, udp }
    }

    fn poll(&mut self) {
        self.interface.poll(now(), &mut self.ethernet, &mut self.sockets);
    }
}

impl Datagrams for Ip {
    fn receive(&mut self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        self.poll();
        let socket = self.sockets.get_mut::<Socket<'_>>(self.udp);
        let (length, metadata) = socket.recv_slice(buffer).ok()?;
        let IpAddress::Ipv4(from) = metadata.endpoint.addr;
        Some((length, SocketAddr::from((from, metadata.endpoint.port))))
    }

    fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        let SocketAddr::V4(to) = to else { return };
        let socket = self.sockets.get_mut::<Socket<'_>>(self.udp);
        let _ = socket.send_slice(datagram, IpEndpoint::new(IpAddress::Ipv4(*to.ip()), to.port()));
        self.poll();
    }
}
