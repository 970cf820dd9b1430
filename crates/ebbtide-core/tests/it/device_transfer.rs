//! Bodies in blocks, on a device: the datagrams are those of the transfer that holds whole bodies,
//! whatever the server does.

use crate::common::split_mix::SplitMix;
use bytes::Bytes;
use core::convert::Infallible;
use core::net::SocketAddr;
use ebbtide_core::cc::{Algorithm, ControlConfig, Fasor};
use ebbtide_core::device::{
    DeviceBody, DeviceConfig, DevicePoll, DeviceReceived, DeviceRequestParts, DeviceStep,
    DeviceTables, DeviceTransfer, Io,
};
use ebbtide_core::endpoint::{
    Endpoint, EndpointConfig, Event, Limits, Output, Received, Reliability,
};
use ebbtide_core::session::client::{Loss, RequestParts, Step, Transfer, TransferSettings};
use ebbtide_core::session::{BlockSizes, Options, Response};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Block, Code, Content, Message, Opt, OptionNumber, Type, encode_uint};
use ebbtide_core::{ExchangeId, PeerId};
use rand_core::{Rng, TryRng};

const MESSAGE: usize = 120;
const LIMIT: usize = 400;
const TAG: u32 = 7000;

/// Counts up, as the tags of a device do.
struct Tags(u32);

impl TryRng for Tags {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0 += 1;
        Ok(self.0 - 1)
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.try_next_u32().map(u64::from)
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(0);
        Ok(())
    }
}

/// The bodies of the device, held whole for the comparison.
struct Bodies {
    sent: Vec<u8>,
    arrived: Vec<u8>,
}

impl DeviceBody for Bodies {
    fn read(&mut self, offset: usize, length: usize) -> &[u8] {
        &self.sent[offset..offset + length]
    }
    fn write(&mut self, offset: usize, message: &Message<'_>) -> bool {
        self.arrived.truncate(offset);
        assert_eq!(self.arrived.len(), offset, "no gap");
        // A body that is announced as too long is not begun; a whole response has come anyway.
        let block =
            message.option(OptionNumber::BLOCK2).and_then(|it| Block::from_option(&it).ok());
        let begins = block.is_some_and(|block| block.num() == 0 && block.more());
        let announced = message.option(OptionNumber::SIZE2).filter(|_| begins);
        let announced = announced.and_then(|it| it.as_uint()).unwrap_or(0);
        self.arrived.extend_from_slice(message.payload());
        self.arrived.len().max(announced as usize) <= LIMIT
    }
}

/// What a server answers to a request: mostly by the rules, with blocks of its own size, and a body that may change.
fn answer(request: &[u8], body: &[u8], rng: &mut SplitMix) -> Option<Vec<u8>> {
    let message = Message::parse(request).ok()?;
    let drawn = rng.next_u32();
    let bits = |at: u32, most: u32| (drawn >> at) % most;
    let block = |number| message.option(number).and_then(|it| Block::from_option(&it).ok());
    let (mut code, mut payload) = (Code::CHANGED, &b""[..]);
    let (mut one, mut two, mut size) = ([0; 4], [0; 4], [0; 4]);
    let mut options = Vec::new();
    let mut is_done = true;
    if let Some(block) = block(OptionNumber::BLOCK1) {
        let szx = if bits(0, 6) == 0 { bits(4, 3) as u8 } else { block.szx() };
        let number = if bits(8, 40) == 0 { 3 } else { block.offset() >> (szx + 4) };
        let named = Block::new(number, block.more(), szx).ok()?;
        options.push(Opt {
            number: OptionNumber::BLOCK1,
            value: encode_uint(named.to_uint(), &mut one),
        });
        is_done = !block.more();
        code = match bits(12, 40) {
            0 => Code::REQUEST_ENTITY_INCOMPLETE,
            1 => Code::REQUEST_ENTITY_TOO_LARGE,
            _ if block.more() => Code::CONTINUE,
            _ => Code::CHANGED,
        };
    }
    if is_done {
        let wanted = block(OptionNumber::BLOCK2).unwrap_or(Block::new(0, false, 6).ok()?);
        let szx = if bits(16, 6) == 0 { bits(20, 3) as u8 } else { wanted.szx() };
        let from = (wanted.offset() as usize).min(body.len());
        let end = body.len().min(from + (16 << szx));
        payload = &body[from..end];
        if from > 0 || end < body.len() {
            let more = end < body.len();
            let number = if bits(24, 50) == 0 { 5 } else { from as u32 >> (szx + 4) };
            let given = Block::new(number, more, szx).ok()?;
            options.push(Opt {
                number: OptionNumber::BLOCK2,
                value: encode_uint(given.to_uint(), &mut two),
            });
            if bits(27, 2) == 0 {
                let announced = body.len() as u32 * if bits(10, 30) == 0 { 10 } else { 1 };
                options.push(Opt {
                    number: OptionNumber::SIZE2,
                    value: encode_uint(announced, &mut size),
                });
            }
        }
        options.push(Opt { number: OptionNumber::ETAG, value: &body[..1] });
        if bits(14, 60) == 0 {
            code = Code::REQUEST_ENTITY_INCOMPLETE;
            options.retain(|it| it.number != OptionNumber::BLOCK2);
        }
    }
    if bits(18, 15) == 0 {
        (code, payload) = (Code::UNAUTHORIZED, b"");
        options = vec![Opt { number: OptionNumber::ECHO, value: b"fresh" }];
    }
    let mut datagram = vec![0; 200];
    let content = Content { code, options: &options, payload };
    let (id, token) = (message.message_id(), message.token().unwrap());
    let length = content.encode(&mut datagram, Type::Acknowledgement, id, token).ok()?.len;
    datagram.truncate(length);
    Some(datagram)
}

