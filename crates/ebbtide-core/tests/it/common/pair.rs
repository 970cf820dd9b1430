//! A client and a server joined by a wire that loses what the test says, and a list of all that
//! happened on it.

use super::node::{Datagram, Got, Node, PEER, content, peer};
use super::secs;
use ebbtide_core::ExchangeId;
use ebbtide_core::PeerId;
use ebbtide_core::cc::Sample;
use ebbtide_core::endpoint::{EndpointConfig, Incoming};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Message};

/// The client's address.
pub(crate) const CLIENT: PeerId = peer(1);

/// How the server's application answers.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Serve {
    /// On the acknowledgement.
    AtOnce,
    /// With an empty acknowledgement at once and a response so many seconds later.
    After(f64),
}

pub(crate) struct Pair {
    pub(crate) client: Node,
    pub(crate) server: Node,
    pub(crate) serve: Serve,
    /// Which datagrams are lost, counting from 0 in the order of sending, both ways together.
    pub(crate) lost: Vec<usize>,
    /// Seconds of delay each way.
    pub(crate) delay: f64,
    /// What was sent: seconds, direction (`>` to the server), type, code; `x` for lost.
    pub(crate) log: Vec<String>,
    pub(crate) responses: Vec<(ExchangeId, Option<Sample>, Vec<u8>)>,
    /// Requests that the server's application saw.
    pub(crate) requests: usize,
    count: usize,
    flying: Vec<(Instant, usize, bool, Vec<u8>)>,
    due: Vec<(Instant, Incoming)>,
}

impl Pair {
    pub(crate) fn new(client: EndpointConfig, server: EndpointConfig) -> Self {
        let lowest = super::Constant::lowest;
        let mut pair = Self {
            client: Node::with_rng(client, lowest()),
            server: Node::with_rng(server, lowest()),
            serve: Serve::AtOnce,
            lost: Vec::new(),
            delay: 0.1,
            log: Vec::new(),
            responses: Vec::new(),
            requests: 0,
            count: 0,
            flying: Vec::new(),
            due: Vec::new(),
        };
        (pair.client.now, pair.server.now) = (Instant::ZERO, Instant::ZERO);
        pair
    }

    fn fly(&mut self, to_server: bool, datagram: &Datagram) {
        let lost = self.lost.contains(&self.count);
        let arrow = if to_server { '>' } else { '<' };
        let mark = if lost { "x" } else { "" };
        let seconds = datagram.at.as_nanos() as f64 / 1e9;
        let message = datagram.message();
        self.log.push(format!("{seconds} {mark}{arrow} {} {}", message.kind(), message.code()));
        if !lost {
            let arrival = datagram.at + secs(self.delay);
            self.flying.push((arrival, self.count, to_server, datagram.bytes.clone()));
        }
        self.count += 1;
    }

    fn collect(&mut self) {
        self.client.settle();
        self.server.settle();
        for datagram in self.client.take() {
            self.fly(true, &datagram);
        }
        for datagram in self.server.take() {
            self.fly(false, &datagram);
        }
    }

    fn deliver(&mut self, to_server: bool, bytes: &[u8]) {
        if !to_server {
            if let Got::Response { exchange, sample, payload, .. } =
                self.client.arrive_from(PEER, bytes)
            {
                self.responses.push((exchange, sample, payload));
            }
            return;
        }
        assert!(Message::parse(bytes).is_ok());
        if let Got::Request(mut incoming) = self.server.arrive_from(CLIENT, bytes) {
            self.requests += 1;
            match self.serve {
                Serve::AtOnce => self.answer(&incoming),
                Serve::After(seconds) => {
                    self.server.acknowledge(&mut incoming);
                    self.due.push((self.server.now + secs(seconds), incoming));
                }
            }
        }
    }

    fn answer(&mut self, incoming: &Incoming) {
        let payload = format!("answer {}", self.requests);
        let content = content(Code::CONTENT, payload.as_bytes());
        self.server.ep.respond(self.server.now, incoming, &content).expect("accepted");
        self.server.settle();
    }

    /// Lets everything happen until nothing is left to happen.
    pub(crate) fn run(&mut self) {
        loop {
            self.collect();
            let arrival = self.flying.iter().map(|f| f.0).min();
            let answer = self.due.iter().map(|d| d.0).min();
            let timers = [self.client.timeout, self.server.timeout];
            let next = timers.into_iter().flatten().chain(arrival).chain(answer).min();
            let Some(now) = next else { return };
            (self.client.now, self.server.now) = (now, now);
            if arrival == Some(now) {
                let first = self.flying.iter().enumerate().min_by_key(|(_, f)| (f.0, f.1));
                let (_, _, to_server, bytes) = self.flying.remove(first.expect("not empty").0);
                self.deliver(to_server, &bytes);
            } else if answer == Some(now) {
                let first = self.due.iter().position(|d| d.0 == now).expect("not empty");
                let (_, incoming) = self.due.remove(first);
                self.answer(&incoming);
            } else {
                self.client.ep.handle_timeout(now);
                self.server.ep.handle_timeout(now);
            }
        }
    }
}
