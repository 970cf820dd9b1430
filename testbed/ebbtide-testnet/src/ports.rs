//! The open ports: who receives at which address.

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::Waker;

/// Datagrams that wait at a port; what does not fit is dropped, as by a system's socket.
const MAX_WAITING: usize = 1024;
/// The first port that is chosen for a socket (RFC 6335 section 6).
const FIRST_DYNAMIC: u16 = 49152;

/// A datagram that has arrived at a port.
#[derive(Clone, Debug)]
pub(crate) struct WaitingDatagram {
    pub(crate) from: SocketAddr,
    /// The group to which it was sent, if it was.
    pub(crate) group: Option<IpAddr>,
    pub(crate) bytes: Bytes,
}

/// The datagrams that wait at a port, and the task that waits for them.
#[derive(Debug, Default)]
pub(crate) struct PortQueue {
    pub(crate) datagrams: VecDeque<WaitingDatagram>,
    pub(crate) waker: Option<Waker>,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Ports {
    queues: BTreeMap<SocketAddr, PortQueue>,
    /// The addresses that others see, where a translator gave ports others than their own; and the reverse.
    outside: BTreeMap<SocketAddr, SocketAddr>,
    inside: BTreeMap<SocketAddr, SocketAddr>,
    hosts: u16,
    /// The ports that have joined a group.
    members: BTreeSet<(IpAddr, SocketAddr)>,
}

impl Ports {
    /// Opens a port. A socket without an address is a host of its own.
    pub(crate) fn open(&mut self, address: SocketAddr) -> io::Result<SocketAddr> {
        let ip = self.host_of(address.ip())?;
        let address = SocketAddr::new(ip, address.port());
        let address = if address.port() == 0 { self.free_port(ip)? } else { address };
        if self.is_taken(address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        self.queues.insert(address, PortQueue::default());
        Ok(address)
    }

    pub(crate) fn close(&mut self, address: SocketAddr) {
        self.queues.remove(&address);
        self.members.retain(|(_, member)| *member != address);
        if let Some(outside) = self.outside.remove(&address) {
            self.inside.remove(&outside);
        }
    }

    /// Joins a group.
    pub(crate) fn join(&mut self, group: IpAddr, port: SocketAddr) -> io::Result<()> {
        if !group.is_multicast() {
            let why = format!("{group} is not a multicast address");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        self.members.insert((group, port));
        Ok(())
    }

    /// The addresses at which the members of a group with this port are seen.
    pub(crate) fn members(&self, to: SocketAddr) -> Vec<SocketAddr> {
        let of_group = self
            .members
            .iter()
            .filter(|(group, member)| *group == to.ip() && member.port() == to.port());
        of_group.map(|(_, member)| self.seen(*member)).collect()
    }

    fn is_taken(&self, address: SocketAddr) -> bool {
        self.queues.contains_key(&address) || self.inside.contains_key(&address)
    }

    /// The host that has this address, or a new one if it is unspecified.
    pub(crate) fn host_of(&mut self, ip: IpAddr) -> io::Result<IpAddr> {
        match ip {
            ip if ip.is_multicast() => Err(io::ErrorKind::AddrNotAvailable.into()),
            ip if ip.is_unspecified() => Ok(self.new_host(ip.is_ipv4())?),
            ip => Ok(ip),
        }
    }

    /// A host of its own.
    pub(crate) fn new_host(&mut self, is_ipv4: bool) -> Result<IpAddr, io::ErrorKind> {
        self.hosts = self.hosts.checked_add(1).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let [high, low] = self.hosts.to_be_bytes();
        Ok(match is_ipv4 {
            true => Ipv4Addr::new(10, 1, high, low).into(),
            false => Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, self.hosts).into(),
        })
    }

    fn free_port(&self, ip: IpAddr) -> io::Result<SocketAddr> {
        let mut ports = (FIRST_DYNAMIC..=u16::MAX).map(|port| SocketAddr::new(ip, port));
        ports.find(|address| !self.is_taken(*address)).ok_or(io::ErrorKind::AddrInUse.into())
    }

    /// The address that others see of a port.
    pub(crate) fn seen(&self, port: SocketAddr) -> SocketAddr {
        self.outside.get(&port).copied().unwrap_or(port)
    }

    /// Gives a port another address for others, at which alone it is reached from now on.
    pub(crate) fn rebind(&mut self, port: SocketAddr) -> io::Result<SocketAddr> {
        if !self.queues.contains_key(&port) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let fresh = self.free_port(port.ip())?;
        if let Some(old) = self.outside.insert(port, fresh) {
            self.inside.remove(&old);
        }
        self.inside.insert(fresh, port);
        Ok(fresh)
    }

    /// Whether this is the address of a port before its last rebinding.
    pub(crate) fn is_forgotten(&self, address: SocketAddr) -> bool {
        self.outside.contains_key(&address) && !self.inside.contains_key(&address)
    }

    pub(crate) fn queue(&mut self, port: SocketAddr) -> Option<&mut PortQueue> {
        self.queues.get_mut(&port)
    }

    /// A datagram has arrived. Returns whom to wake.
    pub(crate) fn arrived(&mut self, to: SocketAddr, datagram: WaitingDatagram) -> Option<Waker> {
        if self.is_forgotten(to) {
            return None;
        }
        let port = self.inside.get(&to).copied().unwrap_or(to);
        let queue = self.queues.get_mut(&port)?;
        if queue.datagrams.len() < MAX_WAITING {
            queue.datagrams.push_back(datagram);
        }
        queue.waker.take()
    }
}
