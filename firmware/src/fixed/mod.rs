//! Programs in fixed tables, without an allocator.

pub mod gets;
pub mod matrix;
pub mod put;
#[cfg(feature = "dtls")]
pub mod secured;
pub mod serve;
pub mod watch;

use crate::arguments::Arguments;
use crate::board;
use crate::link::{Datagrams, Link, host};
use crate::rng::SplitMix;
use core::net::{SocketAddr, SocketAddrV4};
use ebbtide_core::cc::Fasor;
use ebbtide_core::device::{
    DeviceConfig, DeviceEndpoint, DeviceExchangeId, DeviceFailure, DevicePoll, DeviceReceived, Io,
};
use ebbtide_core::time::Instant;

/// The endpoint of these programs.
pub type Endpoint<'t> = DeviceEndpoint<'t, SocketAddrV4, Fasor>;
/// What its calls need.
pub type Call<'i> = Io<'i, SocketAddrV4>;

/// A block of 256 bytes with its options.
const DATAGRAM: usize = 320;

/// What uses the endpoint.
pub trait FixedApplication {
    /// A datagram arrived.
    fn received(
        &mut self,
        endpoint: &mut Endpoint<'_>,
        io: &mut Call<'_>,
        received: DeviceReceived<'_, SocketAddrV4>,
    );

    /// An exchange ended without an answer.
    fn failed(&mut self, io: &mut Call<'_>, exchange: DeviceExchangeId);

    /// Starts what is due, and returns the instant at which more will be. `Err` if it has ended.
    #[expect(clippy::result_unit_err, reason = "there is nothing to say of the end")]
    fn poll(
        &mut self,
        endpoint: &mut Endpoint<'_>,
        io: &mut Call<'_>,
    ) -> Result<Option<Instant>, ()>;
}

/// The settings, with `retransmit` (MAX_RETRANSMIT) from the arguments.
#[must_use]
pub fn config(arguments: &Arguments) -> DeviceConfig<Fasor> {
    let mut config = DeviceConfig::fasor_token();
    config.params.max_retransmit = arguments.number("retransmit", 4) as u8;
    config
}

/// The server that a client asks: the host's port in the argument `port`.
#[must_use]
pub fn server(arguments: &Arguments) -> SocketAddrV4 {
    v4(host(arguments.number("port", 5683))).unwrap_or(SocketAddrV4::new([0; 4].into(), 0))
}

/// The address, if it is one of IPv4, which all hosts here have.
#[must_use]
pub const fn v4(address: SocketAddr) -> Option<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Some(address),
        SocketAddr::V6(_) => None,
    }
}

/// The link and the random numbers.
pub struct Driver {
    link: Link,
    /// Its random numbers.
    pub rng: SplitMix,
}

impl Driver {
    /// Opens the link. `seed` is an argument.
    #[must_use]
    pub fn new(arguments: &Arguments) -> Self {
        Self { link: Link::open(), rng: SplitMix(arguments.number("seed", 1).into()) }
    }

    /// Runs an application until it ends.
    pub fn drive(&mut self, endpoint: &mut Endpoint<'_>, application: &mut dyn FixedApplication) {
        self.drive_in(&mut [0; DATAGRAM], endpoint, application);
    }

    /// The same with datagrams that `buffer` has room for.
    pub fn drive_in(
        &mut self,
        buffer: &mut [u8],
        endpoint: &mut Endpoint<'_>,
        application: &mut dyn FixedApplication,
    ) {
        loop {
            let (link, rng) = (&mut self.link, &mut self.rng);
            let send = &mut |to, datagram: &[u8]| link.send(SocketAddr::V4(to), datagram);
            let io = &mut Io { now: board::now(), rng, send };
            let Ok(next) = turn(endpoint, io, application) else { return };
            let Some((length, from)) = wait(link, buffer, next.due) else { continue };
            let Some(from) = v4(from) else { continue };
            let (link, rng) = (&mut self.link, &mut self.rng);
            let send = &mut |to, datagram: &[u8]| link.send(SocketAddr::V4(to), datagram);
            let io = &mut Io { now: board::now(), rng, send };
            let datagram = buffer.get(..length).unwrap_or_default();
            let received = endpoint.receive(io, from, datagram);
            application.received(endpoint, io, received);
        }
    }
}

/// What follows a turn.
struct Next {
    /// When more is due.
    due: Option<Instant>,
    /// Why an exchange failed, if one did.
    #[cfg_attr(not(feature = "dtls"), expect(dead_code, reason = "only sessions look at it"))]
    failure: Option<DeviceFailure>,
}

/// Starts what is due. `Err` if the application has ended.
fn turn(
    endpoint: &mut Endpoint<'_>,
    io: &mut Call<'_>,
    application: &mut dyn FixedApplication,
) -> Result<Next, ()> {
    let mut next = Next { due: application.poll(endpoint, io)?, failure: None };
    loop {
        match endpoint.poll(io) {
            DevicePoll::Failed { exchange, reason } => {
                application.failed(io, exchange);
                next = Next { due: Some(io.now), failure: Some(reason) };
            }
            DevicePoll::Wait(at) => {
                if let Some(at) = at {
                    next.due = Some(next.due.map_or(at, |due| due.min(at)));
                }
                return Ok(next);
            }
        }
    }
}

/// Waits for a datagram, until this instant.
fn wait(link: &mut Link, buffer: &mut [u8], due: Option<Instant>) -> Option<(usize, SocketAddr)> {
    loop {
        let arrived = link.receive(buffer);
        if arrived.is_some() || due.is_some_and(|due| due <= board::now()) {
            return arrived;
        }
        board::idle();
    }
}

/// Writes a number as text, and returns its length.
fn decimal(number: u32, room: &mut [u8]) -> usize {
    let mut digits = 1;
    while number / 10u32.pow(digits) > 0 && digits < 9 {
        digits += 1;
    }
    let mut rest = number;
    for place in room.iter_mut().take(digits as usize).rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    digits as usize
}
