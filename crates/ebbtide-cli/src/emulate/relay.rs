//! The ends of a path as UDP sockets. Clients send to one port, and each reaches the target from a
//! socket of its own, so that the target can distinguish them. Needs no privilege.

use super::capture::Frame;
use super::{ArrivedPacket, Packet, PathEnds};
use ebbtide_sim::emulation::Direction;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The maximum number of known clients. Beyond it, the client that has been silent for longest is
/// forgotten.
const MAX_CLIENTS: usize = 4096;
/// The number of datagrams taken from one socket before the others and the clock are checked.
const BATCH: usize = 16;

/// A listening socket and one toward the target for each client.
pub(crate) struct Relay {
    listen: UdpSocket,
    target: SocketAddr,
    /// Bytes of headers that a datagram has on the emulated link.
    header: u32,
    mtu: u32,
    /// The token of the listening socket; clients' are those after it.
    first: u64,
    clients: BTreeMap<u64, RelayClient>,
    numbers: BTreeMap<SocketAddr, u64>,
    next: u64,
    buffer: Vec<u8>,
    datagrams: u64,
    too_long: u64,
    forgotten: u64,
    unreachable: u64,
}

struct RelayClient {
    address: SocketAddr,
    socket: UdpSocket,
    /// The count of datagrams when it last sent one.
    heard: u64,
}

/// A datagram between a client and the target.
pub(crate) struct Datagram {
    client: u64,
    from: SocketAddr,
    to: SocketAddr,
    payload: Vec<u8>,
}

impl Packet for Datagram {
    fn frame(&self) -> Frame {
        Frame::Datagram(self.from, self.to, self.payload.clone())
    }
}

