//! Where a connection's bytes go: a TCP socket of the system, or a stream of another network.

use crate::net::handed_over::HandedOver;
use crate::net::network::{ByteStream, DatagramNetwork, StreamListener, StreamNetwork};
use socket2::{Domain, Protocol, Socket, Type};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// The length of the queue of connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// An open connection.
#[derive(Debug)]
pub(crate) enum StreamSocket {
    System(TcpStream),
    Network(Box<dyn ByteStream>),
}

fn streams(network: &dyn DatagramNetwork) -> io::Result<&dyn StreamNetwork> {
    let without = || io::Error::new(io::ErrorKind::Unsupported, "this network has no connections");
    network.streams().ok_or_else(without)
}

impl StreamSocket {
    /// Connects over this network, or over the system's if there is none. `from` is a local address, which counts
    /// for peers of its family.
    pub(super) async fn connect(
        network: Option<&dyn DatagramNetwork>,
        from: Option<SocketAddr>,
        to: SocketAddr,
    ) -> io::Result<Self> {
        let from =
            from.filter(|from| from.is_ipv4() == to.is_ipv4() && !from.ip().is_unspecified());
        if let Some(network) = network {
            let from = from.map(|from| from.ip());
            return streams(network)?.connect(from, to).await.map(Self::Network);
        }
        let Some(from) = from else {
            return TcpStream::connect(to).await.map(Self::System);
        };
        let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.bind(from)?;
        socket.connect(to).await.map(Self::System)
    }

    pub(super) fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        match self {
            Self::System(stream) => stream.set_nodelay(yes),
            Self::Network(_) => Ok(()),
        }
    }

    /// The number of its descriptor, if it has one. The system assigns the lowest free number, so a high number shows
    /// how many are taken.
    pub(super) fn descriptor(&self) -> u64 {
        match self {
            #[cfg(unix)]
            Self::System(stream) => {
                use std::os::fd::AsRawFd;
                u64::try_from(stream.as_raw_fd()).unwrap_or(0)
            }
            #[cfg(not(unix))]
            Self::System(_) => 0,
            Self::Network(_) => 0,
        }
    }
}

impl AsyncRead for StreamSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::System(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Network(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for StreamSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::System(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Network(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::System(stream) => Pin::new(stream).poll_flush(cx),
            Self::Network(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::System(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Network(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    // TLS writes several records at once.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::System(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            Self::Network(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::System(stream) => stream.is_write_vectored(),
            Self::Network(stream) => stream.is_write_vectored(),
        }
    }
}

/// A socket that accepts connections.
#[derive(Debug)]
pub(super) enum ListeningSocket {
    System(TcpListener),
    Network(Box<dyn StreamListener>),
}

impl ListeningSocket {
    /// Listens at an address of this network, or of the system's if there is none, at the socket that was handed over
    /// for it if there is one.
    pub(super) fn open(
        network: Option<&dyn DatagramNetwork>,
        handed_over: &HandedOver,
        address: SocketAddr,
    ) -> io::Result<Self> {
        if let Some(network) = network {
            return streams(network)?.listen(address).map(Self::Network);
        }
        let taken = handed_over.take(Type::STREAM, address)?.into_iter().next();
        let socket = taken.map_or_else(|| bind(address), Ok)?;
        TcpListener::from_std(socket.into()).map(Self::System)
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::System(listener) => listener.local_addr(),
            Self::Network(listener) => Ok(listener.local_addr()),
        }
    }

    /// The next connection, and the address of its client. Dropping the future loses none.
    pub(super) async fn accept(&self) -> io::Result<(StreamSocket, SocketAddr)> {
        match self {
            Self::System(listener) => {
                let (stream, from) = listener.accept().await?;
                Ok((StreamSocket::System(stream), from))
            }
            Self::Network(listener) => {
                let (stream, from) = poll_fn(|cx| listener.poll_accept(cx)).await?;
                Ok((StreamSocket::Network(stream), from))
            }
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    // A restarted server need not wait until its old connections are forgotten.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}