/// One transfer, by a seed. Returns the number of its datagrams, and whether a response came.
fn play(seed: u64) -> (usize, bool) {
    let mut rng = SplitMix(seed ^ 0xb10c);
    let drawn = rng.next_u32();
    let code = [Code::PUT, Code::POST, Code::FETCH, Code::GET][drawn as usize % 4];
    let length = if code == Code::GET { 0 } else { (drawn >> 4) as usize % 150 };
    let szx = (drawn >> 12) as u8 % 4;
    let sent: Vec<u8> = (0..length).map(|at| at as u8).collect();
    let mut body = vec![(drawn >> 16) as u8; 1 + (drawn >> 24) as usize % 180];
    let long = [b'q'; 40];
    let path = [
        Opt { number: OptionNumber::URI_PATH, value: &long[..(drawn >> 14) as usize % 40] },
        Opt { number: OptionNumber::IF_NONE_MATCH, value: b"" },
    ];
    let options = &path[..1 + usize::from(code == Code::PUT && drawn & 0x8000 > 0)];

    let control = ControlConfig::new(Algorithm::FasorToken);
    let limits = Limits { message_bytes: MESSAGE, ..Limits::default() };
    let config = EndpointConfig { control, limits, ..EndpointConfig::default() };
    let mut many = Endpoint::new(config, Box::new(SplitMix(seed)));
    let mut settings = TransferSettings::new(BlockSizes::of_datagrams(16 << szx), LIMIT);
    settings.max_body = LIMIT;
    let mut given = Options::new();
    options.iter().for_each(|it| given.push(it.number, it.value));
    let payload = Bytes::from(sent.clone());
    let parts = RequestParts { code, options: given, payload, block_size: Some(16 << szx) };
    let mut whole = Transfer::new(parts, settings);
    let mut tags = Tags(TAG);
    let peer = PeerId::Address(SocketAddr::from(([192, 0, 2, 1], 5683)));
    let mut open: Option<(ExchangeId, u32)> = None;

    let mut tables = DeviceTables::<(), Fasor, 1, 1, MESSAGE>::new();
    let mut few = tables.endpoint(DeviceConfig::fasor_token());
    let mut device_rng = SplitMix(seed);
    let _ = [(); 3].map(|()| device_rng.next_u64());
    let parts = DeviceRequestParts { code, options, length, szx };
    let mut transfer = DeviceTransfer::new(parts, (), TAG);
    let mut bodies = Bodies { sent, arrived: Vec::new() };

    let (mut now, mut datagrams, mut arriving) = (Instant::ZERO, 0, None::<Vec<u8>>);
    for _ in 0..2000 {
        // The transfer that holds whole bodies.
        if let Some(datagram) = &arriving {
            match many.handle_datagram(now, peer, datagram) {
                Received::Response { exchange, message, .. } => {
                    let (_, id) = open.take().filter(|it| it.0 == exchange).expect("its exchange");
                    whole.handle_response(now, id, Response::from_message(&message));
                }
                other => panic!("{other:?}"),
            }
        } else {
            many.handle_timeout(now);
        }
        let (mut left, mut result) = (Vec::new(), None);
        let due = loop {
            match whole.poll(now, &mut tags) {
                Step::Send(outgoing) => {
                    let started = outgoing.options.with_slice(None, |options| {
                        let content =
                            Content { code: outgoing.code, options, payload: &outgoing.payload };
                        many.request(now, peer, &content, Reliability::Confirmable)
                    });
                    match started {
                        Ok(exchange) => open = Some((exchange, outgoing.id)),
                        Err(error) => whole.handle_loss(now, outgoing.id, Loss::from(error)),
                    }
                    continue;
                }
                Step::Done(done) => result = Some(done.ok()),
                Step::Cancel(_) => panic!("nothing is to be cancelled"),
                Step::Wait(_) => {}
            }
            match many.poll_output() {
                Output::Transmit(transmit) => left.push(transmit.datagram.to_vec()),
                Output::Event(Event::Failed { exchange, reason }) => {
                    let (_, id) = open.take().filter(|it| it.0 == exchange).expect("its exchange");
                    whole.handle_loss(now, id, Loss::from(reason));
                }
                Output::Timeout(at) => break at,
                Output::Event(_) => unreachable!("there is one kind of event"),
            }
        };
        // The device's.
        let mut also = Vec::new();
        let mut io = Io {
            now,
            rng: &mut device_rng,
            send: &mut |(), datagram: &[u8]| also.push(datagram.to_vec()),
        };
        if let Some(datagram) = &arriving {
            match few.receive(&mut io, (), datagram) {
                DeviceReceived::Response { exchange, message } => {
                    assert!(transfer.received(exchange, &message, &mut bodies));
                }
                other => panic!("{other:?}"),
            }
        }
        let (device_result, device_due) = loop {
            let step = transfer.poll(&mut few, &mut io, &mut bodies);
            match (few.poll(&mut io), step) {
                (DevicePoll::Failed { exchange, .. }, _) => assert!(transfer.failed(exchange)),
                (DevicePoll::Wait(at), DeviceStep::Wait) => break (None, at),
                (DevicePoll::Wait(at), DeviceStep::Done(done)) => break (Some(done.ok()), at),
            }
        };
        assert_eq!(left, also, "seed {seed}");
        assert_eq!(due, device_due, "seed {seed}");
        datagrams += left.len();
        let codes = result.as_ref().map(|done| done.as_ref().map(Response::code));
        assert_eq!(codes, device_result, "seed {seed}");
        if let Some(done) = result {
            if let Some(response) = &done {
                assert_eq!(response.body()[..], bodies.arrived[..], "seed {seed}");
            }
            return (datagrams, done.is_some());
        }
        // One datagram is on its way, and lost in every fifth case.
        if rng.next_u32().is_multiple_of(40) {
            body[0] = body[0].wrapping_add(1);
        }
        let last = left.pop().filter(|_| !rng.next_u32().is_multiple_of(5));
        arriving = last.and_then(|datagram| answer(&datagram, &body, &mut rng));
        now = match &arriving {
            Some(_) => now + Duration::from_millis(50),
            None => due.expect("the exchange has a timer"),
        };
    }
    panic!("seed {seed}: no end");
}

#[test]
fn a_device_sends_the_blocks_of_the_transfer_that_holds_whole_bodies() {
    let (mut datagrams, mut answered) = (0, 0);
    for seed in 0..1000 {
        let (sent, is_answered) = play(seed);
        (datagrams, answered) = (datagrams + sent, answered + usize::from(is_answered));
    }
    assert!(datagrams > 4_000 && (600..990).contains(&answered), "{datagrams}, {answered}");
}
