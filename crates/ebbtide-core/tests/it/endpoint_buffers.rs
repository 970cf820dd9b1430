//! Output buffers that several endpoints take turns with, and the counters that take memory only when needed.

use crate::common::node::{PEER, peer};
use crate::common::{at, seeded};
use ebbtide_core::endpoint::{Endpoint, EndpointConfig, Output, Reliability};
use ebbtide_core::testbed::{OutputBuffers, swap_buffers};
use ebbtide_core::wire::{Code, Content};

fn endpoint(seed: u64) -> Endpoint {
    Endpoint::new(EndpointConfig::default(), seeded(seed))
}

fn ask(endpoint: &mut Endpoint, payload: &[u8]) {
    let content = Content { code: Code::GET, options: &[], payload };
    endpoint.request(at(0.0), PEER, &content, Reliability::Confirmable).unwrap();
}

/// The datagrams that wait.
fn take(endpoint: &mut Endpoint) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    while let Output::Transmit(transmit) = endpoint.poll_output() {
        sent.push(transmit.datagram.to_vec());
    }
    sent
}

#[test]
fn endpoints_that_take_turns_with_buffers_send_the_same_as_with_their_own() {
    let mut buffers = OutputBuffers::default();
    let (mut own, mut shared) = ([1, 2].map(endpoint), [1, 2].map(endpoint));
    for round in 0..3u8 {
        for (own, shared) in own.iter_mut().zip(&mut shared) {
            swap_buffers(shared, &mut buffers);
            if round == 0 {
                ask(own, b"one");
                ask(shared, b"one");
            } else {
                own.handle_timeout(at(f64::from(round) * 20.0));
                shared.handle_timeout(at(f64::from(round) * 20.0));
            }
            let sent = take(shared);
            assert_eq!(sent, take(own));
            assert_eq!(sent.len(), 1, "round {round}");
            swap_buffers(shared, &mut buffers);
        }
    }
}

#[test]
fn buffers_with_waiting_output_stay_where_they_are() {
    let mut buffers = OutputBuffers::default();
    let [mut one, mut other] = [1, 2].map(endpoint);
    ask(&mut one, b"waits");
    swap_buffers(&mut one, &mut buffers);
    swap_buffers(&mut other, &mut buffers);
    assert_eq!(take(&mut other).len(), 0);
    assert_eq!(take(&mut one).len(), 1);
}

#[test]
fn frequent_and_rare_events_are_counted_together() {
    let mut endpoint = endpoint(1);
    ask(&mut endpoint, b"");
    // Neither is a message: one byte, and a version that does not exist.
    endpoint.handle_datagram(at(1.0), peer(3), &[0x40]);
    endpoint.handle_datagram(at(1.0), peer(3), &[0xff, 0, 0, 1]);
    let counters = endpoint.counters();
    assert_eq!((counters.sent, counters.received, counters.malformed), (1, 2, 2));
}
