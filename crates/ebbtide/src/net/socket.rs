//! A UDP socket that receives and sends in batches.
//!
//! Datagrams are received with `recvmmsg`, several from one peer in one buffer where the kernel
//! coalesces them (GRO). Runs of equally long datagrams to one peer are sent with one `sendmsg`
//! (GSO). `quinn-udp` implements this on each platform, and the alternative where it is not
//! available.

use super::network::ArrivedDatagram;
use crate::error::BindError;
use quinn_udp::{BATCH_SIZE, RecvMeta, TransportError, UdpSockRef, UdpSocketState};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockRef, Socket as RawSocket, Type};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::task::Poll;

/// Bytes of one receive buffer: as many as the kernel coalesces.
const BUFFER: usize = 65_536;
/// Bytes that one `sendmsg` takes: the maximum of an IPv4 datagram without the headers.
const MAX_SEND: usize = 65_507;
/// The requested size of the kernel's queue for a socket, so that a burst finds room. The kernel
/// grants at most its own limit.
const KERNEL_BUFFER: usize = 4 << 20;

/// The minimum number of buffers offered to the kernel at once: one more than the expected
/// datagram, to find out that there is no other.
const MIN_OFFERED: usize = if BATCH_SIZE < 2 { BATCH_SIZE } else { 2 };

/// Options of UDP sockets that the network sees. The system chooses those that are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketOptions {
    /// The name of the interface that everything leaves and comes by (SO_BINDTODEVICE; Linux).
    pub interface: Option<String>,
    /// The index of the interface that requests to groups leave by
    /// ([`interface_index`](crate::server::interface_index)).
    pub multicast_interface: Option<u32>,
    /// The hop limit, or time to live, of what goes to one host.
    pub hop_limit: Option<u8>,
    /// That of requests to groups. The system's choice is mostly 1: they stay on the link.
    pub multicast_hop_limit: Option<u8>,
    /// The code point of Differentiated Services (RFC 2474), 0 to 63.
    pub dscp: Option<u8>,
    /// Whether several sockets are bound to one address (SO_REUSEPORT).
    pub(crate) shared: bool,
}

/// How a socket comes to its address.
#[derive(Debug)]
pub(crate) enum Binding {
    /// It has the address for itself.
    Alone,
    /// It shares the address with those of other workers.
    AmongWorkers,
    /// It was bound before the program started.
    HandedOver(RawSocket),
}

impl SocketOptions {
    fn set(&self, socket: &RawSocket, is_ipv4: bool) -> io::Result<()> {
        if self.shared {
            #[cfg(target_os = "linux")]
            socket.set_reuse_port(true)?;
            #[cfg(not(target_os = "linux"))]
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "several workers: only Linux divides peers among sockets",
            ));
        }
        if let Some(interface) = &self.interface {
            #[cfg(target_os = "linux")]
            socket.bind_device(Some(interface.as_bytes()))?;
            #[cfg(not(target_os = "linux"))]
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("interface {interface}"),
            ));
        }
        if let Some(index) = self.multicast_interface {
            if is_ipv4 {
                #[cfg(target_os = "linux")]
                rustix::net::sockopt::set_ip_multicast_if_with_ifindex(
                    socket,
                    &std::net::Ipv4Addr::UNSPECIFIED,
                    &std::net::Ipv4Addr::UNSPECIFIED,
                    index,
                )?;
            } else {
                socket.set_multicast_if_v6(index)?;
            }
        }
        if let Some(hops) = self.hop_limit {
            if is_ipv4 {
                socket.set_ttl_v4(hops.into())?;
            } else {
                socket.set_unicast_hops_v6(hops.into())?;
            }
        }
        if let Some(hops) = self.multicast_hop_limit {
            if is_ipv4 {
                socket.set_multicast_ttl_v4(hops.into())?;
            } else {
                socket.set_multicast_hops_v6(hops.into())?;
            }
        }
        if let Some(dscp) = self.dscp {
            if dscp > 63 {
                let why = format!("DSCP {dscp}: it is 0 to 63");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            // The two bits below are for ECN (RFC 3168 section 5).
            let class = u32::from(dscp) << 2;
            if is_ipv4 {
                socket.set_tos_v4(class)?;
            } else {
                socket.set_tclass_v6(class)?;
            }
        }
        Ok(())
    }
}

/// A bound, non-blocking socket.
#[derive(Debug)]
pub struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
}

