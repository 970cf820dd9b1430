//! A server: `/ticks` can be observed, `/led` takes and returns a body in blocks, `/heap` is the
//! number of bytes in use, and a PUT to `/end` ends the program.

use crate::driver::{Application, Next};
use crate::memory::heap_used;
use crate::rng::SplitMix;
use crate::semihosting::report;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{Endpoint, Incoming, Received, Reliability};
use ebbtide_core::session::server::{
    Next as Stage, Observe, Outgoing, RequestSlot, Server, ServerState, SessionConfig,
};
use ebbtide_core::session::{ObserverId, Observers, Response, Room, Subject, Verify};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Message, Opt, OptionNumber, encode_uint};

const TICKS: Subject = Subject { id: 1, confirmable: true };
const TICK: Duration = Duration::from_millis(500);
/// The longest body.
const MAX_BODY: usize = 2048;
const MAX_OBSERVERS: usize = 4;

/// The server.
#[derive(Debug)]
pub struct Serving {
    session: Server<RefCell<ServerState>>,
    observers: Observers,
    notifications: Vec<(ExchangeId, ObserverId)>,
    ticks: u32,
    next_tick: Instant,
    led: Vec<u8>,
    requests: u32,
    has_ended: bool,
}

impl Default for Serving {
    fn default() -> Self {
        let config = SessionConfig {
            verify: Verify::All,
            max_addresses: 4,
            max_body: MAX_BODY,
            max_block_bytes: 2 * MAX_BODY,
            max_withheld: 2,
            block_size: 256,
            ..SessionConfig::default()
        };
        let state = RefCell::new(ServerState::new(&config, Box::new(SplitMix(77))));
        Self {
            session: Server::new(config, state),
            observers: Observers::new(3),
            notifications: Vec::new(),
            ticks: 0,
            next_tick: Instant::ZERO,
            led: Vec::new(),
            requests: 0,
            has_ended: false,
        }
    }
}

impl Serving {
    /// Reports what it did.
    pub fn report(&self) {
        report("requests", self.requests);
        report("observers", self.observers.len() as u32);
    }

    fn answer(&mut self, message: &Message<'_>, body: &[u8]) -> Response {
        let path = message.option(OptionNumber::URI_PATH).map_or(&b""[..], |option| option.value);
        match (message.code(), path) {
            (Code::GET, b"ticks") => Response::content(decimal(self.ticks)).max_age(5),
            (Code::GET, b"led") => Response::content(self.led.clone()),
            (Code::GET, b"heap") => Response::content(decimal(heap_used())),
            (Code::PUT, b"led") => {
                self.led.clear();
                self.led.extend_from_slice(body);
                Response::new(Code::CHANGED)
            }
            (Code::PUT, b"end") => {
                self.has_ended = true;
                Response::new(Code::CHANGED)
            }
            _ => Response::new(Code::NOT_FOUND),
        }
    }

    fn request(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        incoming: Incoming,
        message: Message<'_>,
    ) {
        self.requests += 1;
        let sizes = self.session.datagram_sizes();
        let mut slot = RequestSlot::new();
        let received = slot.datagram(incoming, message, sizes, 0, None, false);
        let verified = match self.session.receive(now, received) {
            Stage::Proceed(verified) => verified,
            Stage::Handled(mut handled) => {
                return self.send(now, endpoint, self.session.complete(now, &mut handled, None));
            }
            Stage::Send(outgoing) => return self.send(now, endpoint, outgoing),
        };
        let assembled = match self.session.assemble(now, verified.permit(MAX_BODY)) {
            Stage::Proceed(assembled) => assembled,
            Stage::Handled(_) => return,
            Stage::Send(outgoing) => return self.send(now, endpoint, outgoing),
        };
        let response = self.answer(assembled.message(), assembled.body());
        let is_ticks = assembled
            .message()
            .option(OptionNumber::URI_PATH)
            .is_some_and(|path| path.value == b"ticks");
        let mut handled = assembled.handled(response);
        let observers = &mut self.observers;
        let observe = is_ticks.then_some(Observe {
            observers,
            subject: TICKS,
            max: MAX_OBSERVERS,
            missed_a_change: false,
        });
        let outgoing = self.session.complete(now, &mut handled, observe);
        for finished in outgoing.iter() {
            let _ = finished.send(now, endpoint);
        }
        while let Some(exchange) = self.observers.pop_superseded() {
            endpoint.cancel(now, exchange);
            self.notifications.retain(|(known, _)| *known != exchange);
        }
    }

    fn send(&self, now: Instant, endpoint: &mut Endpoint, outgoing: Outgoing<'_>) {
        for finished in outgoing.iter() {
            let _ = finished.send(now, endpoint);
        }
    }

    /// A notification is over.
    fn ended(&mut self, exchange: ExchangeId) -> Option<ObserverId> {
        let at = self.notifications.iter().position(|(known, _)| *known == exchange)?;
        Some(self.notifications.swap_remove(at).1)
    }

    fn notify(&mut self, now: Instant, endpoint: &mut Endpoint) {
        while let Some(due) = self.observers.pop_due(now) {
            let response = Response::content(decimal(self.ticks)).max_age(5);
            let mut value = [0; 4];
            let observe =
                Opt { number: OptionNumber::OBSERVE, value: encode_uint(due.sequence, &mut value) };
            let reliability = match due.confirmable {
                true => Reliability::Confirmable,
                false => Reliability::NonConfirmable,
            };
            let sent = response.with_content(Some(observe), |content| {
                endpoint.notify(now, due.remote, &due.token, content, reliability)
            });
            match sent {
                Ok(exchange) => {
                    self.observers.sent(&due, exchange);
                    self.notifications.push((exchange, due.observer));
                }
                Err(_) => {
                    let room = Room::Scope(endpoint.scope_of(due.remote));
                    self.observers.postponed(due.observer, due.event, room);
                }
            }
        }
    }
}

impl Application for Serving {
    fn received(&mut self, now: Instant, endpoint: &mut Endpoint, received: Received<'_>) {
        match received {
            Received::Request(incoming, message) => self.request(now, endpoint, incoming, message),
            Received::Acknowledged { exchange, .. } => {
                if let Some(observer) = self.ended(exchange) {
                    self.observers.acknowledged(observer);
                }
            }
            Received::Reset { exchange, .. } => {
                if let Some(observer) = self.ended(exchange) {
                    self.observers.remove(observer);
                }
            }
            _ => {}
        }
    }

    fn failed(&mut self, _: Instant, exchange: ExchangeId) {
        if let Some(observer) = self.ended(exchange) {
            self.observers.lost(observer);
        }
    }

    fn poll(&mut self, now: Instant, endpoint: &mut Endpoint) -> Next {
        if self.has_ended {
            return Next::Done;
        }
        if now >= self.next_tick {
            self.next_tick = now + TICK;
            self.ticks += 1;
            self.observers.changed(TICKS.id);
        }
        self.notify(now, endpoint);
        if self.session.poll_timeout().is_some_and(|at| at <= now) {
            for finished in self.session.handle_timeout(now) {
                let _ = finished.as_borrowed().send(now, endpoint);
            }
        }
        Next::Wait(Some(self.next_tick))
    }
}

/// A number as text.
fn decimal(number: u32) -> Vec<u8> {
    let mut digits = Vec::new();
    let mut rest = number;
    loop {
        digits.insert(0, b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            return digits;
        }
    }
}
