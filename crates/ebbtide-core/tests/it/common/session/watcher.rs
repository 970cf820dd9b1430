//! An observation of a client.

use super::super::split_mix::SplitMix;
use super::body::state;
use super::server::ADDRESS as SERVER;
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{Endpoint, Reliability, SendError};
use ebbtide_core::session::client::{
    Loss, Observation, ObservationSettings, ObservationStep, Outgoing, RequestParts,
    TransferSettings,
};
use ebbtide_core::session::{BlockSizes, Options, Response};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Content, OptionNumber};

pub(crate) struct Watcher {
    observation: Observation,
    pub(crate) open: Vec<(ExchangeId, u32)>,
    pub(crate) until: Option<Instant>,
    pub(crate) states: u32,
    pub(crate) over: bool,
}

fn transfer() -> TransferSettings {
    TransferSettings::new(BlockSizes::of_datagrams(64), 1 << 20)
}

impl Watcher {
    pub(crate) fn new(bits: u8) -> Self {
        let mut options = Options::new();
        options.push(OptionNumber::URI_PATH, b"state");
        let (code, payload) = (Code::GET, Vec::new().into());
        let request = RequestParts { code, options, payload, block_size: None };
        let settings = ObservationSettings {
            transfer: transfer(),
            timeout: (bits & 1 != 0).then_some(Duration::from_secs(30)),
            ordered: false,
            end_at_error: bits & 2 != 0,
        };
        Self {
            observation: Observation::new(request, settings),
            open: Vec::new(),
            until: None,
            states: 0,
            over: false,
        }
    }

    pub(crate) fn cancel(&mut self) {
        self.observation.cancel();
    }

    /// A response to one of its exchanges.
    pub(crate) fn answer(&mut self, now: Instant, at: usize, response: Response, more: bool) {
        let (_, id) = self.open[at];
        if !more {
            self.open.swap_remove(at);
        }
        self.observation.handle_response(now, id, response, more);
    }

    pub(crate) fn lose(&mut self, now: Instant, at: usize, loss: Loss) {
        let (_, id) = self.open.swap_remove(at);
        self.observation.handle_loss(now, id, loss);
    }

    /// Whether it did anything.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        rng: &mut SplitMix,
    ) -> bool {
        let mut progress = false;
        while !self.over {
            match self.observation.poll(now, rng) {
                ObservationStep::Send { outgoing, again } => {
                    self.send(now, endpoint, &outgoing, again)
                }
                ObservationStep::Cancel(id) => {
                    if let Some(at) = self.open.iter().position(|(_, open)| *open == id) {
                        endpoint.cancel(now, self.open.swap_remove(at).0);
                    }
                }
                ObservationStep::Renew => self.observation.renewed(transfer()),
                ObservationStep::Wait(at) => {
                    self.until = at;
                    return progress;
                }
                ObservationStep::State(response) if response.is_success() => {
                    let body = response.body();
                    let first = body.first().copied().unwrap_or_default();
                    assert!(*body == state(first), "{} bytes of version {first}", body.len());
                    self.states += 1;
                }
                ObservationStep::State(_) | ObservationStep::Failed(_) => {}
                ObservationStep::Over => {
                    for (exchange, _) in self.open.drain(..) {
                        endpoint.cancel(now, exchange);
                    }
                    self.over = true;
                }
            }
            progress = true;
        }
        progress
    }

    fn send(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        outgoing: &Outgoing,
        again: Option<u32>,
    ) {
        let how = Reliability::Confirmable;
        let old = again.and_then(|id| self.open.iter().position(|(_, open)| *open == id));
        let sent = outgoing.options.with_slice(None, |options| {
            let content = Content { code: outgoing.code, options, payload: &outgoing.payload };
            match old {
                Some(at) => endpoint.request_again(now, self.open[at].0, &content, how),
                None => endpoint.request(now, SERVER, &content, how),
            }
        });
        if let Some(at) = old.filter(|_| sent != Err(SendError::QueueFull)) {
            self.open.swap_remove(at);
        }
        match sent {
            Ok(exchange) => {
                assert!(self.open.iter().all(|(_, open)| *open != outgoing.id), "one name, twice");
                self.open.push((exchange, outgoing.id));
            }
            Err(SendError::QueueFull) => {
                self.observation.handle_loss(now, outgoing.id, Loss::NoRoom);
            }
            Err(error) => panic!("{error}"),
        }
    }
}
