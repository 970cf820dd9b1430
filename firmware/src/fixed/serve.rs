//! A server: `/ticks` can be observed, `/led` takes and returns a body in blocks, and a PUT to `/end` ends the program.

use super::{Call, Endpoint, FixedApplication, decimal};
use crate::board;
use crate::semihosting::report;
use core::net::SocketAddrV4;
use ebbtide_core::device::{
    DeviceAnswer, DeviceExchangeId, DeviceHandler, DeviceReceived, DeviceServer, DeviceVerify,
};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Message, OptionNumber};
use rand_core::Rng;

const TICKS: u8 = 1;
const TICK: Duration = Duration::from_millis(500);

/// The resources.
#[derive(Debug)]
struct Resources {
    ticks: u32,
    /// The body of `/led`, and its length.
    led: [u8; 2048],
    length: usize,
    /// Counts its changes.
    version: u32,
    requests: u32,
    has_ended: bool,
}

/// The server.
#[derive(Debug)]
pub struct FixedServing {
    server: DeviceServer<SocketAddrV4, 4, 8, 320>,
    resources: Resources,
    next_tick: Instant,
    malformed: u32,
}

impl FixedServing {
    /// A server whose challenges have keys from `rng`.
    #[must_use]
    pub fn new(rng: &mut dyn Rng) -> Self {
        let resources = Resources {
            ticks: 0,
            led: [0; 2048],
            length: 0,
            version: 0,
            requests: 0,
            has_ended: false,
        };
        let verify = DeviceVerify::Challenge { key: (rng.next_u64(), rng.next_u64()) };
        Self {
            server: DeviceServer::new(verify),
            resources,
            next_tick: Instant::ZERO,
            malformed: 0,
        }
    }

    /// Reports what it did.
    pub fn report(&self) {
        report("requests", self.resources.requests);
        report("observers", self.server.observers() as u32);
        report("malformed", self.malformed);
    }
}

fn path<'m>(message: &Message<'m>) -> &'m [u8] {
    message.option(OptionNumber::URI_PATH).map_or(&b""[..], |option| option.value)
}

impl DeviceHandler for Resources {
    fn take(&mut self, message: &Message<'_>, offset: usize) -> Result<(), Code> {
        if (message.code(), path(message)) == (Code::PUT, b"led") {
            let payload = message.payload();
            let room = self.led.get_mut(offset..offset + payload.len());
            room.ok_or(Code::REQUEST_ENTITY_TOO_LARGE)?.copy_from_slice(payload);
            self.length = offset + payload.len();
            self.version += 1;
        }
        Ok(())
    }

    fn answer(&mut self, message: &Message<'_>, offset: usize, room: &mut [u8]) -> DeviceAnswer {
        self.requests += 1;
        match (message.code(), path(message)) {
            (Code::GET, b"ticks") => self.state(TICKS, room),
            (Code::GET, b"heap") => DeviceAnswer::content(decimal(0, room)),
            (Code::GET, b"led") => {
                let body = self.led.get(..self.length).and_then(|led| led.get(offset..));
                let body = body.unwrap_or_default();
                let length = body.len().min(room.len());
                room[..length].copy_from_slice(&body[..length]);
                let (total, etag) = (self.length, Some(self.version));
                DeviceAnswer { total, etag, ..DeviceAnswer::content(length) }
            }
            (Code::PUT, b"led") => DeviceAnswer::new(Code::CHANGED),
            (Code::PUT, b"end") => {
                self.has_ended = true;
                DeviceAnswer::new(Code::CHANGED)
            }
            _ => DeviceAnswer::new(Code::NOT_FOUND),
        }
    }

    fn state(&mut self, subject: u8, room: &mut [u8]) -> DeviceAnswer {
        let length = decimal(self.ticks, room);
        DeviceAnswer { max_age: Some(5), subject: Some(subject), ..DeviceAnswer::content(length) }
    }
}

impl FixedApplication for FixedServing {
    fn received(
        &mut self,
        endpoint: &mut Endpoint<'_>,
        io: &mut Call<'_>,
        received: DeviceReceived<'_, SocketAddrV4>,
    ) {
        match received {
            DeviceReceived::Request(request, message) => {
                self.server.receive(endpoint, io, &request, &message, &mut self.resources);
            }
            DeviceReceived::Acknowledged(exchange) => self.server.acknowledged(exchange),
            DeviceReceived::Reset(exchange) => self.server.lost(exchange),
            _ => self.malformed += 1,
        }
    }

    fn failed(&mut self, _: &mut Call<'_>, exchange: DeviceExchangeId) {
        self.server.lost(exchange);
    }

    fn poll(
        &mut self,
        endpoint: &mut Endpoint<'_>,
        io: &mut Call<'_>,
    ) -> Result<Option<Instant>, ()> {
        if self.resources.has_ended {
            return Err(());
        }
        let now = board::now();
        if now >= self.next_tick {
            self.next_tick = now + TICK;
            self.resources.ticks += 1;
            self.server.changed(TICKS);
        }
        self.server.notify(endpoint, io, &mut self.resources);
        Ok(Some(self.next_tick))
    }
}
