//! The emulator: real packets through a scenario's links, with the wall clock.
//!
//! The models are in [`ebbtide_sim::emulation`]; this module contains the parts that depend on the
//! operating system. A [`forward`] thread moves packets between two [`PathEnds`] and the emulation at
//! the right time ([`wakeup`]). The ends are two TUN devices ([`tun`]), of which the clients' one
//! is in a namespace of its own ([`namespace`]), next to a serial line ([`slip`]), or the sockets
//! of a [`relay`] for one UDP port.
//! [`programs`] run at the ends, in a [`pid_namespace`] that ends with the emulator.

pub(crate) mod capture;
pub(crate) mod clock;
pub(crate) mod forward;
pub(crate) mod namespace;
pub(crate) mod pid_namespace;
pub(crate) mod programs;
pub(crate) mod relay;
pub(crate) mod slip;
mod thread;
pub(crate) mod tun;
mod wakeup;

use ebbtide_sim::emulation::Direction;
use nix::sys::epoll::Epoll;
use std::io;

/// A packet with the data needed to hand it over.
pub(crate) trait Packet: Send {
    /// The packet in the form of a capture.
    fn frame(&self) -> capture::Frame;
}

/// A packet that a host has sent into the path.
pub(crate) struct ArrivedPacket<P> {
    pub(crate) direction: Direction,
    /// The number of the device that sends or receives it, from 0 on.
    pub(crate) device: u32,
    /// Its length, headers included.
    pub(crate) bytes: u32,
    pub(crate) packet: P,
}

/// The ends of the emulated path, where packets enter and leave it.
pub(crate) trait PathEnds: Send {
    type Packet: Packet;

    /// Registers the descriptors on which packets can arrive, with tokens from `first` on.
    fn register(&mut self, epoll: &Epoll, first: u64) -> io::Result<()>;

    /// Receives the packets that have arrived for a token, at most a fixed number.
    fn receive(
        &mut self,
        token: u64,
        epoll: &Epoll,
        take: &mut dyn FnMut(ArrivedPacket<Self::Packet>),
    ) -> io::Result<()>;

    /// Hands a packet to the host at the other end.
    fn deliver(&mut self, direction: Direction, packet: Self::Packet) -> io::Result<()>;

    /// Messages about packets that were left out; empty if there were none.
    fn remarks(&self) -> Vec<String>;
}
