//! A client: an endpoint, and any number of transfers to one server.

use super::super::split_mix::SplitMix;
use super::Flying;
use super::body::{answer, mix, pattern, request_length, state};
use super::server::ADDRESS as SERVER;
use super::watcher::Watcher;
use ebbtide_core::ExchangeId;
use ebbtide_core::PeerId;
use ebbtide_core::endpoint::{
    Endpoint, EndpointConfig, Event, Output, Received, Reliability, SendError,
};
use ebbtide_core::q_block::QBlockParameters;
use ebbtide_core::session::client::{
    Loss, Outgoing, RequestParts, Step, Transfer, TransferError, TransferSettings,
};
use ebbtide_core::session::{BlockSizes, Options, Response};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Content, OptionNumber};

/// One request.
struct Job {
    number: u32,
    code: Code,
    reliability: Reliability,
    transfer: Transfer,
    open: Vec<(ExchangeId, u32)>,
    /// What there was no room for.
    blocked: Option<Outgoing>,
    until: Option<Instant>,
    end: Option<End>,
}

/// How a request has ended.
#[derive(Copy, Clone, Debug)]
enum End {
    Succeeded,
    Refused,
    Failed,
}

pub(crate) struct ClientSide {
    pub(crate) endpoint: Endpoint,
    pub(crate) address: PeerId,
    pub(crate) timeout: Option<Instant>,
    rng: SplitMix,
    q_block: bool,
    jobs: Vec<Job>,
    watchers: Vec<Watcher>,
    /// States that observations told.
    pub(crate) states: u32,
    pub(crate) started: u32,
    pub(crate) succeeded: u32,
    pub(crate) refused: u32,
    pub(crate) failed: u32,
}

impl ClientSide {
    pub(crate) fn new(config: EndpointConfig, address: PeerId, seed: u64) -> Self {
        Self {
            q_block: config.q_block,
            endpoint: Endpoint::new(config, Box::new(SplitMix(seed ^ 3))),
            address,
            timeout: None,
            rng: SplitMix(seed ^ 4),
            jobs: Vec::new(),
            watchers: Vec::new(),
            states: 0,
            started: 0,
            succeeded: 0,
            refused: 0,
            failed: 0,
        }
    }

    /// Begins a request.
    pub(crate) fn start(&mut self, now: Instant, code: Code, number: u32, bits: u8) {
        let mut options = Options::new();
        let path: &[u8] = match (code, bits & 7) {
            (_, 7) => b"nothing",
            (Code::GET, _) => b"state",
            _ => b"echo",
        };
        options.push(OptionNumber::URI_PATH, path);
        let payload = match code {
            Code::GET => Vec::new(),
            _ => pattern(number, request_length(number)),
        };
        let block_size = (bits & 8 != 0).then_some(16 << (bits >> 4 & 3));
        let request = RequestParts { code, options, payload: payload.into(), block_size };
        let mut settings = TransferSettings::new(BlockSizes::of_datagrams(64), 1 << 20);
        settings.in_flight = if bits & 64 == 0 { 1 } else { 4 };
        if bits & 128 != 0 {
            settings.patience.until = Some(now + Duration::from_secs(300));
            settings.patience.silence = Duration::from_secs(100);
        }
        let reliability = match mix(number ^ u32::from(bits)) % 8 {
            0 => Reliability::NonConfirmable,
            _ => Reliability::Confirmable,
        };
        settings.repeat = reliability == Reliability::Confirmable;
        // RFC 9177, if the server knows it.
        let quick = self.q_block && mix(!number).is_multiple_of(3);
        settings.q_block = quick.then_some(QBlockParameters::DEFAULT);
        let transfer = Transfer::new(request, settings);
        self.started += 1;
        self.jobs.push(Job {
            number,
            code,
            reliability,
            transfer,
            open: Vec::new(),
            blocked: None,
            until: None,
            end: None,
        });
    }

