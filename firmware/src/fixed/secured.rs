//! An application in fixed tables, over DTLS with a pre-shared key (RFC 7925).

use super::{Call, DATAGRAM, Endpoint, FixedApplication, server, turn, v4, wait};
use crate::arguments::Arguments;
use crate::board;
use crate::link::{Datagrams, Link};
use crate::rng::SplitMix;
use crate::semihosting::report;
use core::net::{SocketAddr, SocketAddrV4};
use ebbtide_core::device::{DeviceFailure, Io};
use ebbtide_core::time::Duration;
use ebbtide_dtls::{ClientIo, ClientState, Credentials, Failure, Psk, PskClient, Timing};

/// The pause before a session takes the place of one that the server has ended, or has not answered.
const PAUSE: Duration = Duration::from_secs(2);

/// Opens a session and runs an application in it, until that ends or the server refuses the key. A
/// server that restarts is given another session.
pub fn drive(
    arguments: &Arguments,
    endpoint: &mut Endpoint<'_>,
    application: &mut dyn FixedApplication,
) {
    let Ok(key) = Psk::new(b"secret-of-device") else { return };
    let credentials = Credentials::new(b"device", key);
    let mut socket = Socket { link: Link::open(), server: server(arguments), rng: SplitMix(0x77) };
    let mut client = socket.with(|io| PskClient::connect(io, credentials, Timing::default()));
    let mut rng = SplitMix(arguments.number("seed", 1).into());
    let mut buffer = [0; DATAGRAM];
    loop {
        let mut due = client.timeout();
        match client.state() {
            ClientState::Established => {
                let next =
                    socket.protect(&mut client, &mut rng, |io| turn(endpoint, io, application));
                let Ok(next) = next else { break };
                if next.failure == Some(DeviceFailure::GaveUp) {
                    socket.with(|io| client.reconnect(io));
                    continue;
                }
                due = due.into_iter().chain(next.due).min();
            }
            ClientState::Ended(Failure::ClosedByPeer | Failure::NoAnswer) => {
                let until = board::now() + PAUSE;
                while board::now() < until {
                    board::idle();
                }
                socket.with(|io| client.reconnect(io));
                continue;
            }
            ClientState::Ended(_) => break,
            _ => {}
        }
        let Some((length, from)) = wait(&mut socket.link, &mut buffer, due) else {
            socket.with(|io| client.handle_timeout(io));
            continue;
        };
        let Some(from) = v4(from).filter(|from| *from == socket.server) else { continue };
        let mut rest = &mut buffer[..length];
        while let Some(arrived) = socket.with(|io| client.receive(io, rest)) {
            socket.protect(&mut client, &mut rng, |io| {
                let received = endpoint.receive(io, from, arrived.data);
                application.received(endpoint, io, received);
            });
            rest = arrived.rest;
        }
    }
    report("established", (client.state() == ClientState::Established).into());
}

/// The way to the server.
struct Socket {
    link: Link,
    server: SocketAddrV4,
    rng: SplitMix,
}

impl Socket {
    /// Passes the socket to a call of the session.
    fn with<R>(&mut self, call: impl FnOnce(&mut ClientIo<'_>) -> R) -> R {
        let Self { link, server, rng } = self;
        let send = &mut |record: &[u8]| link.send(SocketAddr::V4(*server), record);
        call(&mut ClientIo { now: board::now(), rng, send })
    }

    /// Passes the session to a call of the endpoint.
    fn protect<R>(
        &mut self,
        client: &mut PskClient,
        rng: &mut SplitMix,
        call: impl FnOnce(&mut Call<'_>) -> R,
    ) -> R {
        let send = &mut |_, message: &[u8]| {
            // What cannot be sent is as if lost.
            let _ = self.with(|io| client.send(io, message));
        };
        call(&mut Io { now: board::now(), rng, send })
    }
}
