//! An observation (RFC 7641).

use super::put::BLOCKS;
use super::{Call, Endpoint, FixedApplication, server};
use crate::arguments::Arguments;
use crate::semihosting::report;
use core::net::SocketAddrV4;
use ebbtide_core::device::{
    DeviceBody, DeviceExchangeId, DeviceObservation, DeviceObservationStep, DeviceReceived,
    DeviceRequestParts,
};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Opt, OptionNumber};

const TIME: [Opt<'static>; 1] = [Opt { number: OptionNumber::URI_PATH, value: b"time" }];

/// States that are not looked at.
#[derive(Debug)]
struct Unread;

impl DeviceBody for Unread {}

/// Observes a resource until `states` states have arrived, and deregisters.
#[derive(Debug)]
pub struct FixedWatch {
    observation: DeviceObservation<'static, SocketAddrV4>,
    wanted: u32,
    states: u32,
}

impl FixedWatch {
    /// Nothing has left yet.
    #[must_use]
    pub fn new(arguments: &Arguments) -> Self {
        let request =
            DeviceRequestParts { code: Code::GET, options: &TIME, length: 0, szx: BLOCKS };
        let observation = DeviceObservation::new(request, server(arguments));
        Self { observation, wanted: arguments.number("states", 3), states: 0 }
    }

    /// Reports the number of states.
    pub fn report(&self) {
        report("states", self.states);
    }
}

impl FixedApplication for FixedWatch {
    fn received(
        &mut self,
        endpoint: &mut Endpoint<'_>,
        io: &mut Call<'_>,
        received: DeviceReceived<'_, SocketAddrV4>,
    ) {
        let (exchange, message, stays) = match received {
            DeviceReceived::Response { exchange, message } => (exchange, message, false),
            DeviceReceived::Notification { exchange, message } => (exchange, message, true),
            DeviceReceived::Reset(exchange) => return self.failed(io, exchange),
            DeviceReceived::Request(request, _) => return endpoint.reject(io, &request),
            _ => return,
        };
        self.observation.received(io, exchange, &message, stays, &mut Unread);
    }

    fn failed(&mut self, io: &mut Call<'_>, exchange: DeviceExchangeId) {
        self.observation.failed(io, exchange);
    }

    fn poll(
        &mut self,
        endpoint: &mut Endpoint<'_>,
        io: &mut Call<'_>,
    ) -> Result<Option<Instant>, ()> {
        loop {
            match self.observation.poll(endpoint, io, &mut Unread) {
                DeviceObservationStep::State(_) => {
                    self.states += 1;
                    if self.states == self.wanted {
                        self.observation.cancel(endpoint, io);
                    }
                }
                DeviceObservationStep::Wait(until) => return Ok(until),
                DeviceObservationStep::Over(_) => return Err(()),
            }
        }
    }
}