    /// Begins an observation, or ends one.
    pub(crate) fn observe(&mut self, bits: u8) {
        if self.watchers.len() < 3 && bits & 8 == 0 {
            self.watchers.push(Watcher::new(bits));
        } else if let Some(watcher) = self.watchers.first_mut() {
            watcher.cancel();
        }
    }

    /// Ends all observations.
    pub(crate) fn cancel(&mut self) {
        self.watchers.iter_mut().for_each(Watcher::cancel);
    }

    pub(crate) fn at_work(&self) -> usize {
        self.jobs.len() + self.watchers.len()
    }

    pub(crate) fn receive(&mut self, now: Instant, from: PeerId, datagram: &[u8]) {
        match self.endpoint.handle_datagram(now, from, datagram) {
            Received::Notification { exchange, message, .. } => {
                let response = Response::from_message(&message);
                if let Some((watcher, at)) = watcher(&mut self.watchers, exchange) {
                    return watcher.answer(now, at, response, true);
                }
                // To a block of RFC 9177 several answers may come.
                let open = self.jobs.iter_mut().find_map(|job| {
                    let (_, id) = job.open.iter().find(|(open, _)| *open == exchange)?;
                    Some((*id, job))
                });
                let (id, job) = open.expect("it goes on");
                job.transfer.handle_response(now, id, response);
            }
            Received::Response { exchange, sample, message } => {
                let repeated = sample.is_none_or(|sample| sample.transmissions > 1);
                let response = Response::from_message(&message).with_repeated(repeated);
                if let Some((watcher, at)) = watcher(&mut self.watchers, exchange) {
                    return watcher.answer(now, at, response, false);
                }
                let (job, id) = self.take(exchange).expect("answered once, while open");
                job.transfer.handle_response(now, id, response);
            }
            Received::Reset { exchange, .. } => self.lose(now, exchange, Loss::Final),
            Received::Acknowledged { .. } | Received::Ignored(_) => {}
            // The other role: the server asks, and at most once in a message.
            Received::Request(incoming, message) => {
                let payload = message.payload().to_vec();
                let content = Content { code: Code::CONTENT, options: &[], payload: &payload };
                let sent = self.endpoint.respond(now, &incoming, &content);
                assert!(!matches!(sent, Err(SendError::Encode(_))), "{sent:?}");
            }
        }
    }

    fn lose(&mut self, now: Instant, exchange: ExchangeId, loss: Loss) {
        if let Some((watcher, at)) = watcher(&mut self.watchers, exchange) {
            return watcher.lose(now, at, loss);
        }
        let (job, id) = self.take(exchange).expect("lost once, while open");
        job.transfer.handle_loss(now, id, loss);
    }

    fn take(&mut self, exchange: ExchangeId) -> Option<(&mut Job, u32)> {
        self.jobs.iter_mut().find_map(|job| {
            let at = job.open.iter().position(|(open, _)| *open == exchange)?;
            let (_, id) = job.open.swap_remove(at);
            Some((job, id))
        })
    }

