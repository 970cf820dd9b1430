//! A host that sends a body in blocks.

use super::{OPEN, configs, option};
use crate::host::agenda::Agenda;
use crate::host::flow::Flow;
use crate::host::tagged;
use crate::host::{Counts, OutcomeBook, Tag, count, digits, server_address};
use crate::random::Streams;
use crate::record::ClientRecord;
use crate::record::Recorder;
use crate::scenario::{QBlock, Scenario};
use ebbtide_core::ExchangeId;
use ebbtide_core::endpoint::{Endpoint, Failure, Output, Received, Sent};
use ebbtide_core::q_block::{QBlockParameters, Sender, Sending};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Message, MissingBlocks, Opt, OptionNumber, encode_uint};
use std::collections::VecDeque;

/// A client and its measurements. All messages of its workload are the blocks of one body.
pub(crate) struct QBlockClient {
    number: u32,
    endpoint: Endpoint,
    params: QBlockParameters,
    sender: Sender,
    agenda: Agenda,
    /// The record of its messages.
    pub(crate) flow: Option<Box<Flow>>,
    path: Vec<u8>,
    payload: Vec<u8>,
    blocks: u32,
    begun: bool,
    /// The requests that may be answered, and the block that each carried.
    open: VecDeque<(ExchangeId, u32)>,
    /// How often each block has left.
    sent: Vec<u8>,
    /// Blocks by the number of times that they were sent again.
    pub(crate) by_retransmissions: Counts,
    pub(crate) record: ClientRecord,
    pub(crate) book: OutcomeBook,
}

impl QBlockClient {
    pub(crate) fn new(
        (number, group): (u32, u8),
        settings: QBlock,
        scenario: &Scenario,
        streams: &Streams,
    ) -> Self {
        let (config, params) = configs(scenario, settings);
        let workload = &scenario.workload;
        let blocks = scenario.workload.messages(number).unwrap_or(0);
        let mut rng = streams.stream(&format!("client/{number}/q-block"));
        Self {
            number,
            endpoint: Endpoint::new(config, Box::new(streams.stream(&format!("client/{number}")))),
            params,
            sender: Sender::upload(blocks, true, params, &mut rng),
            agenda: Agenda::new(number, blocks, scenario, streams),
            flow: Flow::new(number, scenario, blocks),
            path: workload.path.clone().into_bytes(),
            payload: digits(workload.request_payload),
            blocks,
            begun: false,
            open: VecDeque::new(),
            sent: vec![0; blocks as usize],
            by_retransmissions: Counts::new(),
            record: ClientRecord { client: number, group, ..ClientRecord::default() },
            book: OutcomeBook::default(),
        }
    }

    /// Exchanges under way.
    pub(crate) const fn open_exchanges(&self) -> u32 {
        self.agenda.open()
    }

    /// Whether nothing is left to do.
    pub(crate) const fn is_done(&self) -> bool {
        self.agenda.is_done()
    }

    /// Whether there are messages still to be offered.
    pub(crate) const fn has_more(&self) -> bool {
        self.agenda.has_more()
    }

    /// The whole body is offered at once.
    pub(crate) fn act(&mut self, now: Instant) {
        while self.agenda.make(now).is_some() {
            self.agenda.opened();
            if let Some(flow) = &mut self.flow {
                flow.taken(now);
            }
        }
        self.begun = true;
    }

