//! A host that sends a body in blocks.

use super::server::QBlockServer;
use super::{OPEN, configs, option};
use crate::host::agenda::Agenda;
use crate::host::flow::MessageFlow;
use crate::host::{
    ArrivingPacket, ClientSetup, ExchangeLedger, Host, ObservedHost, ServerEnd, Tag, digits,
    server_address, tagged,
};
use crate::record::Recorder;
use crate::scenario::QBlock;
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
    pub(crate) flow: Option<Box<MessageFlow>>,
    path: Vec<u8>,
    payload: Vec<u8>,
    blocks: u32,
    begun: bool,
    /// The requests that may be answered, and the block that each carried.
    open: VecDeque<(ExchangeId, u32)>,
    /// How often each block has left.
    sent: Vec<u8>,
    /// Retransmissions are blocks that were sent again.
    ledger: ExchangeLedger,
    server: QBlockServer,
}

impl QBlockClient {
    pub(crate) fn new(setup: ClientSetup<'_>, settings: QBlock) -> Self {
        let ClientSetup { number, group, scenario, streams } = setup;
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
            flow: MessageFlow::new(number, scenario, blocks),
            path: workload.path.clone().into_bytes(),
            payload: digits(workload.request_payload),
            blocks,
            begun: false,
            open: VecDeque::new(),
            sent: vec![0; blocks as usize],
            ledger: ExchangeLedger::new(number, group),
            server: QBlockServer::new(number, settings, scenario, streams),
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
                self.ledger.record.payload_bytes += bytes + message.payload().len() as u64;
                self.ledger.record.completed += self.blocks;
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
            self.ledger.count(usize::from(sent.saturating_sub(1)));
            let again = u32::from(sent.saturating_sub(1));
            let record = &mut self.ledger.record;
            record.retransmissions = record.retransmissions.saturating_add(again);
            if let Some(time) = self.agenda.ended(now) {
                self.ledger.record.fct = time;
            }
        }
    }

    /// A block leaves.
    fn leave<R: Recorder>(
        &mut self,
        now: Instant,
        num: u32,
        recorder: &mut R,
        send: &mut dyn FnMut(&mut R, &[u8], Tag),
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
        send: &mut dyn FnMut(&mut R, &[u8], Tag),
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
}

impl Host for QBlockClient {
    fn agenda(&self) -> &Agenda {
        &self.agenda
    }

    fn ledger(&self) -> &ExchangeLedger {
        &self.ledger
    }

    fn ledger_mut(&mut self) -> &mut ExchangeLedger {
        &mut self.ledger
    }

    fn flow(&mut self) -> Option<&mut MessageFlow> {
        self.flow.as_deref_mut()
    }

    /// The whole body is offered at once.
    fn act(&mut self, now: Instant) {
        while self.agenda.make(now).is_some() {
            self.agenda.opened();
            if let Some(flow) = &mut self.flow {
                flow.taken(now);
            }
        }
        self.begun = true;
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn finish(&mut self) {
        let record = &mut self.ledger.record;
        record.unnecessary = self.server.repeated;
        record.needless = record.unnecessary;
        record.in_time = record.completed;
    }

    fn server_end(&mut self) -> Option<&mut dyn ServerEnd> {
        Some(&mut self.server)
    }
}

impl<R: Recorder> ObservedHost<R> for QBlockClient {
    fn receive(&mut self, now: Instant, packet: ArrivingPacket<'_>, recorder: &mut R) -> bool {
        match self.endpoint.handle_datagram(now, server_address().into(), packet.bytes) {
            Received::Notification { exchange, message, .. } if !self.is_done() => {
                let block = self.open.iter().find(|(id, _)| *id == exchange);
                let block = block.map_or(0, |(_, num)| *num);
                self.answered(now, block, &message, recorder)
            }
            _ => {
                self.ledger.record.duplicates += 1;
                false
            }
        }
    }

    fn drain(
        &mut self,
        now: Instant,
        recorder: &mut R,
        send: &mut dyn FnMut(&mut R, &[u8], Tag),
    ) -> (Option<Instant>, bool) {
        while self.begun && !self.is_done() {
            match self.sender.poll(now) {
                Sending::Block(num) => self.leave(now, num, recorder, send),
                Sending::Wait(at) => {
                    let due = self.emit(now, recorder, send);
                    return (at.into_iter().chain(due).min(), false);
                }
                Sending::GiveUp => {
                    let tag = Tag::default();
                    recorder.failed(now, tagged(self.number, tag), Failure::NoResponse);
                    self.ledger.record.failed += self.blocks;
                    for num in 0..self.blocks {
                        if let Some(flow) = &mut self.flow {
                            flow.given_up(num);
                        }
                    }
                    self.end(now);
                    self.emit(now, recorder, send);
                    return (None, true);
                }
            }
        }
        self.emit(now, recorder, send);
        (None, false)
    }
}
