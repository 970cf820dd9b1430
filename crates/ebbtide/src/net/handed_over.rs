//! Sockets that were bound before the program started. A service manager keeps them open while one process follows
//! another, and the kernel keeps what arrives meanwhile.

use socket2::{Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sockets that no address has taken yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandedOver {
    left: Arc<Mutex<Vec<Socket>>>,
    is_any: bool,
}

impl HandedOver {
    pub(crate) fn new(sockets: impl IntoIterator<Item = OwnedFd>) -> Self {
        let left: Vec<Socket> = sockets.into_iter().map(Socket::from).collect();
        Self { is_any: !left.is_empty(), left: Arc::new(Mutex::new(left)) }
    }

    /// Whether there were any.
    pub(crate) const fn is_any(&self) -> bool {
        self.is_any
    }

    /// Takes the sockets of a type that are bound to this address.
    ///
    /// # Errors
    ///
    /// Returns an error if one of them cannot be used.
    pub(crate) fn take(&self, kind: Type, address: SocketAddr) -> io::Result<Vec<Socket>> {
        let mut left = self.left();
        let is_there = |socket: &mut Socket| {
            local_addr(socket) == Some(address) && socket.r#type().ok() == Some(kind)
        };
        let taken: Vec<Socket> = left.extract_if(.., is_there).collect();
        for socket in &taken {
            if address.is_ipv6() && address.ip().is_unspecified() && !socket.only_v6()? {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the socket that was handed over receives IPv4 as well: bind it to IPv6 alone (in a unit of systemd: BindIPv6Only=ipv6-only)",
                ));
            }
            socket.set_nonblocking(true)?;
        }
        Ok(taken)
    }

    /// The addresses of those that no address has taken.
    pub(crate) fn unused(&self) -> Vec<SocketAddr> {
        self.left().iter().filter_map(local_addr).collect()
    }

    fn left(&self) -> MutexGuard<'_, Vec<Socket>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn local_addr(socket: &Socket) -> Option<SocketAddr> {
    socket.local_addr().ok()?.as_socket()
}