impl Socket {
    /// Binds a socket. An IPv6 socket does not receive IPv4 datagrams, so that both families can
    /// be bound to one port.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is in use, does not belong to this machine, or needs a
    /// privilege.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        Self::bind_with(address, &SocketOptions::default())
    }

    /// Opens a socket with these options.
    ///
    /// # Errors
    ///
    /// As [`Self::bind`], and if an option is not supported by the system or for this family.
    pub fn bind_with(address: SocketAddr, options: &SocketOptions) -> Result<Self, BindError> {
        Self::open(address, options).map_err(|source| BindError::new(address, source))
    }

    fn open(address: SocketAddr, options: &SocketOptions) -> io::Result<Self> {
        let raw = RawSocket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        options.set(&raw, address.is_ipv4())?;
        if address.is_ipv6() {
            raw.set_only_v6(true)?;
        }
        // Best effort: with a smaller buffer only more of a burst is lost.
        let _ = raw.set_recv_buffer_size(KERNEL_BUFFER);
        let _ = raw.set_send_buffer_size(KERNEL_BUFFER);
        raw.bind(&address.into())?;
        Self::of_bound(raw)
    }

    /// A socket that is bound.
    pub(crate) fn of_bound(raw: RawSocket) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&raw))?;
        // On a platform without transport errors, a refused port is noticed by the timeout.
        let _ = state.enable_transport_errors(UdpSockRef::from(&raw));
        let io = UdpSocket::from(raw);
        let local = io.local_addr()?;
        Ok(Self { io, state, local })
    }

    /// Allows the system to fragment datagrams that are longer than the path's MTU, if it supports
    /// that; otherwise they cannot be sent at all. The minimum MTU of IPv6 has room for blocks of
    /// 1024 bytes.
    pub fn allow_fragments(&self) {
        #[cfg(target_os = "linux")]
        if self.local.is_ipv4() {
            use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
            // Best effort: if it fails, datagrams that are too long are not sent, as before.
            let _ = set_ip_mtu_discover(&self.io, Ipv4PathMtuDiscovery::WANT);
        }
    }

    /// Sends one datagram, from the given local address if there is one.
    fn send(&self, to: SocketAddr, from: Option<IpAddr>, contents: &[u8]) -> io::Result<()> {
        match from {
            None => self.io.send_to(contents, to).map(|_| ()),
            Some(_) => self.send_run(to, from, contents, None),
        }
    }

    /// Sends equally long datagrams of `segment_size` bytes with one call.
    fn send_run(
        &self,
        destination: SocketAddr,
        src_ip: Option<IpAddr>,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        let transmit =
            quinn_udp::Transmit { destination, ecn: None, contents, segment_size, src_ip };
        self.state.try_send(UdpSockRef::from(&self.io), &transmit)
    }

    /// The address to which the socket is bound.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Joins a multicast group on an interface, given by its index; 0 lets the system choose.
    ///
    /// # Errors
    ///
    /// Returns an error if `group` is not a multicast address or the interface does not exist.
    pub fn join(&self, group: IpAddr, interface: u32) -> io::Result<()> {
        let socket = SockRef::from(&self.io);
        let joined = match group {
            IpAddr::V4(group) => {
                socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(interface))
            }
            IpAddr::V6(group) => socket.join_multicast_v6(&group, interface),
        };
        match joined {
            // A socket that was handed over is a member already.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(()),
            joined => joined,
        }
    }

    /// The underlying socket, for an event loop to wait on.
    #[must_use]
    pub fn as_udp(&self) -> &UdpSocket {
        &self.io
    }

    /// The next error that the network reported (ICMP), if there is one.
    pub fn take_error(&self) -> Option<TransportError> {
        self.state.recv_transport_error(UdpSockRef::from(&self.io)).ok().flatten()
    }

    /// The number of datagrams that one `sendmsg` takes.
    fn max_segments(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }
}

/// Buffers for received datagrams. One inbox serves any number of sockets of a thread.
pub struct Inbox {
    bytes: Box<[u8]>,
    meta: [RecvMeta; BATCH_SIZE],
    filled: usize,
    /// The datagrams that were received and have been taken.
    taken: usize,
    /// Whether others were received with them and have not.
    left: bool,
    /// The number of buffers offered to the kernel. Preparing all of them takes longer than
    /// receiving the single datagram that sparse traffic brings.
    offered: usize,
}

impl core::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Inbox").field("filled", &self.filled).finish_non_exhaustive()
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new()
    }
}

/// A datagram in an [`Inbox`].
#[derive(Copy, Clone, Debug)]
pub struct Datagram<'i> {
    /// The sender.
    pub from: SocketAddr,
    /// The local address to which it was sent, if the system reports it.
    pub to: Option<IpAddr>,
    /// Whether a router marked it: Congestion Experienced (RFC 3168 section 5). False if the system does not
    /// report the mark.
    pub congestion_experienced: bool,
    /// Its bytes.
    pub bytes: &'i [u8],
}

