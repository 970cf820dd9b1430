//! A client whose clock is the host's: it says until when it waits, and is told what comes first. It reports when its
//! messages leave. Its random numbers are those of a client in the simulator.
#![no_std]
#![no_main]

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use ebbtide_core::device::{DevicePoll, DeviceTables, Io};
use ebbtide_core::time::Instant;
use ebbtide_firmware::arguments::Arguments;
use ebbtide_firmware::fixed::gets::FixedGets;
use ebbtide_firmware::fixed::{Endpoint, FixedApplication, config, v4};
use ebbtide_firmware::link::{Datagrams, Link};
use ebbtide_firmware::program;
use ebbtide_firmware::semihosting::report;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// The address of the clock.
const CLOCK: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));

program!(run);

fn run(arguments: &Arguments) {
    let mut rng = ChaCha8Rng::from_seed(key(arguments));
    // The simulator's endpoint draws the seeds of its hash tables.
    for _ in 0..3 {
        rng.next_u64();
    }
    let mut tables = DeviceTables::<_, _, 1, 1, 64>::new();
    let endpoint = tables.endpoint(config(arguments));
    let mut device = Device { link: Link::open(), rng, endpoint, gets: FixedGets::new(arguments) };
    let mut frame = [0; 128];
    let mut due = device.turn(Instant::ZERO, None);
    while let Some(until) = due {
        device.link.send(CLOCK, &until.as_nanos().to_be_bytes());
        let (length, from) = loop {
            if let Some(arrived) = device.link.receive(&mut frame) {
                break arrived;
            }
        };
        // The instant, and the datagram that arrives then, if one does.
        let Some((instant, datagram)) = frame[..length].split_first_chunk() else { break };
        let arrived = v4(from).filter(|_| !datagram.is_empty()).map(|from| (from, datagram));
        due = device.turn(Instant::from_nanos(u64::from_be_bytes(*instant)), arrived);
    }
    device.gets.report();
}

/// The key of the random numbers: the argument `key`, in 64 hexadecimal digits.
fn key(arguments: &Arguments) -> [u8; 32] {
    let digit = |digit: &u8| char::from(*digit).to_digit(16).unwrap_or(0) as u8;
    let digits = arguments.get("key").unwrap_or_default();
    let mut key = [0; 32];
    for (byte, [high, low]) in key.iter_mut().zip(digits.as_chunks().0) {
        *byte = digit(high) << 4 | digit(low);
    }
    key
}

struct Device<'t> {
    link: Link,
    rng: ChaCha8Rng,
    endpoint: Endpoint<'t>,
    gets: FixedGets,
}

impl Device<'_> {
    /// Does what there is to do at an instant. Returns the next one, or nothing at the end.
    fn turn(&mut self, now: Instant, arrived: Option<(SocketAddrV4, &[u8])>) -> Option<Instant> {
        let Self { link, rng, endpoint, gets } = self;
        let send = &mut |to, datagram: &[u8]| {
            report("sent_us", (now.as_nanos() / 1000) as u32);
            link.send(SocketAddr::V4(to), datagram);
        };
        let io = &mut Io { now, rng, send };
        if let Some((from, datagram)) = arrived {
            let received = endpoint.receive(io, from, datagram);
            gets.received(endpoint, io, received);
        }
        loop {
            gets.poll(endpoint, io).ok()?;
            match endpoint.poll(io) {
                DevicePoll::Failed { exchange, .. } => gets.failed(io, exchange),
                DevicePoll::Wait(due) => return Some(due.unwrap_or(Instant::MAX)),
            }
        }
    }
}
