//! Very many DTLS peers over sockets: those with sessions whose addresses all change, and strangers with
//! forged addresses.

use crate::common::eventually::eventually;
use ebbtide::dtls::{Credentials, DtlsBind, Psk};
use ebbtide::server::{Call, Router, Subject, get};
use ebbtide::socket::{Inbox, Outbound, Socket};
use ebbtide::{Client, ClientConfig, Response, Server, ServerConfig};
use ebbtide_core::time::{Duration, Instant};
use ebbtide_core::wire::{Code, Message, Type};
use ebbtide_dtls::{Endpoint, Event, Output, SessionId, Timing};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const PORT: u16 = 40_000;

fn serve(state: &Subject) -> (Server, SocketAddr) {
    let router = Router::new()
        .route("/x", get(|_: &Call<'_>| Response::content("x")))
        .route("/state", get(|_: &Call<'_>| Response::content("state")).observable(state));
    let keys =
        |identity: &[u8]| (identity == b"device").then(|| Psk::new(b"secret").ok()).flatten();
    let bind = DtlsBind::new(([127, 0, 0, 1], 0), keys);
    let none: [&str; 0] = [];
    let config = ServerConfig::new().bind_dtls(bind);
    let server = Server::with_config(router, config, none).unwrap();
    let address = server.dtls_addrs()[0];
    (server, address)
}

fn credentials() -> Credentials {
    Credentials::new("device", Psk::new(b"secret").unwrap())
}

fn endpoint(number: u32) -> Endpoint {
    let config = ebbtide::dtls::DtlsConfig::default().client;
    Endpoint::new(config, Box::new(ChaCha20Rng::seed_from_u64(number.into())))
}

/// One device of a crowd.
struct Device {
    endpoint: Endpoint,
    session: SessionId,
    established: usize,
    /// The states that it has received.
    states: usize,
}

/// Devices in one socket: each has an address of the loopback network of its own.
struct Crowd {
    socket: Socket,
    inbox: Inbox,
    out: Outbound<()>,
    server: SocketAddr,
    devices: Vec<Device>,
    /// The address of the first one.
    first: u32,
    now: Instant,
}

impl Crowd {
    fn new(server: SocketAddr, count: u32) -> Self {
        let device = |number| {
            let mut endpoint = endpoint(number);
            // Nothing is lost on this network, and a machine under test may be slow.
            let timing = Timing::default().beginning_with(Duration::from_secs(60));
            let session = endpoint.connect(Instant::ZERO, server, credentials(), timing);
            Device { endpoint, session, established: 0, states: 0 }
        };
        Self {
            socket: Socket::bind(SocketAddr::from(([0, 0, 0, 0], 0))).unwrap(),
            inbox: Inbox::new(),
            out: Outbound::default(),
            server,
            devices: (0..count).map(device).collect(),
            first: 0x7f01_0000,
            now: Instant::ZERO,
        }
    }

    /// Sends what the devices have to send, and takes what has come. Returns whether anything had.
    fn turn(&mut self) -> bool {
        for (device, number) in self.devices.iter_mut().zip(self.first..) {
            loop {
                match device.endpoint.poll_output() {
                    Output::Transmit { datagram, .. } => {
                        let from = IpAddr::from(Ipv4Addr::from_bits(number));
                        self.out.push(self.server, Some(from), datagram, ());
                    }
                    Output::Event(Event::Established { .. }) => device.established += 1,
                    Output::Event(Event::Ended { reason, .. }) => panic!("{number:x}: {reason}"),
                    Output::Event(_) => {}
                    Output::Timeout(_) => break,
                }
            }
        }
        let _ = self.out.flush(&self.socket, |_, (), error| panic!("{error}"));
        if self.inbox.receive(&self.socket).is_err() {
            return false;
        }
        let mut count = 0;
        for datagram in self.inbox.datagrams() {
            count += 1;
            let Some(IpAddr::V4(to)) = datagram.to else { panic!("no destination") };
            // What is sent to an address that was left does not arrive.
            let Some(number) = to.to_bits().checked_sub(self.first) else { continue };
            let Some(device) = self.devices.get_mut(number as usize) else { continue };
            let mut record = datagram.bytes.to_vec();
            let mut received = Vec::new();
            let deliver = &mut |_, message: &[u8]| received.push(message.to_vec());
            device.endpoint.handle_datagram(self.now, self.server, &mut record, deliver);
            for bytes in received {
                let message = Message::parse(&bytes).unwrap();
                device.states += usize::from(message.code() == Code::CONTENT);
                if message.kind() == Type::Confirmable {
                    let [high, low] = message.message_id().0.to_be_bytes();
                    say(device, to, self.server, &[0x60, 0, high, low], &mut self.out);
                }
            }
        }
        count > 0
    }

    async fn run(&mut self, until: impl Fn(&[Device]) -> bool) {
        assert!(self.comes(60_000, until).await, "not within a minute");
    }

    /// Whether this comes within so many turns, of about a millisecond each.
    async fn comes(&mut self, turns: u32, until: impl Fn(&[Device]) -> bool) -> bool {
        for _ in 0..turns {
            self.now = self.now + Duration::from_millis(1);
            let busy = self.turn();
            if until(&self.devices) {
                return true;
            }
            match busy {
                true => tokio::task::yield_now().await,
                false => tokio::time::sleep(core::time::Duration::from_millis(1)).await,
            }
        }
        false
    }

    /// All say the same.
    fn say(&mut self, message: &[u8]) {
        for (device, number) in self.devices.iter_mut().zip(self.first..) {
            say(device, Ipv4Addr::from_bits(number), self.server, message, &mut self.out);
        }
    }
}

fn say(
    device: &mut Device,
    from: Ipv4Addr,
    to: SocketAddr,
    message: &[u8],
    out: &mut Outbound<()>,
) {
    let mut record = Vec::new();
    device.endpoint.send(Instant::ZERO, device.session, message, &mut record).unwrap();
    out.push(to, Some(from.into()), &record, ());
}

#[tokio::test]
async fn a_thousand_sessions_whose_addresses_all_change_keep_their_observations_without_a_handshake()
 {
    const DEVICES: u32 = 1000;
    let state = Subject::new();
    let (server, at) = serve(&state);
    let mut crowd = Crowd::new(at, DEVICES);
    crowd.run(|devices| devices.iter().all(|device| device.established == 1)).await;
    // GET /state with Observe 0.
    crowd.say(b"\x41\x01\x00\x01t\x60\x55state");
    crowd.run(|devices| devices.iter().all(|device| device.states == 1)).await;
    crowd.first += 0x1_0000;
    // A CoAP ping from the new address.
    crowd.say(b"\x40\x00\x00\x02");
    let meter = server.meter();
    let moved = || server.snapshot().dtls.addresses_changed == u64::from(DEVICES);
    crowd.run(|_| moved()).await;
    // A busy system may drop one of a thousand notifications: the next state is as good.
    for round in 2..4 {
        let mut left = 10;
        loop {
            state.changed();
            if crowd.comes(6_000, |all| all.iter().all(|device| device.states >= round)).await {
                break;
            }
            left -= 1;
            assert!(left > 0, "state {round} does not reach all devices");
        }
    }
    let counters = server.snapshot().dtls;
    assert_eq!(counters.established(), u64::from(DEVICES), "{counters:?}");
    assert_eq!((counters.hellos_challenged, counters.addresses_refused), (u64::from(DEVICES), 0));
    assert_eq!(meter.snapshot().observers, DEVICES as usize);
}

#[tokio::test]
async fn twenty_thousand_forged_hellos_leave_nothing_and_an_honest_client_goes_on() {
    const HELLOS: u32 = 20_000;
    let (server, at) = serve(&Subject::new());
    let client = Client::with_config(ClientConfig::new().credentials(credentials()));
    let uri = format!("coaps://{at}/x");
    assert!(client.get(uri.as_str()).await.unwrap().is_success());

    let mut stranger = endpoint(0);
    stranger.connect(Instant::ZERO, at, credentials(), Timing::default());
    let Output::Transmit { datagram, .. } = stranger.poll_output() else { panic!() };
    let mut hello = datagram.to_vec();
    let socket = Socket::bind(SocketAddr::from(([0, 0, 0, 0], PORT))).unwrap();
    let (mut inbox, mut out) = (Inbox::new(), Outbound::default());
    let (mut answered, mut answers) = (0, 0);
    let mut before = isize::MAX;
    for first in (0..HELLOS).step_by(100) {
        for number in first..first + 100 {
            // The client's random value.
            hello[27..31].copy_from_slice(&number.to_be_bytes());
            let from = IpAddr::from(Ipv4Addr::from_bits(0x7f02_0000 + number));
            out.push(at, Some(from), &hello, ());
        }
        let _ = out.flush(&socket, |_, (), error| panic!("{error}"));
        assert!(client.get(uri.as_str()).await.unwrap().is_success());
        while inbox.receive(&socket).is_ok() {
            for datagram in inbox.datagrams() {
                answers += 1;
                answered += datagram.bytes.len();
            }
        }
        if first == 2_000 {
            before = crate::common::counting::bytes_in_use();
        }
    }
    let grown = crate::common::counting::bytes_in_use() - before;
    assert!(grown < 50_000, "{grown} bytes");
    eventually(|| server.snapshot().dtls.hellos_challenged > u64::from(HELLOS) * 9 / 10).await;
    assert!(answers > HELLOS / 2, "{answers}");
    assert!(answered <= HELLOS as usize * hello.len(), "no amplification");
    let counters = server.snapshot().dtls;
    assert_eq!((counters.established(), counters.evicted), (1, 0));
}
