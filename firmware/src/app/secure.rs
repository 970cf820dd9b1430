//! GETs over DTLS with a pre-shared key (RFC 7925).

use super::gets::Gets;
use crate::arguments::Arguments;
use crate::board;
use crate::driver::{Application, Next, earlier};
use crate::link::Datagrams;
use crate::rng::SplitMix;
use crate::semihosting::report;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;
use ebbtide_core::endpoint::{Endpoint, Event, Output};
use ebbtide_dtls::{
    CipherSuite, Config, Credentials, Endpoint as Dtls, Event as DtlsEvent, Output as DtlsOutput,
    Psk, Timing,
};

const DATAGRAM: usize = 640;

/// Opens a session and runs `gets` in it.
pub fn run(
    link: &mut impl Datagrams,
    endpoint: &mut Endpoint,
    server: SocketAddr,
    arguments: &Arguments,
) {
    let suites = [CipherSuite::ALL[0]].to_vec();
    let mut config = Config { suites, cid_length: Some(0), mtu: 512, ..Config::default() };
    config.limits.sessions = 1;
    config.limits.handshakes = 1;
    config.limits.resumable = 1;
    config.limits.outbox_bytes = 2048;
    let mut dtls = Dtls::new(config, Box::new(SplitMix(0x77)));
    let Ok(key) = Psk::new(b"secret-of-device") else { return };
    let session =
        dtls.connect(board::now(), server, Credentials::new(b"device", key), Timing::default());
    let mut gets = Gets::new(server, arguments);
    let mut buffer = [0; DATAGRAM];
    let mut sealed = Vec::with_capacity(DATAGRAM);
    let mut is_established = false;
    loop {
        let mut due = loop {
            match dtls.poll_output() {
                DtlsOutput::Transmit { to, datagram } => link.send(to, datagram),
                DtlsOutput::Event(DtlsEvent::Established { .. }) => is_established = true,
                DtlsOutput::Event(DtlsEvent::Ended { .. }) => return,
                DtlsOutput::Event(_) => {}
                DtlsOutput::Timeout(at) => break at,
            }
        };
        if is_established && gets.poll(board::now(), endpoint) == Next::Done {
            break;
        }
        loop {
            match endpoint.poll_output() {
                Output::Transmit(transmit) => {
                    sealed.clear();
                    if let Ok(to) = dtls.send(board::now(), session, transmit.datagram, &mut sealed)
                    {
                        link.send(to, &sealed);
                    }
                }
                Output::Event(Event::Failed { exchange, .. }) => {
                    gets.failed(board::now(), exchange)
                }
                Output::Event(_) => {}
                Output::Timeout(at) => {
                    due = earlier(due, at);
                    break;
                }
            }
        }
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
                let mut deliver = |_, message: &[u8]| {
                    let received = endpoint.handle_datagram(now, server.into(), message);
                    gets.received(now, endpoint, received);
                };
                dtls.handle_datagram(now, from, &mut buffer[..length], &mut deliver);
            }
            None => {
                dtls.handle_timeout(now);
                endpoint.handle_timeout(now);
            }
        }
    }
    gets.report();
    report("established", is_established.into());
}