    /// A datagram arrives. Whether the application wants to act.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        datagram: &[u8],
        recorder: &mut impl Recorder,
    ) -> bool {
        match self.endpoint.handle_datagram(now, server_address().into(), datagram) {
            Received::Notification { exchange, message, .. } if !self.is_done() => {
                let block = self.open.iter().find(|(id, _)| *id == exchange);
                let block = block.map_or(0, |(_, num)| *num);
                self.answered(now, block, &message, recorder)
            }
            _ => {
                self.record.duplicates += 1;
                false
            }
        }
    }

    fn answered(
        &mut self,
        now: Instant,
        block: u32,
        message: &Message<'_>,
        recorder: &mut impl Recorder,
    ) -> bool {
        match message.code() {
            Code::CONTINUE => self.sender.on_continue(self.params.end_of_set(block)),
            Code::REQUEST_ENTITY_INCOMPLETE => {
                if let Ok(missing) = MissingBlocks::parse(message.payload()) {
                    self.sender.on_missing(missing.iter());
                }
            }
            _ => {
                let bytes = self.payload.len() as u64 * u64::from(self.blocks);
                self.record.payload_bytes += bytes + message.payload().len() as u64;
                self.record.completed += self.blocks;
                let (after, _) = self.agenda.answered(now, now);
                for _ in 0..self.blocks {
                    recorder.answered_after(after);
                }
                self.end(now);
                return true;
            }
        }
        false
    }

    /// All of it has ended.
    fn end(&mut self, now: Instant) {
        for (exchange, _) in self.open.drain(..) {
            self.endpoint.cancel(now, exchange);
        }
        for sent in &self.sent {
            count(&mut self.by_retransmissions, usize::from(sent.saturating_sub(1)));
            let again = u32::from(sent.saturating_sub(1));
            self.record.retransmissions = self.record.retransmissions.saturating_add(again);
            if let Some(time) = self.agenda.ended(now) {
                self.record.fct = time;
            }
        }
    }

    /// The endpoint's timer may be due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    /// Hands what is to be sent to `send`. Returns when it wants to be called again, and whether the
    /// application wants to act.
    pub(crate) fn drain<R: Recorder>(
        &mut self,
        now: Instant,
        recorder: &mut R,
        mut send: impl FnMut(&mut R, &[u8], Tag),
    ) -> (Option<Instant>, bool) {
        while self.begun && !self.is_done() {
            match self.sender.poll(now) {
                Sending::Block(num) => self.leave(now, num, recorder, &mut send),
                Sending::Wait(at) => {
                    let due = self.emit(now, recorder, &mut send);
                    return (at.into_iter().chain(due).min(), false);
                }
                Sending::GiveUp => {
                    let tag = Tag::default();
                    recorder.failed(now, tagged(self.number, tag), Failure::NoResponse);
                    self.record.failed += self.blocks;
                    for num in 0..self.blocks {
                        if let Some(flow) = &mut self.flow {
                            flow.given_up(num);
                        }
                    }
                    self.end(now);
                    self.emit(now, recorder, &mut send);
                    return (None, true);
                }
            }
        }
        self.emit(now, recorder, &mut send);
        (None, false)
    }

    /// A block leaves.
    fn leave<R: Recorder>(
        &mut self,
        now: Instant,
        num: u32,
        recorder: &mut R,
        send: &mut impl FnMut(&mut R, &[u8], Tag),
    ) {
        let payload = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        let size = payload.saturating_mul(self.blocks);
        let (mut block, mut whole) = ([0; 4], [0; 4]);
        let more = num + 1 < self.blocks;
        let options = [
            Opt { number: OptionNumber::URI_PATH, value: &self.path },
            Opt {
                number: OptionNumber::Q_BLOCK1,
                value: encode_uint(option(num, more, payload), &mut block),
            },
            Opt { number: OptionNumber::SIZE1, value: encode_uint(size, &mut whole) },
            // One body a client: one tag.
            Opt { number: OptionNumber::REQUEST_TAG, value: &[1, 0, 0, 0] },
        ];
        let content = Content { code: Code::PUT, options: &options, payload: &self.payload };
        if self.open.len() >= OPEN
            && let Some((exchange, _)) = self.open.pop_front()
        {
            self.endpoint.cancel(now, exchange);
        }
        // What finds no message ID is lost like in the network: it is asked for again.
        if let Ok(exchange) = self.endpoint.request_block(now, server_address().into(), &content) {
            self.open.push_back((exchange, num));
        }
        self.emit(now, recorder, send);
    }

    /// Hands on what the endpoint has. When it wants to be called again.
    fn emit<R: Recorder>(
        &mut self,
        now: Instant,
        recorder: &mut R,
        send: &mut impl FnMut(&mut R, &[u8], Tag),
    ) -> Option<Instant> {
        loop {
            match self.endpoint.poll_output() {
                Output::Transmit(transmit) => {
                    let Sent::Exchange { exchange, .. } = transmit.what else { continue };
                    let Some((_, num)) = self.open.iter().find(|(id, _)| *id == exchange) else {
                        continue;
                    };
                    let Some(sent) = self.sent.get_mut(*num as usize) else { continue };
                    let tag = Tag { exchange: *num, ordinal: *sent, probe: false };
                    *sent = sent.saturating_add(1);
                    if let Some(flow) = &mut self.flow
                        && flow.leaves(now, *num)
                        && *num == 0
                    {
                        recorder.begins(now, self.number);
                    }
                    send(recorder, transmit.datagram, tag);
                }
                Output::Event(_) => {}
                Output::Timeout(at) => return at,
            }
        }
    }

    /// The final measurements; `again` blocks arrived that the server had.
    pub(crate) const fn finish(&mut self, again: u32) {
        self.record.unnecessary = again;
        self.record.needless = again;
        self.record.in_time = self.record.completed;
    }
}
