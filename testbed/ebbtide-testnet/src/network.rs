//! The network: links between hosts, and the packets that are under way.

use crate::conditions::Conditions;
use crate::ports::{Ports, WaitingDatagram};
use crate::trace::{PacketFate, PacketTrace, TracedPacket};
use bytes::Bytes;
use ebbtide::network::{ArrivedDatagram, DatagramNetwork, DatagramPort};
use ebbtide::{ClientConfig, ServerConfig};
use ebbtide_core::time::Instant;
use ebbtide_sim::net::{Fate, Link};
use ebbtide_sim::random::Streams;
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;

/// The headers of IPv4 and UDP, which a link carries as well.
const HEADERS: u32 = 28;

/// The time of the system's clock at the beginning of a test, since 1970.
const START: Duration = Duration::from_secs(1_767_225_600);

/// A network in memory. Every IP address is a host of its own, with links to all others. Clones are the same network.
#[derive(Clone, Debug)]
pub struct TestNetwork {
    fabric: Arc<Fabric>,
}

#[derive(Debug)]
struct Fabric {
    state: Mutex<TestState>,
    /// The next packet may be due earlier than before.
    earlier: Notify,
    epoch: tokio::time::Instant,
}

/// A direction between two hosts.
type HostPair = (IpAddr, IpAddr);

#[derive(Debug)]
struct TestState {
    streams: Streams,
    conditions: Conditions,
    /// Those of directions that differ.
    of_directions: BTreeMap<HostPair, Conditions>,
    links: BTreeMap<HostPair, (Link<ChaCha8Rng>, ChaCha8Rng)>,
    cuts: BTreeSet<HostPair>,
    unplugged: BTreeSet<IpAddr>,
    ports: Ports,
    /// By time of arrival, then in the order of sending.
    under_way: BinaryHeap<Reverse<UnderWay>>,
    sent: u64,
    trace: PacketTrace,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct UnderWay {
    at: Instant,
    number: u64,
    route: PacketRoute,
    datagram: Bytes,
    /// In the trace.
    place: usize,
}

/// Whence and whither a packet goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PacketRoute {
    from: SocketAddr,
    to: SocketAddr,
    /// The group to which it was sent, if it was.
    group: Option<IpAddr>,
}

impl TestNetwork {
    /// Creates a network and the task that delivers its packets, in the present runtime.
    #[expect(clippy::disallowed_methods, reason = "the virtual clock of a test begins here")]
    pub(crate) fn start(seed: u64, conditions: Conditions) -> Self {
        let state = TestState {
            streams: Streams::new(seed, 0),
            conditions,
            of_directions: BTreeMap::new(),
            links: BTreeMap::new(),
            cuts: BTreeSet::new(),
            unplugged: BTreeSet::new(),
            ports: Ports::default(),
            under_way: BinaryHeap::new(),
            sent: 0,
            trace: PacketTrace::default(),
        };
        let epoch = tokio::time::Instant::now();
        let (state, earlier) = (Mutex::new(state), Notify::new());
        let network = Self { fabric: Arc::new(Fabric { state, earlier, epoch }) };
        network.set_system_clock(START);
        tokio::spawn(deliver(network.fabric.clone()));
        network
    }

    /// Settings for a client whose datagrams this network carries. It gets an address of
    /// 10.1.0.0/16, or of fd00:0:0:1::/64, unless it has a
    /// [`local_address`](ClientConfig::local_address).
    pub fn client_config(&self) -> ClientConfig {
        ClientConfig::new().network(self.clone())
    }

    /// Settings for a server whose datagrams this network carries. Its addresses are free to choose.
    pub fn server_config(&self) -> ServerConfig {
        ServerConfig::new().network(self.clone())
    }

