//! Hosts that send requests, each with an endpoint.

use crate::host::{Ended, Exchanges, Kind, Step, Tag, client_address, client_at};
use crate::random::CompactChaCha;
use crate::record::Recorder;
use ebbtide_core::endpoint::EndpointConfig;
use ebbtide_core::session::Response;
use ebbtide_core::time::{Instant, Micros};
use ebbtide_core::wire::Content;

/// A host that sends requests.
pub(super) struct Requester {
    /// Its number among the hosts.
    host: u32,
    pub(super) exchanges: Exchanges,
    next_number: u32,
    pub(super) open: u32,
    started: Option<Instant>,
    /// The earliest timer event that is scheduled for it.
    pub(super) timer: Option<Instant>,
}

impl Requester {
    /// Client `number` on host `host`.
    pub(super) fn new(
        (number, host, group): (u32, u32, u8),
        config: EndpointConfig,
        rng: CompactChaCha,
    ) -> Self {
        Self {
            host,
            exchanges: Exchanges::new((number, group), config, rng),
            next_number: 0,
            open: 0,
            started: None,
            timer: None,
        }
    }

    /// Asks a host. A request that the endpoint does not take has ended.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        host: u32,
        content: &Content<'_>,
    ) -> Result<(), Ended> {
        self.started.get_or_insert(now);
        let number = self.next_number;
        self.next_number += 1;
        if !self.exchanges.ask(now, (client_address(host), Kind::default()), content, number) {
            return Err(Ended::failed(number, 0));
        }
        self.open += 1;
        Ok(())
    }

    /// A datagram arrives from a host. The exchange that has ended with it, and its response.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        (from, datagram, tag): (u32, &[u8], Tag),
        recorder: &mut impl Recorder,
    ) -> Option<(Ended, Option<Response>)> {
        let arrived = (client_address(from).into(), datagram, tag);
        let mut response = None;
        let ended = self.exchanges.receive_and_read(now, arrived, recorder, |message| {
            response = Some(Response::from_message(message));
        });
        if let Some(ended) = ended.filter(|ended| ended.answered) {
            recorder.answered_after(now - ended.made);
        }
        if ended.is_some() {
            self.ended(now);
        }
        ended.map(|ended| (ended, response))
    }

    /// The final measurements.
    pub(super) fn finish(&mut self) {
        self.exchanges.finish();
        let record = &mut self.exchanges.record;
        record.asked = record.completed + record.failed + self.open;
        record.in_time = record.completed;
    }

    /// The endpoint's timer may be due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.exchanges.endpoint.handle_timeout(now);
    }

    /// Hands what the endpoint wants to send to `send` and exchanges that failed to `failed`.
    /// Returns when it wants to be called again.
    pub(super) fn drain<R: Recorder>(
        &mut self,
        now: Instant,
        recorder: &mut R,
        mut send: impl FnMut(&mut R, u32, &[u8], (Tag, Micros)),
        failed: &mut Vec<Ended>,
    ) -> Option<Instant> {
        loop {
            match self.exchanges.poll(now, recorder) {
                Step::Leaves { to, datagram, tag, timeout } => {
                    if let Some(to) = client_at(to) {
                        send(recorder, to, datagram, (tag, timeout));
                    }
                }
                Step::Failed(ended) => {
                    self.ended(now);
                    failed.push(ended);
                }
                Step::Other => {}
                Step::Wait(at) => return at,
            }
        }
    }

    fn ended(&mut self, now: Instant) {
        self.open -= 1;
        if let Some(started) = self.started {
            self.exchanges.record.fct = now - started;
        }
    }

    /// Its number among the hosts.
    pub(super) const fn host(&self) -> u32 {
        self.host
    }
}
