//! Networks in the place of the system's UDP and TCP sockets.

#[cfg(feature = "test-net")]
pub use super::seeded::{SeededRandomness, set_system_clock};

use std::fmt::Debug;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite};

/// A network that carries the datagrams of clients and servers
/// ([`ClientConfig::network`](crate::ClientConfig::network)): one in memory for tests, such as that
/// of crate `ebbtide-testnet`, or another kind of datagrams than UDP.
pub trait DatagramNetwork: Debug + Send + Sync {
    /// Opens a port. For an unspecified address or port 0 the network chooses one.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is in use, or none of this network.
    fn bind(&self, address: SocketAddr) -> io::Result<Box<dyn DatagramPort>>;

    /// Its connections, over which TCP, TLS and WebSockets go. A network without any need not have them: clients and
    /// servers that want one receive an error.
    fn streams(&self) -> Option<&dyn StreamNetwork> {
        None
    }
}

/// A datagram that a [`DatagramPort`] has received into a buffer.
#[derive(Copy, Clone, Debug)]
pub struct ArrivedDatagram {
    /// Its length in bytes.
    pub length: usize,
    /// Its sender.
    pub from: SocketAddr,
    /// The multicast group to which it was sent, unless it was sent to the port's own address.
    pub group: Option<IpAddr>,
}

/// An open port of a [`DatagramNetwork`]; dropping it closes it.
pub trait DatagramPort: Debug + Send + Sync {
    /// The address of the port.
    fn local_addr(&self) -> SocketAddr;

    /// Sends a datagram. One that cannot be carried at present is dropped silently: the endpoint transmits it again.
    ///
    /// # Errors
    ///
    /// An error costs this transmission, and the application receives it if the last one has failed
    /// as well. Only one that cannot pass, such as a datagram that is too long, ends a request.
    fn send(&self, to: SocketAddr, datagram: &[u8]) -> io::Result<()>;

    /// Receives a datagram into `buffer`, which has room for 65,536 bytes. If there is none, the
    /// waker of `cx` is woken when one arrives; only that of the last call needs to be.
    ///
    /// # Errors
    ///
    /// Returns an error that the network reports. The port remains usable.
    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<ArrivedDatagram>>;

    /// Receives what is sent to a multicast group as well. A network without groups need not have it.
    ///
    /// # Errors
    ///
    /// Returns an error if the network has no such group.
    fn join(&self, group: IpAddr) -> io::Result<()> {
        let why = format!("group {group}: this network has no groups");
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }
}

/// The connections of a [`DatagramNetwork`]: streams of bytes in both directions, which arrive in order, as over TCP.
pub trait StreamNetwork: Debug + Send + Sync {
    /// Opens a connection to the listener at `to`, from an address that the network chooses unless `from` names one.
    /// Dropping the future gives the attempt up.
    ///
    /// # Errors
    ///
    /// The future returns an error if no program listens there, or the address cannot be reached.
    fn connect(&self, from: Option<IpAddr>, to: SocketAddr) -> Connecting;

    /// Listens for connections. For an unspecified address or port 0 the network chooses one.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is in use, or none of this network.
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn StreamListener>>;
}

/// The attempt of a [`StreamNetwork`] to open a connection.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn ByteStream>>> + Send>>;

/// A connection of a [`StreamNetwork`]. Dropping it closes it. Every type with these traits is one.
pub trait ByteStream: AsyncRead + AsyncWrite + Debug + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Debug + Send + Unpin> ByteStream for T {}

/// A listener of a [`StreamNetwork`]; dropping it closes it, and leaves its connections open.
pub trait StreamListener: Debug + Send + Sync {
    /// The address of the listener.
    fn local_addr(&self) -> SocketAddr;

    /// Accepts a connection, and returns the address of its client as well. If there is none, the waker of `cx` is
    /// woken when one arrives; only that of the last call needs to be.
    ///
    /// # Errors
    ///
    /// Returns an error that the network reports. The listener remains usable.
    fn poll_accept(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(Box<dyn ByteStream>, SocketAddr)>>;
}