    /// How much virtual time has passed.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.fabric.now().saturating_since(Instant::ZERO)
    }

    /// Changes the conditions of all links. Packets under way are not affected.
    pub fn set_conditions(&self, conditions: Conditions) {
        let mut state = self.fabric.lock();
        (state.conditions, state.links) = (conditions, BTreeMap::new());
    }

    /// Sets the conditions of one direction between two hosts, whatever those of the others are.
    pub fn set_direction(
        &self,
        from: impl Into<IpAddr>,
        to: impl Into<IpAddr>,
        conditions: Conditions,
    ) {
        let direction = (from.into(), to.into());
        let mut state = self.fabric.lock();
        state.links.remove(&direction);
        state.of_directions.insert(direction, conditions);
    }

    /// Cuts two hosts off from each other until [`Self::restore`]. Packets under way still arrive.
    pub fn cut(&self, one: impl Into<IpAddr>, other: impl Into<IpAddr>) {
        let (one, other) = (one.into(), other.into());
        self.fabric.lock().cuts.extend([(one, other), (other, one)]);
    }

    /// Takes a host's link down until [`Self::restore`]: its system reports to it that the network is unreachable, and
    /// packets that arrive meanwhile are lost.
    pub fn unplug(&self, host: impl Into<IpAddr>) {
        self.fabric.lock().unplugged.insert(host.into());
    }

    /// Ends all cuts, and plugs all hosts in.
    pub fn restore(&self) {
        let mut state = self.fabric.lock();
        state.cuts.clear();
        state.unplugged.clear();
    }

    /// Gives a client's or server's socket another port in the eyes of the others, as an address
    /// translator does that has forgotten it. Packets to the former one are lost. Returns the new
    /// address.
    ///
    /// # Errors
    ///
    /// Returns an error if `socket` is not the local address of an open socket.
    pub fn rebind(&self, socket: SocketAddr) -> io::Result<SocketAddr> {
        self.fabric.lock().ports.rebind(socket)
    }

    /// Sends a datagram as a stranger would who forges the address `from`, which may be that of
    /// another host, or of none.
    pub fn forge(&self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        let now = self.fabric.now();
        self.fabric.lock().send_from(now, from, to, datagram);
        self.fabric.earlier.notify_one();
    }

    /// Sets the system's clock of this network's servers, as the time since 1970: it may jump. It
    /// decides how old stored state is.
    pub fn set_system_clock(&self, since_1970: Duration) {
        ebbtide::network::set_system_clock(since_1970);
    }

    /// The packets so far.
    #[must_use]
    pub fn trace(&self) -> PacketTrace {
        self.fabric.lock().trace.clone()
    }
}

impl DatagramNetwork for TestNetwork {
    fn bind(&self, address: SocketAddr) -> io::Result<Box<dyn DatagramPort>> {
        let address = self.fabric.lock().ports.open(address)?;
        Ok(Box::new(TestPort { fabric: self.fabric.clone(), address }))
    }
}

impl Fabric {
    fn lock(&self) -> MutexGuard<'_, TestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.epoch.elapsed()
    }
}

impl TestState {
    fn send(
        &mut self,
        now: Instant,
        port: SocketAddr,
        to: SocketAddr,
        datagram: &[u8],
    ) -> io::Result<()> {
        if self.unplugged.contains(&port.ip()) {
            return Err(io::ErrorKind::NetworkUnreachable.into());
        }
        let from = self.ports.seen(port);
        self.send_from(now, from, to, datagram);
        Ok(())
    }

    /// Sends a datagram to a port, or over the link to each member of a group but its sender.
    fn send_from(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        let datagram = Bytes::copy_from_slice(datagram);
        if !to.ip().is_multicast() {
            return self.carry(now, PacketRoute { from, to, group: None }, &datagram);
        }
        let group = Some(to.ip());
        for to in self.ports.members(to).into_iter().filter(|member| *member != from) {
            self.carry(now, PacketRoute { from, to, group }, &datagram);
        }
    }

