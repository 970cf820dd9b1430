//! The emulator: real packets through a scenario's links, with the wall clock.
//!
//! All substance is in [`ebbtide_sim::emulation`]; here is what only an operating system has. A
//! [`forward`] thread moves packets between two [`Ends`] and the emulation, on time ([`wakeup`]). The
//! ends are two TUN devices ([`tun`]), of which the devices' one is in a namespace of its own
//! ([`namespace`]), or the sockets of a [`relay`] for one UDP port. [`programs`] run at the ends, in
//! a [`pid_namespace`] that ends with the emulator.

pub(crate) mod capture;
pub(crate) mod clock;
pub(crate) mod forward;
pub(crate) mod namespace;
pub(crate) mod pid_namespace;
pub(crate) mod programs;
pub(crate) mod relay;
pub(crate) mod tun;
mod wakeup;

use ebbtide_sim::emulation::Direction;
use nix::sys::epoll::Epoll;
use std::io;

/// A packet with what is needed to hand it over.
pub(crate) trait Packet: Send {
    /// The packet as a capture has it.
    fn frame(&self) -> capture::Frame;
}

/// Where packets enter and leave the emulated path.
pub(crate) trait Ends: Send {
    type Packet: Packet;

    /// Adds what packets can arrive on, with tokens from `first` on.
    fn register(&mut self, epoll: &Epoll, first: u64) -> io::Result<()>;

    /// Receives what has arrived for a token, a bounded number of packets: each is given with its
    /// direction and its length, headers included.
    fn receive(
        &mut self,
        token: u64,
        epoll: &Epoll,
        take: &mut dyn FnMut(Direction, u32, Self::Packet),
    ) -> io::Result<()>;

    /// Hands a packet to the host at the other end.
    fn deliver(&mut self, direction: Direction, packet: Self::Packet) -> io::Result<()>;

    /// Sentences about packets that were left out; empty if none were.
    fn remarks(&self) -> Vec<String>;
}
