//! Codec and congestion control without an allocator: GETs whose retransmissions this program schedules itself.
#![no_std]
#![no_main]

use ebbtide_core::cc::{
    Algorithm, Attempts, Context, Fasor, Kind, Marking, Outcome, Sample, Settings, Shell, Slot,
    Transmission,
};
use ebbtide_core::params::Parameters;
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Message, MessageId, Opt, OptionNumber, Token, Type};
use ebbtide_firmware::arguments::Arguments;
use ebbtide_firmware::link::{Datagrams, Link, host};
use ebbtide_firmware::rng::SplitMix;
use ebbtide_firmware::semihosting::report;
use ebbtide_firmware::{board, program};

program!(run);

fn run(arguments: &Arguments) {
    let server = host(arguments.number("port", 5683));
    let mut link = Link::open();
    let mut setting = Setting {
        params: Parameters::DEFAULT,
        settings: Algorithm::Fasor.settings(),
        rng: SplitMix(arguments.number("seed", 1).into()),
    };
    setting.params.max_retransmit = arguments.number("retransmit", 4) as u8;
    let mut shell = Shell::new(Fasor::fast_slow_fast(Marking::None));
    let mut datagram = [0; 64];
    let mut delivered = 0;
    for number in 0..arguments.number("gets", 20) {
        let id = MessageId(number as u16);
        let Some(length) = encode(id, &mut datagram) else { return };
        let (mut slot, mut attempts) = (Slot::default(), Attempts::default());
        let first = board::now();
        shell.open_exchange();
        let outcome = loop {
            let sent = board::now();
            let copy = Transmission::new(Kind::Message, attempts.transmissions);
            let timeout = shell.on_transmit(copy, &mut slot, &mut setting.at(sent));
            attempts.transmissions += 1;
            link.send(server, &datagram[..length]);
            let until = sent + timeout;
            if let Some(now) = answer(&mut link, id, until) {
                let sample = Sample::new(
                    now.micros_since(first),
                    now.micros_since(sent),
                    attempts.transmissions,
                );
                shell.on_feedback(&slot, &sample, &mut setting.at(now));
                break Outcome::Acknowledged;
            }
            if shell.on_expire(attempts, &slot, &mut setting.at(board::now())).is_none() {
                break Outcome::GaveUp;
            }
        };
        let retransmissions = attempts.transmissions - 1;
        shell.close_exchange(&slot, outcome, retransmissions, &mut setting.at(board::now()));
        delivered += u32::from(outcome == Outcome::Acknowledged);
    }
    report("delivered", delivered);
}

/// What congestion control is called with.
struct Setting {
    params: Parameters,
    settings: Settings,
    rng: SplitMix,
}

impl Setting {
    fn at(&mut self, now: Instant) -> Context<'_> {
        let Self { params, settings, rng } = self;
        Context { now, params, settings, rng }
    }
}

/// Encodes a GET, and returns its length.
fn encode(id: MessageId, datagram: &mut [u8]) -> Option<usize> {
    let options = [Opt { number: OptionNumber::URI_PATH, value: b"time" }];
    let content = Content { code: Code::GET, options: &options, payload: &[] };
    let token = Token::new(&id.0.to_be_bytes())?;
    Some(content.encode(datagram, Type::Confirmable, id, token).ok()?.len)
}

/// Waits for the acknowledgement, and returns the instant at which it arrived.
fn answer(link: &mut Link, id: MessageId, until: Instant) -> Option<Instant> {
    let mut buffer = [0; 640];
    while board::now() < until {
        match link.receive(&mut buffer) {
            Some((length, _)) => {
                let answer = Message::parse(&buffer[..length]);
                if answer.is_ok_and(|answer| {
                    answer.message_id() == id && answer.kind() == Type::Acknowledgement
                }) {
                    return Some(board::now());
                }
            }
            None => board::idle(),
        }
    }
    None
}
