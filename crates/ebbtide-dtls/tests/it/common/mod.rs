//! Two endpoints and a network between them, in virtual time.

#[cfg(feature = "certificates")]
pub(crate) mod certificates;
pub(crate) mod script;

use ebbtide_core::time::{Duration, Instant};
use ebbtide_dtls::{
    ClientCredentials, Config, Credentials, Endpoint, Event, Output, Psk, SessionId, Timing,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

pub(crate) const CLIENT: &str = "192.0.2.1:40000";
pub(crate) const SERVER: &str = "192.0.2.2:5684";

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

pub(crate) fn psk(key: &[u8]) -> Psk {
    Psk::new(key).unwrap()
}

pub(crate) fn credentials(identity: &str, key: &[u8]) -> Credentials {
    Credentials { identity: Arc::from(identity.as_bytes()), psk: psk(key), saved: None }
}

/// A server that knows `device` with the key `secret`.
pub(crate) fn server(config: Config, seed: u64) -> Endpoint {
    let mut endpoint = Endpoint::new(config, Box::new(ChaCha8Rng::seed_from_u64(seed)));
    endpoint.accept(Box::new(|identity: &[u8]| (identity == b"device").then(|| psk(b"secret"))));
    endpoint
}

pub(crate) fn client(config: Config, seed: u64) -> Endpoint {
    Endpoint::new(config, Box::new(ChaCha8Rng::seed_from_u64(seed)))
}

/// A client's usual settings: no connection ID of its own.
pub(crate) fn client_config() -> Config {
    Config { cid_length: Some(0), ..Config::default() }
}

/// What an endpoint has given.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) events: Vec<Event>,
    pub(crate) data: Vec<(SessionId, Vec<u8>)>,
    /// All datagrams that it sent.
    pub(crate) sent: Vec<(SocketAddr, Vec<u8>)>,
}

impl Seen {
    pub(crate) fn established(&self) -> Vec<(SessionId, bool)> {
        let of = |event: &Event| match event {
            Event::Established { session, resumed } => Some((*session, *resumed)),
            _ => None,
        };
        self.events.iter().filter_map(of).collect()
    }

    pub(crate) fn ended(&self) -> Vec<&Event> {
        self.events.iter().filter(|event| matches!(event, Event::Ended { .. })).collect()
    }

    pub(crate) fn round_trips(&self) -> Vec<&Event> {
        self.events.iter().filter(|event| matches!(event, Event::RoundTrip { .. })).collect()
    }
}

pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    /// Where the client's datagrams seem to come from.
    pub(crate) client_address: SocketAddr,
    pub(crate) server_address: SocketAddr,
    pub(crate) at_client: Seen,
    pub(crate) at_server: Seen,
    pub(crate) delay: Duration,
    in_flight: BTreeMap<(Instant, u64), (bool, SocketAddr, Vec<u8>)>,
    count: u64,
}

/// What the network does to a datagram: the copies that arrive, with their extra delay.
pub(crate) type Fate<'a> = &'a mut dyn FnMut(&[u8]) -> Vec<(Duration, Vec<u8>)>;

impl Pair {
    pub(crate) fn new(client_config: Config, server_config: Config) -> Self {
        Self {
            now: Instant::ZERO + Duration::from_secs(1000),
            client: client(client_config, 1),
            server: server(server_config, 2),
            client_address: address(CLIENT),
            server_address: address(SERVER),
            at_client: Seen::default(),
            at_server: Seen::default(),
            delay: Duration::from_millis(50),
            in_flight: BTreeMap::new(),
            count: 0,
        }
    }

    pub(crate) fn connect(&mut self, credentials: impl Into<ClientCredentials>) -> SessionId {
        self.client.connect(self.now, self.server_address, credentials, Timing::default())
    }

    pub(crate) fn inject(&mut self, to_server: bool, from: SocketAddr, datagram: Vec<u8>) {
        self.count += 1;
        self.in_flight.insert((self.now, self.count), (to_server, from, datagram));
    }

    pub(crate) fn send_from_client(&mut self, session: SessionId, data: &[u8]) {
        let mut record = Vec::new();
        self.client.send(self.now, session, data, &mut record).unwrap();
        let from = self.client_address;
        self.inject(true, from, record);
    }

    /// Until nothing is in flight and nothing due within `limit`.
    pub(crate) fn run(&mut self, limit: Duration) {
        self.run_with(limit, &mut |datagram| vec![(Duration::ZERO, datagram.to_vec())]);
    }

    pub(crate) fn run_with(&mut self, limit: Duration, fate: Fate<'_>) {
        let end = self.now + limit;
        loop {
            let mut timeouts = Vec::new();
            for at_server in [false, true] {
                timeouts.extend(self.drain(at_server, fate));
            }
            let next = self.in_flight.first_key_value().map(|((at, _), _)| *at);
            let Some(at) = timeouts.into_iter().chain(next).min().filter(|at| *at <= end) else {
                return;
            };
            self.now = self.now.max(at);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            while let Some(entry) = self.in_flight.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to_server, from, mut datagram) = entry.remove();
                let (endpoint, seen) = match to_server {
                    true => (&mut self.server, &mut self.at_server),
                    false => (&mut self.client, &mut self.at_client),
                };
                endpoint.handle_datagram(self.now, from, &mut datagram, &mut |session, data| {
                    seen.data.push((session, data.to_vec()));
                });
            }
        }
    }

    fn drain(&mut self, at_server: bool, fate: Fate<'_>) -> Option<Instant> {
        loop {
            let (endpoint, seen, from) = match at_server {
                true => (&mut self.server, &mut self.at_server, self.server_address),
                false => (&mut self.client, &mut self.at_client, self.client_address),
            };
            match endpoint.poll_output() {
                Output::Timeout(at) => return at,
                Output::Event(event) => seen.events.push(event),
                Output::Transmit { to, datagram } => {
                    seen.sent.push((to, datagram.to_vec()));
                    let reaches = to == self.server_address || to == self.client_address;
                    for (extra, copy) in fate(datagram).into_iter().filter(|_| reaches) {
                        self.count += 1;
                        let at = self.now + self.delay + extra;
                        self.in_flight.insert((at, self.count), (!at_server, from, copy));
                    }
                }
            }
        }
    }
}
