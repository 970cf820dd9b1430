//! The resources of the interoperability matrix (`interop/README.md`), as far as 64 kB of memory have room for them.

use super::{Call, Endpoint, FixedApplication, decimal};
use crate::board;
use core::net::SocketAddrV4;
use ebbtide_core::device::{
    DeviceAnswer, DeviceExchangeId, DeviceHandler, DeviceReceived, DeviceServer, DeviceVerify,
};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Message, OptionNumber};

const TIME: u8 = 1;
const TIMES: u8 = 2;
const TICK: Duration = Duration::from_millis(250);
const LARGE: usize = 1 << 20;
/// What `/echo` can return.
const ECHO: usize = 12_000;
/// A block of 1024 bytes with its options.
pub const DATAGRAM: usize = 1280;
/// The entity tag of `/tagged`.
const TAG: u32 = 0x2a;

/// The resources.
#[derive(Debug)]
struct Resources {
    echo: [u8; ECHO],
    /// The length of the body that arrived last.
    length: usize,
    posts: u32,
    ticks: u32,
}

/// The server.
#[derive(Debug)]
pub struct MatrixServing {
    server: DeviceServer<SocketAddrV4, 4, 8, DATAGRAM>,
    resources: Resources,
    next_tick: Instant,
}

impl Default for MatrixServing {
    fn default() -> Self {
        let resources = Resources { echo: [0; ECHO], length: 0, posts: 0, ticks: 0 };
        let server = DeviceServer::new(DeviceVerify::None);
        Self { server, resources, next_tick: Instant::ZERO }
    }
}

/// Writes the path to `room`, segments separated by `/`; an empty one if it is too long.
fn path<'r>(message: &Message<'_>, room: &'r mut [u8; 64]) -> &'r [u8] {
    join(message, OptionNumber::URI_PATH, b'/', room)
}

fn join<'r>(
    message: &Message<'_>,
    number: OptionNumber,
    between: u8,
    room: &'r mut [u8],
) -> &'r [u8] {
    let mut length = 0;
    for option in message.options().filter(|option| option.number == number) {
        let needed = option.value.len() + usize::from(length > 0);
        let Some(place) = room.get_mut(length..length + needed) else { return &[] };
        let start = place.len() - option.value.len();
        place[..start].fill(between);
        place[start..].copy_from_slice(option.value);
        length += needed;
    }
    &room[..length]
}

/// The block at `offset` of so many digits.
fn digits(offset: usize, total: usize, digit: Option<u32>, room: &mut [u8]) -> DeviceAnswer {
    let length = total.saturating_sub(offset).min(room.len());
    for (at, byte) in (offset..).zip(&mut room[..length]) {
        *byte = b'0' + digit.unwrap_or((at % 10) as u32) as u8;
    }
    let etag = Some(1 + digit.unwrap_or(0));
    DeviceAnswer { total, etag, ..DeviceAnswer::content(length) }
}

fn text(text: &[u8], room: &mut [u8]) -> DeviceAnswer {
    let length = text.len().min(room.len());
    room[..length].copy_from_slice(&text[..length]);
    DeviceAnswer::content(length)
}

fn number(code: Code, number: u32, room: &mut [u8]) -> DeviceAnswer {
    DeviceAnswer { code, ..DeviceAnswer::content(decimal(number, room)) }
}

impl Resources {
    fn echo(&self, code: Code, offset: usize, room: &mut [u8]) -> DeviceAnswer {
        let body = self.echo.get(offset..self.length).unwrap_or_default();
        let length = body.len().min(room.len());
        room[..length].copy_from_slice(&body[..length]);
        let (total, etag) = (self.length, Some(1));
        DeviceAnswer { code, total, etag, ..DeviceAnswer::content(length) }
    }

    fn tagged(message: &Message<'_>, room: &mut [u8]) -> DeviceAnswer {
        let tag = [TAG as u8];
        let has = |number| message.option(number).is_some();
        let has_tag =
            |number| message.options().any(|option| option.number == number && option.value == tag);
        let answer = match message.code() {
            Code::GET
                if message.option(OptionNumber::ACCEPT).is_some_and(|it| !it.value.is_empty()) =>
            {
                DeviceAnswer::new(Code::NOT_ACCEPTABLE)
            }
            Code::GET if has_tag(OptionNumber::ETAG) => DeviceAnswer::new(Code::VALID),
            Code::GET => text(b"tagged", room),
            _ if has(OptionNumber::IF_NONE_MATCH)
                || has(OptionNumber::IF_MATCH) && !has_tag(OptionNumber::IF_MATCH) =>
            {
                DeviceAnswer::new(Code::PRECONDITION_FAILED)
            }
            _ => DeviceAnswer::new(Code::CHANGED),
        };
        DeviceAnswer { etag: Some(TAG), ..answer }
    }
}

