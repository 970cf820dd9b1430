//! A CoAP client on embassy-net, in fixed tables: [`Client`] is what a program copies.
#![no_std]

use core::task::{Context, Waker};
use ebbtide_core::cc::Fasor;
use ebbtide_core::device::{
    DeviceConfig, DeviceEndpoint, DeviceExchangeId, DeviceFailure, DevicePoll, DeviceReceived,
    DeviceSendError, DeviceTables, Io,
};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Message, Opt, OptionNumber};
use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{IpEndpoint, Stack};
use embassy_time::{Instant as Clock, with_deadline};
use rand_core::Rng;

/// A block of 512 bytes with its options.
const DATAGRAM: usize = 576;

/// A client on a UDP socket, which makes one request after another.
pub struct Client<'a, R> {
    socket: UdpSocket<'a>,
    endpoint: DeviceEndpoint<'a, IpEndpoint, Fasor>,
    rng: R,
    open: Option<DeviceExchangeId>,
}

/// Why a request has no response.
#[derive(Copy, Clone, Debug)]
pub enum RequestError {
    /// It was not sent.
    NotSent(DeviceSendError),
    /// It was not answered.
    Failed(DeviceFailure),
    /// The server rejected it.
    Reset,
}

impl<'a, R: Rng> Client<'a, R> {
    /// A client on a socket that is bound.
    pub const fn new(
        socket: UdpSocket<'a>,
        endpoint: DeviceEndpoint<'a, IpEndpoint, Fasor>,
        rng: R,
    ) -> Self {
        Self { socket, endpoint, rng, open: None }
    }

    /// Sends a request and waits for its response, which is then in `buffer`. If the future is
    /// dropped, the next call ends the request.
    ///
    /// # Errors
    ///
    /// See [`RequestError`].
    pub async fn request<'b>(
        &mut self,
        to: IpEndpoint,
        content: &Content<'_>,
        buffer: &'b mut [u8],
    ) -> Result<Message<'b>, RequestError> {
        if let Some(dropped) = self.open.take() {
            self.call(|endpoint, io| endpoint.cancel(io, dropped));
        }
        let started = self.call(|endpoint, io| endpoint.request(io, to, content));
        let exchange = started.map_err(RequestError::NotSent)?;
        self.open = Some(exchange);
        let result = self.wait(exchange, buffer).await;
        self.open = None;
        let length = result?;
        Message::parse(&buffer[..length]).map_err(|_| RequestError::Reset)
    }

    /// Waits for the end of an exchange. Returns the length of the response.
    async fn wait(
        &mut self,
        own: DeviceExchangeId,
        buffer: &mut [u8],
    ) -> Result<usize, RequestError> {
        loop {
            let due = match self.call(|endpoint, io| endpoint.poll(io)) {
                DevicePoll::Failed { exchange, reason } if exchange == own => {
                    return Err(RequestError::Failed(reason));
                }
                DevicePoll::Failed { .. } => continue,
                DevicePoll::Wait(due) => due,
            };
            let due =
                due.map_or(Clock::MAX, |due| Clock::from_micros(due.as_nanos().div_ceil(1000)));
            let arrived = with_deadline(due, self.socket.recv_from(buffer)).await;
            // Nothing arrived in time, or what arrived is longer than the buffer.
            let Ok(Ok((length, from))) = arrived else { continue };
            let datagram = &buffer[..length];
            match self.call(|endpoint, io| endpoint.receive(io, from.endpoint, datagram)) {
                DeviceReceived::Response { exchange, .. } if exchange == own => return Ok(length),
                DeviceReceived::Reset(exchange) if exchange == own => {
                    return Err(RequestError::Reset);
                }
                DeviceReceived::Request(request, _) => {
                    self.call(|endpoint, io| endpoint.reject(io, &request));
                }
                _ => {}
            }
        }
    }

    /// Passes clock, random numbers and socket to a call of the endpoint.
    fn call<T>(
        &mut self,
        act: impl FnOnce(&mut DeviceEndpoint<'a, IpEndpoint, Fasor>, &mut Io<'_, IpEndpoint>) -> T,
    ) -> T {
        let Self { socket, endpoint, rng, .. } = self;
        let send = &mut |to: IpEndpoint, datagram: &[u8]| {
            // A datagram for which the socket has no room is as if lost: it is retransmitted.
            let _ = socket.poll_send_to(datagram, to, &mut Context::from_waker(Waker::noop()));
        };
        let now = Instant::from_nanos(Clock::now().as_micros() * 1000);
        act(endpoint, &mut Io { now, rng, send })
    }
}

/// Asks a server for `/time`, so many times. Returns how many requests were answered.
pub async fn ask(stack: Stack<'_>, server: IpEndpoint, gets: u32, rng: impl Rng) -> u32 {
    let mut metadata = [[PacketMetadata::EMPTY; 2]; 2];
    let mut room = [[0; DATAGRAM]; 2];
    let ([of_received, of_sent], [received, sent]) = (&mut metadata, &mut room);
    let mut socket = UdpSocket::new(stack, of_received, received, of_sent, sent);
    if socket.bind(5683).is_err() {
        return 0;
    }
    let mut tables = DeviceTables::<_, _, 1, 1, 64>::new();
    let mut client = Client::new(socket, tables.endpoint(DeviceConfig::fasor_token()), rng);
    let options = [Opt { number: OptionNumber::URI_PATH, value: b"time" }];
    let content = Content { code: Code::GET, options: &options, payload: &[] };
    let mut buffer = [0; DATAGRAM];
    let mut answered = 0;
    for _ in 0..gets {
        let response = client.request(server, &content, &mut buffer).await;
        answered += u32::from(response.is_ok_and(|response| response.code() == Code::CONTENT));
    }
    answered
}
