//! A receiver behind a path with a delay and a bottleneck, and a sender with many messages for it.

use super::node::{Datagram, Node, PEER, content};
use super::{at, secs};
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::Reliability;
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::Code;

/// What becomes of a datagram: the bytes of its answer, or nothing.
type Fate = Box<dyn FnMut(&Datagram) -> Option<Vec<u8>>>;

/// Reset for a ping, 2.05 for a message.
pub(crate) fn answered(datagram: &Datagram) -> Option<Vec<u8>> {
    Some(if datagram.is_probe() { datagram.rst() } else { datagram.answer() })
}

/// A sender that always has a few messages waiting, and what it sent.
pub(crate) struct Burst {
    pub(crate) node: Node,
    /// What left, in order.
    pub(crate) log: Vec<Datagram>,
    /// Every exchange, in the order of being accepted.
    pub(crate) accepted: Vec<ExchangeId>,
    /// Answers on their way.
    coming: Vec<(Instant, Vec<u8>)>,
    round_trip: Duration,
    /// What the bottleneck needs for a datagram.
    service: Duration,
    free: Instant,
    pub(crate) fate: Fate,
    /// Messages that are still to be handed to the endpoint.
    pub(crate) left: usize,
    /// How much longer than the round trip the answer to each datagram takes, in turn.
    pub(crate) extra: &'static [f64],
}

impl Burst {
    /// Time begins at zero. `text` names the control.
    pub(crate) fn new(text: &str, round_trip: f64, messages: usize) -> Self {
        let mut node = Node::impatient(text);
        node.now = Instant::ZERO;
        Self {
            node,
            log: Vec::new(),
            accepted: Vec::new(),
            coming: Vec::new(),
            round_trip: secs(round_trip).to_duration(),
            service: Duration::ZERO,
            free: Instant::ZERO,
            fate: Box::new(answered),
            left: messages,
            extra: &[0.0],
        }
    }

    /// The same behind a link that takes `seconds` for each datagram.
    pub(crate) fn behind(mut self, seconds: f64) -> Self {
        self.service = secs(seconds).to_duration();
        self
    }

    /// Keeps a few messages in the endpoint's queue and answers what left.
    fn turn(&mut self) {
        loop {
            self.node.settle();
            while self.left > 0 && self.node.ep.open_exchanges() < 60 {
                let get = content(Code::GET, b"");
                match self.node.try_request(PEER, &get, Reliability::Confirmable) {
                    Ok(exchange) => self.accepted.push(exchange),
                    Err(_) => break,
                }
                self.left -= 1;
            }
            let sent = self.node.take();
            if sent.is_empty() {
                return;
            }
            for datagram in sent {
                self.free = self.free.max(self.node.now) + self.service;
                if let Some(answer) = (self.fate)(&datagram) {
                    let extra = secs(self.extra[self.log.len() % self.extra.len()]);
                    self.coming.push((self.free + self.round_trip + extra, answer));
                }
                self.log.push(datagram);
            }
        }
    }

    /// Lets time pass until `seconds` on the clock.
    pub(crate) fn run_until(&mut self, seconds: f64) {
        let end = at(seconds);
        loop {
            self.turn();
            let answer = self.coming.iter().map(|(at, _)| *at).min();
            let Some(next) = answer.into_iter().chain(self.node.timeout).min() else { break };
            if next > end {
                break;
            }
            self.node.now = self.node.now.max(next);
            match self.coming.iter().position(|(at, _)| *at <= self.node.now) {
                Some(index) => {
                    let (_, bytes) = self.coming.remove(index);
                    self.node.arrive(&bytes);
                }
                None => {
                    self.node.ep.handle_timeout(self.node.now);
                    self.node.settle();
                }
            }
        }
        self.node.now = end;
    }

    pub(crate) fn state(&self) -> &'static str {
        self.node.ep.metrics(PEER).expect("a peer").state
    }

    /// 1/R in seconds.
    pub(crate) fn interval(&self) -> f64 {
        super::float(self.node.ep.metrics(PEER).and_then(|m| m.interval).expect("a rate"))
    }

    /// When the originals of messages left, in seconds.
    pub(crate) fn departures(&self) -> Vec<f64> {
        let originals = self.log.iter().filter(|sent| !sent.is_probe() && sent.ordinal() == 0);
        originals.map(|sent| sent.at.as_nanos() as f64 / 1e9).collect()
    }

    /// Probes sent so far.
    pub(crate) fn probes(&self) -> usize {
        self.log.iter().filter(|sent| sent.is_probe()).count()
    }

    /// Copies sent so far.
    pub(crate) fn copies(&self) -> usize {
        self.log.iter().filter(|sent| !sent.is_probe() && sent.ordinal() > 0).count()
    }

    /// Messages, originals and copies, that left until now.
    pub(crate) fn messages(&self) -> usize {
        self.log.len() - self.probes()
    }
}

/// Loses the messages whose number, counted from zero as they leave, is in `lost`; answers the rest.
pub(crate) fn losing(lost: &'static [usize]) -> Fate {
    let mut count = 0;
    Box::new(move |datagram| {
        if datagram.is_probe() {
            return answered(datagram);
        }
        count += 1;
        if lost.contains(&(count - 1)) { None } else { answered(datagram) }
    })
}