impl Inbox {
    /// Creates buffers for one batch: 2 MiB of address space, of which the system backs only the
    /// used part.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bytes: vec![0; BUFFER * BATCH_SIZE].into_boxed_slice(),
            meta: [RecvMeta::default(); BATCH_SIZE],
            filled: 0,
            taken: 0,
            left: false,
            offered: MIN_OFFERED,
        }
    }

    /// Receives the available datagrams, up to one batch. Returns true if there may be more.
    ///
    /// # Errors
    ///
    /// Returns `WouldBlock` if there is no datagram.
    pub fn receive(&mut self, socket: &Socket) -> io::Result<bool> {
        (self.filled, self.taken, self.left) = (0, 0, false);
        let offered = self.offered;
        self.filled = match offered {
            // A client with one request at a time: it does not prepare the other buffers.
            MIN_OFFERED => self.fill::<MIN_OFFERED>(socket, offered)?,
            _ => self.fill::<BATCH_SIZE>(socket, offered)?,
        };
        let more = self.filled == offered;
        self.offered = if more { 2 * offered } else { (self.filled + 1).next_power_of_two() };
        self.offered = self.offered.clamp(MIN_OFFERED, BATCH_SIZE);
        Ok(more)
    }

    /// Receives at most `offered` datagrams, which is at most `N`. Returns their number.
    fn fill<const N: usize>(&mut self, socket: &Socket, offered: usize) -> io::Result<usize> {
        let mut chunks = self.bytes.chunks_exact_mut(BUFFER);
        let mut slices: [IoSliceMut<'_>; N] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let (slices, meta) = (slices.get_mut(..offered), self.meta.get_mut(..offered));
        let (slices, meta) = (slices.unwrap_or_default(), meta.unwrap_or_default());
        socket.state.recv(UdpSockRef::from(&socket.io), slices, meta)
    }

    /// Receives by this function what there is, up to one batch.
    pub(super) fn fill_with(
        &mut self,
        mut receive: impl FnMut(&mut [u8]) -> Poll<io::Result<ArrivedDatagram>>,
    ) -> Poll<io::Result<()>> {
        (self.filled, self.taken, self.left) = (0, 0, false);
        for (buffer, meta) in self.bytes.chunks_exact_mut(BUFFER).zip(&mut self.meta) {
            match receive(buffer) {
                Poll::Ready(Ok(ArrivedDatagram { length, from, group })) => {
                    *meta = RecvMeta::default();
                    (meta.addr, meta.len, meta.stride) = (from, length, length);
                    meta.dst_ip = group;
                    self.filled += 1;
                }
                Poll::Ready(Err(error)) if self.filled == 0 => return Poll::Ready(Err(error)),
                Poll::Ready(Err(_)) | Poll::Pending => break,
            }
        }
        if self.filled > 0 { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Whether [`Self::datagrams`] returns any that [`Self::take`] has left.
    pub(crate) fn has_left(&self) -> bool {
        self.left
    }

    /// The next `count` datagrams have been handled.
    pub(crate) fn take(&mut self, count: usize) {
        self.taken += count;
        let left = self.datagrams().next().is_some();
        self.left = left;
    }

    /// The datagrams received last, without those that were taken.
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.received().skip(self.taken)
    }

    fn received(&self) -> impl Iterator<Item = Datagram<'_>> {
        let filled = self.meta.iter().take(self.filled).zip(self.bytes.chunks_exact(BUFFER));
        filled.flat_map(|(meta, buffer)| {
            let bytes = buffer.get(..meta.len).unwrap_or_default();
            bytes.chunks(meta.stride.max(1)).map(|bytes| Datagram {
                from: meta.addr,
                to: meta.dst_ip,
                congestion_experienced: meta.ecn == Some(quinn_udp::EcnCodepoint::Ce),
                bytes,
            })
        })
    }
}

/// Datagrams that wait to be sent, in one reused buffer.
#[derive(Debug)]
pub struct Outbound<T> {
    bytes: Vec<u8>,
    queue: Vec<QueuedDatagram<T>>,
    /// Entries before this one have been sent.
    next: usize,
}

#[derive(Debug)]
struct QueuedDatagram<T> {
    to: SocketAddr,
    from: Option<IpAddr>,
    start: usize,
    end: usize,
    what: T,
}

impl<T> Default for Outbound<T> {
    fn default() -> Self {
        Self { bytes: Vec::new(), queue: Vec::new(), next: 0 }
    }
}

