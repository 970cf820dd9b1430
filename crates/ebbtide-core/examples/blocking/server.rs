//! A server on the core alone: bodies in blocks, observers, over a blocking socket (`driver.rs`).
//! `/echo` returns what is put, `/time` is the number of seconds since the start, and changes once
//! a second.
//!
//!     cargo run -p ebbtide-core --example blocking_server 127.0.0.1:5683

mod driver;

use driver::{BUFFER, Driver, Happened};
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{Incoming, Received, Reliability};
use ebbtide_core::session::server::{
    Next, Observe, Outgoing, RequestSlot, Server, ServerState, SessionConfig,
};
use ebbtide_core::session::{ObserverId, Observers, Response, Room, Subject};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Message, Opt, OptionNumber, encode_uint};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::cell::RefCell;
use std::io;
use std::net::UdpSocket;

const TIME: Subject = Subject { id: 0, confirmable: true };

struct Application {
    driver: Driver,
    session: Server<RefCell<ServerState>>,
    observers: Observers,
    /// The notifications that were not answered yet.
    notifications: Vec<(ExchangeId, ObserverId)>,
}

impl Application {
    fn new(mut driver: Driver) -> Self {
        let config = SessionConfig::default();
        let tables = ServerState::new(&config, Box::new(ChaCha8Rng::from_rng(&mut driver.rng)));
        let (session, seed) = (Server::new(config, RefCell::new(tables)), driver.rng.next_u64());
        Self { driver, session, observers: Observers::new(seed), notifications: Vec::new() }
    }

    fn time(now: Instant) -> Response {
        let seconds = now.saturating_since(Instant::ZERO).as_secs();
        Response::content(seconds.to_string()).max_age(2)
    }

    /// Takes a request through the stages of the session (`ebbtide_core::session::server`).
    fn serve(&mut self, now: Instant, incoming: Incoming, message: Message<'_>) {
        let (mut slot, sizes) = (RequestSlot::new(), self.session.datagram_sizes());
        let received = slot.datagram(incoming, message, sizes, 0, None, false);
        let verified = match self.session.receive(now, received) {
            Next::Proceed(verified) => verified,
            Next::Handled(mut handled) => {
                let answer = self.session.complete(now, &mut handled, None);
                return Self::send(&mut self.driver, now, &answer);
            }
            Next::Send(answer) => return Self::send(&mut self.driver, now, &answer),
        };
        let path: Vec<&[u8]> = verified.message().path().collect();
        let is_time = path == [b"time"];
        let mut handled = match (verified.message().code(), &path[..]) {
            (Code::GET, [b"time"]) | (Code::PUT | Code::POST, [b"echo"]) => {
                match self.session.assemble(now, verified.permit(1 << 20)) {
                    Next::Proceed(request) if is_time => request.handled(Self::time(now)),
                    Next::Proceed(request) => {
                        let body = request.body().to_vec();
                        request.handled(Response::new(Code::CHANGED).payload(body))
                    }
                    Next::Handled(handled) => handled,
                    Next::Send(answer) => return Self::send(&mut self.driver, now, &answer),
                }
            }
            (_, [b"time"] | [b"echo"]) => verified.refuse(Response::new(Code::METHOD_NOT_ALLOWED)),
            _ => verified.refuse(Response::new(Code::NOT_FOUND)),
        };
        let (observers, subject) = (&mut self.observers, TIME);
        let observe = Observe { observers, subject, max: 100, missed_a_change: false };
        let answer = self.session.complete(now, &mut handled, is_time.then_some(observe));
        Self::send(&mut self.driver, now, &answer);
        // A registration under a token that observed already supersedes the notification under way.
        while let Some(superseded) = self.observers.pop_superseded() {
            self.ended(superseded);
            self.driver.endpoint.cancel(now, superseded);
        }
    }

    fn send(driver: &mut Driver, now: Instant, answer: &Outgoing<'_>) {
        for finished in answer.iter() {
            // A separate response to an address that may be forged is not repeated as often.
            if let Ok(Some(exchange)) = finished.send(now, &mut driver.endpoint) {
                let allowance = finished.requester().allowance;
                driver.endpoint.limit_transmissions(exchange, allowance);
            }
        }
    }

    /// Sends the notifications for which congestion control has room.
    fn notify(&mut self, now: Instant) {
        while let Some(due) = self.observers.pop_due(now) {
            let mut value = [0; 4];
            let value = encode_uint(due.sequence, &mut value);
            let observe = Opt { number: OptionNumber::OBSERVE, value };
            let endpoint = &mut self.driver.endpoint;
            let sent = Self::time(now).with_content(Some(observe), |content| {
                endpoint.notify(now, due.remote, &due.token, content, Reliability::Confirmable)
            });
            match sent {
                Ok(exchange) => {
                    self.observers.sent(&due, exchange);
                    self.notifications.push((exchange, due.observer));
                }
                Err(_) => {
                    let scope = self.driver.endpoint.scope_of(due.remote);
                    self.observers.postponed(due.observer, due.event, Room::Scope(scope));
                }
            }
        }
    }

    /// The observer whose notification this was. There is room for its next one now.
    fn ended(&mut self, exchange: ExchangeId) -> Option<ObserverId> {
        let at = self.notifications.iter().position(|(known, _)| *known == exchange)?;
        Some(self.notifications.swap_remove(at).1)
    }
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:5683".into());
    let socket = UdpSocket::bind(address)?;
    println!("{}", socket.local_addr()?);
    let mut server = Application::new(Driver::new(socket)?);
    let (second, mut changes) = (Duration::from_secs(1), server.driver.now());
    let mut buffer = [0; BUFFER];
    loop {
        match server.driver.turn(Some(changes), &mut buffer)? {
            Some(Happened::Received(Received::Request(incoming, message))) => {
                server.serve(server.driver.now(), incoming, message);
            }
            Some(Happened::Received(Received::Acknowledged { exchange, .. })) => {
                if let Some(observer) = server.ended(exchange) {
                    server.observers.acknowledged(observer);
                }
            }
            Some(Happened::Received(Received::Reset { exchange, .. })) => {
                if let Some(observer) = server.ended(exchange) {
                    server.observers.remove(observer);
                }
            }
            Some(Happened::Failed(exchange, reason)) => {
                if let Some(observer) = server.ended(exchange) {
                    eprintln!("an observer is lost: {reason}");
                    server.observers.lost(observer);
                }
            }
            _ => {}
        }
        let now = server.driver.now();
        if now >= changes {
            changes = changes + second;
            server.observers.changed(TIME.id);
        }
        server.notify(now);
    }
}