    fn carry(&mut self, now: Instant, route: PacketRoute, datagram: &Bytes) {
        let PacketRoute { from, to, .. } = route;
        let direction = (from.ip(), to.ip());
        let streams = &self.streams;
        let conditions = self.of_directions.get(&direction).unwrap_or(&self.conditions);
        let (link, duplicates) = self.links.entry(direction).or_insert_with(|| {
            let name = format!("{}/{}", from.ip(), to.ip());
            let link = conditions.link(streams, &name);
            (link, streams.stream(&format!("{name}/duplicates")))
        });
        let copies = if conditions.duplicates.draw(duplicates) { 2 } else { 1 };
        for _ in 0..copies {
            let length = u32::try_from(datagram.len()).unwrap_or(u32::MAX).saturating_add(HEADERS);
            let since = |at: Instant| at.saturating_since(Instant::ZERO);
            let fate = match link.send(now, length) {
                _ if self.cuts.contains(&direction) => PacketFate::Cut,
                Fate::Delivered { at } => {
                    let (number, datagram) = (self.sent, datagram.clone());
                    self.sent += 1;
                    let place = self.trace.packets().len();
                    self.under_way.push(Reverse(UnderWay { at, number, route, datagram, place }));
                    PacketFate::Arrives(since(at))
                }
                Fate::Dropped => PacketFate::Dropped,
                Fate::Lost { .. } => PacketFate::Lost,
            };
            self.trace.push(TracedPacket {
                at: since(now),
                from,
                to,
                datagram: datagram.clone(),
                fate,
            });
        }
    }

    fn next_due(&self) -> Option<Instant> {
        self.under_way.peek().map(|Reverse(next)| next.at)
    }

    /// Delivers what is due. Returns whom to wake.
    fn deliver(&mut self, now: Instant) -> Vec<Waker> {
        let mut woken = Vec::new();
        while self.next_due().is_some_and(|at| at <= now) {
            let Some(Reverse(next)) = self.under_way.pop() else {
                break;
            };
            let UnderWay { route: PacketRoute { from, to, group }, datagram: bytes, place, .. } =
                next;
            if self.unplugged.contains(&to.ip()) {
                self.trace.cut_off(place);
            } else {
                woken.extend(self.ports.arrived(to, WaitingDatagram { from, group, bytes }));
            }
        }
        woken
    }
}

/// Delivers packets for as long as the runtime exists.
async fn deliver(fabric: Arc<Fabric>) {
    loop {
        let earlier = fabric.earlier.notified();
        let (woken, next) = {
            let mut state = fabric.lock();
            (state.deliver(fabric.now()), state.next_due())
        };
        woken.into_iter().for_each(Waker::wake);
        match next {
            Some(at) => {
                let at = fabric.epoch + at.saturating_since(Instant::ZERO);
                let _ = tokio::time::timeout_at(at, earlier).await;
            }
            None => earlier.await,
        }
    }
}

/// An open port.
#[derive(Debug)]
struct TestPort {
    fabric: Arc<Fabric>,
    address: SocketAddr,
}

impl DatagramPort for TestPort {
    fn local_addr(&self) -> SocketAddr {
        self.address
    }

    fn send(&self, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        let now = self.fabric.now();
        self.fabric.lock().send(now, self.address, to, datagram)?;
        self.fabric.earlier.notify_one();
        Ok(())
    }

    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<ArrivedDatagram>> {
        let mut state = self.fabric.lock();
        let Some(queue) = state.ports.queue(self.address) else { return Poll::Pending };
        match queue.datagrams.pop_front() {
            Some(WaitingDatagram { from, group, bytes }) => {
                let length = bytes.len().min(buffer.len());
                buffer[..length].copy_from_slice(&bytes[..length]);
                Poll::Ready(Ok(ArrivedDatagram { length, from, group }))
            }
            None => {
                queue.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn join(&self, group: IpAddr) -> io::Result<()> {
        self.fabric.lock().ports.join(group, self.address)
    }
}

impl Drop for TestPort {
    fn drop(&mut self) {
        self.fabric.lock().ports.close(self.address);
    }
}
