//! The driver: what a port of Ebbtide to a device consists of.
//!
//! It passes datagrams and instants to an endpoint, sends what the endpoint wants sent, and sleeps until
//! something is due. A port replaces [`Datagrams`] and the two functions of `board`.

use crate::board;
use crate::link::Datagrams;
use ebbtide_core::endpoint::{Endpoint, Event, Output, Received};
use ebbtide_core::time::Instant;
use ebbtide_core::{ExchangeId, PeerId};

/// What uses the endpoint.
pub trait Application {
    /// A datagram arrived.
    fn received(&mut self, now: Instant, endpoint: &mut Endpoint, received: Received<'_>);

    /// An exchange ended without an answer.
    fn failed(&mut self, now: Instant, exchange: ExchangeId);

    /// Starts what is due, and returns what to wait for.
    fn poll(&mut self, now: Instant, endpoint: &mut Endpoint) -> Next;
}

/// What an application waits for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A datagram, or this instant.
    Wait(Option<Instant>),
    /// Nothing: it has ended.
    Done,
}

/// The longest datagram: [`Limits::message_bytes`](ebbtide_core::endpoint::Limits::message_bytes) of a device, and some
/// more to see that a datagram is too long.
const DATAGRAM: usize = 640;

/// Runs an application until it ends.
pub fn drive(
    link: &mut impl Datagrams,
    endpoint: &mut Endpoint,
    application: &mut impl Application,
) {
    let mut buffer = [0; DATAGRAM];
    loop {
        let next = application.poll(board::now(), endpoint);
        let due = flush(link, endpoint, application);
        let Next::Wait(until) = next else { return };
        let due = earlier(due, until);
        let arrived = loop {
            let arrived = link.receive(&mut buffer);
            if arrived.is_some() || due.is_some_and(|due| due <= board::now()) {
                break arrived;
            }
            board::idle();
        };
        let now = board::now();
        match arrived {
            Some((length, from)) => {
                let received = endpoint.handle_datagram(now, from.into(), &buffer[..length]);
                application.received(now, endpoint, received);
            }
            None => endpoint.handle_timeout(now),
        }
        flush(link, endpoint, application);
    }
}

/// Carries out the endpoint's output, and returns when it has some more.
fn flush(
    link: &mut impl Datagrams,
    endpoint: &mut Endpoint,
    application: &mut impl Application,
) -> Option<Instant> {
    loop {
        match endpoint.poll_output() {
            Output::Transmit(transmit) => {
                // Without security sessions, every peer is an address.
                if let PeerId::Address(to) = transmit.to {
                    link.send(to, transmit.datagram);
                }
            }
            Output::Event(Event::Failed { exchange, .. }) => {
                application.failed(board::now(), exchange);
            }
            Output::Event(_) => {}
            Output::Timeout(at) => return at,
        }
    }
}

/// The earlier of two instants.
#[must_use]
pub fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
