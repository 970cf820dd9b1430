//! The network as tests see it.

use crate::conditions::Conditions;
use crate::fabric::Fabric;
use crate::ports::WaitingDatagram;
use crate::streams::{TestListener, TestStream};
use crate::trace::PacketTrace;
use ebbtide::network::{
    ArrivedDatagram, ByteStream, Connecting, DatagramNetwork, DatagramPort, StreamListener,
    StreamNetwork,
};
use ebbtide::{ClientConfig, ServerConfig};
use ebbtide_core::time::Instant;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The time of the system's clock at the beginning of a test, since 1970.
const START: Duration = Duration::from_secs(1_767_225_600);

/// A network in memory. Every IP address is a host of its own, with links to all others. Clones are the same network.
#[derive(Clone, Debug)]
pub struct TestNetwork {
    fabric: Arc<Fabric>,
}

impl TestNetwork {
    /// Creates a network and the task that delivers its packets, in the present runtime.
    pub(crate) fn start(seed: u64, conditions: Conditions) -> Self {
        let network = Self { fabric: Fabric::start(seed, conditions) };
        network.set_system_clock(START);
        network
    }

    /// Settings for a client whose datagrams and connections this network carries. Each socket and each connection
    /// gets an address of 10.1.0.0/16, or of fd00:0:0:1::/64, unless the client has a
    /// [`local_address`](ClientConfig::local_address).
    pub fn client_config(&self) -> ClientConfig {
        ClientConfig::new().network(self.clone())
    }

    /// Settings for a server whose datagrams and connections this network carries. Its addresses are free to choose.
    pub fn server_config(&self) -> ServerConfig {
        ServerConfig::new().network(self.clone())
    }

    /// How much virtual time has passed.
    pub fn elapsed(&self) -> Duration {
        self.fabric.now().saturating_since(Instant::ZERO)
    }

    /// Changes the conditions of all links. Packets under way are not affected.
    pub fn set_conditions(&self, conditions: Conditions) {
        self.fabric.lock().links.set_conditions(conditions);
    }

    /// Sets the conditions of one direction between two hosts, whatever those of the others are.
    pub fn set_direction(
        &self,
        from: impl Into<IpAddr>,
        to: impl Into<IpAddr>,
        conditions: Conditions,
    ) {
        self.fabric.lock().links.set_direction((from.into(), to.into()), conditions);
    }

    /// Cuts two hosts off from each other until [`Self::restore`]. Packets under way still arrive. Connections wait
    /// until it is over, and end after a quarter of an hour.
    pub fn cut(&self, one: impl Into<IpAddr>, other: impl Into<IpAddr>) {
        let (one, other) = (one.into(), other.into());
        self.fabric.lock().links.cuts.extend([(one, other), (other, one)]);
    }

    /// Takes a host's link down until [`Self::restore`]: its system reports to it that the network is unreachable, and
    /// packets that arrive meanwhile are lost.
    pub fn unplug(&self, host: impl Into<IpAddr>) {
        self.fabric.lock().links.unplugged.insert(host.into());
    }

    /// Ends all cuts, and plugs all hosts in.
    pub fn restore(&self) {
        let mut state = self.fabric.lock();
        state.links.cuts.clear();
        state.links.unplugged.clear();
    }

    /// Resets the open connections between two hosts, as a firewall does that ends them: both sides notice.
    pub fn reset_connections(&self, one: impl Into<IpAddr>, other: impl Into<IpAddr>) {
        let (one, other) = (one.into(), other.into());
        self.fabric.change(|state, _| {
            state.connections.reset_between(&mut state.links, one, other);
        });
    }

    /// Loses everything that is sent over the open connections between two hosts from now on, as an address
    /// translator does that has forgotten them: neither side notices. New connections work.
    pub fn silence_connections(&self, one: impl Into<IpAddr>, other: impl Into<IpAddr>) {
        self.fabric.lock().connections.silence_between(one.into(), other.into());
    }

    /// Gives a client's or server's socket another port in the eyes of the others, as an address
    /// translator does that has forgotten it. Packets to the former one are lost before they reach
    /// the link. Returns the new address.
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
        self.fabric.change(|state, now| state.send_from(now, from, to, datagram));
    }

    /// Sets the system's clock of this network's servers, as the time since 1970: it may jump. It
    /// decides how old stored state is.
    pub fn set_system_clock(&self, since_1970: Duration) {
        ebbtide::network::set_system_clock(since_1970);
    }

    /// The packets so far.
    pub fn trace(&self) -> PacketTrace {
        self.fabric.lock().links.trace.clone()
    }
}

impl DatagramNetwork for TestNetwork {
    fn bind(&self, address: SocketAddr) -> io::Result<Box<dyn DatagramPort>> {
        let address = self.fabric.lock().ports.open(address)?;
        Ok(Box::new(TestPort { fabric: self.fabric.clone(), address }))
    }

    fn streams(&self) -> Option<&dyn StreamNetwork> {
        Some(self)
    }
}

impl StreamNetwork for TestNetwork {
    fn connect(&self, from: Option<IpAddr>, to: SocketAddr) -> Connecting {
        let fabric = self.fabric.clone();
        Box::pin(async move {
            let opened = fabric.change(|state, now| {
                let host = match from {
                    Some(host) => host,
                    None => state.ports.new_host(to.is_ipv4())?,
                };
                if state.links.unplugged.contains(&host) {
                    return Err(io::ErrorKind::NetworkUnreachable);
                }
                Ok(state.connections.open(now, &mut state.links, host, to))
            });
            let stream = TestStream { end: opened?, fabric };
            poll_fn(|cx| stream.poll_open(cx)).await?;
            let stream: Box<dyn ByteStream> = Box::new(stream);
            Ok(stream)
        })
    }

    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn StreamListener>> {
        let mut state = self.fabric.lock();
        let host = state.ports.host_of(address.ip())?;
        let address = state.connections.listen(host, address.port())?;
        drop(state);
        Ok(Box::new(TestListener { fabric: self.fabric.clone(), address }))
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
        self.fabric.change(|state, now| state.send(now, self.address, to, datagram))
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
