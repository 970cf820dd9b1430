//! The host that receives a client's body in blocks.

use super::configs;
use crate::host::{ServerEnd, Tag, client_address, digits};
use crate::random::Streams;
use crate::scenario::{QBlock, Scenario};
use ebbtide_core::endpoint::{Endpoint, Incoming, Output, Received};
use ebbtide_core::q_block::{BlockArrival, QBlockParameters, Receiver, Receiving};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Block, Code, Content, MissingBlocks, Opt, OptionNumber, encode_uint};
use std::ops::Range;

/// Bytes of an answer that names missing blocks, beside their numbers.
const OVERHEAD: usize = 16;

/// The server's state for one client.
pub(crate) struct QBlockServer {
    client: u32,
    endpoint: Endpoint,
    params: QBlockParameters,
    blocks: u32,
    state: TransferState,
    /// The last block's request, and its tag: answers have its token.
    last: Option<(Incoming, Tag)>,
    response: Vec<u8>,
    /// Blocks that arrived although they were here.
    pub(super) repeated: u32,
    /// The earliest timer event that is scheduled for it.
    timer: Option<Instant>,
}

enum TransferState {
    /// Nothing of the body is here, or what was has been given up.
    Empty,
    Arriving(Box<Receiver>),
    /// All of it is here: whether it has been said since the last block came.
    Whole {
        told: bool,
    },
}

impl QBlockServer {
    pub(crate) fn new(
        client: u32,
        settings: QBlock,
        scenario: &Scenario,
        streams: &Streams,
    ) -> Self {
        let (config, params) = configs(scenario, settings);
        let rng = Box::new(streams.stream(&format!("server/q-block/{client}")));
        Self {
            client,
            endpoint: Endpoint::new(config, rng),
            params,
            blocks: scenario.workload.messages(client).unwrap_or(0),
            state: TransferState::Empty,
            last: None,
            response: digits(scenario.workload.response_payload),
            repeated: 0,
            timer: None,
        }
    }

    fn proceed(&mut self, now: Instant) -> Option<Instant> {
        let (incoming, _) = self.last.clone()?;
        loop {
            let receiver = match &mut self.state {
                TransferState::Arriving(receiver) => receiver,
                TransferState::Whole { told: false } => {
                    self.state = TransferState::Whole { told: true };
                    let response = core::mem::take(&mut self.response);
                    self.respond(now, &incoming, Code::CHANGED, &[], &response);
                    self.response = response;
                    return None;
                }
                TransferState::Whole { told: true } | TransferState::Empty => return None,
            };
            match receiver.poll(now) {
                Receiving::Complete => self.state = TransferState::Whole { told: false },
                Receiving::Continue(from) => {
                    let value = from.saturating_sub(1) << 4 | 0b1000;
                    let mut bytes = [0; 4];
                    let value = encode_uint(value, &mut bytes);
                    let option = Opt { number: OptionNumber::Q_BLOCK1, value };
                    self.respond(now, &incoming, Code::CONTINUE, &[option], &[]);
                }
                Receiving::Missing => {
                    let missing: Vec<u32> = receiver.missing().collect();
                    let mut payload = vec![0; missing.len() * MissingBlocks::MAX_NUMBER_LEN];
                    let len = MissingBlocks::encode(missing, &mut payload);
                    payload.truncate(len);
                    receiver.sent(now, OVERHEAD + len);
                    let mut bytes = [0; 4];
                    let value = encode_uint(MissingBlocks::CONTENT_FORMAT.into(), &mut bytes);
                    let option = Opt { number: OptionNumber::CONTENT_FORMAT, value };
                    let code = Code::REQUEST_ENTITY_INCOMPLETE;
                    self.respond(now, &incoming, code, &[option], &payload);
                }
                Receiving::Wait(at) => return Some(at),
                Receiving::GiveUp => self.state = TransferState::Empty,
            }
        }
    }

    fn respond(
        &mut self,
        now: Instant,
        incoming: &Incoming,
        code: Code,
        options: &[Opt<'_>],
        payload: &[u8],
    ) {
        // A response that finds no room is lost like in the network.
        let _ = self.endpoint.respond(now, incoming, &Content { code, options, payload });
    }
}

impl ServerEnd for QBlockServer {
    fn receive(&mut self, now: Instant, datagram: &[u8], tag: Tag) -> Range<u32> {
        let from = client_address(self.client);
        let received = self.endpoint.handle_datagram(now, from.into(), datagram);
        let Received::Request(incoming, message) = received else { return 0..0 };
        let option = message.option(OptionNumber::Q_BLOCK1);
        let Some(block) = option.and_then(|option| Block::from_option(&option).ok()) else {
            return 0..0;
        };
        let num = block.num();
        self.last = Some((incoming, tag));
        if let TransferState::Empty = self.state {
            self.state =
                TransferState::Arriving(Box::new(Receiver::new(now, self.blocks, self.params)));
        }
        let is_new = match &mut self.state {
            TransferState::Arriving(receiver) => receiver.on_block(now, num) == BlockArrival::New,
            TransferState::Whole { told } => {
                *told = false;
                false
            }
            TransferState::Empty => false,
        };
        self.repeated += u32::from(!is_new);
        num..num + 1
    }

    fn timer(&mut self) -> &mut Option<Instant> {
        &mut self.timer
    }

    /// Blocks that are due leave when they are drained.
    fn handle_timeout(&mut self) {}

    /// Answers what is due before it hands on what is to be sent.
    fn drain(&mut self, now: Instant, send: &mut dyn FnMut(&[u8], Tag)) -> Option<Instant> {
        let due = self.proceed(now);
        let tag = self.last.as_ref().map_or(Tag::default(), |(_, tag)| *tag);
        while let Output::Transmit(transmit) = self.endpoint.poll_output() {
            send(transmit.datagram, tag);
        }
        due
    }
}