impl DeviceHandler for Resources {
    fn take(&mut self, message: &Message<'_>, offset: usize) -> Result<(), Code> {
        let payload = message.payload();
        let end = offset + payload.len();
        let mut name = [0; 64];
        if path(message, &mut name) == b"echo" {
            let room = self.echo.get_mut(offset..end).ok_or(Code::REQUEST_ENTITY_TOO_LARGE)?;
            room.copy_from_slice(payload);
        }
        if end > LARGE {
            return Err(Code::REQUEST_ENTITY_TOO_LARGE);
        }
        self.length = end;
        Ok(())
    }

    fn answer(&mut self, message: &Message<'_>, offset: usize, room: &mut [u8]) -> DeviceAnswer {
        let mut name = [0; 64];
        match (message.code(), path(message, &mut name)) {
            (Code::GET, b"test") => digits(offset, 60, None, room),
            (Code::GET, b"medium") => digits(offset, 10_000, None, room),
            (Code::GET, b"large") => digits(offset, LARGE, None, room),
            (Code::GET, b"a b") => text(b"spaced", room),
            (Code::GET, b"query") => {
                let length = join(message, OptionNumber::URI_QUERY, b'&', room).len();
                DeviceAnswer::content(length)
            }
            (Code::GET, b"time") => self.state(TIME, room),
            (Code::GET, b"times") => {
                let answer = digits(offset, 3000, Some(self.ticks / 2 % 10), room);
                DeviceAnswer { subject: Some(TIMES), ..answer }
            }
            (Code::GET, b".well-known/core")
                if message.option(OptionNumber::ACCEPT).is_some_and(|it| it.value != [40]) =>
            {
                DeviceAnswer::new(Code::NOT_ACCEPTABLE)
            }
            (Code::GET, b".well-known/core") => {
                let links = b"</test>,</medium>,</large>,</echo>,</length>,</count>,</tagged>,</time>;obs,</times>;obs";
                DeviceAnswer { content_format: Some(40), ..text(links, room) }
            }
            (Code::DELETE, b"echo") => DeviceAnswer::new(Code::DELETED),
            (Code::FETCH, b"echo") => self.echo(Code::CONTENT, offset, room),
            (Code::PUT | Code::POST | Code::PATCH | Code::IPATCH, b"echo") => {
                self.echo(Code::CHANGED, offset, room)
            }
            (Code::PUT, b"length") => number(Code::CHANGED, self.length as u32, room),
            (Code::POST, b"count") => {
                self.posts += 1;
                number(Code::CHANGED, self.posts, room)
            }
            (Code::GET | Code::PUT, b"tagged") => Self::tagged(message, room),
            (
                _,
                b"test" | b"medium" | b"large" | b"query" | b"time" | b"times" | b"echo"
                | b"length" | b"count" | b"tagged" | b".well-known/core",
            ) => DeviceAnswer::new(Code::METHOD_NOT_ALLOWED),
            _ => DeviceAnswer::new(Code::NOT_FOUND),
        }
    }

    fn state(&mut self, subject: u8, room: &mut [u8]) -> DeviceAnswer {
        let answer = match subject {
            TIME => DeviceAnswer::content(decimal(self.ticks, room)),
            _ => digits(0, 3000, Some(self.ticks / 2 % 10), room),
        };
        DeviceAnswer { subject: Some(subject), ..answer }
    }
}

impl FixedApplication for MatrixServing {
    fn received(
        &mut self,
        endpoint: &mut Endpoint<'_>,
        io: &mut Call<'_>,
        received: DeviceReceived<'_, SocketAddrV4>,
    ) {
        match received {
            DeviceReceived::Request(request, message) => {
                if !message.code().has_payload() || message.payload().is_empty() {
                    self.resources.length = 0;
                }
                self.server.receive(endpoint, io, &request, &message, &mut self.resources);
            }
            DeviceReceived::Acknowledged(exchange) => self.server.acknowledged(exchange),
            DeviceReceived::Reset(exchange) => self.server.lost(exchange),
            _ => {}
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
        let now = board::now();
        if now >= self.next_tick {
            self.next_tick = now + TICK;
            self.resources.ticks += 1;
            self.server.changed(TIME);
            if self.resources.ticks.is_multiple_of(2) {
                self.server.changed(TIMES);
            }
        }
        self.server.notify(endpoint, io, &mut self.resources);
        Ok(Some(self.next_tick))
    }
}