impl<T: Copy> Outbound<T> {
    /// Queues a datagram, to be sent from the given local address if there is one. `what` is
    /// returned if it cannot be sent.
    #[inline]
    pub fn push(&mut self, to: SocketAddr, from: Option<IpAddr>, datagram: &[u8], what: T) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(datagram);
        self.queue.push(QueuedDatagram { to, from, start, end: self.bytes.len(), what });
    }

    /// Queues the datagram that `write` appends to the buffer, for the destination that it returns.
    ///
    /// # Errors
    ///
    /// Returns the error of `write`; nothing is queued then.
    #[inline]
    pub fn append<E>(
        &mut self,
        from: Option<IpAddr>,
        what: T,
        write: impl FnOnce(&mut Vec<u8>) -> Result<SocketAddr, E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        let to = write(&mut self.bytes).inspect_err(|_| self.bytes.truncate(start));
        let end = self.bytes.len();
        self.queue.push(QueuedDatagram { to: to?, from, start, end, what });
        Ok(())
    }

    /// Whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The number of waiting datagrams.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len() - self.next
    }

    /// The number of waiting bytes.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Sends all waiting datagrams. Those that cannot be sent at all are passed to `failed` and
    /// dropped.
    ///
    /// # Errors
    ///
    /// Returns `WouldBlock` if the socket is full; the rest stays queued.
    pub fn flush(
        &mut self,
        socket: &Socket,
        mut failed: impl FnMut(SocketAddr, T, io::Error),
    ) -> io::Result<()> {
        let segments = socket.max_segments();
        let mut retried = false;
        while let Some(run) = self.run(segments) {
            let end = self.next + run.count;
            let contents = self.bytes.get(run.start..run.end).unwrap_or_default();
            let sent = match run.count {
                1 => socket.send(run.to, run.from, contents),
                _ => socket.send_run(run.to, run.from, contents, Some(run.size)),
            };
            match sent {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Any later call returns a pending transport error of an earlier datagram and
                // clears it. The error is read from the error queue, not here.
                Err(error) if is_of_an_earlier_datagram(&error) && !retried => {
                    retried = true;
                    continue;
                }
                Err(_) if run.count > 1 => {
                    // Without segmentation each datagram is sent separately.
                    self.flush_singly(socket, end, &mut failed)?;
                }
                Err(error) => {
                    if let Some(entry) = self.queue.get(self.next) {
                        failed(entry.to, entry.what, error);
                    }
                }
            }
            self.next = end;
            retried = false;
        }
        self.bytes.clear();
        self.queue.clear();
        self.next = 0;
        Ok(())
    }

    /// Sends all waiting datagrams, each by this function. Those that fail are passed to `failed`.
    pub(super) fn send_each(
        &mut self,
        mut send: impl FnMut(SocketAddr, &[u8]) -> io::Result<()>,
        mut failed: impl FnMut(SocketAddr, T, io::Error),
    ) {
        for entry in self.queue.iter().skip(self.next) {
            let datagram = self.bytes.get(entry.start..entry.end).unwrap_or_default();
            if let Err(error) = send(entry.to, datagram) {
                failed(entry.to, entry.what, error);
            }
        }
        self.bytes.clear();
        self.queue.clear();
        self.next = 0;
    }

    fn flush_singly(
        &mut self,
        socket: &Socket,
        end: usize,
        failed: &mut impl FnMut(SocketAddr, T, io::Error),
    ) -> io::Result<()> {
        while self.next < end {
            let Some(entry) = self.queue.get(self.next) else { return Ok(()) };
            let contents = self.bytes.get(entry.start..entry.end).unwrap_or_default();
            match socket.send(entry.to, entry.from, contents) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                Err(error) => failed(entry.to, entry.what, error),
            }
            self.next += 1;
        }
        Ok(())
    }

    /// The next datagrams that can be sent with one call: to one peer and equally long, except for
    /// the last one, which may be shorter.
    fn run(&self, segments: usize) -> Option<Run> {
        let rest = self.queue.get(self.next..)?;
        let first = rest.first()?;
        let mut end = first.end;
        let size = end - first.start;
        let mut count = 1;
        for entry in rest.get(1..).unwrap_or_default() {
            let length = entry.end - entry.start;
            let fits = count < segments && entry.end - first.start <= MAX_SEND;
            if !fits || entry.to != first.to || entry.from != first.from || length > size {
                break;
            }
            end = entry.end;
            count += 1;
            if length < size {
                break;
            }
        }
        Some(Run { to: first.to, from: first.from, start: first.start, end, size, count })
    }
}

struct Run {
    to: SocketAddr,
    from: Option<IpAddr>,
    start: usize,
    end: usize,
    size: usize,
    count: usize,
}

fn is_of_an_earlier_datagram(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}