    pub(crate) fn tick(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    /// Lets all transfers do what they can, and fetches all output.
    pub(crate) fn settle(&mut self, now: Instant, wire: &mut Vec<Flying>) {
        loop {
            // What has ended is told first.
            let timeout = loop {
                match self.endpoint.poll_output() {
                    Output::Transmit(transmit) => {
                        assert_eq!(transmit.to, SERVER);
                        let bytes = transmit.datagram.to_vec();
                        wire.push(Flying { from: self.address, to: SERVER, bytes, sent: now });
                    }
                    Output::Event(Event::Failed { exchange, reason }) => {
                        self.lose(now, exchange, reason.into());
                    }
                    Output::Event(_) => {}
                    Output::Timeout(at) => break at,
                }
            };
            let mut progress = false;
            for job in &mut self.jobs {
                progress |= job.poll(now, &mut self.endpoint, &mut self.rng);
            }
            for watcher in &mut self.watchers {
                progress |= watcher.poll(now, &mut self.endpoint, &mut self.rng);
            }
            self.end();
            if !progress {
                let jobs = self.jobs.iter().filter_map(|job| job.until);
                let watchers = self.watchers.iter().filter_map(|watcher| watcher.until);
                self.timeout = timeout.into_iter().chain(jobs).chain(watchers).min();
                break;
            }
        }
        let open: usize = self.jobs.iter().map(|job| job.open.len()).sum();
        let watched: usize = self.watchers.iter().map(|watcher| watcher.open.len()).sum();
        assert_eq!(self.endpoint.open_exchanges(), open + watched);
    }

    /// Removes those that are over.
    fn end(&mut self) {
        for watcher in self.watchers.extract_if(.., |watcher| watcher.over) {
            self.states += watcher.states;
        }
        for job in self.jobs.extract_if(.., |job| job.end.is_some()) {
            match job.end {
                Some(End::Succeeded) => self.succeeded += 1,
                Some(End::Refused) => self.refused += 1,
                _ => self.failed += 1,
            }
        }
    }
}

fn watcher(watchers: &mut [Watcher], exchange: ExchangeId) -> Option<(&mut Watcher, usize)> {
    watchers.iter_mut().find_map(|watcher| {
        let at = watcher.open.iter().position(|(open, _)| *open == exchange)?;
        Some((watcher, at))
    })
}

impl Job {
    /// Whether it did anything.
    fn poll(&mut self, now: Instant, endpoint: &mut Endpoint, rng: &mut SplitMix) -> bool {
        let mut progress = false;
        while self.end.is_none() {
            let outgoing = match self.blocked.take() {
                Some(outgoing) => outgoing,
                None => match self.transfer.poll(now, rng) {
                    Step::Send(outgoing) => outgoing,
                    Step::Cancel(id) => {
                        let at = self.open.iter().position(|(_, open)| *open == id).unwrap();
                        endpoint.cancel(now, self.open.swap_remove(at).0);
                        progress = true;
                        continue;
                    }
                    Step::Wait(at) => {
                        self.until = at;
                        break;
                    }
                    Step::Done(result) => {
                        for (exchange, _) in self.open.drain(..) {
                            endpoint.cancel(now, exchange);
                        }
                        self.end = Some(self.check(result));
                        progress = true;
                        break;
                    }
                },
            };
            let id = outgoing.id;
            let sent = outgoing.options.with_slice(None, |options| {
                let (code, payload) = (outgoing.code, &outgoing.payload[..]);
                let content = ebbtide_core::wire::Content { code, options, payload };
                match outgoing.q_block {
                    true => endpoint.request_block(now, SERVER, &content),
                    false => endpoint.request(now, SERVER, &content, self.reliability),
                }
            });
            match sent {
                Ok(exchange) => self.open.push((exchange, id)),
                Err(SendError::TooLong { .. }) => {
                    self.transfer.handle_loss(now, id, Loss::TooLong);
                }
                Err(SendError::QueueFull) if outgoing.q_block => {
                    self.transfer.handle_loss(now, id, Loss::NoRoom);
                }
                Err(SendError::QueueFull) => {
                    self.blocked = Some(outgoing);
                    self.until = None;
                    break;
                }
                Err(error) => panic!("{error}"),
            }
            progress = true;
        }
        progress
    }

    /// A body arrives whole or not at all.
    fn check(&self, result: Result<Response, TransferError>) -> End {
        let Ok(response) = result else { return End::Failed };
        if !response.is_success() {
            return End::Refused;
        }
        let body = response.body();
        if self.code == Code::GET {
            let first = body.first().copied().unwrap_or_default();
            assert!(*body == state(first), "{} bytes of version {first}", body.len());
        } else {
            let whole = answer(self.number);
            assert!(*body == whole, "{} {}: {} bytes", self.code, self.number, body.len());
        }
        End::Succeeded
    }
}
