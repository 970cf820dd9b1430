//! A body in blocks (RFC 7959): PUT, and the response to it, none of them whole in memory.

use super::{Call, Endpoint, FixedApplication, server};
use crate::arguments::Arguments;
use crate::semihosting::report;
use core::net::SocketAddrV4;
use ebbtide_core::device::{
    DeviceBody, DeviceExchangeId, DeviceReceived, DeviceRequestParts, DeviceStep, DeviceTransfer,
};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Message, Opt, OptionNumber};

/// The size exponent of blocks of 256 bytes.
pub const BLOCKS: u8 = 4;
/// The body that is put.
static BODY: [u8; 3000] = [b'e'; 3000];

/// Counts the bytes of the response that are those of the request.
#[derive(Debug, Default)]
struct Echoed(usize);

impl DeviceBody for Echoed {
    fn read(&mut self, offset: usize, length: usize) -> &[u8] {
        BODY.get(offset..offset + length).unwrap_or_default()
    }

    fn write(&mut self, offset: usize, message: &Message<'_>) -> bool {
        if BODY.get(offset..).is_some_and(|rest| rest.starts_with(message.payload())) {
            self.0 = offset + message.payload().len();
        }
        true
    }
}

/// One PUT, to the path in the argument `put`.
#[derive(Debug)]
pub struct FixedPut<'r> {
    transfer: DeviceTransfer<'r, SocketAddrV4>,
    body: Echoed,
    code: Code,
}

impl<'r> FixedPut<'r> {
    /// Nothing has left yet.
    #[must_use]
    pub fn new(options: &'r [Opt<'r>], arguments: &Arguments) -> Self {
        let request =
            DeviceRequestParts { code: Code::PUT, options, length: BODY.len(), szx: BLOCKS };
        let transfer = DeviceTransfer::new(request, server(arguments), 99);
        Self { transfer, body: Echoed::default(), code: Code::EMPTY }
    }

    /// Reports the response.
    pub fn report(&self) {
        report("put_code", self.code.0.into());
        report("put_echoed", self.body.0 as u32);
    }
}

/// The options of a request for the path in the argument `put`.
#[must_use]
pub fn path(arguments: &Arguments) -> [Opt<'_>; 1] {
    let value = arguments.get("put").unwrap_or(b"echo");
    [Opt { number: OptionNumber::URI_PATH, value }]
}

impl FixedApplication for FixedPut<'_> {
    fn received(
        &mut self,
        endpoint: &mut Endpoint<'_>,
        io: &mut Call<'_>,
        received: DeviceReceived<'_, SocketAddrV4>,
    ) {
        match received {
            DeviceReceived::Response { exchange, message } => {
                self.transfer.received(exchange, &message, &mut self.body);
            }
            DeviceReceived::Reset(exchange) => self.failed(io, exchange),
            DeviceReceived::Request(request, _) => endpoint.reject(io, &request),
            _ => {}
        }
    }

    fn failed(&mut self, _: &mut Call<'_>, exchange: DeviceExchangeId) {
        self.transfer.failed(exchange);
    }

    fn poll(
        &mut self,
        endpoint: &mut Endpoint<'_>,
        io: &mut Call<'_>,
    ) -> Result<Option<Instant>, ()> {
        match self.transfer.poll(endpoint, io, &mut self.body) {
            DeviceStep::Wait => Ok(None),
            DeviceStep::Done(result) => {
                self.code = result.unwrap_or(Code::EMPTY);
                Err(())
            }
        }
    }
}
