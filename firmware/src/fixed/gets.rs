//! The message layer alone: GETs, one after another.

use super::{Call, Endpoint, FixedApplication, server};
use crate::arguments::Arguments;
use crate::semihosting::report;
use core::net::SocketAddrV4;
use ebbtide_core::device::{DeviceExchangeId, DeviceReceived};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Opt, OptionNumber};

/// `gets` Confirmable requests for `/time`.
#[derive(Debug)]
pub struct FixedGets {
    server: SocketAddrV4,
    left: u32,
    open: Option<DeviceExchangeId>,
    delivered: u32,
    failed: u32,
}

impl FixedGets {
    /// None has left yet.
    #[must_use]
    pub fn new(arguments: &Arguments) -> Self {
        let left = arguments.number("gets", 20);
        Self { server: server(arguments), left, open: None, delivered: 0, failed: 0 }
    }

    /// Reports how many were answered.
    pub fn report(&self) {
        report("delivered", self.delivered);
        report("failed", self.failed);
    }
}

impl FixedApplication for FixedGets {
    fn received(
        &mut self,
        endpoint: &mut Endpoint<'_>,
        io: &mut Call<'_>,
        received: DeviceReceived<'_, SocketAddrV4>,
    ) {
        match received {
            DeviceReceived::Response { exchange, message } if self.open == Some(exchange) => {
                self.open = None;
                match message.code() {
                    Code::CONTENT => self.delivered += 1,
                    _ => self.failed += 1,
                }
            }
            DeviceReceived::Reset(exchange) => self.failed(io, exchange),
            DeviceReceived::Request(request, _) => endpoint.reject(io, &request),
            _ => {}
        }
    }

    fn failed(&mut self, _: &mut Call<'_>, exchange: DeviceExchangeId) {
        if self.open == Some(exchange) {
            self.open = None;
            self.failed += 1;
        }
    }

    fn poll(
        &mut self,
        endpoint: &mut Endpoint<'_>,
        io: &mut Call<'_>,
    ) -> Result<Option<Instant>, ()> {
        if self.open.is_none() {
            self.left = self.left.checked_sub(1).ok_or(())?;
            let options = [Opt { number: OptionNumber::URI_PATH, value: b"time" }];
            let content = Content { code: Code::GET, options: &options, payload: &[] };
            let started = endpoint.request(io, self.server, &content);
            self.failed += u32::from(started.is_err());
            self.open = started.ok();
        }
        Ok(None)
    }
}
