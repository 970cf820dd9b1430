//! An observation (RFC 7641).

use super::block_wise::{Exchanges, request, settings};
use crate::arguments::Arguments;
use crate::driver::{Application, Next};
use crate::rng::SplitMix;
use crate::semihosting::report;
use bytes::Bytes;
use core::net::SocketAddr;
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{Endpoint, Received};
use ebbtide_core::session::Response;
use ebbtide_core::session::client::{Loss, Observation, ObservationSettings, ObservationStep};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::Code;

/// Observes a resource until `states` states have arrived, and deregisters.
#[derive(Debug)]
pub struct Watch {
    server: SocketAddr,
    observation: Observation,
    exchanges: Exchanges,
    rng: SplitMix,
    wanted: u32,
    states: u32,
}

impl Watch {
    /// Nothing has left yet.
    #[must_use]
    pub fn new(server: SocketAddr, arguments: &Arguments) -> Self {
        let settings = ObservationSettings {
            transfer: settings(),
            timeout: None,
            ordered: false,
            end_at_error: false,
        };
        Self {
            server,
            observation: Observation::new(request(Code::GET, Bytes::new(), b"time"), settings),
            exchanges: Exchanges::default(),
            rng: SplitMix(5),
            wanted: arguments.number("states", 3),
            states: 0,
        }
    }

    /// Reports the number of states.
    pub fn report(&self) {
        report("states", self.states);
    }
}

impl Application for Watch {
    fn received(&mut self, now: Instant, _: &mut Endpoint, received: Received<'_>) {
        let (exchange, message, more) = match received {
            Received::Response { exchange, message, .. } => (exchange, message, false),
            Received::Notification { exchange, message, .. } => (exchange, message, true),
            Received::Reset { exchange, .. } => return self.failed(now, exchange),
            _ => return,
        };
        if let Some(id) = self.exchanges.id(exchange) {
            let response = Response::from_message(&message);
            self.observation.handle_response(now, id, response, more);
        }
        if !more {
            self.exchanges.end(exchange);
        }
    }

    fn failed(&mut self, now: Instant, exchange: ExchangeId) {
        if let Some(id) = self.exchanges.end(exchange) {
            self.observation.handle_loss(now, id, Loss::Unanswered);
        }
    }

    fn poll(&mut self, now: Instant, endpoint: &mut Endpoint) -> Next {
        loop {
            match self.observation.poll(now, &mut self.rng) {
                ObservationStep::Send { outgoing, again } => {
                    let started =
                        self.exchanges.start(now, endpoint, self.server, &outgoing, again);
                    if let Err(loss) = started {
                        self.observation.handle_loss(now, outgoing.id, loss);
                    }
                }
                ObservationStep::Cancel(id) => self.exchanges.cancel(now, endpoint, id),
                ObservationStep::Renew => self.observation.renewed(settings()),
                ObservationStep::State(_) => {
                    self.states += 1;
                    if self.states == self.wanted {
                        self.observation.cancel();
                    }
                }
                ObservationStep::Wait(until) => return Next::Wait(until),
                ObservationStep::Failed(_) | ObservationStep::Over => return Next::Done,
            }
        }
    }
}
