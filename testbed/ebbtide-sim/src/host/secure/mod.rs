//! Hosts behind DTLS: the handshakes and records of `ebbtide-dtls` itself.

mod client;
mod server;

pub(crate) use client::SecureClient;
pub(crate) use server::SecureServer;

use super::{Tag, client_address, server_address};
use crate::scenario::{Return, Scenario, Timers};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_dtls::{Config, Output, Timing};
use std::net::SocketAddr;

/// Marks datagrams that carry no message of CoAP.
const HANDSHAKE: Tag = Tag { exchange: u32::MAX, ordinal: 0, probe: true };

/// Where a client was before it went away: another port of the same host, as a NAT has it.
fn earlier_address(client: u32) -> SocketAddr {
    let mut address = client_address(client);
    address.set_port(40_000);
    address
}

/// The key of all clients: the lookup is not what is measured.
const KEY: [u8; 16] = *b"0123456789abcdef";

fn config(scenario: &Scenario) -> Config {
    let room = scenario.network.mtu.saturating_sub(scenario.network.header);
    let timing = match (scenario.security.server_timeout.0, scenario.security.timers) {
        (0, Timers::Control) => Timing::SERVER,
        (0, timers) => timing(timers),
        (nanos, timers) => {
            let first_timeout = Duration::from_nanos(nanos);
            Timing { first_timeout, ..timing(timers) }
        }
    };
    let mut config = Config { mtu: room as usize, timing, ..Config::default() };
    config.limits.handshakes = scenario.clients.count as usize;
    if scenario.security.returns != Return::ConnectionId {
        config.cid_length = None;
    }
    config
}

/// When flights are repeated where no congestion control says so.
fn timing(timers: Timers) -> Timing {
    // Until about two minutes have passed, in each case.
    let (first, max_retransmit) = match timers {
        Timers::Rfc6347 => (1, 6),
        Timers::Rfc7925 => (9, 3),
        Timers::Control => return Timing::default(),
    };
    let (first_timeout, max_timeout) = (Duration::from_secs(first), Duration::from_secs(60));
    Timing { first_timeout, max_timeout, max_retransmit }
}

/// A session from before the run: a client that was there, and went away.
fn meet_before(client: &mut SecureClient, server: &mut SecureServer) {
    let from = earlier_address(client.number());
    client.begin_before();
    loop {
        let mut moved = false;
        loop {
            match client.dtls.poll_output() {
                Output::Transmit { datagram, .. } => {
                    let mut datagram = datagram.to_vec();
                    server.dtls.handle_datagram(Instant::ZERO, from, &mut datagram, &mut |_, _| {});
                    moved = true;
                }
                Output::Event(_) => {}
                Output::Timeout(_) => break,
            }
        }
        loop {
            match server.dtls.poll_output() {
                Output::Transmit { datagram, .. } => {
                    let mut datagram = datagram.to_vec();
                    let remote = server_address();
                    client.dtls.handle_datagram(
                        Instant::ZERO,
                        remote,
                        &mut datagram,
                        &mut |_, _| {},
                    );
                    moved = true;
                }
                Output::Event(_) => {}
                Output::Timeout(_) => break,
            }
        }
        if !moved {
            break;
        }
    }
    client.go_away();
}
