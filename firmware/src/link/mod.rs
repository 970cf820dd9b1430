//! What carries datagrams: a serial line, or Ethernet with an IP stack.

#[cfg(not(feature = "ethernet"))]
mod serial;
#[cfg(not(feature = "ethernet"))]
pub use serial::Serial as Link;

#[cfg(feature = "ethernet")]
mod ethernet;
#[cfg(feature = "ethernet")]
mod ip;
#[cfg(feature = "ethernet")]
pub use ip::Ip as Link;

use core::net::SocketAddr;

/// A socket.
pub trait Datagrams {
    /// The length and the sender of a datagram that has arrived, which is now at the front of `buffer`.
    /// Bytes that do not fit are dropped.
    fn receive(&mut self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)>;

    /// Sends a datagram, or drops it.
    fn send(&mut self, to: SocketAddr, datagram: &[u8]);
}

/// The host on which QEMU runs: it is the gateway of QEMU's network.
#[must_use]
pub fn host(port: u32) -> SocketAddr {
    SocketAddr::from(([10, 0, 2, 2], port as u16))
}
