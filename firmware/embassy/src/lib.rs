//! A driver of Ebbtide's device endpoint on embassy-net, and an application to begin with.
//!
//! `bin/tap.rs` runs it on a TAP device of this machine, `bin/w5500-evb-pico.rs` on an RP2040 with Ethernet.
#![no_std]

use core::convert::Infallible;
use core::task::{Context, Waker};
use ebbtide_core::cc::Fasor;
use ebbtide_core::device::{DeviceEndpoint, DeviceExchangeId, DevicePoll, DeviceReceived, Io};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber};
use embassy_futures::select::{Either, select};
use embassy_net::IpEndpoint;
use embassy_net::udp::UdpSocket;
use embassy_time::Timer;
use rand_core::TryRng;

/// The endpoint, whose addresses are those of embassy-net.
pub type Endpoint<'t> = DeviceEndpoint<'t, IpEndpoint, Fasor>;
/// What its calls need.
pub type Call<'i> = Io<'i, IpEndpoint>;

/// A block of 256 bytes with its options.
const DATAGRAM: usize = 320;

/// What uses the endpoint.
pub trait Application {
    /// A datagram arrived.
    fn received(
        &mut self,
        endpoint: &mut Endpoint<'_>,
        io: &mut Call<'_>,
        received: DeviceReceived<'_, IpEndpoint>,
    );

    /// An exchange ended without an answer.
    fn failed(&mut self, exchange: DeviceExchangeId);

    /// Starts what is due.
    fn poll(&mut self, endpoint: &mut Endpoint<'_>, io: &mut Call<'_>) -> Next;
}

/// What an application waits for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A datagram, or this instant.
    Wait(Option<Instant>),
    /// Nothing: it has ended.
    Done,
}

/// Random numbers from a function, such as the hardware's.
pub struct Drawn<F>(pub F);

impl<F: FnMut() -> u32> TryRng for Drawn<F> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.0)())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from((self.0)()) << 32 | u64::from((self.0)()))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for piece in bytes.chunks_mut(4) {
            piece.copy_from_slice(&(self.0)().to_le_bytes()[..piece.len()]);
        }
        Ok(())
    }
}

/// The time of embassy's driver.
fn now() -> Instant {
    Instant::from_nanos(embassy_time::Instant::now().as_micros().saturating_mul(1000))
}

/// Runs an application until it ends. The socket is bound. Dropping the future loses no more than the datagrams that wait in the
/// socket.
pub async fn drive(
    socket: &UdpSocket<'_>,
    random: impl FnMut() -> u32,
    endpoint: &mut Endpoint<'_>,
    application: &mut dyn Application,
) {
    // A full socket drops the datagram, which the endpoint repeats as it does those that the network loses.
    let send = &mut |to: IpEndpoint, datagram: &[u8]| {
        let _ = socket.poll_send_to(datagram, to, &mut Context::from_waker(Waker::noop()));
    };
    let rng = &mut Drawn(random);
    let mut buffer = [0; DATAGRAM];
    loop {
        let io = &mut Io { now: now(), rng: &mut *rng, send: &mut *send };
        let Next::Wait(mut due) = application.poll(endpoint, io) else { return };
        loop {
            match endpoint.poll(io) {
                DevicePoll::Failed { exchange, .. } => {
                    application.failed(exchange);
                    due = Some(io.now);
                }
                DevicePoll::Wait(at) => {
                    due = due.into_iter().chain(at).min();
                    break;
                }
            }
        }
        let timer = async {
            match due {
                Some(at) => {
                    let micros = at.as_nanos().div_ceil(1000);
                    Timer::at(embassy_time::Instant::from_micros(micros)).await;
                }
                None => core::future::pending().await,
            }
        };
        if let Either::First(Ok((length, from))) =
            select(socket.recv_from(&mut buffer), timer).await
        {
            let io = &mut Io { now: now(), rng: &mut *rng, send: &mut *send };
            let received = endpoint.receive(io, from.endpoint, &buffer[..length]);
            application.received(endpoint, io, received);
        }
    }
}

/// Confirmable GETs of `/time`, one after another.
#[derive(Debug)]
pub struct Gets {
    server: IpEndpoint,
    left: u32,
    open: Option<DeviceExchangeId>,
    /// Those that were answered 2.05.
    pub delivered: u32,
}

impl Gets {
    /// None has left yet.
    #[must_use]
    pub const fn new(server: IpEndpoint, count: u32) -> Self {
        Self { server, left: count, open: None, delivered: 0 }
    }
}

impl Application for Gets {
    fn received(
        &mut self,
        endpoint: &mut Endpoint<'_>,
        io: &mut Call<'_>,
        received: DeviceReceived<'_, IpEndpoint>,
    ) {
        match received {
            DeviceReceived::Response { exchange, message } if self.open == Some(exchange) => {
                self.open = None;
                self.delivered += u32::from(message.code() == Code::CONTENT);
            }
            DeviceReceived::Reset(exchange) => self.failed(exchange),
            DeviceReceived::Request(request, _) => endpoint.reject(io, &request),
            _ => {}
        }
    }

    fn failed(&mut self, exchange: DeviceExchangeId) {
        if self.open == Some(exchange) {
            self.open = None;
        }
    }

    fn poll(&mut self, endpoint: &mut Endpoint<'_>, io: &mut Call<'_>) -> Next {
        if self.open.is_none() {
            let Some(left) = self.left.checked_sub(1) else { return Next::Done };
            self.left = left;
            let options = [Opt { number: OptionNumber::URI_PATH, value: b"time" }];
            let content = Content { code: Code::GET, options: &options, payload: &[] };
            self.open = endpoint.request(io, self.server, &content).ok();
        }
        Next::Wait(None)
    }
}