impl Relay {
    /// Listens on an address for datagrams to the target. `header` and `mtu` are the scenario's.
    ///
    /// # Errors
    ///
    /// Returns an error if the address cannot be bound.
    pub(crate) fn bind(
        listen: SocketAddr,
        target: SocketAddr,
        header: u32,
        mtu: u32,
    ) -> io::Result<Self> {
        // As many sockets as permitted; with fewer sockets, fewer clients are known at the same
        // time.
        if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
        }
        let listen = UdpSocket::bind(listen)?;
        listen.set_nonblocking(true)?;
        Ok(Self {
            listen,
            target,
            header,
            mtu,
            first: 0,
            clients: BTreeMap::new(),
            numbers: BTreeMap::new(),
            next: 1,
            buffer: vec![0; 65_536],
            datagrams: 0,
            too_long: 0,
            forgotten: 0,
            unreachable: 0,
        })
    }

    /// The address on which it listens.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listen.local_addr()
    }

    /// The number of the client at an address, which is added if it is not known; `None`, and
    /// counted, if the system has no route to the target now.
    fn client(&mut self, address: SocketAddr, epoll: &Epoll) -> io::Result<Option<u64>> {
        if let Some(number) = self.numbers.get(&address) {
            return Ok(Some(*number));
        }
        if self.clients.len() >= MAX_CLIENTS {
            self.forget_one(epoll);
        }
        let mut connected = self.connect();
        if connected.as_ref().err().and_then(errno) == Some(Errno::EMFILE) {
            // No descriptor is free.
            self.forget_one(epoll);
            connected = self.connect();
        }
        if connected.as_ref().err().and_then(errno).is_some_and(is_without_a_way) {
            self.unreachable += 1;
            return Ok(None);
        }
        let socket = connected?;
        let number = self.next;
        self.next += 1;
        epoll.add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, self.first + number))?;
        self.clients.insert(number, RelayClient { address, socket, heard: self.datagrams });
        self.numbers.insert(address, number);
        Ok(Some(number))
    }

    fn connect(&self) -> io::Result<UdpSocket> {
        let any = match self.target {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = UdpSocket::bind(any)?;
        socket.set_nonblocking(true)?;
        socket.connect(self.target)?;
        Ok(socket)
    }

    fn forget_one(&mut self, epoll: &Epoll) {
        let oldest = self.clients.iter().min_by_key(|(_, client)| client.heard);
        let Some(number) = oldest.map(|(number, _)| *number) else { return };
        if let Some(client) = self.clients.remove(&number) {
            // Closing the socket removes it, too.
            let _ = epoll.delete(&client.socket);
            self.numbers.remove(&client.address);
            self.forgotten += 1;
        }
    }

    /// The length on the emulated link; `None`, and counted, beyond its MTU.
    fn length(&mut self, payload: usize) -> Option<u32> {
        let length = u32::try_from(payload).unwrap_or(u32::MAX).saturating_add(self.header);
        if length > self.mtu {
            self.too_long += 1;
            return None;
        }
        Some(length)
    }

    /// The datagram received from a socket; `None` if there is no more, or if the socket reports
    /// that a datagram of ours was not delivered, which is counted.
    fn received<T>(&mut self, result: io::Result<T>) -> io::Result<Option<T>> {
        match result {
            Ok(received) => Ok(Some(received)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if errno(&error).is_some_and(is_from_the_network) => {
                self.unreachable += 1;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn take_from_clients(
        &mut self,
        epoll: &Epoll,
        take: &mut dyn FnMut(ArrivedPacket<Datagram>),
    ) -> io::Result<()> {
        for _ in 0..BATCH {
            let datagram = self.listen.recv_from(&mut self.buffer);
            let Some((length, from)) = self.received(datagram)? else { return Ok(()) };
            self.datagrams += 1;
            let Some(client) = self.client(from, epoll)? else { continue };
            let heard = self.datagrams;
            if let Some(client) = self.clients.get_mut(&client) {
                client.heard = heard;
            }
            if let Some(bytes) = self.length(length) {
                let payload = self.buffer.get(..length).unwrap_or_default().to_vec();
                let to = self.target;
                let packet = Datagram { client, from, to, payload };
                take(ArrivedPacket {
                    direction: Direction::Up,
                    device: device(client),
                    bytes,
                    packet,
                });
            }
        }
        Ok(())
    }

    fn take_from_target(
        &mut self,
        number: u64,
        take: &mut dyn FnMut(ArrivedPacket<Datagram>),
    ) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(client) = self.clients.get(&number) else { return Ok(()) };
            let to = client.address;
            let datagram = client.socket.recv(&mut self.buffer);
            let Some(length) = self.received(datagram)? else { return Ok(()) };
            if let Some(bytes) = self.length(length) {
                let payload = self.buffer.get(..length).unwrap_or_default().to_vec();
                let from = self.target;
                let packet = Datagram { client: number, from, to, payload };
                take(ArrivedPacket {
                    direction: Direction::Down,
                    device: device(number),
                    bytes,
                    packet,
                });
            }
        }
        Ok(())
    }
}

impl PathEnds for Relay {
    type Packet = Datagram;

    fn register(&mut self, epoll: &Epoll, first: u64) -> io::Result<()> {
        self.first = first;
        epoll.add(&self.listen, EpollEvent::new(EpollFlags::EPOLLIN, first))?;
        Ok(())
    }

    fn receive(
        &mut self,
        token: u64,
        epoll: &Epoll,
        take: &mut dyn FnMut(ArrivedPacket<Datagram>),
    ) -> io::Result<()> {
        match token - self.first {
            0 => self.take_from_clients(epoll, take),
            number => self.take_from_target(number, take),
        }
    }

    fn deliver(&mut self, direction: Direction, datagram: Datagram) -> io::Result<()> {
        // A socket that cannot take a datagram loses it, as a host does.
        let _ = match direction {
            Direction::Up => match self.clients.get(&datagram.client) {
                Some(client) => client.socket.send(&datagram.payload),
                None => Ok(0), // forgotten meanwhile
            },
            Direction::Down => self.listen.send_to(&datagram.payload, datagram.to),
        };
        Ok(())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.too_long > 0 {
            let (count, mtu) = (self.too_long, self.mtu);
            remarks.push(format!("{count} datagrams were longer than the MTU of {mtu} bytes"));
        }
        if self.forgotten > 0 {
            let count = self.forgotten;
            remarks.push(format!("{count} clients were forgotten to make room for others"));
        }
        if self.unreachable > 0 {
            let count = self.unreachable;
            remarks.push(format!(
                "{count} times the network reported that the target cannot be reached"
            ));
        }
        remarks
    }
}

/// Clients are devices in the order of their first datagrams; their numbers begin with 1.
fn device(client: u64) -> u32 {
    u32::try_from(client - 1).unwrap_or(u32::MAX)
}

fn errno(error: &io::Error) -> Option<Errno> {
    error.raw_os_error().map(Errno::from_raw)
}

/// Whether a socket cannot be connected because there is no route now; there may be one a moment
/// later.
fn is_without_a_way(error: Errno) -> bool {
    matches!(error, Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::ENETDOWN)
}

/// Whether an error of a connected socket shows that a datagram of ours was not delivered: the
/// errors that Linux derives from ICMP (`icmp_err_convert`, `icmpv6_err_convert`) and from a
/// neighbour that does not answer.
fn is_from_the_network(error: Errno) -> bool {
    is_without_a_way(error)
        || matches!(
            error,
            Errno::ECONNREFUSED
                | Errno::EHOSTDOWN
                | Errno::ENONET
                | Errno::ENOPROTOOPT
                | Errno::EPROTO
                | Errno::EOPNOTSUPP
                | Errno::EMSGSIZE
                | Errno::EACCES
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_errors_are_counted_and_do_not_end_the_emulation() {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut relay = Relay::bind(local, local, 28, 1500).unwrap();
        let mut receive = |error: Errno| relay.received::<()>(Err(io::Error::from(error)));
        for error in [Errno::ECONNREFUSED, Errno::EHOSTDOWN, Errno::ENETUNREACH, Errno::EPROTO] {
            assert!(matches!(receive(error), Ok(None)), "{error}");
        }
        assert!(matches!(receive(Errno::EAGAIN), Ok(None)));
        assert!(receive(Errno::EBADF).is_err());
        assert_eq!(relay.unreachable, 4);
        let remarks = relay.remarks();
        assert!(remarks.iter().any(|remark| remark.starts_with("4 times")), "{remarks:?}");
    }
}
