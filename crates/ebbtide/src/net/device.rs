//! Where a socket's datagrams leave and arrive: a UDP socket of the system, or a port of another network.

use super::alarm::Alarm;
use super::clock::Clock;
use super::network::{DatagramNetwork, DatagramPort};
use super::socket::{Binding, Inbox, Outbound, Socket, SocketOptions};
use crate::error::BindError;
use quinn_udp::TransportError;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// See the [module](self).
#[derive(Debug)]
pub(crate) enum DatagramSocket {
    System(AsyncFd<Bound>),
    Network(Box<dyn DatagramPort>),
}

/// The socket in the form that the event loop needs.
#[derive(Debug)]
pub(crate) struct Bound(Socket);

impl std::os::fd::AsRawFd for Bound {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_udp().as_raw_fd()
    }
}

/// The outcome of receiving.
#[derive(Debug)]
pub(super) enum ReceiveOutcome {
    /// Datagrams are in the inbox.
    Datagrams,
    /// Nothing yet, although the device was ready.
    Nothing,
    /// The network has reported an error.
    Error,
}

impl DatagramSocket {
    /// Binds an address of this network, or of the system's if there is none.
    pub(super) fn open(
        address: SocketAddr,
        binding: Binding,
        options: SocketOptions,
        network: Option<&dyn DatagramNetwork>,
    ) -> Result<Self, BindError> {
        let failed = |source| BindError::new(address, source);
        if let Some(network) = network {
            return network.bind(address).map(Self::Network).map_err(failed);
        }
        if !cfg!(feature = "udp") {
            return Err(failed(io::Error::new(
                io::ErrorKind::Unsupported,
                "it needs the feature 'udp' of ebbtide",
            )));
        }
        let socket = match binding {
            Binding::Alone => Socket::bind_with(address, &options)?,
            Binding::AmongWorkers => {
                Socket::bind_with(address, &SocketOptions { shared: true, ..options })?
            }
            Binding::HandedOver(socket) => Socket::of_bound(socket).map_err(failed)?,
        };
        #[expect(
            deprecated,
            reason = "its replacement is unsafe because a type might change its descriptor; \
                      `Bound` owns one for life"
        )]
        let socket = AsyncFd::with_interest(Bound(socket), Interest::READABLE).map_err(failed)?;
        Ok(Self::System(socket))
    }

    /// Datagrams that the kernel dropped for want of room.
    pub(crate) fn kernel_drops(&self) -> u64 {
        self.socket().map_or(0, |socket| super::kernel_drops::of(socket.as_udp()))
    }

    /// The socket of the system.
    pub(crate) fn socket(&self) -> Option<&Socket> {
        match self {
            Self::System(socket) => Some(&socket.get_ref().0),
            Self::Network(_) => None,
        }
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        match self {
            Self::System(socket) => socket.get_ref().0.local_addr(),
            Self::Network(port) => port.local_addr(),
        }
    }

    /// A timer for the driver. Another network may have the time of tokio's tests, which the timers of the kernel do
    /// not follow.
    pub(super) fn alarm(&self, clock: Clock) -> Alarm {
        match self {
            Self::System(_) => Alarm::new(clock),
            Self::Network(_) => Alarm::of_tokio(clock),
        }
    }

    /// Allows the system to fragment datagrams ([`Socket::allow_fragments`]).
    pub(super) fn allow_fragments(&self) {
        if let Some(socket) = self.socket() {
            socket.allow_fragments();
        }
    }

    /// Joins a multicast group.
    pub(crate) fn join(&self, group: IpAddr, interface: u32) -> io::Result<()> {
        match self {
            Self::System(socket) => socket.get_ref().0.join(group, interface),
            Self::Network(port) => port.join(group),
        }
    }

    /// Whether it can receive what is sent to a group of this family.
    pub(crate) fn is_open_to(&self, group: IpAddr) -> bool {
        let local = self.local_addr().ip();
        // The system passes a group's datagrams only to sockets that are bound to all addresses.
        let is_open = matches!(self, Self::Network(_)) || local.is_unspecified();
        is_open && local.is_ipv4() == group.is_ipv4()
    }

    /// The next error that the network reported, if there is one.
    pub(super) fn take_error(&self) -> Option<TransportError> {
        self.socket()?.take_error()
    }

    /// Waits until the network has reported an error.
    pub(super) async fn reported(&self) -> io::Result<()> {
        match self {
            Self::System(socket) => {
                let mut ready = socket.ready(Interest::ERROR).await?;
                ready.clear_ready_matching(tokio::io::Ready::ERROR);
                Ok(())
            }
            Self::Network(_) => std::future::pending().await,
        }
    }

    /// Sends what waits, as [`Outbound::flush`] does.
    pub(super) fn flush<T: Copy>(
        &self,
        out: &mut Outbound<T>,
        failed: impl FnMut(SocketAddr, T, io::Error),
    ) -> io::Result<()> {
        match self {
            Self::System(socket) => out.flush(&socket.get_ref().0, failed),
            Self::Network(port) => {
                out.send_each(|to, datagram| port.send(to, datagram), failed);
                Ok(())
            }
        }
    }

    /// Receives a batch. With `busily` it asks a socket that was not reported as ready, too.
    #[inline]
    pub(super) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        inbox: &mut Inbox,
        busily: bool,
    ) -> Poll<ReceiveOutcome> {
        let socket = match self {
            Self::System(socket) => socket,
            Self::Network(port) => {
                return inbox.fill_with(|buffer| port.poll_receive(cx, buffer)).map(|filled| {
                    match filled {
                        Ok(()) => ReceiveOutcome::Datagrams,
                        Err(_) => ReceiveOutcome::Error,
                    }
                });
            }
        };
        let Poll::Ready(Ok(mut ready)) = socket.poll_read_ready(cx) else {
            // Errors of the socket are reported with its readiness.
            return match busily && inbox.receive(&socket.get_ref().0).is_ok() {
                true => Poll::Ready(ReceiveOutcome::Datagrams),
                false => Poll::Pending,
            };
        };
        Poll::Ready(match inbox.receive(&socket.get_ref().0) {
            Ok(more) => {
                if !more {
                    // The queue was empty after the last datagram; the next one makes the socket
                    // ready again.
                    ready.clear_ready();
                }
                ReceiveOutcome::Datagrams
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Another receive call is needed so that the next datagram wakes this task.
                ready.clear_ready();
                ReceiveOutcome::Nothing
            }
            Err(_) => ReceiveOutcome::Error,
        })
    }
}
