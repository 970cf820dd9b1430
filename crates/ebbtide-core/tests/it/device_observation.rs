//! A device's observation at a server that forgets its observers.

use crate::common::split_mix::SplitMix;
use ebbtide_core::device::{
    DeviceBody, DeviceConfig, DeviceObservation, DeviceObservationStep, DeviceReceived,
    DeviceRequestParts, DeviceTables, Io,
};
use ebbtide_core::time::Instant;
use ebbtide_core::wire::{Code, Content, Message, Opt, OptionNumber, Type};

struct Unread;

impl DeviceBody for Unread {}

#[test]
fn an_observation_registers_again_under_its_token_when_the_session_was_replaced() {
    let mut tables = DeviceTables::<u8, _, 1, 2, 64>::new();
    let mut endpoint = tables.endpoint(DeviceConfig::fasor_token());
    let (mut rng, mut sent) = (SplitMix(1), Vec::new());
    let send = &mut |_, datagram: &[u8]| sent.push(datagram.to_vec());
    let io = &mut Io { now: Instant::ZERO, rng: &mut rng, send };
    let request = DeviceRequestParts { code: Code::GET, options: &[], length: 0, szx: 2 };
    let mut observation = DeviceObservation::new(request, 0);
    assert_eq!(observation.poll(&mut endpoint, io, &mut Unread), DeviceObservationStep::Wait(None));
    let registration = sent.pop().expect("a registration");
    let read = Message::parse(&registration).unwrap();
    let observe =
        |message: &Message<'_>| message.option(OptionNumber::OBSERVE).map(|it| it.as_uint());
    assert_eq!(observe(&read), Some(Some(0)));
    let mut state = [0; 32];
    let options = [Opt { number: OptionNumber::OBSERVE, value: &[7] }];
    let content = Content { code: Code::CONTENT, options: &options, payload: b"on" };
    let (id, token) = (read.message_id(), read.token().unwrap());
    let length = content.encode(&mut state, Type::Acknowledgement, id, token).unwrap().len;
    let send = &mut |_, datagram: &[u8]| sent.push(datagram.to_vec());
    let io = &mut Io { now: Instant::ZERO, rng: &mut rng, send };
    let received = endpoint.receive(io, 0, &state[..length]);
    let DeviceReceived::Notification { exchange, message } = received else { panic!("a state") };
    assert!(observation.received(io, exchange, &message, true, &mut Unread));
    assert_eq!(
        observation.poll(&mut endpoint, io, &mut Unread),
        DeviceObservationStep::State(Code::CONTENT)
    );
    // Once, however often the program says so before the answer.
    for _ in 0..2 {
        observation.register_again();
        observation.poll(&mut endpoint, io, &mut Unread);
    }
    assert_eq!(sent.len(), 1);
    let again = Message::parse(&sent[0]).unwrap();
    assert_eq!((observe(&again), again.token()), (Some(Some(0)), Some(token)));
    assert_ne!(again.message_id(), id);
}
